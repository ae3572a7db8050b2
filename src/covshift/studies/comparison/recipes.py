"""The comparison's systems as data: every adapter with fixed settings, and models without one.

Nothing here was chosen by looking at target labels. Adapters with covariance matrices, kernels or
filters see the components of a pooled PCA where there are more features than components; all
others see all features.
"""

from typing import Any, TypedDict

from covshift.studies.recipes import Part

N_COMPONENTS = 60
ALL, COMPONENTS = "all features", "components"
NONE, NONE_ON_COMPONENTS, BEST_UNADAPTED = "none", "none, on components", "best without adapting"


class System(TypedDict):
    """An adapter (None: nothing), what it sees, and whether it makes sense without target rows."""

    sees: str
    adapter: Part | None
    control: bool


# Those that are still something when they are fitted without target rows.
LEARNS_WITHOUT_TARGET = (
    "SubspaceAlignment",
    "SparseFiltering",
    "PeriodicSparseFiltering",
    "DenoisingAutoencoder",
)
C_VALUES = [1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0]
FOLDS = 3


def unadapted_models(n_features: int) -> list[Part]:
    """Models that may be the best one without adapting: chosen on source rows by the same folds."""
    # On hundreds of features a linear SVM of a larger C takes minutes.
    svm_costs = (0.001, 0.01) if n_features > N_COMPONENTS else (0.001, 0.01, 0.1, 1.0, 10.0)
    trees = {"max_iter": 50, "max_bins": 32, "max_leaf_nodes": 8}
    models: list[tuple[str, dict[str, Any]]] = [
        *(("LogisticRegression", {"C": C, "max_iter": 5000}) for C in C_VALUES),
        *(("LinearSVC", {"C": C, "max_iter": 20_000}) for C in svm_costs),
        *(("SVC", {"C": C}) for C in (1.0, 10.0, 100.0)),
        ("HistGradientBoostingClassifier", trees),
    ]
    return [{"name": name, "params": params} for name, params in models]


def systems(n_features: int) -> dict[str, System]:
    """The systems for data of so many features, by name, in the order of the tables."""
    seen = min(n_features, N_COMPONENTS)
    few = max(1, min(20, seen // 2))
    # Sums of so many inputs of variance about one then stay within a turn of the sine.
    filters = {"init_scale": seen**-0.5, "max_iter": 200}
    encoder = {"n_components": seen, "max_epochs": 100, "early_stopping": True}
    found: dict[str, System] = {
        NONE: {"sees": ALL, "adapter": None, "control": False},
        NONE_ON_COMPONENTS: {"sees": COMPONENTS, "adapter": None, "control": False},
    }
    for name, sees, params in (
        ("DomainStandardScaler", ALL, {}),
        ("DomainQuantileTransformer", ALL, {}),
        ("CorrelationAlignment", COMPONENTS, {}),
        ("LinearMongeAlignment", COMPONENTS, {}),
        ("SubspaceAlignment", COMPONENTS, {"n_components": few, "center": True}),
        ("SparseFiltering", COMPONENTS, {"n_components": seen, **filters}),
        ("PeriodicSparseFiltering", COMPONENTS, {"n_restarts": 3, **filters}),
        ("DenoisingAutoencoder", COMPONENTS, encoder),
        ("ULSIFWeights", COMPONENTS, {}),
        ("RuLSIFWeights", COMPONENTS, {}),
        ("KLIEPWeights", COMPONENTS, {}),
        ("KMMWeights", COMPONENTS, {}),
        ("ClassifierWeights", COMPONENTS, {}),
    ):
        part: Part = {"name": name, "params": dict(params)}
        found[name] = {"sees": sees, "adapter": part, "control": name in LEARNS_WITHOUT_TARGET}
    return found
