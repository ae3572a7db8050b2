"""Adapters and models by short names, for those who do not write Python.

Alignments move target rows onto the source here, other than by their defaults: only then can a
saved model learn another target without the training rows.
"""

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from covshift.adapters import (
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.base import check_option
from covshift.predictors import AdaptedClassifier
from covshift.selection.default_candidates import (
    kernel_machine,
    logistic_regression,
)
from covshift.selection.source_standard_scaler import SourceStandardScaler
from covshift.weights import ClassifierWeights, KLIEPWeights, KMMWeights, ULSIFWeights

MAX_SUBSPACE = 30  # directions; by default half of the features


def _scaled(step: Any) -> Any:
    return make_pipeline(SourceStandardScaler(), step)


# Name -> what makes it for so many features.
ADAPTERS: dict[str, Callable[[int], Any]] = {
    "none": lambda n: SourceStandardScaler(),
    "standardise": lambda n: DomainStandardScaler(),
    "standardise-domains": lambda n: DomainStandardScaler(pooling="domain"),
    "ranks": lambda n: DomainQuantileTransformer(),
    "coral": lambda n: _scaled(CorrelationAlignment(direction="target_to_source")),
    "monge": lambda n: _scaled(LinearMongeAlignment(direction="target_to_source")),
    "sa": lambda n: _scaled(SubspaceAlignment(MAX_SUBSPACE if n > 2 * MAX_SUBSPACE else None)),
    "sf": lambda n: _scaled(SparseFiltering(random_state=0)),
    "psf": lambda n: _scaled(PeriodicSparseFiltering(random_state=0)),
    "ulsif": lambda n: _scaled(ULSIFWeights(random_state=0)),
    "kliep": lambda n: _scaled(KLIEPWeights(random_state=0)),
    "kmm": lambda n: _scaled(KMMWeights()),
    "classifier-weights": lambda n: _scaled(ClassifierWeights(random_state=0)),
}
# Name -> what makes it for so many source rows.
MODELS: dict[str, Callable[[int], Any]] = {
    "linear": lambda n: logistic_regression(),
    "rbf": lambda n: kernel_machine(n)[1],
    "boosting": lambda n: HistGradientBoostingClassifier(random_state=0),
}


def named_model(name: str, n_source: int) -> Any:
    """Return an unfitted classifier by its name.

    Parameters
    ----------
    name : {"linear", "rbf", "boosting"}
        Logistic regression, kernel machine, boosted trees.
    n_source : int
        Source rows that it will be fitted to.

    Returns
    -------
    classifier
    """
    check_option("model", name, MODELS)
    return MODELS[name](n_source)


def named_classifier(
    adapter: str, model: str, *, n_source: int, n_features: int
) -> AdaptedClassifier:
    """Return an unfitted `AdaptedClassifier` by the names of its two parts.

    Parameters
    ----------
    adapter : str
        One of ``ADAPTERS``.
    model : str
        One of ``MODELS``.
    n_source, n_features : int
        Size of the problem.

    Returns
    -------
    AdaptedClassifier

    Examples
    --------
    >>> from covshift.selection.named_adapters import named_classifier
    >>> named_classifier("standardise", "linear", n_source=100, n_features=5).adapter
    DomainStandardScaler()
    """
    check_option("adapter", adapter, ADAPTERS)
    return AdaptedClassifier(ADAPTERS[adapter](n_features), named_model(model, n_source))
