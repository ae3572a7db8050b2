r"""The two normalizations that every filter applies to its activations F (n, L).

First each feature is divided by its norm over the rows, then each row by its norm over
the features:

.. math::

    t_j = \sqrt{\textstyle\sum_i F_{ij}^2 + e}, \quad A_{ij} = F_{ij} / t_j, \qquad
    r_i = \sqrt{\textstyle\sum_j A_{ij}^2 + e}, \quad Z_{ij} = A_{ij} / r_i

with :math:`e` the ``norm_epsilon``. A norm of exactly zero divides by one instead, so that
a dead feature or an empty row stays zero.
"""

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray


def row_norms(A: FloatArray, norm_epsilon: float) -> FloatArray:
    """Return the norm r_i of each row over the features, shape (n, 1)."""
    return _safe_root(np.einsum("ij,ij->i", A, A) + A.dtype.type(norm_epsilon))[:, None]


def inverse_roots(squares: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return one over each norm, from squares of norms of any shape."""
    root = _safe_root(squares, out)
    return np.reciprocal(root, out=root)


def root_mean_squares(F: FloatArray) -> FloatArray:
    """Return the root mean square of each feature over the rows, shape (L,)."""
    # In double precision: the sum may have millions of terms.
    squares = np.einsum("ij,ij->j", F, F, dtype=np.float64)
    root_means: FloatArray = np.sqrt(squares / F.shape[0])
    return root_means.astype(F.dtype)


def stored_norms(root_means: FloatArray, counts: IntArray, norm_epsilon: float) -> FloatArray:
    """Return the norms t (U, L) from root mean squares (U, L) over ``counts`` rows (U,).

    Scaled back to that many rows, so that the rows from which they were computed get exactly
    the Z they have as a batch, whatever ``norm_epsilon`` is.
    """
    return _safe_root(np.square(root_means) * counts[:, None] + norm_epsilon)


def normalize_by(F: FloatArray, norms: FloatArray, norm_epsilon: float) -> FloatArray:
    """Overwrite F with its representation under given feature norms, (n, L) or (L,)."""
    F /= norms
    F /= row_norms(F, norm_epsilon)
    return F


def _safe_root(squares: FloatArray, out: FloatArray | None = None) -> FloatArray:
    root = np.sqrt(squares, out=out)
    if root.min(initial=1) == 0:  # NumPy's minimum is vectorized, all() is not
        root[root == 0] = 1
    return root
