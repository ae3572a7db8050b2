"""
Four ways in which rows can move
================================

Each of the paper's four data sets meets the assumption of one family of methods. In all of them
a linear SVM learns from the source, where labels are known, and is scored on the target.
"""

import matplotlib.pyplot as plt
from sklearn.svm import LinearSVC

from covshift import datasets

worlds = ("radial", "periodic", "smooth", "diagonal")
figure, panels = plt.subplots(2, 2, figsize=(9, 8))
for name, axes in zip(worlds, panels.flat, strict=True):
    data = getattr(datasets, f"make_{name}_shift")(random_state=0)
    for X, y, color, role in (
        (data.X_source, data.y_source, "C0", "source"),
        (data.X_test, data.y_test, "C1", "target"),
    ):
        for label, marker in ((0, "o"), (1, "+")):
            rows = X[y == label]
            kind = f"{role}, class {label}"
            axes.scatter(*rows.T, c=color, marker=marker, s=16, alpha=0.6, label=kind)
    model = LinearSVC().fit(data.X_source, data.y_source)
    inside = model.score(data.X_source, data.y_source)
    outside = model.score(data.X_test, data.y_test)
    axes.set_title(f"{name}\naccuracy {inside:.2f} on the source, {outside:.2f} on the target")
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %%
# *Radial*: labels depend on the direction from the origin. *Periodic*: they repeat along the
# first axis. *Smooth*: one smooth boundary, and the source reaches most of the target, if
# thinly. *Diagonal*: the main axis of the rows has turned. In every world the rule that gives
# the labels is the same for source and target; only where the rows lie has moved. That is
# covariate shift.
