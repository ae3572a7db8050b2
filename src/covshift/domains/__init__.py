"""Who is source, who is target, and which labels may be read.

The contract that every estimator of the package keeps:

- Rows of all domains are stacked. ``sample_domain`` holds one integer per row: the finest
  unit (a speaker, a site), whose sign is the role: ``>= 0`` source, ``< 0`` target.
- The label of a row is read only where ``label_mask`` says so; by default for source rows
  and for no target row.
- Rows given to ``predict`` or ``transform`` without ``sample_domain`` are target rows
  (source rows, if the fit saw no target).

This package is the only place that decides any of it.
"""

from covshift.domains.roles_and_labels import (
    SOME_SOURCE,
    SOME_TARGET,
    FitDomains,
    Labels,
    Unit,
    blank_labels,
    check_fit_domains,
    check_new_domains,
    check_no_placeholders,
    encode_classes,
    known_labels,
    locate_units,
    new_target_domain,
    placeholder_label,
    pooling_units,
    role_of,
    unit_codes,
)
from covshift.domains.source_only_split import SourceOnlySplit
from covshift.domains.stacking import StackedDomains, split_domains, stack_domains

__all__ = [
    "SOME_SOURCE",
    "SOME_TARGET",
    "FitDomains",
    "Labels",
    "SourceOnlySplit",
    "StackedDomains",
    "Unit",
    "blank_labels",
    "check_fit_domains",
    "check_new_domains",
    "check_no_placeholders",
    "encode_classes",
    "known_labels",
    "locate_units",
    "new_target_domain",
    "placeholder_label",
    "pooling_units",
    "role_of",
    "split_domains",
    "stack_domains",
    "unit_codes",
]
