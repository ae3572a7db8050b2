"""
A number instead of a class
===========================

`AdaptedRegressor` takes the same adapters, except those that read class labels. Here the true curve
is bent, the model is a straight line, and the target lies at one end: weights let the line fit
there.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from covshift import AdaptedRegressor, ULSIFWeights, stack_domains

rng = np.random.default_rng(0)
X_source = rng.normal(1.0, 0.6, (300, 1))
X_target = rng.normal(1.7, 0.3, (200, 1))


def curve(X):
    """The sine over its argument, with noise."""
    return np.sinc(X[:, 0]) + rng.normal(0, 0.1, len(X))


X, y, sample_domain = stack_domains(X_source, curve(X_source), X_target)
X_test = rng.normal(1.7, 0.3, (500, 1))
y_test = curve(X_test)

figure, axes = plt.subplots(figsize=(7, 4))
axes.scatter(X_source, y[sample_domain >= 0], s=8, c="C0", alpha=0.5, label="source")
axes.scatter(X_test, y_test, s=8, c="C1", alpha=0.3, label="target, labels hidden from the fit")
line = np.linspace(0, 3, 50)[:, None]
for name, adapter, style in (
    ("no weights", None, "--"),
    ("uLSIF", ULSIFWeights(random_state=0), "-"),
):
    model = AdaptedRegressor(adapter, LinearRegression()).fit(X, y, sample_domain=sample_domain)
    error = np.mean((model.predict(X_test) - y_test) ** 2)
    axes.plot(line, model.predict(line), style, c="black", label=f"{name}: error {error:.3f}")
    print(f"{name}: mean squared error on the target {error:.3f}")
axes.set_ylim(-0.6, 1.3)
axes.legend()
plt.show()

# %%
# A curve that could follow the sine everywhere would need no weights: they mend a model that is
# too simple to be right in both places.
