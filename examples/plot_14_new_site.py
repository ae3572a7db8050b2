"""
A new site, without the training data
=====================================

A model was adapted to one site and shipped. Another site has rows and no labels, and the
training data are not there. Adapters that only keep statistics of each domain can learn the new
site from its rows alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from covshift import AdaptedClassifier, DomainStandardScaler, stack_domains

rng = np.random.default_rng(0)


def site(n, offset, unit):
    """Four features, measured with an offset and a unit of the site's own."""
    X = rng.normal(size=(n, 4))
    return offset + unit * X, (X @ [1.0, -1, 0.5, 0] + rng.normal(0, 0.3, n) > 0).astype(int)


X_A, y_A = site(300, 0, 1)
X_B, y_B = site(300, 2, 1.5)
X_C, y_C = site(800, -3, 0.5)

X, y, sample_domain = stack_domains(X_A, y_A, X_B)
model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
print(f"site B, which it was adapted to: {model.score(X_B, y_B):.2f}")
print(f"site C, taken for site B:        {model.score(X_C[400:], y_C[400:]):.2f}")

# %%
# How many rows does it take? The rows that are scored are others.

counts = [10, 15, 20, 30, 50, 100, 200, 400]
scores = []
for n in counts:
    model.adapt_target(X_C[:n], domain=f"site C, {n} rows")
    scores.append(model.score(X_C[400:], y_C[400:], sample_domain=f"site C, {n} rows"))

figure, axes = plt.subplots(figsize=(6.5, 3.6))
axes.semilogx(counts, scores, "o-")
axes.set_xticks(counts, map(str, counts), minor=False)
axes.minorticks_off()
axes.set(xlabel="rows of the new site, unlabeled", ylabel="accuracy there", ylim=(0.4, 1))
plt.show()
for n, score in zip(counts, scores, strict=True):
    print(f"site C, learned from {n} rows: {score:.2f}")
