r"""Activations g of the filters, and their slopes g'.

=======  ==============================  =====================
name     g(h)                            g'(h)
=======  ==============================  =====================
"abs"    :math:`\sqrt{h^2 + \epsilon}`   :math:`h / g(h)`
"sin"    :math:`1 + \epsilon + \sin h`   :math:`\cos h`
"cos"    :math:`1 + \epsilon + \cos h`   :math:`-\sin h`
=======  ==============================  =====================

"abs" is the soft absolute value of sparse filtering, the other two are those of its
periodic form.
"""

from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from covshift.kernels.arrays import FloatArray

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
    """Return whether one tangent costs clearly less than a sine and a cosine.

    True in double precision where NumPy has a vectorized tangent (AVX-512): its sine and cosine
    are not vectorized. The rule reads no clock, since the same seed must round alike in every
    process. Times: docs/design/0010-engine.md.
    """
    introspect = getattr(np.lib, "introspect", None)  # not in older NumPy
    if introspect is None or np.dtype(dtype) != np.float64:
        return False
    loops = introspect.opt_func_info(func_name="^tan$", signature="float64").get("tan", {})
    return any(not loop["current"].startswith("baseline") for loop in loops.values())
