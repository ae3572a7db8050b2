r"""Weights of the candidates that vote.

Candidates of near-equal expected gains are near-equal in truth, and which of them is best is mostly
noise. The k best by the expected gain s vote with weights

.. math::

    w_c \propto \exp\bigl((s_c - \max s) / \tau\bigr), \qquad \tau = 0.01,

on calibrated probabilities; those with less than .01 of the weight are not worth their fits and
drop out. The plain model then gets a share of .3 of the weight, and these the
rest: the vote departs from it only where the others are surer than it is, which halves the losses
and costs hardly any gain. A single best candidate (k = 1) stays alone. With the labels of m target
rows, each candidate's score on them, :math:`a_c`, is one more measurement of what s predicts, and
the two are averaged by their precisions, both about their means over the candidates:

.. math::

    s_c \leftarrow \frac{s_c / \sigma^2 + a_c / v_c}{1 / \sigma^2 + 1 / v_c}, \qquad
    v_c = \frac{\bar a_c (1 - \bar a_c)}{m}, \qquad
    \sigma^2 = \max\bigl(\sigma_0^2, \operatorname{mean}_c (a_c - s_c)^2
        - \operatorname{mean}_c v_c\bigr),

with :math:`\bar a_c` shrunk to the middle by one success and one failure; for numbers, :math:`a_c`
is R² on the labeled rows and :math:`v_c` its variance (`covshift.selection.label_tasks`). The
score is mostly near the truth and at times far off: how far, the labels themselves tell.
"""

from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray, FloatArray

TEMPERATURE = 0.01
MIN_WEIGHT = 0.01  # of a candidate that votes
PLAIN_WEIGHT = 0.3  # of the plain model in a vote; 0 to .8 were tried: docs/results/assessment.md
# sigma_0: the root mean square error of the expected gain among the ten best candidates of a task.
SCORE_ERROR = 0.04


def vote_weights(
    combined: FloatArray, allowed: BoolArray, n_members: int, plain: int | None = None
) -> FloatArray:
    """Return the weights that sum to one, zero for all but the best and the plain model.

    Ties go to the earlier candidate. ``plain`` is the number of the plain model; None: it has no
    weight but its own.
    """
    scores = np.where(allowed & ~np.isnan(combined), combined, -np.inf)
    weights = np.zeros(len(scores))
    if np.isneginf(scores).all():
        weights[0] = 1.0
        return weights
    best = np.argsort(-scores, kind="stable")[:n_members]
    best = best[~np.isneginf(scores[best])]
    powers: FloatArray = np.exp((scores[best] - scores[best].max()) / TEMPERATURE)
    powers[powers < MIN_WEIGHT * powers.sum()] = 0.0
    weights[best] = powers / powers.sum()
    if plain is not None and n_members > 1:
        weights *= 1 - PLAIN_WEIGHT
        weights[plain] += PLAIN_WEIGHT
    return weights


def combine_with_labels(
    combined: FloatArray,
    label_scores: FloatArray,
    n_labels: int,
    allowed: BoolArray,
    variances: FloatArray | None = None,
) -> FloatArray:
    """Return the average expected gains with the scores on labeled target rows, by precision.

    ``variances`` of the scores (candidates,); None: those of shares of right predictions.
    """
    able = allowed & ~np.isnan(combined) & ~np.isnan(label_scores)
    if n_labels == 0 or not able.any():
        return combined
    of_labels: Any
    if variances is None:
        shrunk = (label_scores[able] * n_labels + 1) / (n_labels + 2)
        of_labels = shrunk * (1 - shrunk) / n_labels
    else:
        of_labels = variances[able]
    s = combined[able] - combined[able].mean()
    a = label_scores[able] - label_scores[able].mean()
    of_score = max(SCORE_ERROR**2, float(np.mean((a - s) ** 2) - of_labels.mean()))
    result = np.full(len(combined), np.nan)
    result[able] = (s / of_score + a / of_labels) / (1 / of_score + 1 / of_labels)
    return result
