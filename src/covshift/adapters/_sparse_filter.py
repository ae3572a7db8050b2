"""Parts shared by sparse filtering and its periodic form: fitting, transforming, new targets."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.adapters._device_rows import (
    bring_to_host,
    check_device_rows,
    check_same_place,
    is_device_array,
    stays_on_device,
)
from covshift.adapters._filter_minimization import (
    FilterProblem,
    check_filter_parameters,
    minimize_filters,
)
from covshift.adapters._unit_norms import UnitNorms
from covshift.base import RefitNeededError, TargetLearner, all_or_nothing, check_magnitude
from covshift.domains import (
    check_fit_domains,
    check_new_domains,
    pooling_units,
)
from covshift.kernels.activations import activate
from covshift.kernels.device_filters import activations_on_device
from covshift.kernels.row_blocks import are_kept
from covshift.rows import validate_rows
from covshift.solvers.namespaces import cast, namespace_of
from covshift.streams import ArrayRows, RowStream, bring_home, is_streamed, open_rows


class SparseFilter(TargetLearner):
    """Base of the filters: Z = normalize(g(X W')), W fitted on the rows of all domains."""

    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn the filters from the rows of all domains.

        Parameters
        ----------
        X : {array-like, sparse matrix, Dask array} of shape (n_samples, n_features)
            Rows of all domains. A Dask array, and a memory map of more than 256 MB, are passed
            over in blocks and never copied. Tensors are fitted on their device under
            ``sklearn.config_context(array_api_dispatch=True)``.
        y : array-like of shape (n_samples,), default=None
            Labels; read only where ``label_mask`` allows it, and only by
            `PeriodicSparseFiltering`.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one
            source domain.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Where the label is known; default: source rows.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            problem = self._state_problem(X, y, sample_domain, label_mask)
            (paths,) = minimize_filters([problem], self.n_jobs)
            self._keep_best(problem, paths)
        self._warn_unless_converged()
        return self

    def _check_streamed(self) -> None:
        if self.normalization == "batch":
            raise ValueError(
                "normalization='batch' takes the norms of all rows of a call, which come in "
                "blocks here: fit with normalization='domain' or 'joint'."
            )

    def _check_new_target(self) -> None:
        if self.normalization == "joint":
            raise RefitNeededError(
                "With normalization='joint' all domains share one set of norms: refit with the "
                "rows of the new target, or use normalization='domain'."
            )

    def _transform_rows(self, X, sample_domain):
        domain = self._domains_of(sample_domain, X.shape[0])
        F = self._activate(X)
        if self.normalization == "batch":
            norms = UnitNorms.measure(F, pooling_units(domain, self.pooling, self.min_domain_size))
        else:
            norms = self._stored_norms()
        return norms.normalize(F, domain, self.norm_epsilon)

    def _learn_target(self, X, unit):
        if self.normalization == "domain":
            new = self._measure_norms(X, {unit: np.arange(X.shape[0])})
            self._store_norms(self._stored_norms().replace(new))

    def _domains_of(self, sample_domain, n_samples):
        """Domains of rows to transform, checked."""
        return check_new_domains(
            bring_to_host(sample_domain),
            n_samples,
            has_target=bool((self.domains_ < 0).any()) or "target" in self.norm_units_,
            domain_names=self.domain_names_,
        )

    def _state_problem(self, X, y, sample_domain, label_mask=None, like=None):
        """Check parameters and data, and draw the starts.

        ``like`` is a problem on the same data: what was found of them is not looked for again.
        """
        if like is not None and like.on_device:
            self._check_parameters()
            self._check_on_device()
            X, self.n_features_in_ = like.X, like.X.shape[1]
        elif is_streamed(X):
            self._check_parameters()  # before a pass over all rows
            self._check_streamable()
            X = open_rows(self, X, reset=True)
        elif stays_on_device(X):
            self._check_parameters()
            self._check_on_device()
            X = check_device_rows(self, X, reset=True)
        else:
            X = validate_rows(self, X, accept_sparse="csr", dtype=(np.float64, np.float32))
            self._check_parameters()
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        sample_domain, label_mask, y = (
            bring_to_host(bring_home(values)) for values in (sample_domain, label_mask, y)
        )
        if like is None:
            domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
            reward = self._read_labels(y, domains.label_mask)
        else:
            domains, known = like.domains, like.reward
            encoded = None if known.codes is None else (known.classes, known.codes)
            reward = self._read_labels(y, domains.label_mask, encoded)
        return FilterProblem.of(self, X, domains, reward)

    def _keep_best(self, problem, paths):
        """Store the filters of the best start and how it got there."""
        best = paths[int(np.argmin([path.loss for path in paths]))]
        self.components_ = namespace_of(best.x).positive(best.x)  # not a view of all starts
        stored = "joint" if self.normalization != "domain" else self.pooling
        units = pooling_units(problem.domains.sample_domain, stored, self.min_domain_size)
        self._store_norms(self._measure_norms(problem.X, units))
        self.domains_ = problem.domains.domains
        self.domain_names_: dict[int, str] = {}
        self.loss_ = best.loss
        self.loss_curve_ = np.array(best.losses)
        self.history_ = {
            "loss": self.loss_curve_,
            "gradient_norm": np.array(best.gradient_norms),
            "ks_distance": np.array(best.distances or [np.nan] * len(best.losses)),
        }
        self.n_iter_ = best.n_iter
        self.kept_iteration_ = best.iteration
        self.restart_losses_ = np.array([path.loss for path in paths])
        self._n_features_out = best.x.shape[0]
        self._converged = best.converged or bool(best.distances)

    def _warn_unless_converged(self, stacklevel=3):
        if self.max_iter > 0 and not self._converged:
            warnings.warn(
                f"{type(self).__name__} reached max_iter={self.max_iter} before the gradient "
                f"fell below tol={self.tol}: its filters can still improve. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )

    def _check_parameters(self):
        check_filter_parameters(self)

    def _loss_name(self):
        return "joint"

    def _l1_weight(self):
        """Weight of the absolute penalty on W; none on a device, where it is not computed."""
        return 0.0

    def _activate(self, X):
        if is_device_array(X):
            W = cast(self.components_, X.dtype)
            return activations_on_device(X, W, self.activation, self.epsilon, namespace_of(X))
        H = X @ self.components_.astype(X.dtype, copy=False).T
        return activate(H, self.activation, self.epsilon)

    def _measure_norms(self, X, units):
        if is_device_array(X):
            n_filters = self.components_.shape[0]
            return UnitNorms.measure_on_device(X, self._activate, n_filters, units)
        if not (isinstance(X, RowStream) or are_kept(self.components_[:, 0].nbytes, X.shape[0])):
            X = ArrayRows(X)
        if isinstance(X, RowStream):
            W, epsilon = self.components_, self.epsilon
            return UnitNorms.measure_stream(X, W, self.activation, epsilon, units)
        return UnitNorms.measure(self._activate(X), units)

    def _check_streamable(self):
        """Refuse what needs all rows at once."""
        if self.early_stopping is not None:
            raise ValueError(
                "early_stopping='ks' compares all rows at every iteration: fit a sample of the "
                "rows in memory, or set max_iter in its place."
            )

    def _check_on_device(self):
        """Refuse what is computed on the host only."""
        if self.early_stopping is not None:
            raise ValueError(
                "early_stopping='ks' sorts all rows at every iteration, which is not done on a "
                "device: give NumPy arrays (X.cpu().numpy()), or set max_iter in its place."
            )

    def _store_norms(self, norms):
        self.norm_units_ = norms.units
        self.feature_norms_ = norms.root_means
        self.norm_counts_ = norms.counts

    def _stored_norms(self):
        return UnitNorms(self.norm_units_, self.feature_norms_, self.norm_counts_)

    def _validate_rows(self, X):
        if is_streamed(X):
            return open_rows(self, X, reset=False)
        if stays_on_device(X):
            X = check_device_rows(self, X, reset=False)
            check_same_place(self.components_, X)
            return X
        X = validate_rows(self, X, reset=False, accept_sparse="csr", dtype=(np.float64, np.float32))
        if is_device_array(self.components_):
            check_same_place(self.components_, X)
        check_magnitude(X, getattr(self, "feature_names_in_", None))
        return X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
