"""Covariate shift adaptation whose assumptions you can check.

A model is trained where there are labels (source) and must work where there are none
(target), while the distribution of the rows has moved.
"""

from covshift._version import __version__ as __version__
from covshift.adapters import (
    CorrelationAlignment,
    DenoisingAutoencoder,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SourceStandardScaler,
    SparseFiltering,
    SubspaceAlignment,
    fit_each,
    fit_many,
    to_numpy,
)
from covshift.base import NothingToAdaptWarning
from covshift.diagnosis import Diagnosis, diagnose
from covshift.domains import SourceOnlySplit, StackedDomains, split_domains, stack_domains
from covshift.persistence import load, save
from covshift.predictors import AdaptedClassifier, AdaptedRegressor, LSPClassifier
from covshift.selection import AutoAdaptedClassifier
from covshift.streams import SampledRowsWarning
from covshift.weights import (
    ClassifierWeights,
    KLIEPWeights,
    KMMWeights,
    RuLSIFWeights,
    ULSIFWeights,
    UnreliableWeightsWarning,
)

__all__ = [
    "AdaptedClassifier",
    "AdaptedRegressor",
    "AutoAdaptedClassifier",
    "ClassifierWeights",
    "CorrelationAlignment",
    "DenoisingAutoencoder",
    "Diagnosis",
    "DomainQuantileTransformer",
    "DomainStandardScaler",
    "KLIEPWeights",
    "KMMWeights",
    "LSPClassifier",
    "LinearMongeAlignment",
    "NothingToAdaptWarning",
    "PeriodicSparseFiltering",
    "RuLSIFWeights",
    "SampledRowsWarning",
    "SourceOnlySplit",
    "SourceStandardScaler",
    "SparseFiltering",
    "StackedDomains",
    "SubspaceAlignment",
    "ULSIFWeights",
    "UnreliableWeightsWarning",
    "diagnose",
    "fit_each",
    "fit_many",
    "load",
    "save",
    "split_domains",
    "stack_domains",
    "to_numpy",
]
