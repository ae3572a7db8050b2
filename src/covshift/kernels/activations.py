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

from typing import Literal, TypeAlias

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


def slope_in_place(H: FloatArray, F: FloatArray, activation: Activation) -> FloatArray:
    """Overwrite H with g'(H), given F = g(H)."""
    if activation == "abs":
        # With epsilon = 0 the slope at zero is 0/0: zero is the subgradient that stays put.
        np.divide(H, F, out=H, where=F > 0)
    elif activation == "sin":
        np.cos(H, out=H)
    else:
        np.sin(H, out=H)
        np.negative(H, out=H)
    return H
