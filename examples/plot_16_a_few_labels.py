"""
A few labels of the target
==========================

``label_mask`` says which labels may be read: by default those of the source. If it also marks rows
of the target that were labeled by hand, adapter and classifier use these labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from covshift import AdaptedClassifier, stack_domains
from covshift.datasets import make_periodic_shift

counts = [0, 5, 10, 20, 40, 80]
variants = ("reconstructed", "printed")
scores = {variant: np.zeros((10, len(counts))) for variant in variants}
for variant in variants:
    for seed in range(10):
        data = make_periodic_shift(variant=variant, random_state=seed)
        X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_test)
        y[sample_domain < 0] = data.y_test
        order = np.random.RandomState(seed).permutation(np.flatnonzero(sample_domain < 0))
        for place, n in enumerate(counts):
            label_mask = sample_domain >= 0
            label_mask[order[:n]] = True
            model = AdaptedClassifier(None, SVC())
            model.fit(X, y, sample_domain=sample_domain, label_mask=label_mask)
            rest = order[80:]
            scores[variant][seed, place] = model.score(X[rest], y[rest])

figure, axes = plt.subplots(figsize=(6.5, 3.8))
for variant, values in scores.items():
    axes.plot(counts, values.mean(axis=0), "o-", label=variant)
    print(variant, dict(zip(counts, values.mean(axis=0).round(2).tolist(), strict=True)))
axes.set(xlabel="labels of the target", ylabel="accuracy on its other rows", ylim=(0, 1))
axes.legend()
plt.show()

# %%
# The two rules of :ref:`sphx_glr_gallery_plot_04_nobody_can_know.py`, which no method can
# distinguish without labels, mean of ten draws. A label is read only where the mask says so: the
# others may hold anything.
