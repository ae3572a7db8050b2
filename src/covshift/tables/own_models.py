"""A user's own model on the command line: a class by its import path, and its parameters as JSON.

Only classes on a list are imported: ``--estimator`` must not run any module that a script or a
colleague names. The list holds the models of scikit-learn, LightGBM and XGBoost, for these are the
ones that model files hold without code.
"""

import difflib
import inspect
import json
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_regressor,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from covshift.kernels.array_types import IntArray
from covshift.persistence import ModelFileError, load, save
from covshift.tables.messages import TableError, listed, one_line

# --- Any labels for a classifier that takes 0, 1, ... only ---


class NumberedClasses(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Number the classes for a classifier, and name them again in what it predicts.

    XGBoost's ``XGBClassifier`` refuses labels other than 0, 1, ..., n_classes - 1.

    Parameters
    ----------
    estimator : classifier
        It is fitted to the positions of the labels in ``classes_``.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from covshift.tables.own_models import NumberedClasses
    >>> model = NumberedClasses(DecisionTreeClassifier()).fit([[0], [1]], ["no", "yes"])
    >>> model.predict([[0.9]]).tolist(), model.estimator_.classes_.tolist()
    (['yes'], [0, 1])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier to the numbers of the classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, codes, **weights)
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict(self, X: Any) -> Any:
        """Return the label of each row."""
        check_is_fitted(self)
        return self.classes_[np.asarray(self.estimator_.predict(X)).astype(np.int64)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


# Import path -> parameters that keep the library from printing.
OTHER_LIBRARIES: dict[str, dict[str, dict[str, Any]]] = {
    "classification": {
        "lightgbm.LGBMClassifier": {"verbose": -1},
        "xgboost.XGBClassifier": {"verbosity": 0},
    },
    "regression": {
        "lightgbm.LGBMRegressor": {"verbose": -1},
        "xgboost.XGBRegressor": {"verbosity": 0},
    },
}
NEEDS_NUMBERS = ("xgboost.XGBClassifier",)  # 0, 1, ... as labels
TASK_BASES = {  # task -> base, word, an example, and examples that a file holds
    "classification": (
        ClassifierMixin,
        "classifier",
        "sklearn.ensemble.RandomForestClassifier",
        "sklearn.ensemble.HistGradientBoostingClassifier",
    ),
    "regression": (
        RegressorMixin,
        "regressor",
        "sklearn.ensemble.RandomForestRegressor",
        "sklearn.ensemble.HistGradientBoostingRegressor",
    ),
}
SIMILAR = 0.8  # similarity from which a misspelled parameter is suggested
TRIAL_ROWS_OF_CLASS = 30
TRIAL_ROWS = 60  # rows on which a regressor is tried


def make_own_model(
    path: str,
    parameters: str | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    task: str = "classification",
) -> Any:
    """Return an unfitted classifier or regressor by its import path.

    Parameters
    ----------
    path : str
        "lightgbm.LGBMClassifier", "xgboost.XGBClassifier", or that of a classifier of scikit-learn,
        such as "sklearn.ensemble.RandomForestClassifier"; for a regression their regressors.
        Others are refused, and not imported.
    parameters : str or None, default=None
        JSON object with the parameters of the class.
    seed, n_jobs : int, default=0 and None
        Its ``random_state`` and ``n_jobs``, if it has these and ``parameters`` does not say.
    task : {"classification", "regression"}
        Kind of the labels.

    Returns
    -------
    classifier or regressor

    Examples
    --------
    >>> from covshift.tables.own_models import make_own_model
    >>> make_own_model("sklearn.neighbors.KNeighborsClassifier", '{"n_neighbors": 9}')
    KNeighborsClassifier(n_neighbors=9)
    """
    path = path.strip()
    kind = _find_class(path, task)
    given = _parse(parameters)
    others = OTHER_LIBRARIES[task]
    quiet = others.get(path, {})
    names = _parameter_names(kind, lists_all=path in others)
    _check_names(kind.__name__, names, given, others_too=path in others)
    usual = {"random_state": seed, "n_jobs": n_jobs}
    own = {name: value for name, value in usual.items() if name in names and value is not None}
    try:
        return kind(**{**own, **quiet, **given})
    except Exception as error:  # a class may refuse its parameters in any way
        raise TableError(f"{path} cannot be made: {one_line(error, 300)}") from error


def with_any_labels(model: Any) -> Any:
    """Return a user's own model, in a `NumberedClasses` if it takes 0, 1, ... for labels only."""
    path = f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"
    return NumberedClasses(model) if path in NEEDS_NUMBERS else model


def inner_model(model: Any) -> Any:
    """Return the user's own model inside a `NumberedClasses`; any other as it is."""
    return model.estimator if isinstance(model, NumberedClasses) else model


def trial_rows(y: Any, task: str = "classification") -> IntArray:
    """Return rows to try the user's own model on: first 30 of each class, or 60 of numbers."""
    if task == "regression":
        return np.arange(min(len(y), TRIAL_ROWS))
    return np.concatenate([np.flatnonzero(y == one)[:TRIAL_ROWS_OF_CLASS] for one in np.unique(y)])


def check_own_model(model: Any, X: Any, y: Any) -> None:
    """Refuse a model that a file cannot hold, by a trial on a few rows.

    Parameters
    ----------
    model : classifier
        Unfitted; stays so.
    X, y : ndarray
        Some rows and their labels, see `trial_rows`.
    """
    name = type(inner_model(model)).__name__
    try:
        trial = clone(model).fit(X, y)
    except Exception as error:  # whatever its parameters make of these rows
        raise TableError(
            f"{name} cannot be fitted to {len(X)} of the training rows: {one_line(error, 300)}"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trial")
        try:
            save(trial, file)
            load(file)
        except (TypeError, ModelFileError) as error:
            reason = one_line(error, 400).rpartition(f"{file}: ")[2]
            _, _, *others = TASK_BASES["regression" if is_regressor(model) else "classification"]
            raise TableError(
                f"{name} cannot be saved in a model file, so nothing was fitted. Choose "
                f"another model, such as {others[1]} or {others[0]}. Reason: {reason}"
            ) from error


def _find_class(path: str, task: str) -> type:
    module, _, name = path.rpartition(".")
    parts = path.split(".")
    base, word, example, _ = TASK_BASES[task]
    taken = f"{', '.join(OTHER_LIBRARIES[task])}, and {word}s of scikit-learn, such as {example}"
    others = {one for paths in OTHER_LIBRARIES.values() for one in paths}
    ours = parts[0] == "sklearn" and len(parts) > 2 and all(one.isidentifier() for one in parts)
    if path not in others and (not ours or any(one.startswith("_") for one in parts)):
        raise TableError(
            f"{listed([path])} is not a model that --estimator takes. It takes {taken}."
        )
    try:
        kind = getattr(import_module(module), name, None)
    except ImportError as error:
        if module in {one.partition(".")[0] for one in others}:
            raise TableError(
                f"{path} needs {module}, which is not installed: pip install {module}"
            ) from error
        kind = None
    if not (inspect.isclass(kind) and issubclass(kind, BaseEstimator)):
        raise TableError(f"scikit-learn has no model {listed([path])}.")
    if not issubclass(kind, base) or not hasattr(kind, "predict"):
        hint = ""
        if task == "classification" and issubclass(kind, RegressorMixin):
            hint = " For a numeric label, add --task regression."
        raise TableError(
            f"{path} is not a {word}, which this label needs. --estimator takes {taken}.{hint}"
        )
    return kind


def _parse(parameters: str | None) -> dict[str, Any]:
    try:
        given = {} if parameters is None else json.loads(parameters)
    except ValueError as error:
        raise TableError(
            f"--estimator-params is not JSON ({one_line(error, 100)}). Write for example "
            "'{\"n_estimators\": 50}', in single quotes."
        ) from None
    if not isinstance(given, dict):
        raise TableError(
            "--estimator-params must be a JSON object, for example '{\"n_estimators\": 50}'."
        )
    return given


def _parameter_names(kind: Any, *, lists_all: bool) -> list[str]:
    # scikit-learn asks the signature, where the other libraries hide some of theirs.
    return list(kind().get_params() if lists_all else kind._get_param_names())


def _check_names(model: str, names: list[str], given: dict[str, Any], *, others_too: bool) -> None:
    """Refuse parameters that a model does not have.

    ``others_too``: its library takes more than it lists, and ignores those that it does not know;
    refused are names that are nearly those of a parameter.
    """
    for name in [name for name in given if name not in names]:
        close = difflib.get_close_matches(name, names, n=1, cutoff=SIMILAR)
        if close:
            raise TableError(f"{model} has no parameter {listed([name])}; is it {listed(close)}?")
        if not others_too:
            raise TableError(
                f"{model} has no parameter {listed([name])}; it has {listed(sorted(names), 50)}."
            )
