"""Subspace alignment: principal directions of two samples, and the map between them."""

import warnings

import numpy as np

from covshift.adapters.correlation_alignment import column_means, scatter_matrix
from covshift.base import DomainTransformer, NothingToAdaptWarning, UnitAdapter, check_count
from covshift.domains import role_of
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.streams import RowStream
from covshift.streams.moments import first_moments, measure_scales, scatter_about


def principal_directions(X: FloatArray, n_components: int) -> FloatArray:
    """Return the first directions (n_components, m) of the rows X (n, m) about their mean, as rows.

    Of two opposite directions, the one whose largest entry is positive.
    """
    mean = column_means(X)
    n, m = X.shape
    if n >= m:
        return _directions_of_scatter(_scatter_in_range(X, mean), n_components)
    return _signed(np.linalg.svd(X - mean, full_matrices=False)[2][:n_components])


def _directions_of_scatter(S: FloatArray, n_components: int) -> FloatArray:
    """Return the same from the scatter matrix S (m, m) of the rows."""
    _, vectors = np.linalg.eigh(S)
    return _signed(vectors[:, ::-1].T[:n_components])


def _signed(directions: FloatArray) -> FloatArray:
    largest = np.abs(directions).argmax(axis=1)
    flipped: FloatArray = directions * np.where(
        directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0
    ).reshape(-1, 1)
    return flipped


def _scatter_in_range(X: FloatArray, mean: FloatArray) -> FloatArray:
    """Scatter matrix (m, m), or a multiple of it whose entries neither overflow nor vanish."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        S = scatter_matrix(X, mean)
    if 1e-200 < float(np.diagonal(S).max()) < 1e200:
        return S
    size = float(np.abs(X - mean).max())
    return scatter_matrix((X - mean) / size, np.zeros_like(mean)) if size > 0 else S


def _stream_scatter(
    stream: RowStream,
    codes: IntArray,
    means: FloatArray,
    scales: FloatArray,
    group_of: IntArray,
) -> FloatArray:
    """Scatter matrices (G, m, m) of groups of codes, about each group's own mean.

    Rows are standardized first by the mean and scale (U, m) of their code; ``group_of`` (U,) is
    the group of each code.
    """
    split = stream.split(codes)
    n_groups = int(group_of.max()) + 1
    counts, totals = stream.sums(first_moments, split, len(means))
    standardized = (totals - counts * means) / scales  # sums of the standardized rows
    centers = means.copy()
    for group in range(n_groups):
        own = group_of == group
        group_mean = standardized[own].sum(axis=0) / counts[own].sum(axis=0)
        centers[own] += scales[own] * group_mean
    (scatter,) = stream.sums(scatter_about, split, centers, scales, group_of, n_groups)
    return np.asarray(scatter)


class SubspaceAlignment(UnitAdapter):
    r"""Subspace alignment (SA): turn the source's principal subspace toward the target's.

    .. math::

        Z_\text{source} = X \, T \, T^\top U, \qquad Z_\text{target} = X \, U

    with T and U (features x P) the first P principal directions of source and target rows:
    :math:`M = T^\top U` minimizes :math:`\lVert T M - U \rVert_F`. With P = all features it is a
    rotation, :math:`T T^\top` is the identity and both samples are turned alike.

    **Assumption**: what matters for the label lies in the P directions of largest variance
    of each role, and the same direction of the aligned subspaces has the same meaning in
    both. It harms when labels depend on directions of small variance, which are thrown away.
    It moves no means and changes no scales: a plain shift of location stays as it is, unless
    ``center`` and ``scale`` undo it.

    Parameters
    ----------
    n_components : int, default=None
        Number P of directions. None: half of the features, rounded up, and at most one fewer
        than the rows of the smaller role, about whose mean there are no more directions.
        P = number of features is one common rotation, which changes nothing: it warns.
    center : bool, default=False
        Subtract from each row the mean of its unit first. False is the formula above (the
        directions are always those about the mean): centering is an adaptation of its own,
        and often the stronger one, so it is never done unasked.
    scale : bool, default=False
        Divide each feature by its standard deviation in the unit first; False for the same
        reason. Both True is the setting of the publication, which standardized each domain.
    pooling : {"role", "domain"}, default="role"
        Units whose means and standard deviations ``center`` and ``scale`` use: all sources
        and all targets, or each domain by itself. Directions are always those of the roles.
    min_domain_size : int, default=10
        A domain with fewer rows uses the mean and standard deviation of its role.

    Attributes
    ----------
    n_components_ : int
        P.
    source_components_, target_components_ : ndarrays of shape (P, n_features)
        T and U, transposed; the same if the fit saw no target.
    alignment_ : ndarray of shape (P, P)
        The matrix T'U.
    units_ : list
        Names of the units: "source", "target"; with ``pooling="domain"`` the integer of each
        domain that is large enough before them.
    means_, scales_ : ndarrays of shape (n_units, n_features)
        What ``center`` subtracts and ``scale`` divides by; zeros and ones without them.
    domains_ : ndarray
        Domains known from the fit.

    Notes
    -----
    Without ``sample_domain`` rows are projected on the source's own directions, with a
    warning. A new target needs a new fit: its directions would change the space in which a
    predictor was trained.

    **Cost**: O(n m² + m³) time to fit, O(n² m) where a role has fewer rows than features; O(n
    m P) to transform. O(m²) memory.

    References
    ----------
    B. Fernando, A. Habrard, M. Sebban, T. Tuytelaars, "Unsupervised visual domain adaptation
    using subspace alignment", ICCV 2013.

    Examples
    --------
    >>> from covshift import SubspaceAlignment, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> data = make_radial_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> sa = SubspaceAlignment(n_components=1).fit(X, sample_domain=sample_domain)
    >>> sa.transform(data.X_test).shape
    (500, 1)
    """

    _statistics = ("means_", "scales_")
    _without_target = "rows are projected on the source's own principal directions"

    def __init__(
        self, n_components=None, *, center=False, scale=False, pooling="role", min_domain_size=10
    ):
        self.n_components = n_components
        self.center = center
        self.scale = scale
        self.pooling = pooling
        self.min_domain_size = min_domain_size

    def adapt_target(self, X, domain=None):
        """Refuse: the directions of a new target need the source rows, so refit."""
        return DomainTransformer.adapt_target(self, X, domain)

    def _check_parameters(self):
        super()._check_parameters()
        if self.n_components is not None:
            check_count("n_components", self.n_components, minimum=1)

    def _learn(self, rows, units, sample_domain):
        super()._learn(rows, units, sample_domain)
        n_rows = min(len(units[role]) for role in ("source", "target") if role in units)
        self.n_components_ = self._count_components(n_rows, rows.shape[1])
        directions = self._find_directions(rows, units, sample_domain)
        self.source_components_ = directions["source"]
        self.target_components_ = directions.get("target", self.source_components_)
        if "target" in units and self.n_components_ == rows.shape[1]:
            warnings.warn(
                f"n_components={self.n_components_} is the number of features: the alignment "
                "then rotates all rows alike and has no effect. Use fewer components.",
                NothingToAdaptWarning,
                stacklevel=3,
            )
        self.alignment_ = self.source_components_ @ self.target_components_.T
        self._n_features_out = self.n_components_

    def _find_directions(self, rows, units, sample_domain):
        """Return the principal directions of the standardized rows of each role."""
        roles = {role: units[role] for role in ("source", "target") if role in units}
        position = self._locate(sample_domain)

        def of_rows(X, role):
            Z = self._standardize(X, position[roles[role]])
            return principal_directions(Z, self.n_components_)

        def of_stream(stream, codes, n_roles):
            role_of_unit = np.array([list(roles).index(role_of(unit)) for unit in self.units_])
            scatter = _stream_scatter(stream, position, self.means_, self.scales_, role_of_unit)
            return [_directions_of_scatter(S, self.n_components_) for S in scatter]

        return rows.measure(roles, of_rows, of_stream)

    def _count_components(self, n_rows, n_features):
        if self.n_components is None:
            return max(1, min((n_features + 1) // 2, n_rows - 1))
        if self.n_components > min(n_rows, n_features):
            raise ValueError(
                f"n_components={self.n_components} is more than there are features ({n_features}) "
                f"or rows in the smaller role (n_samples = {n_rows})."
            )
        return int(self.n_components)

    def _measure(self, rows, units):
        return measure_scales(rows, units, with_mean=self.center, with_std=self.scale)

    def _standardize(self, X, position):
        if not (self.center or self.scale):
            return X
        return (X - self.means_[position]) / self.scales_[position]

    def _apply(self, X, unit):
        Z = self._standardize(X, unit)
        if role_of(self.units_[unit]) == "target":
            return Z @ self.target_components_.T
        return Z @ self.source_components_.T @ self.alignment_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "alignment_")
