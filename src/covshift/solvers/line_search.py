r"""Steps that satisfy the strong Wolfe conditions, for several problems at once.

A step a along a direction p from x is accepted when

.. math::

    f(x + a p) \le f(x) + c_1 a\, g(x)^\top p, \qquad
    \lvert g(x + a p)^\top p \rvert \le c_2 \lvert g(x)^\top p \rvert .

A step that is too short (the loss still falls steeply) becomes the lower end of a bracket, one
that is too long its upper end; the next step is the minimum of the cubic through both ends.
"""

from typing import Any, NamedTuple, TypeAlias

from covshift.solvers.array_api import namespace_of

Array: TypeAlias = Any

# The constants of L-BFGS-B (Zhu et al., 1997) for the two conditions.
SUFFICIENT_DECREASE = 1e-3
CURVATURE = 0.9
MAX_EVALUATIONS = 20
# How close to an end of its bracket, and how far beyond the last step, the next one may be.
NEAREST, FARTHEST = 0.1, 4.0


def search_limits() -> dict[str, float]:
    """Return the constants above by name, for a solver in another language."""
    return {
        "max_evaluations": MAX_EVALUATIONS,
        "sufficient_decrease": SUFFICIENT_DECREASE,
        "curvature": CURVATURE,
        "nearest": NEAREST,
        "farthest": FARTHEST,
    }


class Search(NamedTuple):
    """Line searches of k problems; all arrays are (k,).

    The bracket of each goes from ``low`` to ``high``, which is infinite at first; f and d are
    loss and slope there, and at a step of zero.
    """

    f_start: Array
    d_start: Array
    step: Array
    low: Array
    f_low: Array
    d_low: Array
    high: Array
    f_high: Array
    d_high: Array
    evaluations: Array


class Verdict(NamedTuple):
    """Outcome of the last steps; all arrays are (k,)."""

    accepted: Array
    long: Array
    failed: Array


def begin_search(f: Array, d: Array, step: Array) -> Search:
    """Search from losses f along directions of slopes d < 0, beginning with ``step``."""
    xp = namespace_of(f)
    zero, infinite = xp.zeros_like(f), xp.full_like(f, float("inf"))
    return Search(f, d, step, zero, f, d, infinite, infinite, infinite, zero)


def judge_steps(search: Search, f: Array, d: Array, precision: float) -> Verdict:
    """Judge the last steps by the losses f and slopes d that they lead to.

    A search fails when it has no lower end but its start and has gone on for too long, or for
    so short steps that the loss could not change in working precision. Where it has one, that
    is accepted at the end.
    """
    xp = namespace_of(f)
    finite = xp.isfinite(f) & xp.isfinite(d)
    enough = search.f_start + SUFFICIENT_DECREASE * search.step * search.d_start
    decreased = (f <= enough) & (f < search.f_start)  # the second, for steps that round away
    long = ~(finite & decreased & (d <= -CURVATURE * search.d_start))
    short = ~long & (d < CURVATURE * search.d_start)
    scale = xp.where(xp.abs(search.f_start) > 1, xp.abs(search.f_start), xp.ones_like(f))
    hopeless = search.step * xp.abs(search.d_start) <= precision * scale
    given_up = (search.evaluations + 1 >= MAX_EVALUATIONS) | (long & hopeless)
    settled = search.step == search.low  # evaluated again, only to be accepted
    return Verdict(
        accepted=settled | ~(long | short),
        long=long,
        failed=given_up & long & (search.low == 0) & ~settled,
    )


def narrow(search: Search, verdict: Verdict, f: Array, d: Array) -> Search:
    """Move an end of each bracket to the last step, and choose the next step."""
    xp = namespace_of(f)
    long = verdict.long
    low, f_low, d_low = (
        xp.where(long, old, new)
        for old, new in ((search.low, search.step), (search.f_low, f), (search.d_low, d))
    )
    high, f_high, d_high = (
        xp.where(long, new, old)
        for old, new in ((search.high, search.step), (search.f_high, f), (search.d_high, d))
    )
    step = xp.where(
        xp.isfinite(high),
        _interpolate(low, f_low, d_low, high, f_high, d_high),
        search.step + (search.step - search.low) * _growth(search.d_low, d),
    )
    evaluations = search.evaluations + 1
    step = xp.where(evaluations >= MAX_EVALUATIONS, low, step)
    return Search(
        search.f_start, search.d_start, step, low, f_low, d_low, high, f_high, d_high, evaluations
    )


def _interpolate(a: Array, f_a: Array, d_a: Array, b: Array, f_b: Array, d_b: Array) -> Array:
    """Minimum of the cubic with these values and slopes at a < b, kept away from both ends."""
    xp = namespace_of(a)
    width = b - a
    z = d_a + d_b - 3 * (f_b - f_a) / width
    under = z * z - d_a * d_b
    w = xp.sqrt(xp.where(under > 0, under, xp.zeros_like(under)))
    step = b - width * (d_b + w - z) / (d_b - d_a + 2 * w)
    step = xp.where(xp.isfinite(step), step, a + 0.5 * width)
    step = xp.where(step < a + NEAREST * width, a + NEAREST * width, step)
    return xp.where(step > b - NEAREST * width, b - NEAREST * width, step)


def _growth(d_low: Array, d: Array) -> Array:
    """Return the next move, relative to the last, that makes a linear slope zero."""
    xp = namespace_of(d)
    ratio = d / xp.where(d > d_low, d_low - d, xp.full_like(d, -1e-300))
    ratio = xp.where(ratio < 1 + NEAREST, xp.full_like(d, 1 + NEAREST), ratio)
    return xp.where(ratio > FARTHEST, xp.full_like(d, FARTHEST), ratio)
