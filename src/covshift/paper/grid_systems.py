"""The paper's systems over grids of settings: fit all on the same rows, predict new ones.

A setting is plain data: the hyper-parameters of a system but the cost C of its linear SVM, which
is an axis of its own, since one representation serves every C. Labels of target rows are never
given to anything here; callers with labels of the predicted rows score the predictions.

==========  ==========================================================  ====================
system      what it does                                                a setting has
==========  ==========================================================  ====================
SVM         no adaptation                                               nothing
SF          sparse filtering, stopped by the KS distance                L
PSF         periodic sparse filtering, stopped likewise                 activation, L,
                                                                        label_reward
SSA         subspace alignment                                          P
DAE         denoising auto-encoder                                      activation, L,
                                                                        noise_level,
                                                                        learning_rate,
                                                                        mini_batches
LSPC        least-squares probabilistic classifier, no adaptation       sigma, lambda
IW+LSPC     the same with uLSIF weights                                 sigma, lambda
==========  ==========================================================  ====================
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from covshift.adapters import (
    DenoisingAutoencoder,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
    fit_many,
)
from covshift.base import NothingToAdaptWarning
from covshift.domains import split_domains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.predictors import LSPClassifier
from covshift.weights import ULSIFWeights, UnreliableWeightsWarning

Setting: TypeAlias = Mapping[str, Any]
Representation: TypeAlias = tuple[FloatArray, FloatArray]  # of source rows and of new rows

SYSTEMS = ("SVM", "SF", "PSF", "LSPC", "IW+LSPC", "SSA", "DAE")
BASELINES = {"SF": "SVM", "PSF": "SVM", "IW+LSPC": "LSPC", "SSA": "SVM", "DAE": "SVM"}
# Those that learn from rows without knowing which are target rows: the same fitted without the
# target is a control for the adaptation.
WITHOUT_TARGET = ("SF", "PSF", "DAE")
WITHOUT_COST = ("LSPC", "IW+LSPC")  # they have no SVM on top

UNLABELLED_FEATURES = 10  # of PSF for unlabeled rows, beyond its L
# Of both filters: standard normal draws as the start, and the KS stop.
FILTER: dict[str, Any] = {
    "init_scale": 1.0,
    "early_stopping": "ks",
    "stopping_window": 50,
    "max_iter": 50,
    "n_restarts": 1,
}
BATCH_SIZE = 50
# Of uLSIF and LSPC, which have as many as there are target rows. Half a speaker has fewer; a
# target of thousands would cost minutes a setting. The number is that of the synthetic study.
MAX_BASES = 250
# Filters and auto-encoders take half the time in single precision, and rows of measured
# features have no more digits.
PRECISION = np.float32


class TrainingRows(NamedTuple):
    """Rows of all domains as ``fit`` takes them; labels of target rows are placeholders."""

    X: FloatArray
    y: Any
    sample_domain: IntArray

    @property
    def target(self) -> FloatArray:
        """The target rows."""
        return self.X[self.sample_domain < 0]


def declare_settings(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the values of the axes, the last axis running fastest.

    Examples
    --------
    >>> declare_settings({"activation": ["sin", "cos"], "L": [20]})
    [{'activation': 'sin', 'L': 20}, {'activation': 'cos', 'L': 20}]
    """
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def draw_settings(settings: Sequence[Any], n: int, seed: int = 0) -> list[Any]:
    """``n`` of the settings drawn without repetition, in their order; all, if there are fewer."""
    if n >= len(settings):
        return list(settings)
    chosen = np.random.RandomState(seed).choice(len(settings), n, replace=False)
    return [settings[index] for index in sorted(chosen)]


def predict_settings(
    system: str,
    settings: Sequence[Setting],
    costs: Sequence[float],
    training: TrainingRows,
    rows: FloatArray,
    *,
    random_state: int,
    without_target: bool = False,
) -> Any:
    """Fit every setting of a system, and predict the classes of new rows of the target.

    Parameters
    ----------
    system : str
        One of ``SYSTEMS``.
    settings : sequence of mappings
        Settings of the system, see the table above.
    costs : sequence of float
        Values of C of the linear SVM; without effect on ``WITHOUT_COST``.
    training : TrainingRows
        Labeled source rows and unlabeled target rows; what the labels of target rows hold
        is never read.
    rows : array of shape (n_rows, n_features)
        Rows of the target to predict.
    random_state : int
        Seed of every start.
    without_target : bool, default=False
        Leave the target rows out of the fit: the control. Only for ``WITHOUT_TARGET``; filters
        then run all iterations: without a target, the distance that stops them is unknown.

    Returns
    -------
    ndarray of shape (n_settings, n_costs, n_rows)
        Predicted classes; of ``WITHOUT_COST`` n_costs is one.
    """
    if system not in SYSTEMS:
        raise ValueError(f"Unknown system {system!r}. Choose from: {', '.join(SYSTEMS)}.")
    if without_target and system not in WITHOUT_TARGET:
        raise ValueError(f"{system} cannot be fitted without target rows.")
    with warnings.catch_warnings():
        # The paper's numbers of iterations and batches, converged or not; weights of few rows
        # and bases out of reach, where the grid has them; a control that adapts to nothing.
        for category in (ConvergenceWarning, UnreliableWeightsWarning, NothingToAdaptWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "LSPClassifier: no labeled row is within reach")
        if system in WITHOUT_COST:
            return _predict_lspc(system, settings, training, rows, random_state)
        represent = REPRESENTATIONS[system]
        _, labels, _ = split_domains(*training)
        return np.stack(
            [
                [LinearSVC(C=C, dual=False).fit(source, labels).predict(new) for C in costs]
                for source, new in represent(settings, training, rows, random_state, without_target)
            ]
        )


def average_recalls(predicted: Any, y_true: Any) -> FloatArray:
    """Return the UAR of every setting of a grid: of predictions (..., n_rows) against (n_rows,).

    The same as `covshift.measures.unweighted_average_recall` of each.
    """
    recalls = [
        (predicted[..., y_true == label] == label).mean(axis=-1) for label in np.unique(y_true)
    ]
    average: FloatArray = np.mean(recalls, axis=0)
    return average


def best_setting(scores: Any) -> tuple[int, int]:
    """Return number of the setting and of the C with the largest score; of several the first."""
    setting, cost = np.unravel_index(np.argmax(scores), np.shape(scores))
    return int(setting), int(cost)


def _raw(
    settings: Sequence[Setting], training: TrainingRows, rows: FloatArray, *_: Any
) -> Iterable[Representation]:
    source, _labels, _target = split_domains(*training)
    return [(source, rows) for _ in settings]


def _align(
    settings: Sequence[Setting], training: TrainingRows, rows: FloatArray, *_: Any
) -> Iterable[Representation]:
    X, y, sample_domain = training
    n_target = int((sample_domain < 0).sum())
    for setting in settings:
        # About their mean, n rows have n - 1 directions: there are no more to align to.
        P = max(1, min(setting["P"], n_target - 1))
        adapter = SubspaceAlignment(P).fit(X, y, sample_domain=sample_domain)
        Z = adapter.transform(X, sample_domain=sample_domain)
        yield Z[sample_domain >= 0], adapter.transform(rows)


def _learn(build: Callable[[Setting, int, int], Any]) -> Any:
    """Make what fits adapters together from what builds one (setting, rows, seed)."""

    def represent(
        settings: Sequence[Setting],
        training: TrainingRows,
        rows: FloatArray,
        random_state: int,
        without_target: bool,
    ) -> Iterable[Representation]:
        X, y = training.X.astype(PRECISION), training.y
        sample_domain: IntArray | None = training.sample_domain
        source = training.sample_domain >= 0
        if without_target:
            X, y, sample_domain, source = X[source], y[source], None, source[source]
        adapters = [build(setting, X.shape[0], random_state) for setting in settings]
        for adapter in fit_many(adapters, X, y, sample_domain=sample_domain):
            Z = adapter.transform(X, sample_domain=sample_domain)
            yield Z[source], adapter.transform(rows.astype(PRECISION))

    return represent


def sparse_filter(setting: Setting, n_rows: int, random_state: int) -> Any:
    """Make an SF of one setting of a grid."""
    return SparseFiltering(setting["L"], **FILTER, random_state=random_state)


def periodic_filter(setting: Setting, n_rows: int, random_state: int) -> Any:
    """Make a PSF of one setting of a grid."""
    return PeriodicSparseFiltering(
        setting["L"] + UNLABELLED_FEATURES,
        n_unlabelled_components=UNLABELLED_FEATURES,
        activation=setting["activation"],
        label_reward=setting["label_reward"],
        **FILTER,
        random_state=random_state,
    )


def autoencoder(setting: Setting, n_rows: int, random_state: int) -> Any:
    """Make a DAE of one setting of a grid; its epochs make the number of mini-batches."""
    batches_per_epoch = math.ceil(n_rows / BATCH_SIZE)
    return DenoisingAutoencoder(
        setting["L"],
        activation=setting["activation"],  # of the decoder too, for which rows are scaled
        tied=True,
        noise_level=setting["noise_level"],
        learning_rate=setting["learning_rate"],
        batch_size=BATCH_SIZE,
        max_epochs=max(1, round(setting["mini_batches"] / batches_per_epoch)),
        random_state=random_state,
    )


REPRESENTATIONS: dict[str, Any] = {
    "SVM": _raw,
    "SF": _learn(sparse_filter),
    "PSF": _learn(periodic_filter),
    "SSA": _align,
    "DAE": _learn(autoencoder),
}


def _predict_lspc(
    system: str,
    settings: Sequence[Setting],
    training: TrainingRows,
    rows: FloatArray,
    random_state: int,
) -> Any:
    """Return both estimators, with at most MAX_BASES bases at the target rows."""
    X, labels, target = split_domains(*training)
    if len(target) > MAX_BASES:
        drawn = np.random.RandomState(random_state).choice(len(target), MAX_BASES, replace=False)
        target = target[np.sort(drawn)]
    weights = None
    if system == "IW+LSPC":
        estimator = ULSIFWeights(
            n_bases=MAX_BASES,
            sigmas=ULSIFWeights.PAPER_SIGMAS,
            lambdas=ULSIFWeights.PAPER_LAMBDAS,
            clip="coefficients",
            random_state=random_state,
        ).fit(training.X, sample_domain=training.sample_domain)
        weights = estimator.weights_
    predictions = []
    for setting in settings:
        model = LSPClassifier(
            bases=target,
            sigmas=setting["sigma"],
            lambdas=setting["lambda"],
            cv=2,  # with a single candidate, folds do not matter
            random_state=random_state,
        )
        model.fit(X, labels, sample_weight=weights)
        predictions.append([model.predict(rows)])
    return np.stack(predictions)
