"""The models that are put on top of adapters, by short names."""

from collections.abc import Callable
from typing import Any

from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC

from covshift.predictors import JointAlignmentClassifier

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


def forest(n_source: int, kind: Any = ExtraTreesClassifier) -> Any:
    """Return extremely randomized trees: about as accurate as boosted ones, and cheaper."""
    leaf = max(MIN_LEAF, n_source // MAX_LEAVES)
    return kind(N_TREES, min_samples_leaf=leaf, random_state=0)


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
# The same for a number as label.
REGRESSORS: dict[str, Callable[[int, int], Any]] = {
    "ridge": lambda n_source, n_features: Ridge(),
    "forest": lambda n_source, n_features: forest(n_source, ExtraTreesRegressor),
    "boosting": lambda n_source, n_features: HistGradientBoostingRegressor(random_state=0),
}
# Older names, in lower case.
ALIASES = {"linear": "logistic", "lr": "logistic", "linear svm": "linear-svm", "rbf svm": "rbf"}


def find_model(name: str, task: str = "classification") -> str:
    """Return the name of a model for a task, given it or an older name; refuse others."""
    models, others = (MODELS, REGRESSORS) if task == "classification" else (REGRESSORS, MODELS)
    wanted = name.strip().lower()
    wanted = ALIASES.get(wanted, wanted) if models is MODELS else wanted
    if wanted not in models:
        told = f"Unknown model {name.strip()!r}."
        if wanted in others:
            told = f"The model {name.strip()!r} is not for {task}."
        raise ValueError(f"{told} Choose from: {', '.join(models)}.")
    return wanted


def make_model(name: str, n_source: int, n_features: int, task: str = "classification") -> Any:
    """Return an unfitted model by its name.

    Parameters
    ----------
    name : str
        "logistic": logistic regression; "linear-svm": linear SVM; "rbf": SVM with Gaussian
        kernels; "kernel-ridge": kernel ridge regression; "forest": extremely randomized trees;
        "boosting": boosted trees; "joint" and "joint-no-graph": `JointAlignmentClassifier` with
        and without its graph of neighbors. For a regression: "ridge", "forest", "boosting".
    n_source, n_features : int
        Source rows and features that it will be fitted to.
    task : {"classification", "regression"}
        What the labels are.

    Returns
    -------
    classifier or regressor
    """
    models = MODELS if task == "classification" else REGRESSORS
    return models[find_model(name, task)](n_source, n_features)


def model_name(estimator: Any) -> str:
    """Return the short name of a model that `make_model` makes; of any other, its class's.

    Of a pipeline, the classes of its steps.
    """
    sizes = [(n, m) for n in (1, LARGEST_EXACT + 1) for m in (1, FEW_FEATURES + 1)]
    for name, make in [*MODELS.items(), *REGRESSORS.items()]:
        if repr(estimator) in {repr(make(*size)) for size in sizes}:
            return name
    if isinstance(estimator, ExtraTreesClassifier | ExtraTreesRegressor):
        # Its leaves depend on the number of rows.
        same = clone(estimator).set_params(min_samples_leaf=MIN_LEAF)
        made = repr(forest(1, type(estimator)))
        return "forest" if repr(same) == made else type(estimator).__name__
    if isinstance(estimator, Pipeline):
        return " > ".join(model_name(step) for _, step in estimator.steps)
    return estimator if isinstance(estimator, str) else type(estimator).__name__
