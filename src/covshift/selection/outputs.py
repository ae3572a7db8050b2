"""Fitting candidates to a scene, and what they say of its rows: scores of every class.

Probabilities and margins are brought to one form, logits, whose softmax are the probabilities where
the classifier has some. So a linear SVM takes part in everything.
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
    fit_estimator,
    predict_candidate,
    represent,
    uses_target_rows,
)
from covshift.quiet import recorded_warnings
from covshift.selection.candidates import Candidate
from covshift.selection.problem import Scene

SMALLEST_LOGIT = -30.0  # of a class the classifier has never seen: a probability of 1e-13


class Output(NamedTuple):
    """What one candidate says of the rows of a scene, or why it says nothing.

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


def class_logits(model: Any, X: Any, n_classes: int, sample_domain: Any = None) -> FloatArray:
    """Logits (n, n_classes) of rows by a fitted candidate of class numbers.

    ``model`` is a `FittedCandidate`, without adapter for rows that are represented already, or an
    `AdaptedClassifier`.
    """
    if not isinstance(model, FittedCandidate):
        model = FittedCandidate(model.adapter_, model.estimator_)

    def ask(method: str) -> Any:
        return np.asarray(predict_candidate(model, method, X, sample_domain))

    known = np.asarray(model.estimator.classes_)
    if hasattr(model.estimator, "predict_proba"):
        P = ask("predict_proba").astype(np.float64)
        scores = np.log(np.clip(P, np.exp(SMALLEST_LOGIT), None))
    elif hasattr(model.estimator, "decision_function"):
        scores = ask("decision_function").astype(np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores / 2, scores / 2])
    else:
        scores = (ask("predict")[:, None] == known).astype(np.float64)
    logits = np.full((len(scores), n_classes), min(SMALLEST_LOGIT, scores.min(initial=0.0)))
    logits[:, known] = scores
    return logits


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
            labels = scene.codes[domains.label_mask]
            rows = adapt_rows(adapter, scene.X, labels, domains, keep_all=keep_all)
            Z_test = represent(rows.adapter, scene.X_test, sample_domain=scene.test_domain)
        except Exception as error:  # whatever a user's adapter raises: the others go on
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
            model = fit_estimator(estimator, adapted.rows, scene.codes[scene.codes >= 0])
            fitted = FittedCandidate(None, model)
            logits = class_logits(fitted, adapted.Z_test, n_classes, scene.test_domain)
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


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _messages(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    texts = [f"{one.category.__name__}: {one.message}".partition("\n")[0] for one in caught]
    return tuple(dict.fromkeys(texts))
