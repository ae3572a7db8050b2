"""Candidates: pairs of an adapter and a model, with names, and the models by these names."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
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

from covshift.predictors import AdaptedClassifier, AdaptedRegressor, JointAlignmentClassifier
from covshift.predictors.adapter_steps import does_adapt, uses_target_rows
from covshift.predictors.gaussian_kernel_ridge import GaussianKernelRidge
from covshift.registry import (
    NO_ADAPTATION,
    RAW,
    AdapterRecord,
    Size,
    find_record,
    records,
    try_plugin,
)

Label: TypeAlias = Literal["class", "number"]
PLAIN_MODEL = {"class": "logistic", "number": "ridge"}  # added to lists that only adapt


class Candidate(NamedTuple):
    """An adapter, None for the rows as they are, and the classifier or regressor on top of it.

    Candidates that share one adapter object share its fits: they must not change it.
    """

    adapter_name: str
    estimator_name: str
    adapter: Any
    estimator: Any

    @property
    def name(self) -> str:
        """As in the leaderboard."""
        return f"{self.adapter_name} + {self.estimator_name}"

    @property
    def adapts(self) -> bool:
        """Whether it adapts to the target."""
        return does_adapt(self.adapter, self.estimator)

    def model(self) -> AdaptedClassifier | AdaptedRegressor:
        """Return an unfitted predictor of its own."""
        if is_regressor(self.estimator):
            return AdaptedRegressor(self.adapter, self.estimator)
        return AdaptedClassifier(self.adapter, self.estimator)


def check_candidates(
    candidates: Iterable[Any], size: Size, label: Label = "class"
) -> list[Candidate]:
    """Make candidates of what a user lists, or say what is wrong with it.

    Entries are `Candidate`, `AdaptedClassifier` or `AdaptedRegressor`, pairs (adapter, estimator)
    or triples with a name before them; the adapter may be given by its name in the registry. The
    registry's "none" is added for each estimator that comes with an adapter only.
    """
    try:
        entries = list(candidates)
    except TypeError:
        entries = []
    if not entries:
        model = "LogisticRegression()" if label == "class" else "Ridge()"
        raise ValueError(
            "candidates must list at least one pair (adapter, estimator), e.g. "
            f"[(None, {model}), (CorrelationAlignment(), {model})]."
        )
    found = [_candidate(entry, number, size, label) for number, entry in enumerate(entries)]
    return _with_unique_names(_with_unadapted(found, size, label))


def default_candidates(size: Size, label: Label = "class") -> list[Candidate]:
    """Candidates that are tried when the user names none: the registry's, with their models."""
    candidates = []
    for record, adapter in _build_adapters(size, label):
        n_features = min(size.n_features, record.n_outputs or size.n_features)
        for name in record.automatic if label == "class" else record.automatic_numbers:
            model = make_model(name, size.n_source, n_features, label)
            candidates.append(Candidate(record.name, name, adapter, model))
    return candidates


def candidates_around(estimator: Any, size: Size, label: Label = "class") -> list[Candidate]:
    """Return candidates of every adapter around the user's own model; first no adaptation."""
    name = model_name(estimator)
    around = [
        Candidate(record.name, name, adapter, estimator)
        for record, adapter in _build_adapters(size, label)
    ]
    return _with_unadapted(around, size, label)


def _build_adapters(size: Size, label: Label = "class") -> list[tuple[AdapterRecord, Any]]:
    """Adapters for automatic use, each once: on few features two records may mean the same model.

    A plug-in that fails is left out, with a warning.
    """
    built: dict[str, tuple[AdapterRecord, Any]] = {}
    for record in records():
        wanted = record.automatic
        if label == "number":
            wanted = () if record.needs_classes else record.automatic_numbers
        if wanted and record.suits(size):
            found = try_plugin(record, partial(_build, record, size))
            if found is not None:
                built.setdefault(found[0], (record, found[1]))
    return list(built.values())


def _build(record: AdapterRecord, size: Size) -> tuple[str, Any]:
    """Return a text that is the same for equal adapters, and the adapter."""
    settings = sorted(record.settings_for(size).items())
    return repr((record.path, record.before, settings)), record.build(size)


def named_model(
    adapter: str,
    model: str,
    n_source: int,
    n_features: int,
    label: Label = "class",
) -> AdaptedClassifier | AdaptedRegressor:
    """Make a candidate by two names: an `AdaptedClassifier` or `AdaptedRegressor`, unfitted.

    Parameters
    ----------
    adapter : str
        A name of `covshift.registry`.
    model : str
        A name of `covshift.selection.candidates`.
    n_source, n_features : int
        Size of the problem.
    label : {"class", "number"}
        Kind of its predictions.

    Returns
    -------
    AdaptedClassifier or AdaptedRegressor

    Examples
    --------
    >>> from covshift.selection.candidates import named_model
    >>> named_model("standardise", "linear", 100, 5).adapter
    'standardize'
    """
    record = find_record(adapter)
    n_features = min(n_features, record.n_outputs or n_features)
    kind = AdaptedClassifier if label == "class" else AdaptedRegressor
    return kind(record.name, make_model(model, n_source, n_features, label))


def _candidate(entry: Any, number: int, size: Size, label: Label) -> Candidate:
    if isinstance(entry, Candidate):
        return entry
    name = None
    predictor = AdaptedClassifier if label == "class" else AdaptedRegressor
    if isinstance(entry, predictor):
        adapter, estimator = entry.adapter, entry._base_estimator()
    elif isinstance(entry, tuple | list) and len(entry) == 2:
        adapter, estimator = entry
    elif isinstance(entry, tuple | list) and len(entry) == 3 and isinstance(entry[0], str):
        name, adapter, estimator = entry
    else:
        raise TypeError(
            f"candidates[{number}] is {entry!r}: expected (adapter, estimator), (name, adapter, "
            f"estimator) or an {predictor.__name__}; None as adapter means the rows as they are."
        )
    is_kind = is_classifier if label == "class" else is_regressor
    if not (hasattr(estimator, "fit") and is_kind(estimator)):
        wanted = "classifier" if label == "class" else "regressor"
        raise TypeError(f"candidates[{number}]: {estimator!r} is not a {wanted}.")
    if isinstance(adapter, str):
        record = find_record(adapter)
        name, adapter = name or record.name, record.build(size)
    return Candidate(name or describe_candidate(adapter), model_name(estimator), adapter, estimator)


def describe_candidate(estimator: Any) -> str:
    """Return a candidate's short name: the class, or those of a pipeline's steps."""
    if estimator is None:
        return RAW
    if isinstance(estimator, Pipeline):
        return " > ".join(describe_candidate(step) for _, step in estimator.steps)
    return estimator if isinstance(estimator, str) else type(estimator).__name__


def _with_unadapted(candidates: list[Candidate], size: Size, label: Label) -> list[Candidate]:
    """Put "no adaptation" before the others, for every estimator that lacks it.

    An estimator that uses target rows adapts by itself. Where all do, a logistic regression, or
    for numbers a ridge regression, stands for "no adaptation".
    """
    scaler = find_record(NO_ADAPTATION).build(size)
    # By what they are, not by object: the same settings twice are one estimator.
    known = {repr(one.estimator) for one in candidates if not one.adapts}
    missing: dict[str, Candidate] = {}
    for one in candidates:
        if repr(one.estimator) not in known and not uses_target_rows(one.estimator):
            unadapted = one._replace(adapter_name=NO_ADAPTATION, adapter=scaler)
            missing.setdefault(repr(one.estimator), unadapted)
    if not (known or missing):
        plain = PLAIN_MODEL[label]
        model = make_model(plain, size.n_source, size.n_features, label)
        missing[plain] = Candidate(NO_ADAPTATION, plain, scaler, model)
    return [*missing.values(), *candidates]


def _with_unique_names(candidates: list[Candidate]) -> list[Candidate]:
    counts: dict[str, int] = {}
    named = []
    for one in candidates:
        count = counts[one.name] = counts.get(one.name, 0) + 1
        if count > 1:
            one = one._replace(estimator_name=f"{one.estimator_name} ({count})")
        named.append(one)
    return named


# --- The models on top of adapters, by short names ---


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


def _logistic_regression() -> Any:
    """Return a candidate's logistic regression, which converges."""
    return LogisticRegression(max_iter=1000)


def _linear_machine(n_features: int) -> Any:
    """Return a linear SVM with the solver that is fast for this number of features."""
    if n_features > FEW_FEATURES:
        return LinearSVC(dual=True, tol=COARSE, max_iter=2000, random_state=0)
    return LinearSVC(dual=False, max_iter=2000)


def kernel_machine(n_source: int) -> Any:
    """Return a candidate's model on Gaussian kernels; for many rows, at a sample of them."""
    if n_source <= LARGEST_EXACT:
        return SVC()
    with config_context(enable_metadata_routing=True):
        last = _logistic_regression().set_fit_request(sample_weight=True)
    return make_pipeline(Nystroem(n_components=N_BASES, random_state=0), last)


def forest(n_source: int) -> Any:
    """Return a candidate's extremely randomized trees: about as accurate as boosted, cheaper."""
    leaf = max(MIN_LEAF, n_source // MAX_LEAVES)
    return ExtraTreesClassifier(N_TREES, min_samples_leaf=leaf, random_state=0)


def _number_forest(n_source: int) -> Any:
    """Return extremely randomized trees for a label that is a number."""
    leaf = max(MIN_LEAF, n_source // MAX_LEAVES)
    return ExtraTreesRegressor(N_TREES, min_samples_leaf=leaf, random_state=0)


def kernel_ridge() -> Any:
    """Return a candidate's least squares on Gaussian kernels, whose width comes from the data."""
    return JointAlignmentClassifier(alignment_weight=0.0, graph_weight=0.0, random_state=0)


# Name -> the model, given the numbers of source rows and features.
MODELS: dict[str, Callable[[int, int], Any]] = {
    "logistic": lambda n_source, n_features: _logistic_regression(),
    "linear-svm": lambda n_source, n_features: _linear_machine(n_features),
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
    "forest": lambda n_source, n_features: _number_forest(n_source),
    "boosting": lambda n_source, n_features: HistGradientBoostingRegressor(random_state=0),
}
# Older names, in lower case.
ALIASES = {"linear": "logistic", "lr": "logistic", "linear svm": "linear-svm", "rbf svm": "rbf"}


def find_model(name: str, label: Literal["class", "number"] = "class") -> str:
    """Return the name of a candidate's model, given it or an older name; refuse others."""
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
    """Make a candidate's model by its name: an unfitted classifier, or a regressor.

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
    """Return the name of a candidate's model that `make_model` makes; of any other, its class's.

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
        return "forest" if repr(same) == repr(_number_forest(1)) else type(estimator).__name__
    if isinstance(estimator, ExtraTreesClassifier):  # its leaves depend on the number of rows
        same = clone(estimator).set_params(min_samples_leaf=MIN_LEAF)
        return "forest" if repr(same) == repr(forest(1)) else type(estimator).__name__
    if isinstance(estimator, Pipeline):
        return " > ".join(model_name(step) for _, step in estimator.steps)
    return estimator if isinstance(estimator, str) else type(estimator).__name__
