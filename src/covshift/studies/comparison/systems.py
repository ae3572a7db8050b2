"""The systems that are compared: every adapter of the registry, and models without one.

Nothing here was chosen by looking at target labels.
"""

from functools import partial
from typing import Any, TypedDict

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from covshift.registry import NO_ADAPTATION, Size, records, try_plugin

BEST_UNADAPTED = "best without adapting"
C_VALUES = [1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0]
FOLDS = 3
WIDE = 60  # features above which a linear SVM of a larger C takes minutes
NOMINAL = {"n_source": 1000, "n_target": 500}  # sizes for which settings are recorded


class System(TypedDict):
    """An adapter of the registry, as plain data that can be hashed, stored and read."""

    path: str
    before: list[Any]
    settings: dict[str, Any]
    control: bool  # whether it is also fitted without target rows


class Model(TypedDict):
    """A model of scikit-learn by the name of its class, and its parameters."""

    name: str
    params: dict[str, Any]


MODELS: dict[str, Any] = {
    one.__name__: one
    for one in (HistGradientBoostingClassifier, LinearSVC, LogisticRegression, SVC)
}


def systems(n_features: int, n_classes: int) -> dict[str, System]:
    """Return the adapters to compare by name, for data of these numbers of features, classes.

    These facts identify a trial: results under other settings are other results. The settings are
    those for `NOMINAL` rows; the adapter itself is built from its name for the rows of each draw.
    A plug-in that fails is left out, with a warning.
    """
    size = Size(n_features=n_features, n_classes=n_classes, **NOMINAL)
    found: dict[str, System] = {}
    for record in records():
        if try_plugin(record, partial(record.build, size)) is None:
            continue
        found[record.name] = {
            "path": record.path,
            "before": list(record.before),
            "settings": record.settings_for(size),
            "control": record.kind == "transformer"
            and not record.needs_target
            and record.name != NO_ADAPTATION,
        }
    return found


def unadapted_models(n_features: int) -> list[Model]:
    """Return the systems of the comparison that do not adapt: chosen on source rows by folds."""
    svm_costs = (0.001, 0.01) if n_features > WIDE else (0.001, 0.01, 0.1, 1.0, 10.0)
    trees = {"max_iter": 50, "max_bins": 32, "max_leaf_nodes": 8, "random_state": 0}
    models: list[tuple[str, dict[str, Any]]] = [
        *(("LogisticRegression", {"C": C, "max_iter": 5000}) for C in C_VALUES),
        *(("LinearSVC", {"C": C, "max_iter": 20_000, "random_state": 0}) for C in svm_costs),
        *(("SVC", {"C": C}) for C in (1.0, 10.0, 100.0)),
        ("HistGradientBoostingClassifier", trees),
    ]
    return [{"name": name, "params": params} for name, params in models]


def build_model(model: Model) -> Any:
    """Make the model of a system of the comparison from its description."""
    return MODELS[model["name"]](**model["params"])
