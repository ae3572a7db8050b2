"""Order tracking: windows resampled to equal angles of the shaft."""

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from sklearn.utils.validation import check_is_fitted

from covshift.base import check_count, check_number
from covshift.kernels.array_types import FloatArray
from covshift.row_checks import refuse_dask, validate_rows
from covshift.signals.spectra import WindowTransformer, check_rate


def _turns_at_samples(rpm: FloatArray, rate: float, length: int) -> FloatArray:
    r"""Turns of the shaft since the first sample, (n, length), of speeds (n,) or (n, length).

    .. math::

        \theta_0 = 0, \qquad
        \theta_t = \theta_{t-1} + \frac{v_{t-1} + v_t}{2 \cdot 60 \cdot \text{rate}}
    """
    if rpm.ndim == 1:
        return rpm[:, None] / (60.0 * rate) * np.arange(length)
    turns = np.zeros(rpm.shape)
    np.cumsum((rpm[:, 1:] + rpm[:, :-1]) / (120.0 * rate), axis=1, out=turns[:, 1:])
    return turns


def _interpolate_rows(X: FloatArray, positions: FloatArray) -> FloatArray:
    """Return values of X (n, channels, N) at positions (n, P) between samples, by cubic splines."""
    N = X.shape[-1]
    spline = CubicSpline(np.arange(N), X, axis=-1)  # c: (4, N - 1, n, channels)
    which = np.clip(positions.astype(np.int64), 0, N - 2)
    within = (positions - which)[..., None]
    rows = np.arange(len(X))[:, None]
    found = spline.c[0, which, rows]
    for power in range(1, 4):
        found = found * within + spline.c[power, which, rows]
    return np.moveaxis(found, -1, 1)


class OrderTracking(WindowTransformer):
    r"""Resample windows from equal times to equal angles of the shaft, by a given speed.

    .. math::

        z_j = x\bigl(t(\theta_j)\bigr), \qquad \theta_j = j / \text{samples\_per\_turn}, \qquad
        \theta(t) = \int_0^t v(s) / 60 \; ds

    with x between samples by a cubic spline and v the speed in revolutions per minute. Events that
    repeat with the shaft then repeat after the same number of values at any speed: in spectra of
    the result, frequencies are orders, multiples of the speed.

    Parameters
    ----------
    rate : float
        Samples per second.
    rpm : float, default=None
        Speed of all windows, where ``transform`` gets none.
    samples_per_turn : int, default=256
        Values for each turn of the shaft. With fewer than ``60 * rate / rpm``, vibrations above
        ``samples_per_turn / 2`` orders are folded onto lower ones: filter them out before.
    n_turns : int, default=1
        Turns that are kept, from the start of a window. Each window must hold them at its speed.
    n_channels : int, default=1
        Channels of a window, one after the other in a row.

    Attributes
    ----------
    window_length_ : int
        Samples of a channel.

    Notes
    -----
    **Cost**: linear in the samples and values of all windows; memory for a few million samples
    beside the result.

    References
    ----------
    K. R. Fyfe, E. D. S. Munck, "Analysis of computed order tracking", Mechanical Systems and
    Signal Processing 11 (2), 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.signals import OrderTracking
    >>> rpm, t = np.array([600.0, 900.0]), np.arange(400) / 2000
    >>> windows = np.sin(2 * np.pi * 3 * rpm[:, None] / 60 * t)  # three times a turn
    >>> tracking = OrderTracking(rate=2000, samples_per_turn=12, n_turns=1).fit(windows)
    >>> (2 * tracking.transform(windows, rpm=rpm)[:, :6]).round().astype(int).tolist()
    [[0, 2, 0, -2, 0, 2], [0, 2, 0, -2, 0, 2]]
    """

    __metadata_request__transform = {"rpm": True}

    def __init__(self, rate, *, rpm=None, samples_per_turn=256, n_turns=1, n_channels=1):
        self.rate = rate
        self.rpm = rpm
        self.samples_per_turn = samples_per_turn
        self.n_turns = n_turns
        self.n_channels = n_channels

    def fit_transform(self, X: Any, y: Any = None, *, rpm: Any = None) -> Any:
        """Check the windows, then transform them.

        Parameters
        ----------
        X, y
            As in ``fit``.
        rpm
            As in ``transform``.

        Returns
        -------
        ndarray of shape (n_windows, n_channels * n_turns * samples_per_turn)
        """
        return self.fit(X, y).transform(X, rpm=rpm)

    def transform(self, X: Any, *, rpm: Any = None) -> Any:
        """Resample each window by its speed.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_channels * length)
            Windows.
        rpm : float, or array-like of shape (n_windows,) or (n_windows, length), default=None
            Revolutions per minute: of all windows, of each, or at each sample. None: the parameter
            ``rpm``.

        Returns
        -------
        ndarray of shape (n_windows, n_channels * n_turns * samples_per_turn)
        """
        check_is_fitted(self)
        if rpm is None and self.rpm is None:
            raise ValueError(
                "OrderTracking needs the speed of the shaft: transform(X, rpm=...), or the "
                "parameter rpm for one speed of all windows."
            )
        refuse_dask(self, X)
        X = validate_rows(self, X, reset=False, dtype=(np.float64, np.float32))
        speeds = self._check_speeds(self.rpm if rpm is None else rpm, len(X))
        return self._in_blocks(X, self._resample, speeds, np.arange(len(X)))

    def _resample(self, X: FloatArray, rpm: FloatArray, numbers: Any) -> FloatArray:
        turns = _turns_at_samples(rpm, self.rate, self.window_length_)
        short = turns[:, -1] < self.n_turns - 1 / self.samples_per_turn
        if short.any():
            first = int(np.flatnonzero(short)[0])
            raise ValueError(
                f"Window {numbers[first]} holds {turns[first, -1]:.2f} turns of the shaft, and "
                f"n_turns={self.n_turns}: cut longer windows, or keep fewer turns."
            )
        wanted = np.arange(self.n_turns * self.samples_per_turn) / self.samples_per_turn
        at = np.arange(self.window_length_)
        positions = np.stack([np.interp(wanted, own, at) for own in turns])
        return _interpolate_rows(X, positions)

    def _check_speeds(self, rpm: Any, n_windows: int) -> FloatArray:
        speeds = np.asarray(rpm, dtype=np.float64)
        if speeds.ndim == 0:
            speeds = np.full(n_windows, float(speeds))
        if speeds.shape not in ((n_windows,), (n_windows, self.window_length_)):
            raise ValueError(
                f"rpm has shape {speeds.shape}: expected a number, one for each of {n_windows} "
                f"windows, or one for each of {self.window_length_} samples of each window."
            )
        if not (np.isfinite(speeds) & (speeds > 0)).all():
            raise ValueError("rpm must hold positive speeds, in revolutions per minute.")
        return speeds

    def _check_parameters(self) -> None:
        check_rate(self.rate)
        if self.rpm is not None:
            check_number("rpm", self.rpm, minimum=0, closed="neither")
        check_count("samples_per_turn", self.samples_per_turn, minimum=1)
        check_count("n_turns", self.n_turns, minimum=1)
        if self.window_length_ < 2:
            raise ValueError("A window of 1 sample cannot be resampled.")

    def _names(self) -> list[str]:
        count = self.n_turns * self.samples_per_turn
        return [f"{j / self.samples_per_turn:.6g} turns" for j in range(count)]
