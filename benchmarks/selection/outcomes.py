r"""What a rule is worth: score, regret, and harm against two baselines.

The balanced accuracies a, b of two rules on the same n rows differ by the mean over the K classes
of :math:`\bar d_k`, the mean difference of being right in class k. The standard error of that is
:math:`\frac{1}{K} \sqrt{\sum_k s_k^2 / n_k}`: the paired interval.
"""

from typing import NamedTuple

import numpy as np
from rules import best_unadapted, unadapted_regression

from covshift.measures import clustered_bootstrap_interval
from covshift.selection.metrics import balanced_accuracy

MARGIN = 0.01  # a loss above which is harm
CLOSE = 0.02
N_SPLITS = 20
BASELINES = {"LR": unadapted_regression, "best unadapted": best_unadapted}


class Loss(NamedTuple):
    """By how much a rule is worse than a baseline on one task, and whether that is sure."""

    loss: float
    sure: bool  # the 95 % interval of the pairs excludes zero


class Outcome(NamedTuple):
    """One rule on one task."""

    score: float
    regret: float
    losses: dict  # Loss by baseline


def judge_rule(task, codes):
    """Outcome of predictions of the test rows."""
    if codes is None:  # a fixed method that failed: the user is left with the baseline
        codes = unadapted_regression(task)
    score = task.score(codes)
    losses = {name: paired_loss(task, codes, rule(task)) for name, rule in BASELINES.items()}
    return Outcome(score, np.nanmax(task.truth) - score, losses)


def paired_loss(task, codes, baseline):
    """Loss of balanced accuracy against the baseline's predictions."""
    difference = (baseline == task.test_codes).astype(float) - (codes == task.test_codes)
    classes = [difference[task.test_codes == k] for k in np.unique(task.test_codes)]
    loss = np.mean([one.mean() for one in classes])
    variances = [one.var(ddof=1) / len(one) if len(one) > 1 else 0.25 for one in classes]
    error = np.sqrt(np.sum(variances)) / len(classes)
    return Loss(loss, bool(loss > MARGIN and loss > 1.96 * error))


def split_half_floor(task):
    """Regret of an oracle that sees half of the test labels, on the other half."""
    rng = np.random.RandomState(0)
    predicted = [codes for codes in task.predictions if codes is not None]
    regrets = []
    for _ in range(N_SPLITS):
        seen = rng.uniform(size=len(task.test_codes)) < 0.5
        on_seen, on_other = (
            np.array([balanced_accuracy(task.test_codes[part], one[part]) for one in predicted])
            for part in (seen, ~seen)
        )
        regrets.append(on_other.max() - on_other[on_seen.argmax()])
    return np.mean(regrets)


def summarise(outcomes):
    """Means over tasks, by the keys of the tables."""
    regrets = np.array([one.regret for one in outcomes])
    row = {
        "score": np.mean([one.score for one in outcomes]),
        "regret": regrets.mean(),
        "close": np.mean(regrets <= CLOSE),
    }
    for name in BASELINES:
        losses = np.array([one.losses[name].loss for one in outcomes])
        row[f"harm {name}"] = np.mean(losses > MARGIN)
        row[f"sure {name}"] = np.mean([one.losses[name].sure for one in outcomes])
        row[f"worst {name}"] = losses.max()
    return row


def lead(outcomes, others, clusters):
    """By how much the first rule is better on average, with an interval clustered by collection."""
    differences = [one.score - other.score for one, other in zip(outcomes, others, strict=True)]
    low, high = clustered_bootstrap_interval(differences, clusters, random_state=0)
    return np.mean(differences), low, high
