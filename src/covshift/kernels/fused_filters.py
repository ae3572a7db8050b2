r"""The passes of `device_filters` for the joint loss, fused into three Triton kernels.

Between its two matrix products an evaluation reads :math:`H = W X^\top` three times and writes it
once; activations and slopes are computed again from H each time and never stored:

1. ``_square_sums``: :math:`\sum_i F_{ji}^2` of each filter, hence :math:`t_j`;
2. ``row_factors``: of each row :math:`1 / r_i` and :math:`v_i = q_i / r_i^2`, and of each filter
   :math:`s_j`, hence the loss :math:`\sum_i q_i`;
3. ``descend``: H is overwritten with
   :math:`\bigl(G_{ij} / (t_j r_i) - F_{ji} (v_i / t_j^2 + s_j / t_j^3)\bigr)\, g'(h_{ji})`.

`filter_passes` has the formula. Sums are of single precision within a part of the rows and of
double precision over the parts; nothing is added atomically, so the same bits come out each time.
Only for torch on CUDA; this module imports Triton, which comes with it.
"""

from math import ceil
from typing import Any, TypeAlias

import torch
import triton
import triton.language as tl

from covshift.kernels.device_filters import (
    DeviceActivation,
    DeviceProblems,
    Passes,
    upstream_table,
)

Array: TypeAlias = Any

# Activations that a program of `row_factors` holds: all filters of a few rows.
TILE = 8192
# Above this a row's filters no longer fit into a program.
MAX_FILTERS = 2048
# Programs enough to fill the device.
PROGRAMS = 2048
# Rows that a program of the other two takes at a time.
WIDTH = 1024


@triton.jit
def _activate(h, activation: tl.constexpr, epsilon: tl.constexpr):
    if activation == "abs":
        f = tl.sqrt(h * h + epsilon)
    elif activation == "cos":
        f = tl.cos(h) + (1.0 + epsilon)
    else:
        f = tl.sin(h) + (1.0 + epsilon)
    return f


@triton.jit
def _slope(h, f, activation: tl.constexpr):
    if activation == "abs":
        slope = h / tl.where(f > 0, f, 1.0)
    elif activation == "cos":
        slope = -tl.sin(h)
    else:
        slope = tl.cos(h)
    return slope


@triton.jit
def _square_sums(
    H, phase, sums, n, L, rows_each,
    activation: tl.constexpr, epsilon: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Fused kernel: the sum of F^2 of one filter over one part of the rows."""
    filter_, part = tl.program_id(0), tl.program_id(1)
    begin = part * rows_each
    end = tl.minimum(begin + rows_each, n)
    shift = 0.0
    if activation == "periodic":
        shift = tl.load(phase + filter_ // L)
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    for start in range(begin, end, WIDTH):
        i = start + tl.arange(0, WIDTH)
        h = tl.load(H + filter_.to(tl.int64) * n + i, mask=i < end, other=0.0)
        f = _activate(h + shift, activation, epsilon)
        total += tl.where(i < end, f * f, 0.0)
    tl.store(sums + part * tl.num_programs(0) + filter_, tl.sum(total))


@triton.jit
def row_factors(
    H, phase, codes, upstream, inverse, over_r, v, sums, losses, n, L, n_codes, rows_each,
    labeled: tl.constexpr, norm_epsilon: tl.constexpr,
    activation: tl.constexpr, epsilon: tl.constexpr,
    FILTERS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Fused kernel: factors of the rows of one part of one problem, and their sums."""
    problem, part = tl.program_id(0), tl.program_id(1)
    begin = part * rows_each
    end = tl.minimum(begin + rows_each, n)
    j = tl.arange(0, FILTERS)
    own = j < L
    inv = tl.load(inverse + problem * L + j, mask=own, other=0.0)
    table = upstream + problem * n_codes * L
    without_label = tl.load(table + (n_codes - 1) * L + j, mask=own, other=0.0)[:, None]
    shift = 0.0
    if activation == "periodic":
        shift = tl.load(phase + problem)
    s = tl.zeros((FILTERS,), dtype=tl.float32)
    loss = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(begin, end, ROWS):
        i = start + tl.arange(0, ROWS)
        inside = i < end
        both = own[:, None] & inside[None, :]
        place = (problem * L + j).to(tl.int64)[:, None] * n + i[None, :]
        h = tl.load(H + place, mask=both, other=0.0)
        f = _activate(h + shift, activation, epsilon)
        if labeled:
            code = tl.load(codes + i, mask=inside, other=0)
            G = tl.load(table + code[None, :] * L + j[:, None], mask=both, other=0.0)
        else:
            G = without_label
        a = f * inv[:, None]
        squares = tl.sum(a * a, axis=0) + norm_epsilon
        r = 1.0 / tl.sqrt(tl.where(squares > 0, squares, 1.0))
        q = tl.sum(G * a, axis=0) * r
        w = q * r * r
        q = tl.where(inside, q, 0.0)
        r = tl.where(inside, r, 0.0)
        w = tl.where(inside, w, 0.0)
        loss += q
        s += tl.sum(f * (G * r[None, :] - a * w[None, :]), axis=1)
        tl.store(over_r + problem.to(tl.int64) * n + i, r, mask=inside)
        tl.store(v + problem.to(tl.int64) * n + i, w, mask=inside)
    which = part * tl.num_programs(0) + problem
    tl.store(sums + which * L + j, s, mask=own)
    tl.store(losses + which, tl.sum(loss))


@triton.jit
def descend(
    H, phase, codes, upstream, inverse, s, over_r, v, n, L, n_codes,
    labeled: tl.constexpr, activation: tl.constexpr, epsilon: tl.constexpr,
    FILTERS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Fused kernel: overwrite H, of a few filters and some rows, with the gradient.

    The gradient is that with respect to H.
    """
    n_groups, n_parts = tl.cdiv(L, FILTERS), tl.cdiv(n, WIDTH)  # of filters, and of rows
    part, group = tl.program_id(0) % n_parts, tl.program_id(0) // n_parts % n_groups
    problem = tl.program_id(0) // (n_parts * n_groups)
    i = part * WIDTH + tl.arange(0, WIDTH)
    inside = i < n
    r = tl.load(over_r + problem.to(tl.int64) * n + i, mask=inside, other=0.0)
    w = tl.load(v + problem.to(tl.int64) * n + i, mask=inside, other=0.0)
    table = upstream + problem * n_codes * L
    shift = 0.0
    if activation == "periodic":
        shift = tl.load(phase + problem)
    if labeled:
        code = tl.load(codes + i, mask=inside, other=0)
    for step in tl.static_range(FILTERS):
        j = group * FILTERS + step
        if j < L:
            inv = tl.load(inverse + problem * L + j)
            bend = tl.load(s + problem * L + j) * inv * inv * inv
            place = (problem * L + j).to(tl.int64) * n + i
            h = tl.load(H + place, mask=inside, other=0.0) + shift
            f = _activate(h, activation, epsilon)
            if labeled:
                G = tl.load(table + code * L + j, mask=inside, other=0.0)
            else:
                G = tl.load(table + (n_codes - 1) * L + j)
            dF = G * inv * r - f * (w * inv * inv + bend)
            tl.store(H + place, dF * _slope(h, f, activation), mask=inside)


def try_out(device: Any) -> None:
    """Compile and run the smallest of the fused kernels."""
    H = torch.ones((1, 2), device=device)
    sums = torch.empty((1, 1), device=device)
    _square_sums[(1, 1)](H, H, sums, 2, 1, WIDTH, activation="abs", epsilon=0.0, WIDTH=WIDTH)
    if float(sums) != 2:
        raise RuntimeError(f"a sum of two ones came out as {float(sums)}")


def takes(X: Array, n_filters: int, loss: str) -> bool:
    """Return whether the fused kernels do what is asked."""
    single = X.is_cuda and X.dtype == torch.float32
    return loss == "joint" and single and n_filters <= MAX_FILTERS


def fused_passes(
    activation: DeviceActivation, epsilon: float, norm_epsilon: float, xp: Any
) -> Passes:
    """Return the fused passes over all rows for the joint loss, in single precision on CUDA."""

    def passes(W: Array, problems: DeviceProblems) -> tuple[Array, Array]:
        (K, L, m), n = W.shape, problems.X.shape[0]
        C = problems.groups.shape[1]
        how = {"activation": activation, "epsilon": epsilon}

        def empty(*shape: int) -> Array:
            return torch.empty(shape, dtype=W.dtype, device=W.device)

        H = W.reshape(K * L, m) @ problems.X.T
        parts, rows_each = _share_out(n, K * L, WIDTH)
        squares = empty(parts, K * L)
        _square_sums[(K * L, parts)](
            H, problems.phase, squares, n, L, rows_each, **how, WIDTH=WIDTH
        )
        total = squares.sum(0, dtype=torch.float64).reshape(K, L) + norm_epsilon
        inverse = torch.where(total > 0, total, 1.0).rsqrt().to(W.dtype)
        inverse = torch.where(problems.there, inverse, 0.0)

        upstream = upstream_table(problems, xp)
        filters = triton.next_power_of_2(L)
        rows = max(8, min(WIDTH, TILE // filters))
        parts, rows_each = _share_out(n, K, rows)
        over_r, v, sums, losses = empty(K, n), empty(K, n), empty(parts, K, L), empty(parts, K)
        row_factors[(K, parts)](
            H, problems.phase, problems.codes, upstream, inverse, over_r, v, sums, losses,
            n, L, C + 1, rows_each,
            labeled=C > 0, norm_epsilon=norm_epsilon, **how, FILTERS=filters, ROWS=rows,
            num_warps=8 if filters * rows >= TILE else 4,
        )  # fmt: skip
        s = sums.sum(0, dtype=torch.float64).to(W.dtype)
        per_program = 4
        descend[(K * ceil(L / per_program) * ceil(n / WIDTH),)](
            H, problems.phase, problems.codes, upstream, inverse, s, over_r, v, n, L, C + 1,
            labeled=C > 0, **how, FILTERS=per_program, WIDTH=WIDTH,
        )  # fmt: skip
        return losses.sum(0, dtype=torch.float64), (H @ problems.X).reshape(K, L, m)

    return passes


def _share_out(n: int, n_programs: int, block: int) -> tuple[int, int]:
    """Return the parts into which the rows are cut, and rows of each, whole blocks of them."""
    n_blocks = ceil(n / block)
    parts = max(1, min(n_blocks, ceil(PROGRAMS / n_programs)))
    rows_each = ceil(n_blocks / parts) * block
    return ceil(n / rows_each), rows_each
