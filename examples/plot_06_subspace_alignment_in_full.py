"""
Subspace alignment with all directions changes nothing
======================================================

Subspace alignment turns the first P principal directions of the source to those of the target.
With P equal to the number of features the two products cancel: source and target are turned
together, and a linear model on top, which may turn as well, predicts the same.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from covshift import AdaptedClassifier, NothingToAdaptWarning, SubspaceAlignment, stack_domains

rng = np.random.default_rng(0)
n, m = 400, 6
scales = np.array([4.0, 3.0, 1.0, 0.5, 0.3, 0.2])
turn = np.eye(m)  # the two main axes turn by 75 degrees, each toward one of small variance
c, s = np.cos(np.deg2rad(75)), np.sin(np.deg2rad(75))
for large, small in ((0, 2), (1, 3)):
    turn[np.ix_([large, small], [large, small])] = [[c, s], [-s, c]]
latent = rng.normal(size=(3 * n, m)) * scales
labels = (latent[:, 0] + latent[:, 1] > 0).astype(int)
X_source, y_source = latent[:n], labels[:n]
X_target, X_test, y_test = latent[n : 2 * n] @ turn, latent[2 * n :] @ turn, labels[2 * n :]
X, y, sample_domain = stack_domains(X_source, y_source, X_target)

plain = AdaptedClassifier(None, LinearSVC()).fit(X, y, sample_domain=sample_domain)
scores = [plain.score(X_test, y_test)]
for P in range(1, m + 1):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NothingToAdaptWarning)
        model = AdaptedClassifier(SubspaceAlignment(P), LinearSVC())
        model.fit(X, y, sample_domain=sample_domain)
    scores.append(model.score(X_test, y_test))
    for one in caught:
        print(f"P = {P}: {one.message}")

figure, axes = plt.subplots(figsize=(6.5, 3.6))
axes.plot(range(1, m + 1), scores[1:], "o-", label="subspace alignment")
axes.axhline(scores[0], color="C1", ls="--", label="no adaptation")
axes.set(xlabel="directions kept, P", ylabel="accuracy on the target", ylim=(0, 1))
axes.legend()
plt.show()
print("without:", scores[0], " two directions:", scores[2], " all six:", scores[-1])

# %%
# Labels depend on two directions, and with just these kept the alignment is right. More
# directions bring back what it cannot map, and with all of them every prediction is that of the
# plain model.
