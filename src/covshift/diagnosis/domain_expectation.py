r"""What to expect, by source domains that played the target.

Scores are turned into probabilities by those rows, and the accuracy on the target is what these
probabilities promise (`covshift.measures.performance_estimates`). How far such promises are off is
seen in the source domains: each in turn is estimated by the others, with errors
:math:`e_1, \dots, e_S`, part of which (:math:`v_1, \dots, v_S`) is the noise of few rows. The
error on the target is taken for one more of them,

.. math::

    s^2 = \frac{\nu_0 c \, a (1 - a) / K + \sum_d \max(0, e_d^2 - v_d)}{\nu_0 + S} + v, \qquad
    \text{interval: } a \pm t_{.925;\, \nu_0 + S} \, s,

of 85 %, with a prior guess that is worth :math:`\nu_0` domains, since a handful of them may agree
by luck: it is the wider the farther the accuracy :math:`a` is from all or none, and the fewer the
classes K over which errors could level out.

No number is given where models of the domains' own rows (`own_rows`) do far better than the model
of the other domains: that does not carry over, and what it reaches is luck.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student_t

from covshift.diagnosis.expectation import Expectation, refuse, state
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.vector_scaling import fit_scaling, scaled_probabilities
from covshift.measures.performance_estimates import Scores, confident_scores
from covshift.selection.metrics import accuracy, balanced_accuracy

MIN_SCENES = 3
# Set on three sets of families (benchmarks/families), judged on others.
PRIOR_ERROR, PRIOR_DOMAINS = 0.045, 4  # c, nu_0
LEVEL = 0.85
MAX_LOSS = 0.2  # of balanced accuracy, from own rows to those of the other domains


class PlayedLogits(NamedTuple):
    """Logits of the rows of a source domain that played the target, and their classes."""

    logits: FloatArray
    codes: IntArray


def expect_by_domains(
    played: Sequence[PlayedLogits], target_logits: FloatArray | None, own: float
) -> Expectation:
    """Accuracy on the target from rows of source domains, each predicted by the others.

    ``own``: the balanced accuracy that their own rows reach (`own_rows.score_own_rows`).
    """
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
    beyond_noise = np.maximum(0, np.square(errors) - [_variances(one) for one in promises])
    values = np.array(_values(promised))
    prior = PRIOR_ERROR * values * (1 - values) / target_logits.shape[1]
    variance = (PRIOR_DOMAINS * prior + beyond_noise.sum(axis=0)) / degrees + _variances(promised)
    half = student_t.ppf((1 + LEVEL) / 2, degrees) * np.sqrt(variance)
    evidence = {
        "n_domains": float(len(played)),
        "worst_error": float(np.abs(errors).max()),
        "mean_balanced_accuracy": float(reached[:, 1].mean()),
        "own_balanced_accuracy": own,
    }
    if own - evidence["mean_balanced_accuracy"] > MAX_LOSS:
        return refuse("domains", ["not carried over"], evidence)
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
