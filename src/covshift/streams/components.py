"""Principal components of rows in blocks, in a `PCA` of scikit-learn."""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from covshift.streams.moments import stream_moments
from covshift.streams.opening import open_rows


def fit_components(pca: PCA, X: Any) -> None:
    """Fit a `PCA` in place to rows in blocks, by the covariance that is summed over them.

    Three passes over the rows; memory for two matrices of features by features. The result is
    that of ``svd_solver="covariance_eigh"`` on all rows at once.

    Parameters
    ----------
    pca : PCA
        With a whole number of components.
    X : Dask array or memory map of shape (n_samples, n_features)
        Rows.
    """
    n_samples, n_features = X.shape
    n_kept = pca.n_components
    if not isinstance(n_kept, int | np.integer):
        raise TypeError(
            f"PCA(n_components={n_kept!r}) cannot be fitted to rows in blocks: give a whole number "
            "of components."
        )
    if not 1 <= n_kept <= min(n_samples, n_features):
        raise ValueError(
            f"n_components={n_kept} must be between 1 and {min(n_samples, n_features)}, the "
            "smaller of the numbers of rows and features."
        )
    stream = open_rows(pca, X, reset=True)
    codes = stream.split(np.zeros(n_samples, dtype=np.int8))
    ((mean, covariance, _),) = stream_moments(stream, codes, 1, shrinkage=0.0)
    values, vectors = np.linalg.eigh(covariance * (n_samples / (n_samples - 1)))
    variances = np.maximum(values[::-1], 0.0)
    directions = vectors.T[::-1]
    largest = np.abs(directions).argmax(axis=1)  # made positive, as scikit-learn does
    directions = directions * np.sign(directions[np.arange(n_features), largest])[:, None]
    pca.mean_ = mean.astype(stream.dtype)
    pca.components_ = np.ascontiguousarray(directions[:n_kept], dtype=stream.dtype)
    pca.explained_variance_ = variances[:n_kept]
    pca.explained_variance_ratio_ = variances[:n_kept] / variances.sum()
    pca.singular_values_ = np.sqrt(variances[:n_kept] * (n_samples - 1))
    pca.noise_variance_ = variances[n_kept:].mean() if n_kept < n_features else 0.0
    pca.n_components_, pca.n_samples_ = int(n_kept), n_samples
