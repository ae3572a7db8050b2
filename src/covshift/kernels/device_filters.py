r"""Losses and gradients of filters whose rows live on a device, in eager array operations.

The formulas are those of `filter_passes` and `filter_losses`, with all rows at
once in place of blocks: activations F (K, L, n) of K problems by one product,

.. math::

    F = g(W X^\top), \qquad
    \frac{\partial L}{\partial W} = \bigl((A U - F \odot (B V)) \odot g'(W X^\top)\bigr) X,

with factors A (K, L, a) and B (K, L, e) of the filters, U (K, a, n) and V (K, e, n) of the rows,
which come from products of F and :math:`F \odot F` with few columns. Five arrays of the size of F
are there at once.

Problems with fewer filters than L are padded. A filter that is not there has :math:`1 / t_j = 0`:
every term that it has a part in, its own gradient included, then vanishes. Sines and cosines go
together as the activation "periodic", :math:`g(h) = 1 + \epsilon + \sin(h + \phi_k)` with a phase
of each problem.

Representations of rows are those of `activations_and_norms`: :math:`F = g(X W^\top)` of
shape (n, L), divided by the norms of its features, then each row by its own norm; a norm of zero
divides by one.

Arrays are of one library, ``xp``, that follows the array API standard, and on one device.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from covshift.kernels.activations_and_norms import Activation

Array: TypeAlias = Any
DeviceActivation: TypeAlias = Literal["abs", "sin", "cos", "periodic"]


class DeviceProblems(NamedTuple):
    """K problems that share their rows; all arrays are on the device.

    Attributes
    ----------
    X : (n, m) rows.
    codes : (n,) class of each row, C for a row without a label.
    groups : (K, C, L) mask, the filters rewarded for each class.
    label_reward : (K, C) the lambda of each class.
    there : (K, L) mask, the filters that are no padding.
    alpha : (K,) weights of the penalty on W.
    phase : (K,) added to the angles of the activation "periodic".
    """

    X: Array
    codes: Array
    groups: Array
    label_reward: Array
    there: Array
    alpha: Array
    phase: Array

    def keep(self, which: Array, xp: Any) -> "DeviceProblems":
        """Return some of the problems."""
        own = (self.groups, self.label_reward, self.there, self.alpha, self.phase)
        return DeviceProblems(self.X, self.codes, *(xp.take(part, which, axis=0) for part in own))


class Factors(NamedTuple):
    """Losses (K,) in double precision, and what their gradients with respect to F are made of."""

    losses: Array
    A: Array
    U: Array
    B: Array
    V: Array


# W (K, L, m), problems -> losses (K,), gradients (K, L, m), without the penalty
Passes: TypeAlias = Callable[[Array, DeviceProblems], tuple[Array, Array]]


def device_losses(problems: DeviceProblems, passes: Passes, xp: Any) -> Any:
    """Prepare K problems on a device, as `filter_losses` does.

    Returns
    -------
    function of filters (k, L, m) and of the positions (k,) of their problems, which only ever
    become fewer from one call to the next.
    """
    present = {"problems": problems}
    has_penalty = bool(xp.any(problems.alpha != 0))

    def evaluate(W: Array, which: Array) -> tuple[Array, Array]:
        if which.shape[0] != present["problems"].alpha.shape[0]:
            present["problems"] = problems.keep(which, xp)
        losses, gradients = passes(W, present["problems"])
        if has_penalty:
            alpha = present["problems"].alpha
            squares = xp.sum(W * W, axis=(1, 2), dtype=xp.float64)
            losses = losses + 0.5 * xp.astype(alpha, xp.float64) * squares
            gradients = gradients + alpha[:, None, None] * W
        return losses, gradients

    return evaluate


def eager_passes(
    loss: str, activation: DeviceActivation, epsilon: float, norm_epsilon: float, xp: Any
) -> Passes:
    """Return the passes over all rows on a device for one of the two losses."""
    factors_of = {"joint": _joint_factors, "blockwise": _blockwise_factors}[loss]

    def passes(W: Array, problems: DeviceProblems) -> tuple[Array, Array]:
        K, L, m = W.shape
        flat = (K * L, problems.X.shape[0])
        H = xp.reshape(xp.reshape(W, (K * L, m)) @ problems.X.T, (K, L, -1))
        if activation == "periodic":
            H += problems.phase[:, None, None]
        F, slopes = _activate_on_device(H, activation, epsilon, xp)
        del H
        factors = factors_of(F, problems, norm_epsilon, xp)
        curved = factors.B @ factors.V
        curved *= F
        dH = factors.A @ factors.U
        dH -= curved
        dH *= slopes
        gradients = xp.reshape(xp.reshape(dH, flat) @ problems.X, (K, L, m))
        return factors.losses, gradients

    return passes


def _activate_on_device(
    H: Array, activation: DeviceActivation, epsilon: float, xp: Any
) -> tuple[Array, Array]:
    """Return g(H) and g'(H); see `activations_and_norms`."""
    if activation == "abs":
        F = xp.sqrt(H * H + epsilon)
        if epsilon >= xp.finfo(H.dtype).smallest_normal:
            return F, H / F  # nowhere 0/0, which saves three touches of all activations
        # Where F is zero so is H, and zero the subgradient that stays put.
        return F, H / xp.where(F > 0, F, xp.ones_like(F))
    F, slopes = (xp.cos(H), -xp.sin(H)) if activation == "cos" else (xp.sin(H), xp.cos(H))
    F += 1 + epsilon
    return F, slopes


def upstream_table(problems: DeviceProblems, xp: Any) -> Array:
    """The gradient G (K, C + 1, L) of the joint loss on a device; the last class is unlabeled."""
    K, _, L = problems.groups.shape
    dtype = problems.X.dtype
    labeled = 1 - problems.label_reward[:, :, None] * xp.astype(problems.groups, dtype)
    rest = xp.ones((K, 1, L), dtype=dtype, device=problems.X.device)
    return xp.concat([labeled, rest], axis=1)


def _inverse_roots_on_device(squares: Array, xp: Any) -> Array:
    """Return one over each norm; a norm of zero divides by one."""
    return 1 / xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))


def _indicators(problems: DeviceProblems, n_classes: int, xp: Any) -> Array:
    """Return which rows are of which class, (n_classes, n)."""
    classes = xp.arange(n_classes, device=problems.codes.device)
    return xp.astype(problems.codes[None, :] == classes[:, None], problems.X.dtype)


def _joint_factors(F: Array, problems: DeviceProblems, norm_epsilon: float, xp: Any) -> Factors:
    squares = F * F
    total = xp.sum(squares, axis=2, dtype=xp.float64) + norm_epsilon
    inverse = xp.astype(_inverse_roots_on_device(total, xp), F.dtype)
    inverse = xp.where(problems.there, inverse, xp.zeros_like(inverse))[:, None, :]
    upstream = upstream_table(problems, xp)
    scaled = upstream * inverse
    over_r = _inverse_roots_on_device((inverse * inverse) @ squares + norm_epsilon, xp)  # (K, 1, n)
    U = _indicators(problems, upstream.shape[1], xp)[None, ...] * over_r
    q = xp.sum((scaled @ F) * U, axis=1, keepdims=True)
    v = q * over_r * over_r
    by_class = upstream * (U @ xp.matrix_transpose(F))
    s = xp.sum(by_class, axis=1, keepdims=True) - inverse * (v @ xp.matrix_transpose(squares))
    B = xp.concat([inverse * inverse, s * inverse * inverse * inverse], axis=1)
    return Factors(
        losses=xp.sum(q, axis=(1, 2), dtype=xp.float64),
        A=xp.matrix_transpose(scaled),
        U=U,
        B=xp.matrix_transpose(B),
        V=xp.concat([v, xp.ones_like(v)], axis=1),
    )


def _blockwise_factors(F: Array, problems: DeviceProblems, norm_epsilon: float, xp: Any) -> Factors:
    squares = F * F
    K, C, _ = problems.groups.shape
    everything = xp.ones((1, F.shape[2]), dtype=F.dtype, device=F.device)
    members = xp.concat([_indicators(problems, C, xp), everything])[None, ...]  # (1, C + 1, n)
    groups = xp.concat([problems.groups, xp.ones_like(problems.there)[:, None, :]], axis=1)
    groups = groups & problems.there[:, None, :]
    ones = xp.ones((K, 1), dtype=F.dtype, device=F.device)
    upstream = xp.concat([-problems.label_reward, ones], axis=1)[:, :, None]
    total = members @ xp.matrix_transpose(squares) + norm_epsilon  # (K, C + 1, L)
    inverse = _inverse_roots_on_device(total, xp)
    inverse = xp.where(groups, inverse, xp.zeros_like(inverse))
    U = members * _inverse_roots_on_device((inverse * inverse) @ squares + norm_epsilon, xp)
    q = U * (inverse @ F)
    v = q * U * U
    s = U @ xp.matrix_transpose(F) - inverse * (v @ xp.matrix_transpose(squares))
    signed = upstream * inverse
    B = xp.concat([signed * inverse, signed * s * inverse * inverse], axis=1)
    return Factors(
        losses=xp.sum(upstream * q, axis=(1, 2), dtype=xp.float64),
        A=xp.matrix_transpose(signed),
        U=U,
        B=xp.matrix_transpose(B),
        V=xp.concat([v, xp.zeros_like(v) + members], axis=1),
    )


def activations_on_device(
    X: Array, W: Array, activation: Activation, epsilon: float, xp: Any
) -> Array:
    """F (n, L) of rows X (n, m) under filters W (L, m)."""
    H = X @ W.T
    if activation == "abs":
        return xp.sqrt(H * H + epsilon)
    F = xp.sin(H) if activation == "sin" else xp.cos(H)
    F += 1 + epsilon
    return F


def squares_on_device(F: Array, xp: Any) -> Array:
    """Sum of the squares of each feature over the rows, shape (L,)."""
    # In double precision: the sum may have millions of terms.
    return xp.sum(F * F, axis=0, dtype=xp.float64)


def normalize_on_device(
    F: Array, root_means: Array, counts: Array, unit: Array, norm_epsilon: float, xp: Any
) -> Array:
    """Overwrite F (n, L) with its representation, each row under the norms of its unit.

    ``root_means`` (U, L) are over ``counts`` (U,) rows; ``unit`` (n,) says which are a row's.
    """
    squares = root_means * root_means * xp.astype(counts, F.dtype)[:, None] + norm_epsilon
    F *= xp.take(_inverse_roots_on_device(squares, xp), unit, axis=0)
    F *= _inverse_roots_on_device(xp.sum(F * F, axis=1, keepdims=True) + norm_epsilon, xp)
    return F
