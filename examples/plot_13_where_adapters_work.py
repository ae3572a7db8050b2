"""
Where each adapter works, and where it harms
============================================

Every adapter on six data sets, three draws each: the paper's four, and two in which each domain
has an offset and unit of its own, with equal and with unequal class proportions.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from covshift import (
    AdaptedClassifier,
    CorrelationAlignment,
    DenoisingAutoencoder,
    DomainQuantileTransformer,
    DomainStandardScaler,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
    stack_domains,
)
from covshift.datasets import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)


def make_offset_shift(random_state, share=0.5):
    """Two classes on either side of the mean; the target has another offset and unit."""
    rng = np.random.RandomState(random_state)

    def draw(n, share, offset, unit):
        y = (rng.uniform(size=n) < share).astype(int)
        return offset + unit * (rng.normal(size=(n, 2)) + 2.5 * y[:, None]), y

    source, y_source = draw(500, 0.5, 0, 1)
    target, y_target = draw(750, share, 4, 2)
    return ShiftedData(source, y_source, target[:250], target[250:], y_target[250:])


def make_offset_and_shares(random_state):
    """The same, but nine tenths of the target are of one class."""
    return make_offset_shift(random_state, share=0.9)


worlds = {
    "radial": make_radial_shift,
    "periodic": make_periodic_shift,
    "smooth": make_smooth_shift,
    "diagonal": make_diagonal_shift,
    "offset\nand unit": make_offset_shift,
    "offset, unit,\nclass proportions": make_offset_and_shares,
}
adapters = {
    "none": None,
    "SparseFiltering": SparseFiltering(2, max_iter=0),
    "PeriodicSparseFiltering": PeriodicSparseFiltering(n_restarts=5),
    "DomainStandardScaler": DomainStandardScaler(),
    "DomainQuantileTransformer": DomainQuantileTransformer(),
    "CorrelationAlignment": CorrelationAlignment(),
    "ULSIFWeights": ULSIFWeights(),
    "SubspaceAlignment": SubspaceAlignment(1),
    "DenoisingAutoencoder": DenoisingAutoencoder(2, max_epochs=100),
}
scores = np.zeros((len(adapters), len(worlds), 3))
for w, make_shift in enumerate(worlds.values()):
    for seed in range(3):
        data = make_shift(random_state=seed)
        X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
        for a, adapter in enumerate(adapters.values()):
            if "random_state" in (adapter.get_params() if adapter else {}):
                adapter.set_params(random_state=100 + seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # weights on few rows, early stops: see their pages
                model = AdaptedClassifier(adapter, LogisticRegression(C=100))
                model.fit(X, y, sample_domain=sample_domain)
            scores[a, w, seed] = model.score(data.X_test, data.y_test)
mean = scores.mean(axis=2)
gain = mean - mean[0]

figure, axes = plt.subplots(figsize=(9, 5))
axes.imshow(gain, cmap="RdBu", vmin=-0.6, vmax=0.6, aspect="auto")
for a, w in np.ndindex(gain.shape):
    color = "white" if abs(gain[a, w]) > 0.4 else "black"
    text = f"{mean[a, w]:.2f}" if a == 0 else f"{mean[a, w]:.2f} ({gain[a, w]:+.2f})"
    axes.text(w, a, text, ha="center", va="center", fontsize=9, color=color)
axes.set_xticks(range(len(worlds)), worlds)
axes.set_yticks(range(len(adapters)), adapters)
axes.spines[:].set_visible(False)
axes.set_title("accuracy on the target (and gain over none), mean of three draws")
plt.show()

# %%
# Read along the rows: every adapter that gains somewhere loses somewhere else, or gains little
# anywhere. Read down the columns: the best adapter depends on the rule of the labels, which the
# rows of the target alone do not show. The last two columns differ only in the class proportions
# of the target, and the best adapters of one harm in the other. Sparse filters are left as drawn
# (``max_iter=0``), the reading under which the paper's figures come out (:doc:`/errata`).
