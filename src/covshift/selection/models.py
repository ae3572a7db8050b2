"""The models that are put on top of adapters, by short names."""

from collections.abc import Callable
from typing import Any, Literal

from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC

from covshift.predictors import JointAlignmentClassifier
from covshift.predictors.gaussian_kernel_ridge import GaussianKernelRidge

# Features above which a linear SVM is solved in the dual, and to a coarser tolerance. On 600 rows
# with 800 features the primal takes 55 s, the dual 16 s, and the dual with this tolerance .4 s, at
# the same accuracy. For few features the dual converges slowly or not at all.
FEW_FEATURES = 100
COARSE = 1e-2
# Source rows above which the kernel machine uses a sample of them as bases: its cost grows with
# the square of the rows.
LARGEST_EXACT = 3000
N_BASES = 300
N_TREES = 100
# Rows in a leaf of a forest, at least; for many rows in proportion to these, so that a saved model
# keeps its size.
MIN_LEAF, MAX_LEAVES = 3, 1000
PENALTIES = tuple(10.0**power for power in range(-2, 5))  # penalties of a ridge regression


def logistic_regression() -> Any:
    """Return a logistic regression that converges."""
    return LogisticRegression(max_iter=1000)


def linear_machine(n_features: int) -> Any:
    """Return a linear SVM with the solver that is fast for this number of features."""
    if n_features > FEW_FEATURES:
        return LinearSVC(dual=True, tol=COARSE, max_iter=2000, random_state=0)
    return LinearSVC(dual=False, max_iter=2000)


def kernel_machine(n_source: int) -> Any:
    """Return a model on Gaussian kernels; for many rows, at a sample of them."""
    if n_source <= LARGEST_EXACT:
        return SVC()
    with config_context(enable_metadata_routing=True):
        last = logistic_regression().set_fit_request(sample_weight=True)
    return make_pipeline(Nystroem(n_components=N_BASES, random_state=0), last)


def forest(n_source: int) -> Any:
    """Return extremely randomized trees: about as accurate as boosted ones, and cheaper."""
    leaf = max(MIN_LEAF, n_source // MAX_LEAVES)
    return ExtraTreesClassifier(N_TREES, min_samples_leaf=leaf, random_state=0)


def number_forest(n_source: int) -> Any:
    """Return extremely randomized trees for a label that is a number."""
    leaf = max(MIN_LEAF, n_source // MAX_LEAVES)
    return ExtraTreesRegressor(N_TREES, min_samples_leaf=leaf, random_state=0)


def kernel_ridge() -> Any:
    """Return least squares on Gaussian kernels, whose width comes from the data."""
    return JointAlignmentClassifier(alignment_weight=0.0, graph_weight=0.0, random_state=0)


# Name -> the model, given the numbers of source rows and features.
MODELS: dict[str, Callable[[int, int], Any]] = {
    "logistic": lambda n_source, n_features: logistic_regression(),
    "linear-svm": lambda n_source, n_features: linear_machine(n_features),
    "rbf": lambda n_source, n_features: kernel_machine(n_source),
    "kernel-ridge": lambda n_source, n_features: kernel_ridge(),
    "forest": lambda n_source, n_features: forest(n_source),
    "boosting": lambda n_source, n_features: HistGradientBoostingClassifier(random_state=0),
    "joint": lambda n_source, n_features: JointAlignmentClassifier(random_state=0),
    "joint-no-graph": lambda n_source, n_features: JointAlignmentClassifier(
        graph_weight=0.0, random_state=0
    ),
}
# The same for labels that are numbers.
NUMBER_MODELS: dict[str, Callable[[int, int], Any]] = {
    "ridge": lambda n_source, n_features: RidgeCV(PENALTIES),
    "kernel-ridge": lambda n_source, n_features: GaussianKernelRidge(),
    "forest": lambda n_source, n_features: number_forest(n_source),
    "boosting": lambda n_source, n_features: HistGradientBoostingRegressor(random_state=0),
}
# Older names, in lower case.
ALIASES = {"linear": "logistic", "lr": "logistic", "linear svm": "linear-svm", "rbf svm": "rbf"}


def find_model(name: str, label: Literal["class", "number"] = "class") -> str:
    """Return the name of a model, given it or an older name; refuse others."""
    known = MODELS if label == "class" else NUMBER_MODELS
    wanted = name.strip().lower()
    wanted = ALIASES.get(wanted, wanted) if label == "class" else wanted
    if wanted not in known:
        told = f"Unknown model {name.strip()!r}."
        if wanted in MODELS or wanted in NUMBER_MODELS:
            told = f"The model {name.strip()!r} does not predict a {label}."
        raise ValueError(f"{told} Choose from: {', '.join(known)}.")
    return wanted


def make_model(
    name: str, n_source: int, n_features: int, label: Literal["class", "number"] = "class"
) -> Any:
    """Return an unfitted classifier, or a regressor, by its name.

    Parameters
    ----------
    name : str
        "logistic": logistic regression; "linear-svm": linear SVM; "rbf": SVM with Gaussian
        kernels; "kernel-ridge": kernel ridge regression; "forest": extremely randomized trees;
        "boosting": boosted trees; "joint" and "joint-no-graph": `JointAlignmentClassifier` with
        and without its graph of neighbors. For numbers: "ridge": ridge regression;
        "kernel-ridge": `GaussianKernelRidge`; "forest"; "boosting".
    n_source, n_features : int
        Source rows and features that it will be fitted to.
    label : {"class", "number"}, default="class"
        Kind of its predictions.

    Returns
    -------
    classifier or regressor
    """
    known = MODELS if label == "class" else NUMBER_MODELS
    return known[find_model(name, label)](n_source, n_features)


def model_name(estimator: Any) -> str:
    """Return the short name of a model that `make_model` makes; of any other, its class's.

    Of a pipeline, the classes of its steps.
    """
    sizes = [(n, m) for n in (1, LARGEST_EXACT + 1) for m in (1, FEW_FEATURES + 1)]
    for name in MODELS:
        if repr(estimator) in {repr(make_model(name, *size)) for size in sizes}:
            return name
    for name, make in NUMBER_MODELS.items():
        if repr(estimator) == repr(make(1, 1)):
            return name
    if isinstance(estimator, ExtraTreesRegressor):
        same = clone(estimator).set_params(min_samples_leaf=MIN_LEAF)
        return "forest" if repr(same) == repr(number_forest(1)) else type(estimator).__name__
    if isinstance(estimator, ExtraTreesClassifier):  # its leaves depend on the number of rows
        same = clone(estimator).set_params(min_samples_leaf=MIN_LEAF)
        return "forest" if repr(same) == repr(forest(1)) else type(estimator).__name__
    if isinstance(estimator, Pipeline):
        return " > ".join(model_name(step) for _, step in estimator.steps)
    return estimator if isinstance(estimator, str) else type(estimator).__name__
