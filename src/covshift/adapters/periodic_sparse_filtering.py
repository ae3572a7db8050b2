"""Periodic sparse filtering, the paper's own method."""

import warnings

import numpy as np

from covshift.adapters._filter_minimization import AUTO, Reward
from covshift.adapters.sparse_filtering import SparseFilter, SparseFiltering
from covshift.base import check_count, check_option
from covshift.domains import encode_classes
from covshift.kernels.filter_losses import LOSSES
from covshift.shared_docs import documented_like

COMPONENTS_PER_CLASS = 4
AUTO_REWARD = 4.0  # label_reward="auto" gives this if all rows have labels


@documented_like(SparseFiltering)
class PeriodicSparseFiltering(SparseFilter):
    r"""Periodic sparse filtering (PSF): periodic filters that the source labels guide.

    .. math::

        Z = \text{normalize}(g(X W^\top)), \qquad g(h) = 1 + \epsilon + \sin h,

    .. math::

        \min_W \; \sum_{ij} Z_{ij}
        - \sum_c \lambda_c \sum_{i: y_i = c} \; \sum_{j \in \text{group } c} Z_{ij}

    where ``normalize`` divides each feature by its :math:`\ell_2` norm over the rows, then
    each row by its :math:`\ell_2` norm over the features. The features are split into one
    group per class; labeled rows are rewarded for activating the group of their class.

    **Assumption**: labels repeat periodically along some directions, and the period seen in
    the source continues in the target. One source domain cannot prove that it does: compare
    the two variants of `covshift.datasets.make_periodic_shift`.

    Parameters
    ----------
    n_components : int, default=None
        Number L of filters, those for unlabeled rows included; None: four per class plus
        ``n_unlabelled_components`` (without labels: the number of input features).
    activation : {"sin", "cos", "abs"}, default="sin"
        g; with "abs" this is sparse filtering guided by labels.
    label_reward : float, array of shape (n_classes,) or "auto", default="auto"
        :math:`\lambda`, for all classes or one per class in sorted order. "auto":
        :math:`4 n / n_\text{labeled}` for all classes, of n rows of which
        :math:`n_\text{labeled}` have a known label: the more rows have none, the more each label
        counts, so that the target's rows do not outvote them. The paper has 1 to 2.
    n_unlabelled_components : int, default=0
        Filters, the last of ``n_components``, that no class is rewarded for.
    feature_groups : array of shape (n_classes, n_components), default=None
        0/1 mask of the filters rewarded for each class, in sorted order, of any size;
        None: consecutive even shares, remainders to the first classes (a warning, if there
        are fewer filters than classes).
    loss : {"joint", "blockwise"}, default="joint"
        "joint": the paper's formula, above; "blockwise": what the authors' released code
        minimizes, where each rewarded block is normalized again on its own.
    epsilon : float, default=1e-8
        :math:`\epsilon` inside the activation (0 in the released code).
    norm_epsilon : float, default=0
        Added to the sum of squares inside both norms (1e-8 in the released code).
    init_scale : float or "auto", default=1.0
        Factor on the normal draws. Angles of m standardized features spread by about
        ``init_scale * sqrt(m)``. "auto": :math:`1 / \sqrt m`, which keeps them within a turn where
        there are many features.
    n_restarts : int, default=10
        Starts; the fit with the smallest training loss is kept. The loss has many poor
        minima: few filters need many starts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes among the labels that could be read; empty without labels.
    feature_groups_ : ndarray of bool of shape (n_classes, n_components)
        Filters rewarded for each class.
    label_reward_ : ndarray of shape (n_classes,)
        :math:`\lambda` of each class.
    components_, feature_norms_, norm_units_, norm_counts_ : ndarrays and list
        The filters and their norms, as in `SparseFiltering`.
    domains_, domain_names_ : ndarray and dict
        As in `SparseFiltering`.
    loss_, loss_curve_, history_, n_iter_, kept_iteration_, restart_losses_
        The course of the fit, as in `SparseFiltering`.

    Notes
    -----
    **Cost**: as `SparseFiltering`: O(n m L) time for an iteration of each start, O(n L)
    memory; labels add O(n L).

    References
    ----------
    F. M. Zennaro, K. Chen, "On the use of sparse filtering for covariate shift adaptation",
    Algorithm 1.

    Examples
    --------
    >>> from covshift import PeriodicSparseFiltering, stack_domains
    >>> from covshift.datasets import make_periodic_shift
    >>> data = make_periodic_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> psf = PeriodicSparseFiltering(random_state=0).fit(X, y, sample_domain=sample_domain)
    >>> psf.transform(data.X_test).shape
    (500, 8)
    """

    def __init__(
        self,
        n_components=None,
        *,
        activation="sin",
        label_reward="auto",
        n_unlabelled_components=0,
        feature_groups=None,
        loss="joint",
        normalization="domain",
        epsilon=1e-8,
        norm_epsilon=0.0,
        init="normal",
        init_scale=1.0,
        alpha=0.0,
        max_iter=200,
        tol=1e-5,
        n_restarts=10,
        early_stopping=None,
        stopping_window=50,
        pooling="role",
        min_domain_size=10,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.label_reward = label_reward
        self.n_unlabelled_components = n_unlabelled_components
        self.feature_groups = feature_groups
        self.loss = loss
        self.normalization = normalization
        self.epsilon = epsilon
        self.norm_epsilon = norm_epsilon
        self.init = init
        self.init_scale = init_scale
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_restarts = n_restarts
        self.early_stopping = early_stopping
        self.stopping_window = stopping_window
        self.pooling = pooling
        self.min_domain_size = min_domain_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _loss_name(self):
        return self.loss

    def _check_parameters(self):
        super()._check_parameters()
        check_option("loss", self.loss, LOSSES)
        check_count("n_unlabelled_components", self.n_unlabelled_components, minimum=0)

    def _read_labels(self, y, label_mask, encoded=None):
        if y is None:
            if self.feature_groups is not None:
                raise ValueError("feature_groups needs labels: y is None.")
            reward = Reward.none(self.n_components or self.n_features_in_)
        else:
            classes, codes = encoded or encode_classes(y, label_mask)
            reward = Reward(
                classes,
                codes,
                self._group_features(len(classes)),
                self._rewards(codes, len(classes)),
            )
        self.classes_, self.feature_groups_ = reward.classes, reward.groups
        self.label_reward_ = np.array(reward.label_reward)
        return reward

    def _rewards(self, codes, n_classes):
        """Lambda of each class; codes are -1 where the label is not known."""
        if not isinstance(self.label_reward, str):
            return _one_per_class("label_reward", self.label_reward, n_classes)
        if self.label_reward != AUTO:
            raise ValueError(
                f"label_reward must be a number, one per class, or 'auto', got "
                f"{self.label_reward!r}."
            )
        return np.full(n_classes, AUTO_REWARD * len(codes) / np.count_nonzero(codes >= 0))

    def _group_features(self, n_classes):
        """Mask (n_classes, L) of the filters rewarded for each class."""
        if self.feature_groups is not None:
            if self.n_unlabelled_components:
                raise ValueError(
                    "Give feature_groups or n_unlabelled_components: the columns that no class "
                    "has in feature_groups are those for unlabeled rows."
                )
            return self._check_groups(np.asarray(self.feature_groups), n_classes)
        unlabeled = self.n_unlabelled_components
        n_components = self.n_components or COMPONENTS_PER_CLASS * n_classes + unlabeled
        rewarded = n_components - unlabeled
        if rewarded < 1:
            raise ValueError(
                f"n_unlabelled_components={unlabeled} must be below n_components={n_components}: "
                "otherwise no filter is left for the classes."
            )
        if rewarded < n_classes:
            warnings.warn(
                f"{rewarded} filters for {n_classes} classes: the last {n_classes - rewarded} "
                "classes get none and earn no reward. Raise n_components.",
                stacklevel=4,
            )
        groups = np.zeros((n_classes, n_components), dtype=bool)
        for code, filters in enumerate(np.array_split(np.arange(rewarded), n_classes)):
            groups[code, filters] = True
        return groups

    def _check_groups(self, groups, n_classes):
        if groups.ndim != 2 or len(groups) != n_classes or not np.isin(groups, (0, 1)).all():
            raise ValueError(
                f"feature_groups must be a 0/1 mask of shape ({n_classes}, n_components), one "
                f"row per class, got an array of shape {groups.shape}."
            )
        if self.n_components is not None and groups.shape[1] != self.n_components:
            raise ValueError(
                f"feature_groups has {groups.shape[1]} columns and n_components is "
                f"{self.n_components}: they must agree."
            )
        return groups.astype(bool)


def _one_per_class(name, value, n_classes):
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.shape not in ((), (n_classes,)):
        raise ValueError(
            f"{name} must be a number or one per class, {n_classes} here; got {value!r}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {value!r}.")
    return np.broadcast_to(values, n_classes)
