"""Covariate shift adaptation whose assumptions you can check.

A model is trained where there are labels (source) and must work where there are none
(target), while the distribution of the rows has moved.
"""

from covshift.adapters import (
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.base import NothingToAdaptWarning
from covshift.domains import SourceOnlySplit, StackedDomains, split_domains, stack_domains
from covshift.predictors import AdaptedClassifier, AdaptedRegressor

__version__ = "0.1.0"

__all__ = [
    "AdaptedClassifier",
    "AdaptedRegressor",
    "CorrelationAlignment",
    "DomainQuantileTransformer",
    "DomainStandardScaler",
    "LinearMongeAlignment",
    "NothingToAdaptWarning",
    "PeriodicSparseFiltering",
    "SourceOnlySplit",
    "SparseFiltering",
    "StackedDomains",
    "SubspaceAlignment",
    "split_domains",
    "stack_domains",
]
