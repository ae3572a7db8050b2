"""Denoising auto-encoder; how its networks are trained is in `_autoencoder_training`."""

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_scalar
from sklearn.utils.validation import check_is_fitted

from covshift.adapters._autoencoder_training import Squashing, Trained, squash, train
from covshift.base import (
    DomainTransformer,
    TargetLearner,
    UnitAdapter,
    all_or_nothing,
    check_count,
    check_option,
)
from covshift.domains import check_fit_domains, check_new_domains
from covshift.kernels.arrays import FloatArray
from covshift.shared_docs import documented_like
from covshift.solvers.threads import one_blas_thread
from covshift.streams import rows_in_memory

# Middle and width of the range into which rows are scaled.
RANGES = {"sigmoid": (0.5, 1.0), "tanh": (0.0, 2.0)}
OPTIONS = {
    "activation": ("sigmoid", "tanh"),
    "decoder": (None, "sigmoid", "tanh", "linear"),
    "noise": ("gaussian", "masking"),
    "solver": ("adam", "sgd"),
    "scaling": ("minmax", None),
    "init": ("glorot", "normal"),
}
# Parameters that networks trained together must share; the others may differ.
SHARED = (
    "n_components", "activation", "decoder", "tied", "noise", "solver", "momentum", "batch_size",
    "max_epochs", "early_stopping", "validation_fraction", "patience",
)  # fmt: skip


def center_and_spread(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle and width (m,) of each feature of X (n, m); the width is 1 where it is constant."""
    low, high = X.min(axis=0), X.max(axis=0)
    spread = high - low
    # The middle of two numbers, without their sum.
    return low + spread / 2, np.where(spread > 0, spread, np.ones_like(spread))


class DenoisingAutoencoder(DomainTransformer):
    r"""Denoising auto-encoder (DAE): codes that separate clean rows from noisy ones.

    .. math::

        z = f(W \tilde x + b), \qquad \hat x = g(V z + c), \qquad
        \min_{W, b, V, c} \; \operatorname{mean} \lVert \hat x - x \rVert^2

    with :math:`\tilde x` the row x with noise, on the rows of all domains together. The codes z
    of rows without noise are their representation.

    **Assumption**: what the domains share, and what the labels depend on, is what is needed to
    reconstruct the rows. It harms when labels depend on small variations, which the noise and a
    narrow code wipe out. Nothing pulls source and target codes together.

    Parameters
    ----------
    n_components : int, default=None
        Number L of codes. None: the number of features.
    activation : {"sigmoid", "tanh"}, default="sigmoid"
        f.
    decoder : {None, "sigmoid", "tanh", "linear"}, default=None
        g. None: the activation.
    tied : bool, default=False
        Whether V is W transposed.
    noise : {"gaussian", "masking"}, default="gaussian"
        Normal noise is added to each entry, or entries are set to zero. New in every epoch.
    noise_level : float, default=0.1
        Standard deviation of Gaussian noise, or the share of masked entries; it refers to the
        scaled rows.
    solver : {"adam", "sgd"}, default="adam"
        Mini-batch solver.
    learning_rate : float, default=0.001
        Its step size. With "sgd" useful values are far larger, about .1 to 1.
    momentum : float, default=0.9
        Of "sgd".
    batch_size : int, default=50
        Rows per step; at most all rows. The last batch of an epoch has those that are left.
    max_epochs : int, default=1000
        Passes over the rows; 0: the weights stay as drawn.
    early_stopping : bool, default=False
        Whether to hold rows out, stop when their reconstruction error has not fallen for
        ``patience`` epochs, and keep the parameters of the epoch where it was lowest.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out, at least one row.
    patience : int, default=20
        Epochs without improvement after which early stopping stops.
    scaling : {"minmax", None}, default="minmax"
        "minmax": each feature is scaled so that the fitted rows fill the range of the decoder,
        [0, 1] or [-1, 1] (a linear one has none: that of the activation). New rows are scaled
        alike and may lie outside. A constant feature stands in the middle. None: rows are taken
        as they are; a decoder that is not linear then reconstructs only what is in its range.
    init : {"glorot", "normal"}, default="glorot"
        "glorot": weights uniform with variance 2 / (features + codes), biases zero; "normal":
        weights and biases standard normal.
    random_state : int, RandomState or None, default=None
        Seed of weights, batches and noise.
    verbose : int, default=0
        1: a line every few seconds and at the end; 2: a line for every epoch.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W.
    intercept_ : ndarray of shape (n_components,)
        b.
    decoder_components_ : ndarray of shape (n_features, n_components)
        V.
    decoder_intercept_ : ndarray of shape (n_features,)
        c.
    data_center_, data_range_ : ndarrays of shape (n_features,)
        Middle and width of each feature's values in the fit; the width is 1 where they are
        constant.
    loss_curve_ : ndarray of shape (n_epochs,)
        Mean squared error between the reconstruction of noisy rows and the clean rows, in
        scaled units, over each epoch.
    validation_curve_ : ndarray of shape (n_epochs,), or None
        The same of the held-out rows after each epoch, if ``early_stopping``.
    n_iter_ : int
        Epochs run.
    kept_epoch_ : int
        Epoch, counted from 1, whose parameters were kept: the last, unless ``early_stopping``.
    domains_ : ndarray
        Domains known from the fit.

    Notes
    -----
    A new target needs a new fit. A ``ConvergenceWarning`` says that the error was still falling
    when the last epoch ended.

    **Cost**: O(n m L) time for an epoch of n rows, m features and L units; O(m L) memory for
    the weights and O(m + L) for each row of a batch.

    References
    ----------
    P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust
    features with denoising autoencoders", ICML 2008.

    Examples
    --------
    >>> from covshift import DenoisingAutoencoder, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> data = make_radial_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> dae = DenoisingAutoencoder(n_components=1, early_stopping=True, random_state=0)
    >>> dae.fit(X, sample_domain=sample_domain).transform(data.X_test).shape
    (500, 1)
    """

    def __init__(
        self,
        n_components=None,
        *,
        activation="sigmoid",
        decoder=None,
        tied=False,
        noise="gaussian",
        noise_level=0.1,
        solver="adam",
        learning_rate=0.001,
        momentum=0.9,
        batch_size=50,
        max_epochs=1000,
        early_stopping=False,
        validation_fraction=0.1,
        patience=20,
        scaling="minmax",
        init="glorot",
        random_state=None,
        verbose=0,
    ) -> None:
        self.n_components = n_components
        self.activation = activation
        self.decoder = decoder
        self.tied = tied
        self.noise = noise
        self.noise_level = noise_level
        self.solver = solver
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scaling = scaling
        self.init = init
        self.random_state = random_state
        self.verbose = verbose

    @documented_like(UnitAdapter.fit)
    def fit(
        self, X: Any, y: Any = None, *, sample_domain: Any = None, label_mask: Any = None
    ) -> Self:
        """Learn to reconstruct the rows of all domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of all domains, in memory.
        """
        fit_stacked([self], [X], [sample_domain], [label_mask])
        return self

    @documented_like(TargetLearner.transform)
    def transform(self, X: Any, *, sample_domain: Any = None, allow_source: bool = False) -> Any:
        """Represent rows by their codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Checked and without effect: rows of all domains are encoded alike.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        Z = self._encode(X)
        has_target = bool((self.domains_ < 0).any())
        check_new_domains(sample_domain, len(Z), has_target=has_target, domain_names={})
        return Z

    def inverse_transform(self, Z: Any) -> Any:
        """Reconstruct rows, in their own units, from codes.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Codes.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        Z = check_array(Z, dtype=(np.float64, np.float32), input_name="Z")
        if Z.shape[1] != len(self.components_):
            raise ValueError(f"Z has {Z.shape[1]} codes, and there are {len(self.components_)}.")
        X = _layer(Z, self.decoder_components_, self.decoder_intercept_, self._decoder_activation())
        if self.scaling is None:
            return X
        middle, width = self._range()
        return ((X - middle) / width * self.data_range_ + self.data_center_).astype(X.dtype)

    def reconstruct(self, X: Any) -> Any:
        """Reconstruct rows: what is left of them after encoding and decoding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, noisy or not.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        return self.inverse_transform(self._encode(X))

    def _check_and_scale(self, X: Any, sample_domain: Any, label_mask: Any) -> FloatArray:
        """Validate what ``fit`` got, store what is known of the rows, and scale them."""
        X = rows_in_memory(self, X, reset=True)
        self._check_parameters()
        domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
        self.data_center_, self.data_range_ = center_and_spread(X)
        self.domains_ = domains.domains
        return self._scale(X)

    def _store(self, trained: Trained) -> None:
        """Take over what training has learned."""
        self.components_ = trained.encoder[:, :-1].copy()
        self.intercept_ = trained.encoder[:, -1].copy()
        self.decoder_components_ = trained.decoder[:, :-1].copy()
        self.decoder_intercept_ = trained.decoder[:, -1].copy()
        self.loss_curve_ = trained.losses
        self.validation_curve_ = trained.validation_losses
        self.n_iter_ = len(trained.losses)
        self.kept_epoch_ = trained.kept_epoch
        self._n_features_out = len(trained.encoder)

    def _encode(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = rows_in_memory(self, X, reset=False)
        return _layer(self._scale(X), self.components_, self.intercept_, self.activation)

    def _decoder_activation(self) -> Squashing:
        return self.activation if self.decoder is None else self.decoder

    def _scale(self, X: FloatArray) -> FloatArray:
        if self.scaling is None:
            return X
        middle, width = self._range()
        return ((X - self.data_center_) / self.data_range_ * width + middle).astype(X.dtype)

    def _range(self) -> tuple[float, float]:
        decoder = self._decoder_activation()
        return RANGES[self.activation if decoder == "linear" else decoder]

    def _check_parameters(self) -> None:
        for name, options in OPTIONS.items():
            check_option(name, getattr(self, name), options)
        for name in ("tied", "early_stopping"):
            check_scalar(getattr(self, name), name, (bool, np.bool_))
        if self.n_components is not None:
            check_count("n_components", self.n_components, minimum=1)
        for name, minimum in (("batch_size", 1), ("max_epochs", 0), ("patience", 1)):
            check_count(name, getattr(self, name), minimum=minimum)
        check_scalar(self.verbose, "verbose", (bool, Integral), min_val=0)
        most = 1 if self.noise == "masking" else np.inf
        for name, high, boundaries in (
            ("noise_level", most, "left"),
            ("learning_rate", np.inf, "neither"),
            ("momentum", 1, "left"),
            ("validation_fraction", 1, "neither"),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or value != value:  # NaN is in no interval, unnoticed
                raise ValueError(f"{name} must be a number, got {value!r}.")
            check_scalar(value, name, Real, min_val=0, max_val=high, include_boundaries=boundaries)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _layer(X: FloatArray, weights: FloatArray, intercept: FloatArray, f: Squashing) -> FloatArray:
    """f(X W' + b) for samples as rows, in the precision of X."""
    H: FloatArray = X @ weights.T.astype(X.dtype, copy=False)
    H += intercept.astype(X.dtype, copy=False)
    return squash(H, f)


def stacking_key(estimator: Any, X: FloatArray) -> tuple[Any, ...]:
    """Key of auto-encoders that can be trained together."""
    return (X.shape, X.dtype, *(getattr(estimator, name) for name in SHARED))


def fit_stacked(
    estimators: Sequence[Any],
    rows: Sequence[Any],
    sample_domains: Sequence[Any] | None = None,
    label_masks: Sequence[Any] | None = None,
) -> None:
    """Fit each auto-encoder on its rows, all together; the same as fitting each alone.

    Parameters
    ----------
    estimators : sequence of DenoisingAutoencoder
        They share what `stacking_key` names; seeds, learning rates, noise levels, starts and
        scalings may differ.
    rows : sequence of array-like of shape (n_samples, n_features)
        Rows of each; the same array may stand here several times.
    sample_domains, label_masks : sequences, default=None
        As ``fit`` takes them, one for each; None: none for any.
    """
    nothing = [None] * len(estimators)
    given = (rows, sample_domains or nothing, label_masks or nothing)
    with ExitStack() as stack:
        for estimator in estimators:
            stack.enter_context(all_or_nothing(estimator))
        scaled = [
            estimator._check_and_scale(*arguments)
            for estimator, *arguments in zip(estimators, *given, strict=True)
        ]
        keys = {stacking_key(*pair) for pair in zip(estimators, scaled, strict=True)}
        if len(keys) > 1:
            raise ValueError(
                "Auto-encoders that are trained together need rows of one shape and precision and "
                f"one value each of {', '.join(SHARED)}; got {len(keys)} combinations."
            )
        with one_blas_thread():
            trained = train(estimators, [X.T for X in scaled])
        for estimator, result in zip(estimators, trained, strict=True):
            estimator._store(result)
    unfinished = [k for k, result in enumerate(trained) if _still_falls(result)]
    if unfinished:
        which = f" of {len(unfinished)} of {len(trained)} auto-encoders" if len(trained) > 1 else ""
        warnings.warn(
            f"The reconstruction error{which} was still falling after max_epochs="
            f"{estimators[0].max_epochs}. Raise max_epochs or learning_rate.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _still_falls(trained: Trained) -> bool:
    """Whether more epochs would have lowered the error of a training that ran to its end.

    With rows held out: whether it kept getting better, so that early stopping did not stop.
    Otherwise: whether the last tenth of the epochs is better than the tenth before by one per
    cent, and by more than the noise of both (three standard errors).
    """
    if trained.validation_losses is not None:
        return not trained.stopped and len(trained.losses) > 0
    window = len(trained.losses) // 10
    if window < 2:
        return False  # too few to tell
    before, last = trained.losses[-2 * window : -window], trained.losses[-window:]
    fall = before.mean() - last.mean()
    error = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / window)
    return bool(fall > 0.01 * last.mean() and fall > 3 * error)
