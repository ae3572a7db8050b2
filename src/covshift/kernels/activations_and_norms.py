r"""Activations g of the filters, their slopes g', and the normalizations that follow.

=======  ==============================  =====================
name     g(h)                            g'(h)
=======  ==============================  =====================
"abs"    :math:`\sqrt{h^2 + \epsilon}`   :math:`h / g(h)`
"sin"    :math:`1 + \epsilon + \sin h`   :math:`\cos h`
"cos"    :math:`1 + \epsilon + \cos h`   :math:`-\sin h`
=======  ==============================  =====================

"abs" is the soft absolute value of sparse filtering, the other two are those of its
periodic form.

**The two normalizations** that every filter applies to its activations F (n, L): first each
feature is divided by its norm over the rows, then each row by its norm over the features,

.. math::

    t_j = \sqrt{\textstyle\sum_i F_{ij}^2 + e}, \quad A_{ij} = F_{ij} / t_j, \qquad
    r_i = \sqrt{\textstyle\sum_j A_{ij}^2 + e}, \quad Z_{ij} = A_{ij} / r_i

with :math:`e` the ``norm_epsilon``. A norm of exactly zero divides by one instead, so that
a dead feature or an empty row stays zero.
"""

from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from covshift.kernels.array_types import FloatArray, IntArray

Activation: TypeAlias = Literal["abs", "sin", "cos"]

ACTIVATIONS: tuple[Activation, ...] = ("abs", "sin", "cos")


def activate(H: FloatArray, activation: Activation, epsilon: float) -> FloatArray:
    """Return g(H) as a new array; see the table above."""
    if activation == "abs":
        F = np.square(H)
        F += epsilon
        np.sqrt(F, out=F)
    else:
        F = np.sin(H) if activation == "sin" else np.cos(H)
        F += 1.0 + epsilon
    return F


def activate_block(
    H: FloatArray,
    slopes: FloatArray,
    activation: Activation,
    epsilon: float,
    *,
    half_angle: bool = False,
) -> None:
    r"""Overwrite H with g(H), and ``slopes`` with g'(H).

    With ``half_angle`` H holds h / 2, and one tangent T serves both:
    :math:`\sin h = 2 T / (1 + T^2)` and :math:`\cos h = 2 / (1 + T^2) - 1 = 1 - T \sin h`.
    """
    if activation == "abs":
        np.copyto(slopes, H)
        np.square(H, out=H)
        H += epsilon
        np.sqrt(H, out=H)
        # With epsilon = 0 the slope at zero is 0/0: zero is the subgradient that stays put.
        np.divide(slopes, H, out=slopes, where=True if epsilon > 0 else H > 0)
    elif half_angle:
        T = np.tan(H, out=H)
        np.square(T, out=slopes)
        slopes += 1
        if activation == "sin":
            np.divide(2, slopes, out=slopes)  # 1 + cos h
            T *= slopes
            T += 1 + epsilon
            slopes -= 1
        else:
            np.divide(T, slopes, out=slopes)
            slopes *= -2  # -sin h
            T *= slopes
            T += 2 + epsilon
    elif activation == "sin":
        np.cos(H, out=slopes)
        np.sin(H, out=H)
        H += 1 + epsilon
    else:
        np.sin(H, out=slopes)
        np.negative(slopes, out=slopes)
        np.cos(H, out=H)
        H += 1 + epsilon


@cache
def half_angle_is_cheaper(dtype: Any) -> bool:
    """Return whether activations cost clearly less by one tangent than by sine and cosine.

    True in double precision where NumPy has a vectorized tangent (AVX-512): its sine and cosine
    are not vectorized. The rule reads no clock, since the same seed must round alike in every
    process. Times: docs/design/0010-engine.md.
    """
    introspect = getattr(np.lib, "introspect", None)  # not in older NumPy
    if introspect is None or np.dtype(dtype) != np.float64:
        return False
    loops = introspect.opt_func_info(func_name="^tan$", signature="float64").get("tan", {})
    return any(not loop["current"].startswith("baseline") for loop in loops.values())


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
    """Return norms t (U, L) of activations: root mean squares (U, L) over ``counts`` rows (U,).

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
