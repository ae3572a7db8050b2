"""Amplitude spectra of windows, and of their envelopes."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from covshift.base import all_or_nothing, check_count, check_number
from covshift.kernels.array_types import FloatArray
from covshift.row_checks import check_rows_of, validate_rows
from covshift.shared_docs import documented_like
from covshift.streams import is_streamed, map_rows

# --- Parts shared by transformers of windows: channels, checks, blocks and names ---


# Samples that are worked on at a time: temporary arrays are a few times as large.
BLOCK_SAMPLES = 2**21


class WindowTransformer(TransformerMixin, BaseEstimator):
    """Base: each window is transformed by itself, channel by channel, and nothing is learned.

    A subclass has ``n_channels``, ``_check_parameters``, ``_of_channels`` and ``_names``.
    """

    n_channels: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the windows; nothing is learned from them.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows, as `cut_windows` makes them.
        y : None
            Never read.

        Returns
        -------
        self : object
        """
        with all_or_nothing(self):
            check_count("n_channels", self.n_channels, minimum=1)
            if is_streamed(X):
                check_rows_of(X)
                X = np.zeros((min(X.shape[0], 1), X.shape[1]))  # checked where they are read
            X = validate_rows(self, X, dtype=(np.float64, np.float32))
            self.window_length_ = _channel_length(X.shape[1], self.n_channels)
            self._check_parameters()
        return self

    def transform(self, X: Any) -> Any:
        """Transform each window by itself.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_windows, n_channels * length)
            Windows.

        Returns
        -------
        ndarray of shape (n_windows, n_channels * n_outputs)
            A Dask array that is yet to be computed, if X is one.
        """
        check_is_fitted(self)
        if is_streamed(X):
            return map_rows(self, "transform", X)
        X = validate_rows(self, X, reset=False, dtype=(np.float64, np.float32))
        return self._in_blocks(X, self._of_channels)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return names of the outputs, such as "30 Hz".

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = self._names()
        if self.n_channels > 1:
            names = [f"channel {c}, {name}" for c in range(self.n_channels) for name in names]
        return np.array(names, dtype=object)

    def _in_blocks(self, X: FloatArray, function: Any, *per_window: Any) -> FloatArray:
        """Call a function of windows by channels by samples on a few windows at a time."""
        step = max(1, BLOCK_SAMPLES // X.shape[1])
        parts = []
        for first in range(0, len(X), step):
            cut = slice(first, first + step)
            block = X[cut].reshape(-1, self.n_channels, self.window_length_)
            found = function(block, *(values[cut] for values in per_window))
            parts.append(found.reshape(len(block), -1).astype(X.dtype, copy=False))
        return np.concatenate(parts)

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _of_channels(self, X: FloatArray) -> FloatArray:
        """Transform windows (n, channels, samples)."""
        raise NotImplementedError

    def _names(self) -> list[str]:
        """Return the names of the outputs of one channel."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "window_length_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _channel_length(n_features: int, n_channels: int) -> int:
    """Return the samples of each channel of a window, or say that they do not add up."""
    if n_features % n_channels:
        raise ValueError(
            f"X has {n_features} columns, which cannot be {n_channels} channels of equal length: "
            "check n_channels."
        )
    return n_features // n_channels


def check_rate(rate: Any) -> None:
    """Raise unless the sampling rate of a spectrum is a positive number."""
    check_number("rate", rate, minimum=0, closed="neither")


def _amplitude_spectrum(X: FloatArray) -> FloatArray:
    r"""Return the amplitudes of the last axis, (..., N) to (..., N // 2), without the mean.

    .. math::

        a_k = \frac{2}{N} \Bigl| \sum_t x_t e^{-2 \pi i k t / N} \Bigr|, \qquad k = 1, \dots,
        \lfloor N / 2 \rfloor

    A sine of amplitude A and a whole number of periods has :math:`a_k = A`.
    """
    found: FloatArray = np.abs(np.fft.rfft(X, axis=-1)[..., 1:])
    found *= 2.0 / X.shape[-1]
    return found


def prewhiten(coefficients: Any) -> Any:
    r"""Give all Fourier coefficients of a window's spectrum a modulus of one; zeros stay zero."""
    modulus = np.abs(coefficients)
    modulus[modulus == 0] = 1
    return coefficients / modulus


def envelope(X: FloatArray, first: int, last: int, *, whiten: bool = False) -> FloatArray:
    r"""Return the envelope of the last axis within a band: the modulus of the analytic signal.

    The analytic signal has the positive frequencies only, twice. Of the multiples k / N of the
    lowest one, those with ``first`` <= k <= ``last`` are kept; first is at least 1.
    """
    N = X.shape[-1]
    spectrum = np.fft.rfft(X, axis=-1)[..., first : last + 1]
    if whiten:  # as much power in K frequencies as one per sample
        n_coefficients = 2 * (last + 1 - first) - (2 * last == N)  # negative frequencies as well
        spectrum = prewhiten(spectrum) * (N / np.sqrt(n_coefficients))
    analytic = np.zeros(X.shape, spectrum.dtype)
    analytic[..., first : last + 1] = 2 * spectrum
    if 2 * last == N:
        analytic[..., last] /= 2  # Nyquist's frequency is its own negative
    found: FloatArray = np.abs(np.fft.ifft(analytic, axis=-1))
    return found


class Spectrum(WindowTransformer):
    r"""Amplitude spectrum of each window.

    .. math::

        a_k = \frac{2}{N} \Bigl| \sum_t x_t e^{-2 \pi i k t / N} \Bigr|, \qquad k = 1, \dots,
        \lfloor N / 2 \rfloor

    Amplitudes do not depend on where in a vibration the window starts. The mean (k = 0) is left
    out.

    Parameters
    ----------
    rate : float, default=None
        Samples per second, for the names of the outputs ("30 Hz"). None: they are named by k
        ("bin 3").
    n_channels : int, default=1
        Channels of a window, one after the other in a row.

    Attributes
    ----------
    window_length_ : int
        N, the samples of a channel.

    Notes
    -----
    **Cost**: O(N log N) for each window and channel; memory for a few million samples beside the
    result. Memory maps and Dask arrays are transformed in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.signals import Spectrum
    >>> window = 3 * np.sin(2 * np.pi * 50 * np.arange(100) / 1000)
    >>> spectrum = Spectrum(rate=1000).fit([window])
    >>> amplitudes = spectrum.transform([window])[0]
    >>> spectrum.get_feature_names_out()[amplitudes.argmax()], amplitudes.max().round(6).item()
    ('50 Hz', 3.0)
    """

    def __init__(self, rate=None, *, n_channels=1):
        self.rate = rate
        self.n_channels = n_channels

    def _check_parameters(self) -> None:
        if self.rate is not None:
            check_rate(self.rate)
        _check_long_enough(self.window_length_)

    def _of_channels(self, X: FloatArray) -> FloatArray:
        return _amplitude_spectrum(X)

    def _names(self) -> list[str]:
        return _bin_names(self.window_length_, self.rate)


@documented_like(Spectrum)
class EnvelopeSpectrum(WindowTransformer):
    r"""Amplitude spectrum of the envelope of each window.

    .. math::

        e_t = |x_t + i \, \mathcal{H}(x)_t|, \qquad
        a_k = \frac{2}{N} \Bigl| \sum_t e_t e^{-2 \pi i k t / N} \Bigr|

    with :math:`\mathcal{H}` the Hilbert transform, after an optional band-pass filter. A damaged
    bearing rings at a high resonance each time that a rolling element passes the damage: the
    envelope of that band repeats at the rate of the passes, which the spectrum of the signal
    itself does not show.

    Parameters
    ----------
    rate : float, default=None
        Samples per second: the unit of ``band``, and of the names of the outputs. None: names are
        numbers of bins, and ``band`` is in periods per sample.
    band : (float, float), default=None
        Lowest and highest frequency that is kept before the envelope. None: all.
    prewhiten : bool, default=False
        Whether all frequencies of the band get the same amplitude before the envelope, and the
        window a power of one. Gain, resonances and the path to the sensor then have no effect: what
        is left is which frequencies rise and fall together. Hums no longer dominate either.

    Attributes
    ----------
    window_length_
        As in `Spectrum`.

    Notes
    -----
    The filter is ideal: frequencies outside of the band are set to zero.

    **Cost**: as `Spectrum`, about four times the time.

    References
    ----------
    R. B. Randall, J. Antoni, "Rolling element bearing diagnostics: a tutorial", Mechanical Systems
    and Signal Processing 25 (2), 2011.
    P. Borghesani, P. Pennacchi, R. B. Randall, N. Sawalhi, R. Ricci, "Application of cepstrum
    pre-whitening for the diagnosis of bearing faults under variable speed conditions", Mechanical
    Systems and Signal Processing 36 (2), 2013: ``prewhiten``.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.signals import EnvelopeSpectrum
    >>> t = np.arange(1000) / 10_000
    >>> window = (1 + 0.5 * np.sin(2 * np.pi * 80 * t)) * np.sin(2 * np.pi * 3000 * t)
    >>> spectrum = EnvelopeSpectrum(rate=10_000, band=(2000, 4000)).fit([window])
    >>> amplitudes = spectrum.transform([window])[0]
    >>> spectrum.get_feature_names_out()[amplitudes.argmax()], amplitudes.max().round(6).item()
    ('80 Hz', 0.5)
    """

    def __init__(self, rate=None, *, band=None, prewhiten=False, n_channels=1):
        self.rate = rate
        self.band = band
        self.prewhiten = prewhiten
        self.n_channels = n_channels

    def _check_parameters(self) -> None:
        if self.rate is not None:
            check_rate(self.rate)
        _check_long_enough(self.window_length_)
        first, last = self._bins()
        if first > last:
            lowest = (self.rate or 1.0) / self.window_length_
            unit = "periods per sample" if self.rate is None else "Hz"
            raise ValueError(
                f"band={self.band!r} holds none of the frequencies of a window of "
                f"{self.window_length_} samples, which are multiples of {lowest:g} up to "
                f"{lowest * (self.window_length_ // 2):g} {unit}."
            )

    def _bins(self) -> tuple[int, int]:
        """Return the first and last multiple of the lowest frequency in the band."""
        highest = self.window_length_ // 2
        if self.band is None:
            return 1, highest
        try:
            low, high = map(float, self.band)
        except (TypeError, ValueError):
            low = high = np.nan
        if not 0 <= low < high:
            raise ValueError(
                f"band must hold two frequencies, the lower one first, got {self.band!r}."
            )
        bins = self.window_length_ / (self.rate or 1.0)
        # Frequencies are rarely exact in binary: one at the edge of the band belongs to it.
        first, last = np.ceil(low * bins - 1e-9), np.floor(min(high * bins, highest) + 1e-9)
        return max(1, int(first)), int(last)

    def _of_channels(self, X: FloatArray) -> FloatArray:
        return _amplitude_spectrum(envelope(X, *self._bins(), whiten=self.prewhiten))

    def _names(self) -> list[str]:
        return _bin_names(self.window_length_, self.rate)


def _bin_names(length: int, rate: float | None) -> list[str]:
    """Return the names of the frequencies of a window's spectrum, the mean left out."""
    bins = np.arange(1, length // 2 + 1)
    if rate is None:
        return [f"bin {k}" for k in bins]
    return [f"{frequency:.6g} Hz" for frequency in bins * (rate / length)]


def _check_long_enough(length: int) -> None:
    """Raise for a window without a frequency other than zero."""
    if length < 2:
        raise ValueError(
            f"A window of {length} sample(s) has no spectrum: X has too few columns for n_channels."
        )
