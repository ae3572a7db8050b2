"""The candidates that are tried when the user names none: every adapter, three kinds of model."""

from typing import Any

from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from covshift.adapters import (
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.selection.candidates import NO_ADAPTATION, Candidate, pair
from covshift.selection.source_standard_scaler import SourceStandardScaler
from covshift.weights import ULSIFWeights

ALIGNED_FEATURES = 60  # principal components left, where covariances are matched
FILTERED_FEATURES = 40  # and where filters are fitted
SUBSPACES = (8, 30)
FILTER_ITERATIONS = 50
# Above which a linear SVM is solved in the dual, and to a coarser tolerance: of 600 rows with 800
# features the primal takes 55 s, the dual 16 s, the dual so .4 s, with the same accuracy. For few
# features the dual converges slowly or not at all.
FEW_FEATURES = 100
COARSE = 1e-2
# Source rows above which the kernel machine is one on a sample of bases: its cost grows with the
# square of the rows.
LARGEST_EXACT = 3000
N_BASES = 300


def default_candidates(n_source: int, n_features: int, n_classes: int) -> list[Candidate]:
    """Candidates for so many source rows, features and classes."""
    aligned, subspaces, filtered = default_adapters(n_source, n_features, n_classes)
    LR = ("LR", logistic_regression())
    linear = ("linear SVM", linear_machine(n_features))
    linear_in_filters = ("linear SVM", linear_machine(FILTERED_FEATURES))
    kernel = kernel_machine(n_source)
    trees = ("boosting", HistGradientBoostingClassifier(random_state=0))
    plain = [one for one in aligned if one[0] in (NO_ADAPTATION, "standardise", "ranks")]
    return [
        *pair(aligned, [LR, linear, kernel]),
        *pair(subspaces, [LR, kernel]),
        *pair(filtered, [linear_in_filters, kernel]),
        *pair(plain, [trees]),
    ]


def candidates_around(
    estimator: Any, n_source: int, n_features: int, n_classes: int
) -> list[Candidate]:
    """Every adapter around the user's own model; first the model as it is."""
    groups = default_adapters(n_source, n_features, n_classes)
    adapters = [one for group in groups for one in group if one[0] != NO_ADAPTATION]
    name = type(estimator).__name__
    return pair([(NO_ADAPTATION, None), *adapters], [(name, estimator)])


def default_adapters(
    n_source: int, n_features: int, n_classes: int
) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Adapters with their names: those that keep the features, subspaces, filters."""

    def reduced(at_most: int, *steps: Any) -> list[Any]:
        if n_features <= at_most:
            return [*steps]
        return [PCA(min(at_most, n_source // 2), random_state=0), *steps]

    def scaled(*steps: Any) -> Any:
        return make_pipeline(SourceStandardScaler(), *steps)

    def standardised(*steps: Any) -> Any:
        return make_pipeline(DomainStandardScaler(), *steps)

    settings: dict[str, Any] = {
        "n_components": min(max(4 * n_classes, 12), 40),
        "max_iter": FILTER_ITERATIONS,
        "tol": 1e-4,
        "random_state": 0,
    }
    SF = reduced(FILTERED_FEATURES, SparseFiltering(**settings))
    # Without labels: with them, filters fit the source's classes and are trusted for it.
    PSF = reduced(
        FILTERED_FEATURES, PeriodicSparseFiltering(**settings, label_reward=0.0, n_restarts=1)
    )
    aligned = [
        (NO_ADAPTATION, scaled()),
        ("standardise", DomainStandardScaler()),
        ("standardise groups", DomainStandardScaler(pooling="domain")),
        ("CORAL", scaled(*reduced(ALIGNED_FEATURES, CorrelationAlignment()))),
        ("Monge", scaled(*reduced(ALIGNED_FEATURES, LinearMongeAlignment()))),
        ("ranks", DomainQuantileTransformer()),
        ("uLSIF", scaled(ULSIFWeights(random_state=0))),
    ]
    sizes = dict.fromkeys(max(1, min(size, n_features, n_source // 2)) for size in SUBSPACES)
    subspaces = [(f"SA {size}", scaled(SubspaceAlignment(n_components=size))) for size in sizes]
    filtered = [
        ("SF", scaled(*SF)),
        ("standardise > SF", standardised(*SF)),
        ("PSF", scaled(*PSF)),
        ("standardise > PSF", standardised(*PSF)),
    ]
    return aligned, subspaces, filtered


def logistic_regression() -> Any:
    """A logistic regression that converges."""
    return LogisticRegression(max_iter=1000)


def linear_machine(n_features: int) -> Any:
    """A linear SVM, by the solver that is fast for so many features."""
    if n_features > FEW_FEATURES:
        return LinearSVC(dual=True, tol=COARSE, max_iter=2000, random_state=0)
    return LinearSVC(dual=False, max_iter=2000)


def kernel_machine(n_source: int) -> tuple[str, Any]:
    """A model on Gaussian kernels with its name; for many rows, at a sample of them."""
    if n_source <= LARGEST_EXACT:
        return "RBF SVM", SVC()
    with config_context(enable_metadata_routing=True):
        last = logistic_regression().set_fit_request(sample_weight=True)
    return "RBF", make_pipeline(Nystroem(n_components=N_BASES, random_state=0), last)
