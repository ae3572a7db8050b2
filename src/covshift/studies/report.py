"""Summaries of trials: means with their errors, differences with their intervals, verdicts."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import t as t_distribution

from covshift.kernels.arrays import FloatArray
from covshift.measures import mean_and_standard_error

Verdict: TypeAlias = Literal["helps", "harms", "unclear"]

LEVEL = 0.05  # chance of calling a difference where there is none, for each verdict
CLEAR = 0.01  # of balanced accuracy, beyond which a pair counts as helped or harmed
# Accuracies on 500 rows come in such steps: a few equal differences prove no smaller spread.
STEP = 1 / 500


class Figure(NamedTuple):
    """A figure with its standard error, None where there is none."""

    mean: float
    standard_error: float | None = None


def estimate(numbers: Sequence[float]) -> Figure | None:
    """Mean and standard error; of a single number no error, of none nothing."""
    if not numbers:
        return None
    if len(numbers) == 1:
        return Figure(numbers[0])
    return Figure(*mean_and_standard_error(numbers))


def figure_text(figure: Figure | None, digits: int = 3) -> str:
    """Mean and standard error as text."""
    if figure is None:
        return "?"
    text = f"{figure.mean:.{digits}f}"
    if figure.standard_error is None:
        return text
    return f"{text} ± {figure.standard_error:.{digits}f}"


class Difference(NamedTuple):
    """Mean difference to no adaptation over pairs, its 95 % interval, and pairs by its sign."""

    mean: float
    low: float | None
    high: float | None
    helped: int
    harmed: int

    @property
    def verdict(self) -> Verdict:
        """What the interval says."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "unclear"
        return "helps" if self.low > 0 else "harms"


def compare_pairs(differences: Sequence[float]) -> Difference | None:
    """Mean of the differences of pairs, with an interval by Student's t over the pairs.

    Pairs share their domains, which the interval does not know: it is narrower than one over new
    domains would be.
    """
    if not differences:
        return None
    values = np.array(differences)
    helped, harmed = int((values > CLEAR).sum()), int((values < -CLEAR).sum())
    if len(values) < 2:
        return Difference(float(values[0]), None, None, helped, harmed)
    mean, error = mean_and_standard_error(values)
    width = float(t_distribution.ppf(1 - LEVEL / 2, len(values) - 1)) * error
    return Difference(mean, mean - width, mean + width, helped, harmed)


def paired_verdict(differences: Sequence[float] | FloatArray) -> Verdict:
    """What a t-test of differences says, of accuracies on some 500 rows."""
    if len(differences) < 2:
        return "unclear"
    mean, error = mean_and_standard_error(differences)
    error = max(error, STEP / np.sqrt(len(differences)))
    if abs(mean) <= t_distribution.ppf(1 - LEVEL / 2, len(differences) - 1) * error:
        return "unclear"
    return "helps" if mean > 0 else "harms"
