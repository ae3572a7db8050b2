r"""How far apart sparse filtering can send two rows, given their directions.

With soft absolute values :math:`a = \sqrt{(D W u)^2 + \epsilon D^2 / \lVert x \rVert^2}`,
:math:`D = \text{diag}(1 / t)`, :math:`u = x / \lVert x \rVert`, the representation is
:math:`z = a / \lVert a \rVert`. Entry by entry the reverse triangle inequality gives

.. math::

    \lVert a_1 - a_2 \rVert^2 \le g^2 = \lVert D W \rVert_2^2 \; 2 \delta
    + \epsilon \, (1 / \lVert x_1 \rVert - 1 / \lVert x_2 \rVert)^2 \sum_j t_j^{-2},
    \qquad \delta = 1 - \lvert \cos(x_1, x_2) \rvert

and dividing by lengths (Dunkl and Williams, for the second)

.. math::

    \lVert z_1 - z_2 \rVert \le \frac{2 g}{\max(\lVert a_1 \rVert, \lVert a_2 \rVert)},
    \qquad
    \lVert z_1 - z_2 \rVert \le \frac{2 g}{\lVert a_1 \rVert + \lVert a_2 \rVert}.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from covshift.kernels.activations_and_norms import activate, row_norms
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.row_checks import check_rows

# Pairs whose rows are held at once.
BLOCK_PAIRS = 4096
# Share of ||D W|| up to which D W u is rounding, in units of the precision.
ROUNDING_STEPS = 4096
# Two unit vectors without negative entries are never further apart.
LARGEST_DISTANCE = np.sqrt(2)


def neighborhood_bounds(
    X1: FloatArray, X2: FloatArray, W: FloatArray, t: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both bounds for the pairs of rows of X1 and X2 (P, m), and their condition, each (P,).

    The condition, ||D W|| over the larger length of a, is the factor by which rounding
    grows. All are infinite where a row, or its projection, is zero.
    """
    spectral = np.linalg.norm(W / t[:, None], 2)
    length1, length2 = np.linalg.norm(X1, axis=1), np.linalg.norm(X2, axis=1)
    a1 = np.linalg.norm(activate(X1 @ W.T, "abs", epsilon) / t, axis=1)
    a2 = np.linalg.norm(activate(X2 @ W.T, "abs", epsilon) / t, axis=1)
    known = (length1 > 0) & (length2 > 0) & (a1 + a2 > 0)
    length1, length2 = np.where(known, length1, 1.0), np.where(known, length2, 1.0)
    a1, a2 = np.where(known, a1, 1.0) / length1, np.where(known, a2, 1.0) / length2
    U1, U2 = X1 / length1[:, None], X2 / length2[:, None]
    # The chord: sqrt(2 delta) without the cancellation in 1 - |cos|.
    chords = np.minimum(np.linalg.norm(U1 - U2, axis=1), np.linalg.norm(U1 + U2, axis=1))
    offsets = np.sqrt(epsilon) * np.linalg.norm(1 / t) * (1 / length1 - 1 / length2)
    gaps = np.hypot(spectral * chords, offsets)
    larger, both = np.maximum(a1, a2), a1 + a2
    bounds, sharp_bounds, conditions = (
        np.where(known, value, np.inf)
        for value in (2 * gaps / larger, 2 * gaps / both, spectral / larger)
    )
    return bounds, sharp_bounds, conditions


@dataclass(frozen=True)
class CosineNeighborhood:
    """Result of `check_cosine_neighborhood`. A negative margin is a broken bound.

    Attributes
    ----------
    holds : bool
        Whether both bounds, this one and the sharper one of the notes, hold for all pairs.
    margin : float
        Smallest of bound - distance over the pairs.
    sharp_margin : float
        The same for the sharper bound.
    largest_ratio : float
        Largest of distance / sharper bound, up to rounding: one where it is met exactly.
    informative_share : float
        Share of pairs whose sharper bound is below √2, the largest possible distance. For the
        other pairs the bound has no effect.
    n_pairs : int
        Pairs examined.
    """

    holds: bool
    margin: float
    sharp_margin: float
    largest_ratio: float
    informative_share: float
    n_pairs: int


def check_cosine_neighborhood(
    W: Any,
    norms: Any,
    X: Any,
    *,
    Z: Any = None,
    epsilon: float = 0.0,
    pairs: Any = None,
    max_pairs: int = 100_000,
    random_state: Any = None,
) -> CosineNeighborhood:
    r"""Check that sparse filtering keeps cosine neighbors together.

    .. math::

        \lVert z_1 - z_2 \rVert \le
        \frac{2 \lVert D W \rVert_2 \sqrt{2 \delta}}
             {\max(\lVert D W u_1 \rVert, \lVert D W u_2 \rVert)}, \qquad
        \delta = 1 - \lvert \cos(x_1, x_2) \rvert

    with :math:`D = \text{diag}(1 / t)` and :math:`u = x / \lVert x \rVert`, for the
    absolute value as activation.

    Parameters
    ----------
    W : array-like of shape (n_components, n_features)
        Filters: ``components_``.
    norms : array-like of shape (n_components,)
        Feature norms t, one row of ``feature_norms_``; a common factor does not matter, and
        a norm of zero counts as one, as in the filters.
    X : array-like of shape (n_samples, n_features)
        Rows, at least two.
    Z : array-like of shape (n_samples, n_components), default=None
        Result of ``transform`` for X; None: computed from the other arguments.
    epsilon : float, default=0
        The filter's ``epsilon``; see the notes.
    pairs : array-like of int of shape (n_pairs, 2), default=None
        Row numbers of the pairs; None: all pairs, or ``max_pairs`` random ones where there
        are more.
    max_pairs : int, default=100_000
        See above.
    random_state : int, RandomState or None, default=None
        Seed of random pairs.

    Returns
    -------
    result : CosineNeighborhood
        Whether the bound holds, by how much, and how often it says something.

    Notes
    -----
    The structure is axial: x and -x have one representation, hence the absolute value of
    the cosine. By the inequality of Dunkl and Williams the maximum may be replaced by the
    sum of both lengths: that bound is up to twice as sharp and can be met. The soft
    absolute value, ``epsilon`` above zero, depends on the lengths of the rows, too, and adds
    a term; formulas and proof are in `covshift.measures.cosine_neighborhood`.

    The paper prints :math:`L \, ((k + \sqrt{2 \delta - \delta^2}) / \lVert \tilde f_2 \rVert
    - 1 / \lVert \tilde f_1 \rVert)`, which fails: its proof bounds every entry of
    :math:`W b` by the same entry of :math:`W x_1`. A row of zeros has no direction and no
    bound.

    **Cost**: O(n m L) time for the rows and O(m + L) for each pair; pairs in blocks of bounded
    memory.

    References
    ----------
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
    appendix, theorem on the preservation of cosine neighborhoodness.
    C. F. Dunkl, K. S. Williams, "A simple norm inequality", The American Mathematical
    Monthly 71, 1964.

    Examples
    --------
    >>> from covshift import SparseFiltering
    >>> from covshift.datasets import make_radial_shift
    >>> from covshift.measures import check_cosine_neighborhood
    >>> X = make_radial_shift(random_state=0).X_source
    >>> sf = SparseFiltering(random_state=0).fit(X)
    >>> check_cosine_neighborhood(
    ...     sf.components_, sf.feature_norms_[0], X, Z=sf.transform(X), epsilon=sf.epsilon
    ... ).holds
    True
    """
    W = check_array(W, dtype=np.float64, input_name="W")
    X = check_rows(X, dtype=np.float64, ensure_min_samples=2, input_name="X")
    t = _check_norms(norms, len(W))
    if X.shape[1] != W.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, the filters W take {W.shape[1]}.")
    computed = activate(X @ W.T, "abs", epsilon) / t
    computed /= row_norms(computed, 0.0)
    Z = computed if Z is None else check_rows(Z, dtype=(np.float64, np.float32), input_name="Z")
    if Z.shape != computed.shape:
        raise ValueError(f"Z must have shape {computed.shape}, got {Z.shape}.")
    chosen = _choose_pairs(pairs, len(X), max_pairs, random_state)
    bounds, sharp_bounds, conditions, distances = np.empty((4, len(chosen)))
    for start in range(0, len(chosen), BLOCK_PAIRS):
        block = slice(start, start + BLOCK_PAIRS)
        i, j = chosen[block].T
        bounds[block], sharp_bounds[block], conditions[block] = neighborhood_bounds(
            X[i], X[j], W, t, epsilon
        )
        distances[block] = np.linalg.norm(Z[i] - Z[j], axis=1)
    slack = ROUNDING_STEPS * np.finfo(Z.dtype).eps * conditions
    largest_ratio = float((distances / (sharp_bounds + slack)).max())
    return CosineNeighborhood(
        holds=largest_ratio <= 1,  # the sharper bound implies the other
        margin=float((bounds - distances).min()),
        sharp_margin=float((sharp_bounds - distances).min()),
        largest_ratio=largest_ratio,
        informative_share=float((sharp_bounds < LARGEST_DISTANCE).mean()),
        n_pairs=len(chosen),
    )


def _check_norms(norms: Any, n_components: int) -> FloatArray:
    t = check_array(norms, dtype=np.float64, ensure_2d=False, input_name="norms")
    if t.shape != (n_components,) or (t < 0).any():
        raise ValueError(
            f"norms must be {n_components} non-negative numbers, one per filter, such as one row "
            f"of feature_norms_; got shape {t.shape}."
        )
    return np.where(t == 0, 1.0, t)


def _choose_pairs(pairs: Any, n_rows: int, max_pairs: int, random_state: Any) -> IntArray:
    """Return the row numbers (P, 2): those given, all, or random ones of two different rows."""
    if pairs is not None:
        given = np.asarray(pairs)
        if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
            raise ValueError("pairs must hold row numbers, in an array of shape (n_pairs, 2).")
        if given.min() < 0 or given.max() >= n_rows:
            raise ValueError(f"pairs holds row numbers outside 0 to {n_rows - 1}.")
        return given.astype(np.int64)
    if max_pairs < 1:
        raise ValueError(f"max_pairs must be at least 1, got {max_pairs}.")
    if n_rows * (n_rows - 1) // 2 <= max_pairs:
        return np.column_stack(np.triu_indices(n_rows, 1)).astype(np.int64)
    random_state = check_random_state(random_state)
    first = random_state.randint(n_rows, size=max_pairs)
    steps = random_state.randint(1, n_rows, size=max_pairs)
    return np.column_stack([first, (first + steps) % n_rows]).astype(np.int64)
