"""A problem, its scenes, and what candidates say of the rows of a scene.

A problem holds what a scorer may see: labeled source rows, target rows, and no label of the latter.
A scene is rows to fit on and rows to predict: the target itself, or source rows that play it.

Probabilities and margins are brought to one form, logits, whose softmax are the probabilities where
the classifier has some. So a linear SVM takes part in everything. Predicted numbers are kept in the
same place, as a single column.
"""

import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from covshift.domains import FitDomains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.distinct_rows import draw_rows
from covshift.measures import effective_sample_size
from covshift.predictors.class_proportions import class_shares
from covshift.predictors.fit_and_predict import (
    AdaptedRows,
    FittedCandidate,
    adapt_rows,
    class_logits,
    fit_estimator,
    predict_candidate,
    problem_size,
    represent,
    uses_target_rows,
)
from covshift.registry import Size
from covshift.selection.candidates import Candidate
from covshift.selection.label_tasks import CLASSES, ClassTask, NumberTask
from covshift.warning_filters import recorded_warnings


class Problem(NamedTuple):
    """Rows to learn from and rows to adapt to. Classes are numbers from 0 to n_classes - 1.

    Where the label is a number, ``values`` holds it in units of the source, ``task`` the units, and
    the classes are groups of equally many rows by the label: by these, rows are drawn and dealt.
    """

    X_source: FloatArray
    codes: IntArray
    source_domain: IntArray
    X_target: FloatArray
    target_domain: IntArray
    n_classes: int
    values: FloatArray | None = None
    task: ClassTask | NumberTask = CLASSES

    @property
    def truth(self) -> Any:
        """Labels that predictions are compared with: class numbers, or numbers."""
        return self.codes if self.values is None else self.values

    @property
    def source_domains(self) -> IntArray:
        """Distinct source domains."""
        return np.unique(self.source_domain)

    @property
    def class_shares(self) -> FloatArray:
        """Shares of the classes among the source rows."""
        return class_shares(self.codes, self.n_classes)

    @property
    def size(self) -> Size:
        """Size of the problem, by which settings of adapters are chosen."""
        scene = target_scene(self)
        n_classes = self.n_classes if self.values is None else 1  # as in `AdaptedRegressor`
        return problem_size(scene.X, n_classes, scene.sample_domain)

    def thinned(self, max_rows: int, rng: np.random.RandomState) -> "Problem":
        """Largest number of rows of each role, drawn in proportion to domains and classes."""
        return self.take(*self.draw_rows(max_rows, rng))

    def draw_rows(self, max_rows: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Return the numbers of the source rows and of the target rows that `thinned` keeps."""
        source = _draw(self.source_domain * self.n_classes + self.codes, max_rows, rng)
        return source, _draw(self.target_domain, max_rows, rng)

    def take(self, source: IntArray, target: IntArray) -> "Problem":
        """Return the problem of some of the rows."""
        return self._replace(
            X_source=self.X_source[source],
            codes=self.codes[source],
            source_domain=self.source_domain[source],
            X_target=self.X_target[target],
            target_domain=self.target_domain[target],
            values=None if self.values is None else self.values[source],
        )


class Scene(NamedTuple):
    """One fit of every candidate: training rows, rows to adapt to (code -1), rows to predict.

    ``values``: labels of the training rows that are numbers; None: the codes are the labels.
    """

    X: FloatArray
    codes: IntArray
    sample_domain: IntArray
    X_test: FloatArray
    test_domain: IntArray
    values: FloatArray | None = None

    @property
    def labels(self) -> Any:
        """Labels of the training rows: class numbers, or numbers."""
        return self.codes[self.codes >= 0] if self.values is None else self.values

    @property
    def domains(self) -> FitDomains:
        """Where the rows to fit come from, and which of them have a label."""
        return FitDomains(self.sample_domain, self.codes >= 0, given=True)


def make_scene(
    X_source: FloatArray,
    codes: IntArray,
    source_domain: IntArray,
    X_target: FloatArray,
    target_domain: IntArray,
    *,
    test: tuple[FloatArray, IntArray] | None = None,
    values: FloatArray | None = None,
) -> Scene:
    """Stack source and target rows; the rows to predict are the target's, or others.

    ``values``: labels of the source rows that are numbers.
    """
    X_test, test_domain = (X_target, target_domain) if test is None else test
    return Scene(
        np.concatenate([X_source, X_target]),
        np.concatenate([codes, np.full(len(X_target), -1)]),
        np.concatenate([source_domain, target_domain]),
        X_test,
        test_domain,
        values,
    )


def target_scene(problem: Problem) -> Scene:
    """Return the problem itself: learn from the source, adapt to the target, predict the target."""
    return make_scene(*problem[:5], values=problem.values)


def _draw(strata: Any, max_rows: int, rng: np.random.RandomState) -> IntArray:
    if len(strata) <= max_rows:
        return np.arange(len(strata))
    _, numbers = np.unique(strata, return_inverse=True)
    return np.sort(draw_rows(numbers, max_rows, rng))


# --- Candidates fitted to a scene, and what they say of its rows ---


class Output(NamedTuple):
    """Output of one candidate for the rows of a scene, or the reason why it has none.

    ``logits`` (n, n_classes); where the label is a number, the predictions (n, 1).
    ``n_effective`` is the effective number of source rows, where the adapter weighs them.
    """

    logits: FloatArray | None
    error: str | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    n_effective: float | None = None

    @property
    def codes(self) -> IntArray:
        """Predicted class numbers."""
        assert self.logits is not None
        return self.logits.argmax(axis=1)

    @property
    def probabilities(self) -> FloatArray:
        """Softmax of the logits."""
        p: FloatArray = softmax(self.logits, axis=1)
        return p


def run_scene(candidates: Sequence[Candidate], scene: Scene, n_classes: int) -> list[Output]:
    """Fit candidates to a scene; an adapter that several share is fitted once."""
    adapted: dict[int, _Adapted] = {}
    keep_all = any(uses_target_rows(one.estimator) for one in candidates)
    for one in candidates:
        if id(one.adapter) not in adapted:
            adapted[id(one.adapter)] = _adapt(one.adapter, scene, keep_all)
    return [_run(one.estimator, adapted[id(one.adapter)], scene, n_classes) for one in candidates]


class _Adapted(NamedTuple):
    """The rows of a scene as an adapter represents them, or why it does not."""

    rows: AdaptedRows | None = None
    Z_test: Any = None
    error: str | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def _adapt(adapter: Any, scene: Scene, keep_all: bool) -> _Adapted:
    start = perf_counter()
    with recorded_warnings() as caught:
        try:
            domains = scene.domains
            labels = scene.labels if scene.values is None else None  # adapters read classes only
            rows = adapt_rows(adapter, scene.X, labels, domains, keep_all=keep_all)
            Z_test = represent(rows.adapter, scene.X_test, sample_domain=scene.test_domain)
        except Exception as error:  # a user's adapter may raise anything: the others continue
            return _Adapted(error=_in_a_line(error), seconds=perf_counter() - start)
    return _Adapted(rows, Z_test, None, perf_counter() - start, _messages(caught))


def _run(estimator: Any, adapted: _Adapted, scene: Scene, n_classes: int) -> Output:
    if adapted.rows is None:
        return Output(None, adapted.error, adapted.seconds)
    start = perf_counter()
    importance = adapted.rows.importance
    n_effective = None if importance is None else effective_sample_size(importance)
    with recorded_warnings() as caught:
        try:
            model = fit_estimator(estimator, adapted.rows, scene.labels)
            fitted = FittedCandidate(None, model)
            if scene.values is None:
                logits = class_logits(fitted, adapted.Z_test, n_classes, scene.test_domain)
            else:
                logits = predicted_numbers(fitted, adapted.Z_test, scene.test_domain)
            error = None if np.isfinite(logits).all() else "its scores are not finite"
        except Exception as raised:
            logits, error = None, _in_a_line(raised)
    return Output(
        None if error else logits,
        error,
        adapted.seconds + perf_counter() - start,
        (*adapted.warnings, *_messages(caught)),
        n_effective,
    )


def predicted_numbers(model: Any, X: Any, sample_domain: Any = None) -> FloatArray:
    """Return the predictions (n, 1) of rows by a fitted candidate or `AdaptedRegressor`."""
    if not isinstance(model, FittedCandidate):
        model = FittedCandidate(model.adapter_, model.estimator_)
    found = predict_candidate(model, "predict", X, sample_domain)
    return np.asarray(found, dtype=np.float64).reshape(-1, 1)


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _messages(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    texts = [f"{one.category.__name__}: {one.message}".partition("\n")[0] for one in caught]
    return tuple(dict.fromkeys(texts))
