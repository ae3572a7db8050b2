"""
An adapter of your own
======================

`AdaptedClassifier` takes any transformer. One that ignores domains is fitted on all rows; one
that has ``fit(X, y=None, *, sample_domain=None, label_mask=None)`` gets them. Here: the
target's rows are turned back by the angle between the two mean directions.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import AdaptedClassifier, stack_domains
from covshift.base import DomainTransformer


class MeanDirectionAlignment(DomainTransformer):
    """Turn target rows in the plane so that their mean points where the source's does."""

    def fit(self, X, y=None, *, sample_domain=None, label_mask=None):
        """Measure the angle between the two means."""
        X, target = np.asarray(X), np.asarray(sample_domain) < 0
        angles = [np.arctan2(*X[rows].mean(axis=0)[::-1]) for rows in (~target, target)]
        turn = angles[0] - angles[1]
        self.rotation_ = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        return self

    def transform(self, X, *, sample_domain=None, allow_source=False):
        """Turn target rows; rows without a domain are target rows."""
        X = np.asarray(X)
        target = np.full(len(X), True) if sample_domain is None else np.asarray(sample_domain) < 0
        return np.where(target[:, None], X @ self.rotation_, X)


# %%
# Rows on an arc; in the target the whole picture is turned by a third of a circle.

rng = np.random.default_rng(0)


def arc(n, turned):
    angle = rng.uniform(0, 1.5, n)
    X = np.stack([np.cos(angle + turned), np.sin(angle + turned)], axis=1)
    return X * rng.normal(1, 0.1, (n, 1)), (angle > 0.75).astype(int)


X_source, y_source = arc(300, 0)
X_target, _ = arc(300, 2.1)
X_test, y_test = arc(300, 2.1)
X, y, sample_domain = stack_domains(X_source, y_source, X_target)

figure, panels = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
for adapter, axes in zip((None, MeanDirectionAlignment()), panels, strict=True):
    model = AdaptedClassifier(adapter).fit(X, y, sample_domain=sample_domain)
    Z = X_test if adapter is None else model.transform(X_test)
    axes.scatter(*X_source.T, c="C0", s=8, label="source")
    axes.scatter(*Z.T, c="C1", s=8, label="target")
    name = "no adaptation" if adapter is None else "mean directions aligned"
    axes.set_title(f"{name}: {model.score(X_test, y_test):.2f}")
    axes.set_aspect("equal")
panels[0].legend()
plt.show()

# %%
# For a class of your own project that is all. To give it a name like ``coral``, in covshift or from
# a package of your own, start from the complete adapter in :doc:`/contributing/index`, which checks
# its input, too: tests run it.
