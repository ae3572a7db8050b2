r"""Ridge regression on Gaussian kernels, whose width and penalty come from the data.

.. math::

    \hat f(x) = b + \sum_j a_j k(x, z_j), \qquad
    k(x, z) = \exp\bigl(-\lVert x - z \rVert^2 / (2 \sigma^2)\bigr),

with the rows :math:`z_j` of the fit, or some of them, as bases, and :math:`\sigma` the median
distance between bases. With :math:`K_{zz} = U \Lambda U^\top`, the features
:math:`K_{xz} U \Lambda^{-1/2}` of the largest eigenvalues are regressed on with a ridge penalty
that minimizes the leave-one-out error. Far from all bases the prediction is the constant b, so that
it cannot run away.
"""

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from covshift.kernels.array_types import FloatArray
from covshift.kernels.feature_scales import feature_variances

ALPHAS = tuple(10.0**power for power in range(-4, 3))
SMALLEST = 1e-8  # eigenvalue, of the largest


class GaussianKernelRidge(RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression that chooses its width and penalty by itself.

    Parameters
    ----------
    n_bases : int, default=600
        Rows that kernels are centered at, at most; more rows are sampled.
    n_components : int, default=200
        Kernel principal components that are kept, at most.
    random_state : int, RandomState or None, default=0
        Seed of the sample.

    Attributes
    ----------
    bases_ : ndarray of shape (n_bases, n_features)
        Where kernels are centered.
    gamma_ : float
        :math:`1 / (2 \sigma^2)`.
    dual_coef_ : ndarray of shape (n_bases,)
        Coefficients of the kernels.
    intercept_ : float
        Prediction far from all bases.
    alpha_ : float
        The penalty.
    n_features_in_ : int

    Notes
    -----
    **Cost**: time :math:`O(n m c + m^3)` for n rows, m bases and c components; memory
    :math:`O(n m)`.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.predictors.gaussian_kernel_ridge import GaussianKernelRidge
    >>> X = np.linspace(-3, 3, 50)[:, None]
    >>> model = GaussianKernelRidge().fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    True
    """

    def __init__(self, n_bases: int = 600, n_components: int = 200, random_state: Any = 0) -> None:
        self.n_bases = n_bases
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows with their numbers, and weights if given."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        rng = check_random_state(self.random_state)
        bases = X
        if len(X) > self.n_bases:
            bases = X[np.sort(rng.choice(len(X), self.n_bases, replace=False))]
        self.gamma_ = _median_gamma(bases)
        values, vectors = np.linalg.eigh(rbf_kernel(bases, gamma=self.gamma_))
        kept = np.flatnonzero(values > SMALLEST * values[-1])[-self.n_components :]
        to_components = vectors[:, kept] / np.sqrt(values[kept])
        Z = rbf_kernel(X, bases, gamma=self.gamma_) @ to_components
        ridge = RidgeCV(ALPHAS).fit(Z, y, sample_weight=sample_weight)
        self.bases_, self.alpha_ = bases, float(ridge.alpha_)
        self.dual_coef_: FloatArray = to_components @ ridge.coef_
        self.intercept_ = float(ridge.intercept_)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict the numbers of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        kernels: FloatArray = rbf_kernel(X, self.bases_, gamma=self.gamma_)
        predicted: FloatArray = kernels @ self.dual_coef_ + self.intercept_
        return predicted


def _median_gamma(X: FloatArray) -> float:
    """Return 1 / (2 sigma²) for the median distance sigma between rows; 1 where that is 0."""
    varied = np.where(feature_variances(X) > 0, X, 0.0)  # rounding is not a distance
    median = float(np.median(pdist(varied))) if len(X) > 1 else 0.0
    return 1 / (2 * median**2) if median > 0 else 1.0
