"""
Two targets that rows cannot distinguish
========================================

The two variants of the periodic data set share every row of source and target. Their source
labels differ in a few rows in a thousand; their target labels are opposite. A model that is
right on one is wrong on the other.
"""

import matplotlib.pyplot as plt
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from covshift import AdaptedClassifier, PeriodicSparseFiltering, stack_domains
from covshift.datasets import make_periodic_shift

variants = {v: make_periodic_shift(variant=v, random_state=0) for v in ("reconstructed", "printed")}
models = {
    "linear SVM": AdaptedClassifier(None, LinearSVC()),
    "kernel SVM": AdaptedClassifier(None, SVC()),
    "nearest neighbors": AdaptedClassifier(None, KNeighborsClassifier()),
    "periodic filters": AdaptedClassifier(PeriodicSparseFiltering(random_state=0), LinearSVC()),
}
a, b = variants.values()
print("same rows:", (a.X_source == b.X_source).all() and (a.X_target == b.X_target).all())
print("source labels that differ:", int((a.y_source != b.y_source).sum()), "of", len(a.y_source))
print("target labels that differ:", int((a.y_test != b.y_test).sum()), "of", len(a.y_test))

figure, axes = plt.subplots(figsize=(7, 3.4))
for place, model in enumerate(models.values()):
    left = 0.0
    for color, (variant, data) in zip(("C0", "C1"), variants.items(), strict=True):
        X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
        score = model.fit(X, y, sample_domain=sample_domain).score(data.X_test, data.y_test)
        axes.barh(place, score, left=left, color=color, label=variant if not place else None)
        axes.text(left + score / 2, place, f"{score:.2f}", ha="center", va="center", color="white")
        left += score
axes.set_yticks(range(len(models)), models)
axes.axvline(1, color="gray", lw=1)
axes.set_xlabel("accuracy on the target under either rule: together about one")
axes.legend(loc="upper right", bbox_to_anchor=(1, 1.16), ncols=2, frameon=False)
plt.show()

# %%
# More data of this kind do not help; other source domains, or a few labels of the target, do:
# :ref:`sphx_glr_gallery_plot_10_diagnosis_with_labels.py`.
