"""A model on rows of both roles that took no part in its fit.

Source rows left out of a fit and target rows that it adapted to cannot be compared: after
standardising by domain the latter have mean 0 exactly, the former do not, and two thirds of the
rows make a model of another scale than all of them. So both roles are dealt to folds, and each fold
is represented and predicted by one model that saw no row of it, of either role.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.distinct_rows import deal_folds
from covshift.predictors.fitting import FittedCandidate, fit_candidate, represent
from covshift.selection.bench import N_FOLDS, Bench
from covshift.selection.candidates import Candidate
from covshift.selection.outputs import class_logits
from covshift.selection.problem import Problem, make_scene
from covshift.solvers.blas_threads import one_blas_thread


class LeftOut(NamedTuple):
    """Logits of all rows, and the rows as represented, fold by fold: (source, target) pairs."""

    source_logits: FloatArray
    target_logits: FloatArray
    representations: Sequence[tuple[FloatArray, FloatArray]]


def predict_left_out(bench: Bench, number: int) -> LeftOut | None:
    """Run the candidate of this number on rows left out; None, if it cannot be fitted so.

    Warnings of the fits are those of the candidate, which the bench has noted already.
    """
    problem, candidate = bench.problem, bench.candidates[number]
    rng = bench.rng("left out")
    source_fold = deal_folds(problem.codes, N_FOLDS, rng)
    target_fold = deal_folds(problem.target_domain, N_FOLDS, rng)
    if len(problem.X_target) < N_FOLDS:
        return None
    source_logits = np.empty((len(problem.X_source), problem.n_classes))
    target_logits = np.empty((len(problem.X_target), problem.n_classes))
    representations = []
    for fold in range(N_FOLDS):
        in_source, in_target = source_fold == fold, target_fold == fold
        try:
            with one_blas_thread():
                logits, Z = _run(candidate, problem, in_source, in_target)
        except Exception:  # whatever a user's adapter or model raises on fewer rows
            return None
        n_left_out = int(in_source.sum())
        source_logits[in_source] = logits[:n_left_out]
        target_logits[in_target] = logits[n_left_out:]
        representations.append((Z[:n_left_out], Z[n_left_out:]))
    if not (np.isfinite(source_logits).all() and np.isfinite(target_logits).all()):
        return None
    return LeftOut(source_logits, target_logits, representations)


def _run(
    candidate: Candidate, problem: Problem, in_source: IntArray, in_target: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Logits and representation of one fold, source rows first."""
    scene = make_scene(
        problem.X_source[~in_source],
        problem.codes[~in_source],
        problem.source_domain[~in_source],
        problem.X_target[~in_target],
        problem.target_domain[~in_target],
    )
    adapter, model = fit_candidate(
        candidate.adapter, candidate.estimator, scene.X, problem.codes[~in_source], scene.domains
    )
    X = np.concatenate([problem.X_source[in_source], problem.X_target[in_target]])
    domain = np.concatenate([problem.source_domain[in_source], problem.target_domain[in_target]])
    Z = np.asarray(represent(adapter, X, sample_domain=domain), dtype=np.float64)
    return class_logits(FittedCandidate(None, model), Z, problem.n_classes, domain), Z
