"""A user's own model on the command line: a class by its import path, and its parameters as JSON.

Only classes on a list are imported: ``--estimator`` must not run any module that a script or a
colleague names. The list holds the classifiers of scikit-learn, LightGBM and XGBoost, for these are
the ones that model files hold without code.
"""

import difflib
import inspect
import json
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from covshift.kernels.arrays import IntArray
from covshift.persistence import ModelFileError, load, save
from covshift.predictors.numbered_classes import NumberedClasses
from covshift.tables.errors import TableError, listed, one_line

# Import path -> parameters that keep the library from printing.
OTHER_LIBRARIES: dict[str, dict[str, Any]] = {
    "lightgbm.LGBMClassifier": {"verbose": -1},
    "xgboost.XGBClassifier": {"verbosity": 0},
}
NEEDS_NUMBERS = ("xgboost.XGBClassifier",)  # 0, 1, ... as labels
TRUSTED = (
    f"{', '.join(OTHER_LIBRARIES)}, and classifiers of scikit-learn, such as "
    "sklearn.ensemble.RandomForestClassifier"
)
SIMILAR = 0.8  # above which an unknown parameter is taken for a slip
TRIAL_ROWS_OF_CLASS = 30


def make_own_model(
    path: str, parameters: str | None = None, *, seed: int = 0, n_jobs: int | None = None
) -> Any:
    """Return an unfitted classifier by its import path.

    Parameters
    ----------
    path : str
        "lightgbm.LGBMClassifier", "xgboost.XGBClassifier", or that of a classifier of scikit-learn,
        such as "sklearn.ensemble.RandomForestClassifier". Others are refused, and not imported.
    parameters : str or None, default=None
        JSON object with the parameters of the class.
    seed, n_jobs : int, default=0 and None
        Its ``random_state`` and ``n_jobs``, if it has these and ``parameters`` does not say.

    Returns
    -------
    classifier

    Examples
    --------
    >>> from covshift.tables.own_models import make_own_model
    >>> make_own_model("sklearn.neighbors.KNeighborsClassifier", '{"n_neighbors": 9}')
    KNeighborsClassifier(n_neighbors=9)
    """
    path = path.strip()
    kind = _find_class(path)
    given = _parse(parameters)
    quiet = OTHER_LIBRARIES.get(path, {})
    names = _parameter_names(path, kind)
    _check_names(kind.__name__, names, given, others_too=path in OTHER_LIBRARIES)
    usual = {"random_state": seed, "n_jobs": n_jobs}
    own = {name: value for name, value in usual.items() if name in names and value is not None}
    try:
        return kind(**{**own, **quiet, **given})
    except Exception as error:  # a class may refuse its parameters in any way
        raise TableError(f"{path} cannot be made: {one_line(error, 300)}") from error


def with_any_labels(model: Any) -> Any:
    """Return the model, in a `NumberedClasses` if it takes 0, 1, ... for labels only."""
    path = f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"
    return NumberedClasses(model) if path in NEEDS_NUMBERS else model


def inner_model(model: Any) -> Any:
    """Return the model inside a `NumberedClasses`; any other as it is."""
    return model.estimator if isinstance(model, NumberedClasses) else model


def trial_rows(y: Any) -> IntArray:
    """Return positions of the first rows of each class, at most 30 of each."""
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
            raise TableError(
                f"{name} cannot be saved in a model file, so that nothing was fitted. Choose "
                "another model, such as sklearn.ensemble.HistGradientBoostingClassifier or "
                f"sklearn.ensemble.RandomForestClassifier. Reason: {reason}"
            ) from error


def _find_class(path: str) -> type:
    module, _, name = path.rpartition(".")
    parts = path.split(".")
    ours = parts[0] == "sklearn" and len(parts) > 2 and all(one.isidentifier() for one in parts)
    if path not in OTHER_LIBRARIES and (not ours or any(one.startswith("_") for one in parts)):
        raise TableError(f"{listed([path])} is not a model that --estimator takes: {TRUSTED}.")
    try:
        kind = getattr(import_module(module), name, None)
    except ImportError as error:
        if module in {one.partition(".")[0] for one in OTHER_LIBRARIES}:
            raise TableError(
                f"{path} needs {module}, which is not installed: pip install {module}"
            ) from error
        kind = None
    if not (inspect.isclass(kind) and issubclass(kind, BaseEstimator)):
        raise TableError(f"scikit-learn has no model {listed([path])}.")
    if not issubclass(kind, ClassifierMixin) or not hasattr(kind, "predict"):
        raise TableError(f"{path} is not a classifier. --estimator takes {TRUSTED}.")
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


def _parameter_names(path: str, kind: Any) -> list[str]:
    # scikit-learn asks the signature, where the other libraries hide some of theirs.
    return list(kind().get_params() if path in OTHER_LIBRARIES else kind._get_param_names())


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
