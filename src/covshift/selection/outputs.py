"""Fitting candidates to a scene, and what they say of its rows: scores of every class, or numbers.

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

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.measures import effective_sample_size
from covshift.predictors.fitting import (
    AdaptedRows,
    FittedCandidate,
    adapt_rows,
    class_logits,
    fit_estimator,
    predict_candidate,
    represent,
    uses_target_rows,
)
from covshift.selection.candidates import Candidate
from covshift.selection.problem import Scene
from covshift.warning_filters import recorded_warnings


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
