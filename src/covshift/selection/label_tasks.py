r"""Facts about the label that the selection needs: whether it is a class or a number.

The bench of candidates, the rehearsals, the vote and the assessment are the same for both. A task
says how the outputs of a fitted candidate become comparable, what is decided from them, and what a
score is:

==============  ==================================  ================================================
\               classes                             numbers
==============  ==================================  ================================================
outputs (n, K)  logits of K classes                 one column: predictions in units of the source
comparable      probabilities, calibrated on        predictions kept within the range of the known
                left-out source rows                labels, extended by `ROOM` of it on either side
decided         the class of the objective          the prediction
credit          mean probability of the true class  see below
==============  ==================================  ================================================

Numbers are standardized by mean and standard deviation of the known source labels. The credit of
predictions :math:`\hat y` of rows taken as the target, with mean squared error E and variance V of
the labels among them, is :math:`V / (V + E)`. It orders candidates as R² = 1 - E / V does and lies
between 0 and 1, where R² has no lower bound: a single rehearsal on rows with nearly equal labels
would outweigh all others. For the mean absolute error, E is that error and V the mean absolute
deviation from the median.

Linear models and kernels extrapolate: predictions far outside of all known labels are the main
source of disasters under shift, and the range guards against these (docs/results/regression.md).
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, softmax

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import feature_scales, feature_variances
from covshift.kernels.probabilities import Scaling, fit_scaling, scaled_probabilities
from covshift.measures.labeled_scores import (
    accuracy,
    balanced_accuracy,
    mean_squared_error,
    negative_mae,
    r2,
)
from covshift.predictors.objectives import METRICS, Metric, decide_classes

ROOM = 0.1  # extension of the range of known labels, on either side
N_GROUPS = 5  # groups by the label, for drawing and dealing rows
LARGEST_LABEL = 1e150  # its square is a number of double precision, and so is a sum of many


class ClassTask(NamedTuple):
    """The label is a class; labels are class numbers."""

    label: Literal["class", "number"] = "class"

    def calibrate(self, logits: FloatArray, codes: IntArray) -> Scaling:
        """Return how logits become probabilities, from those of left-out source rows."""
        return fit_scaling(logits, codes, np.ones(len(codes)))

    def apply(self, logits: FloatArray, scaling: Scaling | None) -> FloatArray:
        """Return calibrated probabilities (n, K)."""
        if scaling is None:
            p: FloatArray = softmax(logits, axis=1)
            return p
        return scaled_probabilities(logits, scaling)

    def decide(self, P: FloatArray, metric: Metric, shares: FloatArray) -> IntArray:
        """Return the class numbers (n,) that the objective chooses for probabilities (n, K)."""
        names = [name for name, one in METRICS.items() if one is metric]
        return decide_classes(P, names[0] if names else None, shares)

    def credit(self, P: FloatArray, codes: IntArray, metric: Metric, shares: FloatArray) -> float:
        """Return the mean probability of the true class.

        For balanced accuracy, probabilities are those for equal class proportions, and classes
        weigh the same. A user's own metric is taken of the predicted classes.
        """
        if metric is accuracy:
            return float(P[np.arange(len(codes)), codes].mean())
        if metric is not balanced_accuracy:
            return metric(codes, self.decide(P, metric, shares))
        balanced = np.divide(P, shares, out=np.zeros_like(P), where=shares > 0)
        totals = np.maximum(balanced.sum(axis=1), np.finfo(np.float64).tiny)
        of_true = balanced[np.arange(len(codes)), codes] / totals
        counts = np.bincount(codes)
        return float(np.mean(np.bincount(codes, of_true)[counts > 0] / counts[counts > 0]))


CLASSES = ClassTask()


class NumberTask(NamedTuple):
    """The label is a number, in units of the known source labels.

    ``low`` and ``high`` are the limits of predictions, and ``edges`` the bounds between the groups
    by the label, all in these units.
    """

    mean: float
    scale: float
    low: float
    high: float
    edges: tuple[float, ...]
    label: Literal["class", "number"] = "number"

    def standardize(self, y: FloatArray) -> FloatArray:
        """Return labels in units of the source."""
        values: FloatArray = (y - self.mean) / self.scale
        return values

    def restore(self, values: FloatArray) -> FloatArray:
        """Return labels in their own units."""
        y: FloatArray = self.mean + self.scale * values
        return y

    def group(self, values: FloatArray) -> IntArray:
        """Return the group of each label."""
        return np.searchsorted(np.array(self.edges), values, side="right")

    def calibrate(self, predictions: FloatArray, values: FloatArray) -> None:
        """Return predictions, limited to the range but not calibrated."""

    def apply(self, predictions: FloatArray, scaling: Scaling | None = None) -> FloatArray:
        """Return predictions (n, 1) within the limits."""
        limited: FloatArray = np.clip(predictions, self.low, self.high)
        return limited

    def decide(self, P: FloatArray, metric: Metric, shares: FloatArray) -> FloatArray:
        """Return the predictions (n,)."""
        return P[:, 0]

    def credit(
        self, P: FloatArray, values: FloatArray, metric: Metric, shares: FloatArray
    ) -> float:
        """Return a score between 0 and 1: see the module. A user's own metric is taken as it is."""
        if metric is r2:
            error, spread = mean_squared_error(values, P[:, 0]), float(feature_variances(values))
        elif metric is negative_mae:
            error = -negative_mae(values, P[:, 0])
            spread = float(np.mean(np.abs(values - np.median(values))))
        else:
            return metric(values, P[:, 0])
        return spread / (spread + error) if spread + error > 0 else 1.0

    def variance(self, P: FloatArray, values: FloatArray) -> float:
        """Return the sampling variance of R² on m rows, from that of the squared errors.

        Two rows are added, without an error and with one as large as the spread, so that few equal
        errors are not taken for certainty.
        """
        spread = max(float(values.var()), np.finfo(np.float64).tiny)
        errors = np.append((values - P[:, 0]) ** 2 / spread, [0.0, 1.0])
        return float(errors.var() / len(values))

    def group_probabilities(self, predictions: FloatArray, deviation: float) -> FloatArray:
        """Return the probabilities (n, groups) of the groups, for errors that are normal."""
        deviation = max(deviation, 1e-6)
        below = ndtr((np.array(self.edges) - predictions[:, None]) / deviation)
        P = np.diff(below, axis=1, prepend=0.0, append=1.0)
        P = np.maximum(P, np.finfo(np.float64).tiny)
        probabilities: FloatArray = P / P.sum(axis=1, keepdims=True)
        return probabilities


def number_task(labels: FloatArray) -> NumberTask:
    """Return the task of a label that is a number, from the known source labels."""
    largest = float(np.abs(labels).max())
    if largest > LARGEST_LABEL:
        raise ValueError(
            f"y holds magnitudes up to {largest:.1e}; above {LARGEST_LABEL:.0e} their squares "
            "overflow float64. Divide the labels by a power of ten, or remove values that are "
            "errors."
        )
    mean, scale = float(labels.mean()), float(feature_scales(labels))
    values = (labels - mean) / scale
    low, high = float(values.min()), float(values.max())
    room = ROOM * (high - low)
    # Of labels with few values, several quantiles may be the same; the lowest group has rows.
    quantiles = np.quantile(values, np.arange(1, N_GROUPS) / N_GROUPS)
    edges = tuple(float(one) for one in np.unique(quantiles) if one > low)
    return NumberTask(mean, scale, low - room, high + room, edges)
