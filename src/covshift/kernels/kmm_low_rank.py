r"""Kernel mean matching with a kernel of low rank, by Newton steps in its features.

With the features :math:`\Phi` (n, q) of the source rows, :math:`c = \frac{n_s}{n_t} \sum_j
\varphi(x_j)` of the target rows j and what each row adds on the diagonal,
:math:`a_i = \rho + d_i > 0` (`covshift.kernels.nystrom`), the problem of `covshift.kernels.kmm` is

.. math::

    \min_w \; \tfrac12 \lVert \Phi^\top w - c \rVert^2 + \tfrac12 \sum_i a_i w_i^2
    \quad \text{subject to} \quad 0 \le w_i \le B, \quad |\bar w - 1| \le \epsilon.

Source and target are projected onto the same landmarks: sums of exact kernels for the target
would be matched by sums of too small ones for the source, and the weights would make up for the
difference. The dual has one variable for each feature,

.. math::

    \min_v \; \tfrac12 \lVert v \rVert^2 - c^\top v + \max_w \sum_i
    \bigl(w_i \varphi_i^\top v - \tfrac12 a_i w_i^2\bigr), \qquad
    w_i(v) = \min\bigl(B, \max(0, (\varphi_i^\top v - \nu) / a_i)\bigr),

with w as constrained above and :math:`\nu` the multiplier of its mean. It is convex and
piecewise quadratic, with the gradient :math:`g = v - c + \Phi^\top w(v)`, so that Newton steps with
a line search end after a few. w(v) always keeps the constraints, its objective is exactly
:math:`\tfrac12 \lVert g \rVert^2` above the dual's, and the last formula weighs any other row too.

References
----------
L. Qi, J. Sun, "A nonsmooth version of Newton's method", Mathematical Programming 58, 1993.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from covshift.kernels.arrays import FloatArray
from covshift.kernels.kmm import clip_to_mean
from covshift.kernels.mmd import TILE_ROWS

EPS = float(np.finfo(np.float64).eps)


def match_feature_means(
    features: FloatArray,
    goal: FloatArray,
    diagonal: FloatArray,
    *,
    bound: float,
    epsilon: float,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float, float, float]:
    r"""Minimise for :math:`\Phi` (n, q), c (q,) and a (n,).

    Returns w (n,), v (q,), :math:`\nu`, the objective
    :math:`\tfrac12 w^\top (\Phi \Phi^\top + \operatorname{diag}(a)) w - c^\top \Phi^\top w`, and a
    bound on how far it is above its optimum. Stops when that is at most ``tol`` times its size.
    """
    # Here nearly all weights are one, and free to move: half as many steps as from the v of
    # weights that are one.
    v, scores = np.zeros(len(goal)), np.zeros(len(features))
    w, nu = clip_to_mean(scores, diagonal, bound, epsilon)
    for iteration in range(max_iter + 1):
        reached = w @ features
        gradient = v - goal + reached
        gap = float(gradient @ gradient) / 2
        objective = float(reached @ reached + w @ (diagonal * w)) / 2 - float(goal @ reached)
        if gap <= max(tol, EPS) * abs(objective) or iteration == max_iter:
            break
        free = (w > 0) & (w < bound)
        H = _curvature(features, np.where(free, 1 / diagonal, 0.0), fixed_mean=nu != 0)
        direction = -cho_solve(cho_factor(H), gradient)
        slope, change = float(gradient @ direction), features @ direction
        before = _dual(v, goal, scores, diagonal, w)
        rounding = 16 * EPS * (abs(before) + float(goal @ goal))
        step = 1.0
        while step > EPS:
            new_v, new_scores = v + step * direction, scores + step * change
            w, nu = clip_to_mean(new_scores, diagonal, bound, epsilon)
            after = _dual(new_v, goal, new_scores, diagonal, w)
            if after <= before + 1e-4 * step * slope + rounding:
                break
            step /= 2
        v, scores = new_v, new_scores
    return w, v, nu, objective, gap


def _dual(
    v: FloatArray, goal: FloatArray, scores: FloatArray, diagonal: FloatArray, w: FloatArray
) -> float:
    return float(v @ v) / 2 - float(goal @ v) + float(w @ (scores - diagonal * w / 2))


def _curvature(features: FloatArray, precisions: FloatArray, *, fixed_mean: bool) -> FloatArray:
    """Second derivatives (q, q) of the dual; ``precisions`` (n,) are 1/a of the free weights."""
    H: FloatArray = np.eye(features.shape[1])
    for start in range(0, len(features), TILE_ROWS):
        part = slice(start, start + TILE_ROWS)
        scaled = features[part] * np.sqrt(precisions[part])[:, None]
        H += scaled.T @ scaled
    total = float(precisions.sum())
    if fixed_mean and total > 0:  # the multiplier then undoes any common change
        mean = precisions @ features
        H -= np.outer(mean, mean) / total
    return H
