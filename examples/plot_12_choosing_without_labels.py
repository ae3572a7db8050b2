"""
Choosing an adapter without labels of the target
================================================

`AutoAdaptedClassifier` tries every adapter, scores each on source rows taken as the target, and
averages the best. How good are such scores? Here the labels of the target are known, which shows
it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
    stack_domains,
)

rng = np.random.default_rng(0)


def site(n, move, scale):
    """Six features; each site measures them with an offset and a unit of its own."""
    X = rng.normal(size=(n, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(0, 0.3, n) > 0).astype(int)
    return move + scale * X, y


sites = {name: site(150, rng.normal(0, 1.5, 6), rng.uniform(0.5, 2, 6)) for name in "ABC"}
X_new, y_new = site(600, rng.normal(0, 1.5, 6), rng.uniform(0.5, 2, 6))
data = stack_domains(sites, target={"D": X_new[:300]})
X_test, y_test = X_new[300:], y_new[300:]

adapters = {
    "none": None,
    "standardize domains": DomainStandardScaler(pooling="domain"),
    "ranks": DomainQuantileTransformer(),
    "CORAL": CorrelationAlignment(),
    "Monge": LinearMongeAlignment(),
    "subspaces": SubspaceAlignment(3),
    "uLSIF": ULSIFWeights(random_state=0),
    "sparse filters": SparseFiltering(random_state=0),
    "periodic filters": PeriodicSparseFiltering(random_state=0, n_restarts=3),
}
candidates = [(name, adapter, LogisticRegression()) for name, adapter in adapters.items()]
model = AutoAdaptedClassifier(candidates=candidates, max_rows=300, random_state=0)
model.fit(data.X, data.y, sample_domain=data.sample_domain)
print(model.decision_)

# %%
# Every candidate, by its expected gain and by its accuracy on rows of the target whose labels
# were not used:

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)  # filters that want more iterations
    truth = {
        name: AdaptedClassifier(adapter, LogisticRegression())
        .fit(data.X, data.y, sample_domain=data.sample_domain)
        .score(X_test, y_test)
        for name, adapter in adapters.items()
    }

figure, axes = plt.subplots(figsize=(7.5, 4))
ranked = list(reversed(model.leaderboard_))
for place, row in enumerate(ranked):
    accuracy = truth[row["adapter"]]
    axes.barh(place, accuracy, color="C0" if row["weight"] > 0 else "lightgrey")
    told = f"expected gain {row['expected gain']:+.3f}, weight {row['weight']:.2f}"
    axes.text(0.02, place, told, va="center")
axes.set_yticks(range(len(ranked)), [row["adapter"] for row in ranked])
axes.axvline(model.score(X_test, y_test), color="C1", ls="--", label="the ensemble")
axes.set_xlabel("accuracy on the target")
axes.set_title("the best by expected gain on top; gray ones are not in the ensemble")
axes.legend(loc="lower right")
plt.show()
print(
    f"no adaptation {truth['none']:.2f}, the ensemble {model.score(X_test, y_test):.2f}, "
    f"the best of all, by its labels {max(truth.values()):.2f}"
)

# %%
# Here the sites differ by offset and unit, and the source has three of them to show it. Where
# that is not so, the scores are less reliable: :doc:`/results/selection` compares them on real
# tasks.
