"""
Importance weights, and when not to trust them
==============================================

Weights make source rows count as often as they would occur in the target. That needs source
rows where the target has some. Three diagnostics say how far the weights can be
trusted, and each detects something that the other two miss.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from covshift import AdaptedClassifier, ULSIFWeights, UnreliableWeightsWarning, stack_domains
from covshift.datasets import ShiftedData, make_radial_shift, make_smooth_shift
from covshift.measures import pareto_k, support_overlap


def make_gentle_shift(random_state):
    """The target lies inside the source, and the boundary is bent."""
    rng = np.random.RandomState(random_state)
    source = rng.normal(0, 1.5, (500, 2))
    target = rng.normal((1.2, 0), 0.6, (750, 2))
    y_source, y_target = ((X[:, 1] > 0.8 * X[:, 0] ** 2 - 1).astype(int) for X in (source, target))
    return ShiftedData(source, y_source, target[:250], target[250:], y_target[250:])


figure, panels = plt.subplots(1, 3, figsize=(10, 4))
makers = (make_gentle_shift, make_smooth_shift, make_radial_shift)
print(f"{'':18} effective rows  tail shape  target outside  accuracy without, with")
for make_shift, axes in zip(makers, panels, strict=True):
    data = make_shift(random_state=0)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    plain = AdaptedClassifier().fit(X, y, sample_domain=sample_domain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnreliableWeightsWarning)
        weighted = AdaptedClassifier(ULSIFWeights(random_state=0))
        weighted.fit(X, y, sample_domain=sample_domain)
    weights = weighted.adapter_.weights_
    axes.scatter(*data.X_target.T, c="C1", s=6, alpha=0.5, label="target")
    sizes = 1 + 80 * weights / weights.max()
    axes.scatter(*data.X_source.T, c="C0", s=sizes, alpha=0.6, label="source, by weight")
    axes.set_title(make_shift.__name__)
    print(
        f"{make_shift.__name__:18}"
        f" {weighted.adapter_.effective_sample_size_:7.0f} of {len(weights)}"
        f" {pareto_k(weights):11.2f}"
        f" {support_overlap(data.X_source, data.X_target).share_outside:15.0%}"
        f" {plain.score(data.X_test, data.y_test):17.2f}"
        f" {weighted.score(data.X_test, data.y_test):5.2f}"
        f"  {'warned' if caught else ''}"
    )
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# *Gentle*: many rows share the weight, no tail, no target row outside: the weighted model
# gains. *Smooth*: it gains too, but from about twenty rows, and with a heavy tail:
# another draw may do otherwise. *Radial*: nearly all target rows lie where the source has none.
# Weights cannot represent them, whatever the other two numbers, and do not help.
