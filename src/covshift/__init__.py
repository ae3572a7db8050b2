"""Covariate shift adaptation whose assumptions you can check.

A model is trained where there are labels (source) and must work where there are none
(target), while the distribution of the rows has moved.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from covshift._version import __version__ as __version__

# Names are imported on first use, so that the command line starts without NumPy and scikit-learn.
# Type checkers and editors read this block.
if TYPE_CHECKING:
    from covshift.adapters import (
        CorrelationAlignment,
        DenoisingAutoencoder,
        DomainQuantileTransformer,
        DomainStandardScaler,
        LinearMongeAlignment,
        PeriodicSparseFiltering,
        SegmentSparseFiltering,
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
    from covshift.predictors import (
        AdaptedClassifier,
        AdaptedRegressor,
        JointAlignmentClassifier,
        LSPClassifier,
    )
    from covshift.selection import (
        AutoAdaptedClassifier,
        AutoAdaptedRegressor,
        estimate_performance,
    )
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
    "AutoAdaptedRegressor",
    "ClassifierWeights",
    "CorrelationAlignment",
    "DenoisingAutoencoder",
    "Diagnosis",
    "DomainQuantileTransformer",
    "DomainStandardScaler",
    "JointAlignmentClassifier",
    "KLIEPWeights",
    "KMMWeights",
    "LSPClassifier",
    "LinearMongeAlignment",
    "NothingToAdaptWarning",
    "PeriodicSparseFiltering",
    "RuLSIFWeights",
    "SampledRowsWarning",
    "SegmentSparseFiltering",
    "SourceOnlySplit",
    "SourceStandardScaler",
    "SparseFiltering",
    "StackedDomains",
    "SubspaceAlignment",
    "ULSIFWeights",
    "UnreliableWeightsWarning",
    "diagnose",
    "estimate_performance",
    "fit_each",
    "fit_many",
    "load",
    "save",
    "split_domains",
    "stack_domains",
    "to_numpy",
]

_MODULE_OF = {
    "AdaptedClassifier": "covshift.predictors",
    "AdaptedRegressor": "covshift.predictors",
    "AutoAdaptedClassifier": "covshift.selection",
    "AutoAdaptedRegressor": "covshift.selection",
    "ClassifierWeights": "covshift.weights",
    "CorrelationAlignment": "covshift.adapters",
    "DenoisingAutoencoder": "covshift.adapters",
    "Diagnosis": "covshift.diagnosis",
    "DomainQuantileTransformer": "covshift.adapters",
    "DomainStandardScaler": "covshift.adapters",
    "JointAlignmentClassifier": "covshift.predictors",
    "KLIEPWeights": "covshift.weights",
    "KMMWeights": "covshift.weights",
    "LSPClassifier": "covshift.predictors",
    "LinearMongeAlignment": "covshift.adapters",
    "NothingToAdaptWarning": "covshift.base",
    "PeriodicSparseFiltering": "covshift.adapters",
    "RuLSIFWeights": "covshift.weights",
    "SampledRowsWarning": "covshift.streams",
    "SegmentSparseFiltering": "covshift.adapters",
    "SourceOnlySplit": "covshift.domains",
    "SourceStandardScaler": "covshift.adapters",
    "SparseFiltering": "covshift.adapters",
    "StackedDomains": "covshift.domains",
    "SubspaceAlignment": "covshift.adapters",
    "ULSIFWeights": "covshift.weights",
    "UnreliableWeightsWarning": "covshift.weights",
    "diagnose": "covshift.diagnosis",
    "estimate_performance": "covshift.selection",
    "fit_each": "covshift.adapters",
    "fit_many": "covshift.adapters",
    "load": "covshift.persistence",
    "save": "covshift.persistence",
    "split_domains": "covshift.domains",
    "stack_domains": "covshift.domains",
    "to_numpy": "covshift.adapters",
}
# Attributes of the package, too, without an import of their own.
_SUBMODULES = (
    "adapters",
    "base",
    "datasets",
    "diagnosis",
    "domains",
    "kernels",
    "measures",
    "output_files",
    "persistence",
    "predictors",
    "registry",
    "selection",
    "signals",
    "solvers",
    "streams",
    "weights",
)

# Hidden from type checkers, which would accept any misspelled name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of the package, or a submodule, on first use (PEP 562)."""
        if name in _MODULE_OF:
            value = getattr(import_module(_MODULE_OF[name]), name)
        elif name in _SUBMODULES:
            value = import_module(f"covshift.{name}")
        else:
            # With name and object, Python suggests a similar name.
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}",
                name=name,
                obj=sys.modules[__name__],
            )
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_SUBMODULES})
