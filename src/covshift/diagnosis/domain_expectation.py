r"""What to expect, by source domains that played the target.

Scores are turned into probabilities by those rows, and the accuracy on the target is what these
probabilities promise (`covshift.kernels.unlabelled_accuracy`). How far such promises are off is
seen in the source domains: each in turn is estimated by the others, with errors
:math:`e_1, \dots, e_S`, part of which (:math:`v_1, \dots, v_S`) is the noise of few rows. The
error on the target is taken for one more of them,

.. math::

    s^2 = \max\!\left(0, \frac{\nu_0 s_0^2 + \sum_d (e_d^2 - v_d)}{\nu_0 + S}\right)
          + v + \kappa^2 (a - \bar a)^2, \qquad
    \text{interval: } a \pm t_{.95;\, \nu_0 + S} \, s,

with a prior guess :math:`s_0` that is worth :math:`\nu_0` domains, since a handful of them may
agree by luck. The last term holds the promise :math:`a` against the mean :math:`\bar a` of what
was reached in the source domains: one that no domain has kept is the less to be trusted, the
farther it goes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student_t

from covshift.diagnosis.expectation import Expectation, refuse, state
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.unlabelled_accuracy import Scores, confident_scores
from covshift.kernels.vector_scaling import fit_scaling, scaled_probabilities
from covshift.selection.metrics import accuracy, balanced_accuracy

MIN_SCENES = 3
# Set on the families of benchmarks/diagnosis/shared_structures.py, to be judged on others.
PRIOR_ERROR, PRIOR_DOMAINS = 0.025, 8
DISTRUST = 0.75  # kappa


class PlayedLogits(NamedTuple):
    """Logits of the rows of a source domain that played the target, and their classes."""

    logits: FloatArray
    codes: IntArray


def expect_by_domains(
    played: Sequence[PlayedLogits], target_logits: FloatArray | None
) -> Expectation:
    """Accuracy on the target from rows of source domains, each predicted by the others."""
    if len(played) < MIN_SCENES or target_logits is None:
        return refuse("domains", ["domains"], {"n_domains": float(len(played))})
    reached = np.array([_scores(one) for one in played])  # (S, 2): accuracy, balanced accuracy
    promises = [
        promise([*played[:number], *played[number + 1 :]], one.logits)
        for number, one in enumerate(played)
    ]
    errors = np.array([_values(one) for one in promises]) - reached
    promised = promise(played, target_logits)
    degrees = PRIOR_DOMAINS + len(played)
    beyond_noise = np.square(errors) - [_variances(one) for one in promises]
    squares = PRIOR_DOMAINS * PRIOR_ERROR**2 + beyond_noise.sum(axis=0)
    unkept = DISTRUST * (np.array(_values(promised)) - reached.mean(axis=0))
    variance = np.maximum(0, squares / degrees) + _variances(promised) + np.square(unkept)
    half = student_t.ppf(0.95, degrees) * np.sqrt(variance)
    evidence = {
        "n_domains": float(len(played)),
        "worst_error": float(np.abs(errors).max()),
        "mean_balanced_accuracy": float(reached[:, 1].mean()),
    }
    return state(
        "domains",
        (promised.accuracy, float(half[0])),
        (promised.balanced_accuracy, float(half[1])),
        evidence,
    )


def promise(played: Sequence[PlayedLogits], logits: FloatArray) -> Scores:
    """Scores on rows with these logits, by the probabilities that logits had where they played."""
    known = np.concatenate([one.logits for one in played])
    codes = np.concatenate([one.codes for one in played])
    scaling = fit_scaling(known, codes, np.ones(len(codes)))
    P, P_new = scaled_probabilities(known, scaling), scaled_probabilities(logits, scaling)
    return confident_scores(codes, P, known.argmax(axis=1), P_new, logits.argmax(axis=1))


def _scores(one: PlayedLogits) -> tuple[float, float]:
    predicted = one.logits.argmax(axis=1)
    return accuracy(one.codes, predicted), balanced_accuracy(one.codes, predicted)


def _values(scores: Scores) -> tuple[float, float]:
    return scores.accuracy, scores.balanced_accuracy


def _variances(scores: Scores) -> tuple[float, float]:
    return scores.variance, scores.balanced_variance
