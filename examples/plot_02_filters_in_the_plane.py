"""
What filters detect in the plane
================================

A filter is a direction w. Sparse filtering takes the absolute value of w·x, periodic sparse
filtering 1 + sin(w·x); then all filters of a row are divided by their common length. So two
rows look alike to the first if they lie in the same direction from the origin, and to the
second if they lie whole periods apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from covshift import AdaptedClassifier, PeriodicSparseFiltering, SparseFiltering, stack_domains
from covshift.datasets import make_periodic_shift, make_radial_shift

cases = (
    ("sparse filtering", make_radial_shift, SparseFiltering(2, max_iter=0, random_state=0)),
    ("periodic sparse filtering", make_periodic_shift, PeriodicSparseFiltering(random_state=0)),
)
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4))
for (name, make_shift, adapter), axes in zip(cases, panels, strict=True):
    data = make_shift(random_state=0)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    model = AdaptedClassifier(adapter, LinearSVC()).fit(X, y, sample_domain=sample_domain)
    low, high = X.min(axis=0), X.max(axis=0)
    plane = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1)
    margin = model.decision_function(plane.reshape(-1, 2)).reshape(200, 200)
    axes.contourf(plane[..., 0], plane[..., 1], margin > 0, levels=1, colors=["#ffffff", "#d5d5d5"])
    for rows, color, role in ((data.X_source, "C0", "source"), (data.X_target, "C1", "target")):
        axes.scatter(*rows[:150].T, c=color, s=8, label=role)
    axes.set_title(f"{name}: {model.score(data.X_test, data.y_test):.2f} on the target")
    axes.legend(loc="lower right")
plt.show()

# %%
# Gray is where a linear model on top of the filters says "class 1", for a row of the target.
# Left, rays from the origin: both sides of it are treated alike. Right,
# stripes that continue for ever: filters and model learned from labels of the source alone. The
# stripes cross the target because a sine has no end, not because of any label there.
