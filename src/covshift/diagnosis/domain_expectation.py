r"""What to expect, by source domains that played the target.

Scores are turned into probabilities by those rows, and the accuracy on the target is what these
probabilities promise (`covshift.kernels.unlabelled_accuracy`). How far such promises are off is
seen in the source domains: each in turn is estimated by the others, with errors
:math:`e_1, \dots, e_S`. The error on the target is taken for one more of them,

.. math::

    s^2 = \frac{\nu_0 s_0^2 + \sum_d e_d^2}{\nu_0 + S}, \qquad
    \text{interval: estimate} \pm t_{.95;\, \nu_0 + S} \, s,

a t-interval with a prior guess :math:`s_0` that is worth :math:`\nu_0` domains, since a handful
of them may agree by luck.
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
# Set on the families SET_ON of benchmarks/diagnosis/shared_structures.py.
PRIOR_ERROR, PRIOR_DOMAINS = 0.04, 8


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
    errors = []
    for number, one in enumerate(played):
        others = [*played[:number], *played[number + 1 :]]
        promised, predicted = promise(others, one.logits), one.logits.argmax(axis=1)
        errors.append(
            (
                promised.accuracy - accuracy(one.codes, predicted),
                promised.balanced_accuracy - balanced_accuracy(one.codes, predicted),
            )
        )
    promised = promise(played, target_logits)
    degrees = PRIOR_DOMAINS + len(played)
    squares = PRIOR_DOMAINS * PRIOR_ERROR**2 + np.square(errors).sum(axis=0)
    half = student_t.ppf(0.95, degrees) * np.sqrt(squares / degrees)
    evidence = {
        "n_domains": float(len(played)),
        "worst_error": float(np.abs(errors).max()),
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
