"""The fixed 33 candidates that regret is measured against, whatever the package's defaults are."""

from covshift.registry import Size
from covshift.selection.candidates import Candidate, default_candidates


def fixed_candidates(size: Size) -> list[Candidate]:
    """Candidates for a problem of this size."""
    return [one for one in default_candidates(size) if one.estimator_name != "boosting"]
