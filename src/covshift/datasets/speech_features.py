"""A sound -> 72 features of each whole second, as the paper's speech study has them.

12 MFCCs and their slopes in frames of 25 ms, one every 10 ms, and of each the mean, the standard
deviation and the range over the 98 frames that lie inside the second. Sounds are brought to 16 kHz
first, so that frames and bands are the same for all rates. 26 mel bands reach from 0 to 8 kHz; with
``bandwidth="narrow"`` to 3.8 kHz, which telephone rates hold as well.

Silence gives zeros: every band is at the floor, and a flat spectrum has no coefficient but the 0th.
"""

import importlib.util
import io
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from math import gcd
from typing import Any

import numpy as np
from scipy import sparse
from scipy.fft import dct, rfft

from covshift.base import check_option
from covshift.kernels.array_types import FloatArray, Rows

# --- Sound files -> one channel of samples; what cannot be used is named, not guessed at ---


AUDIO_SUFFIXES = (".flac", ".wav")
LOWEST_RATE = 8000  # rate of telephones; lower rates lose the speech

LARGEST_SAMPLE = 1e30  # times full scale; files of floats may hold any, and spectra are squared


class UnusableRecordingError(ValueError):
    """A recording cannot be used; the message says why in a few words."""


def require_soundfile() -> None:
    """Raise, before any work, if the package that reads sound files is missing."""
    try:
        import soundfile  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading sound files needs soundfile, which is not installed: "
            'pip install "covshift[speech]"'
        ) from error


def sampling_rate(contents: bytes) -> int:
    """Return the samples per second of a sound, before its features, as its head promises."""
    import soundfile  # an extra

    if not contents:
        raise UnusableRecordingError("the file is empty")
    try:
        rate = int(soundfile.info(io.BytesIO(contents)).samplerate)
    except soundfile.SoundFileError as error:
        raise UnusableRecordingError(f"not a readable sound file ({_cause(error)})") from error
    if rate < LOWEST_RATE:
        raise UnusableRecordingError(
            f"{rate} samples per second, and at least {LOWEST_RATE} are needed"
        )
    return rate


def decode(contents: bytes) -> tuple[FloatArray, int]:
    """Return samples (n,) of a WAV or FLAC file, full scale being one, and their rate per second.

    Channels are averaged. A WAV file that was cut off is read as far as it goes; a FLAC file
    says of every block whether it is whole, and is refused.

    Raises
    ------
    UnusableRecordingError
        If it is empty, not a sound file, damaged, or contains samples that are not finite.
    """
    import soundfile  # an extra

    sampling_rate(contents)
    try:
        channels, rate = soundfile.read(io.BytesIO(contents), dtype="float64", always_2d=True)
    except soundfile.SoundFileError as error:
        raise UnusableRecordingError(f"damaged or cut off ({_cause(error)})") from error
    except (MemoryError, ValueError) as error:  # FLAC files that were streamed have no length
        raise UnusableRecordingError(
            "its header does not state a valid length: convert it to WAV"
        ) from error
    if not (np.abs(channels) < LARGEST_SAMPLE).all():
        raise UnusableRecordingError(
            f"holds samples that are not numbers below {LARGEST_SAMPLE:.0e}"
        )
    return channels.mean(axis=1), rate


def _cause(error: Exception) -> str:
    """Return the reason that the decoder gives, without the memory address of what it read."""
    return str(getattr(error, "error_string", error)).rstrip(".")


SETTINGS_VERSION = 1  # raised with every change that moves a number: old caches are not read then

RATE = 16_000
FRAME, HOP, N_FFT = 400, 160, 512  # 25 ms, 10 ms, the next power of two
N_BANDS, N_COEFFICIENTS = 26, 12
HIGHEST_FREQUENCY = {"wide": 8000.0, "narrow": 3800.0}
PREEMPHASIS, LIFTER = 0.97, 22.0
SLOPE_REACH = 2
FLOOR = 2.0**-30  # HTK's floor of 1 for samples up to 2^15, where here they go up to 1

BACKENDS = ("scipy", "opensmile")
STATISTICS = ("mean", "std", "range")
FEATURE_NAMES = tuple(
    f"{domain}mfcc{j}_{statistic}"
    for domain in ("", "delta_")
    for j in range(1, N_COEFFICIENTS + 1)
    for statistic in STATISTICS
)


def _overlapping_frames(signal: FloatArray, size: int, hop: int) -> FloatArray:
    """Whole frames of a signal (n,), one every ``hop`` samples: (n_frames, size), a view."""
    frames: FloatArray = np.lib.stride_tricks.sliding_window_view(signal, size)[::hop]
    return frames


def mel_triangles(n_bands: int, n_fft: int, rate: float, lowest: float, highest: float) -> Rows:
    """T, sparse (n_bands, n_fft // 2 + 1): at most two bands share a frequency."""
    mels = _mel(np.fft.rfftfreq(n_fft, 1 / rate))
    first, last = _mel(np.array([lowest, highest]))
    step = (last - first) / (n_bands + 1)
    centers = first + step * np.arange(1, n_bands + 1)
    return sparse.csr_array(np.maximum(0, 1 - np.abs(mels - centers[:, None]) / step))


def mfccs(
    frames: FloatArray,
    triangles: Rows,
    n_coefficients: int,
    *,
    preemphasis: float,
    lifter: float,
    floor: float,
) -> FloatArray:
    r"""Return the cepstral features c_1 to c_n of frames (t, K) of a sound: (t, n_coefficients).

    A frame :math:`x_0, \dots, x_{K-1}` is pre-emphasized, windowed and turned into a power
    spectrum,

    .. math:: y_k = x_k - a\,x_{k-1}\ (x_{-1} = x_0), \qquad
              P_f = \Bigl\lvert \sum_k h_k\,y_k\,e^{-2\pi i f k / N} \Bigr\rvert^2, \qquad
              h_k = 0.54 - 0.46 \cos \tfrac{2\pi k}{K - 1},

    summed over triangles that are B equal steps wide on the mel scale,
    :math:`m(f) = 1127 \ln(1 + f / 700)`, and the logarithms of the bands are turned by a cosine
    transform,

    .. math:: E_b = \ln \max\Bigl(\text{floor}, \sum_f T_{bf} P_f\Bigr), \qquad
              c_j = \sqrt{\tfrac{2}{B}} \Bigl(1 + \tfrac{Q}{2} \sin \tfrac{\pi j}{Q}\Bigr)
                    \sum_{b=1}^{B} E_b \cos \tfrac{\pi j (b - \frac12)}{B}.

    A gain adds a constant to all :math:`E_b`, which only :math:`c_0` sees. No step calls BLAS,
    whose last bits depend on the number of its threads.

    References
    ----------
    S. Davis, P. Mermelstein, "Comparison of parametric representations for monosyllabic word
    recognition in continuously spoken sentences", IEEE TASSP 28, 1980. The constants and the shape
    of the triangles are those of HTK (S. Young et al., "The HTK book", section 5), as in openSMILE.
    """
    n_bands, n_fft = triangles.shape[0], 2 * (triangles.shape[1] - 1)
    emphasized = frames - preemphasis * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    spectrum = rfft(emphasized * np.hamming(frames.shape[1]), n_fft, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.log(np.maximum(floor, (triangles @ power.T).T))
    j = np.arange(1, n_coefficients + 1)
    # SciPy's sum has a factor of two in front; sqrt(2 / B) / 2 is left.
    scale = np.sqrt(1 / (2 * n_bands)) * (1 + lifter / 2 * np.sin(np.pi * j / lifter))
    coefficients: FloatArray = dct(bands, axis=1)[:, 1 : n_coefficients + 1] * scale
    return coefficients


def slopes(values: FloatArray, reach: int) -> FloatArray:
    r"""Change d_t of each feature column of values (t, n), over ``reach`` neighbors on each side.

    The slope of the line through a value and its neighbors, the first and last repeated at the
    ends:

    .. math:: d_t = \frac{\sum_{k=1}^{r} k\,(c_{t+k} - c_{t-k})}{2 \sum_{k=1}^{r} k^2}.
    """
    n = len(values)
    padded = np.pad(values, ((reach, reach), (0, 0)), mode="edge")
    rises: FloatArray = np.zeros_like(values)
    for k in range(1, reach + 1):
        rises += k * (padded[reach + k : reach + k + n] - padded[reach - k : reach - k + n])
    return rises / (2 * sum(k**2 for k in range(1, reach + 1)))


def _mel(frequency: FloatArray) -> FloatArray:
    mels: FloatArray = 1127 * np.log1p(frequency / 700)
    return mels


def check_backend(backend: Any, bandwidth: Any) -> None:
    """Raise unless the speech features can be computed here as asked for."""
    check_option("backend", backend, BACKENDS)
    check_option("bandwidth", bandwidth, HIGHEST_FREQUENCY)
    if backend == "scipy":
        return
    if bandwidth != "wide":
        raise ValueError(
            'openSMILE\'s bands reach to 8 kHz: bandwidth="narrow" needs backend="scipy".'
        )
    if importlib.util.find_spec("opensmile") is None:
        raise ImportError(
            'backend="opensmile" needs opensmile, which is not installed: '
            'pip install "covshift[speech-opensmile]". Its license allows research and private '
            'use, not commercial use; backend="scipy" needs nothing more.'
        )


def describe_settings(backend: str, bandwidth: str) -> str:
    """Return everything that the speech features depend on besides the sound, as text."""
    packages = ["numpy", "scipy", "soundfile"] + ["opensmile"] * (backend == "opensmile")
    versions = [f"{package} {version(package)}" for package in packages]
    return ", ".join([f"speech features {SETTINGS_VERSION}", backend, bandwidth, *versions])


def segment_features(
    signal: FloatArray, rate: int, *, backend: str = "scipy", bandwidth: str = "wide"
) -> FloatArray:
    """Compute the features of each whole second of a sound.

    Parameters
    ----------
    signal : ndarray of shape (n,)
        Samples of one channel, full scale being one.
    rate : int
        Samples per second.
    backend : {"scipy", "opensmile"}, default="scipy"
        See `covshift.datasets.load_speech_corpus`.
    bandwidth : {"wide", "narrow"}, default="wide"
        Mel bands up to 8 kHz or up to 3.8 kHz.

    Returns
    -------
    ndarray of shape (n // rate, 72)
        Columns in the order of ``FEATURE_NAMES``; the rest of the last second is dropped.
    """
    n_segments = len(signal) // rate
    segments = _resampled(signal, rate)[: n_segments * RATE].reshape(n_segments, RATE)
    describe = _opensmile_features if backend == "opensmile" else _mfcc_features(bandwidth)
    rows = [describe(segment) for segment in segments]
    return np.array(rows, dtype=np.float64).reshape(n_segments, len(FEATURE_NAMES))


def _resampled(signal: FloatArray, rate: int) -> FloatArray:
    if rate == RATE:
        return signal
    from scipy.signal import resample_poly  # a tenth of a second, which most imports can spare

    common = gcd(rate, RATE)
    resampled: FloatArray = resample_poly(signal, RATE // common, rate // common)
    return resampled


def _mfcc_features(bandwidth: str) -> Callable[[FloatArray], FloatArray]:
    triangles = _triangles(bandwidth)

    def describe(segment: FloatArray) -> FloatArray:
        raw = mfccs(
            _overlapping_frames(segment, FRAME, HOP),
            triangles,
            N_COEFFICIENTS,
            preemphasis=PREEMPHASIS,
            lifter=LIFTER,
            floor=FLOOR,
        )
        both = np.concatenate([raw, slopes(raw, SLOPE_REACH)], axis=1)
        statistics = [both.mean(axis=0), both.std(axis=0), np.ptp(both, axis=0)]
        return np.stack(statistics, axis=1).ravel()

    return describe


@lru_cache
def _triangles(bandwidth: str) -> Rows:
    return mel_triangles(N_BANDS, N_FFT, RATE, 0.0, HIGHEST_FREQUENCY[bandwidth])


def _opensmile_features(segment: FloatArray) -> FloatArray:
    table = _opensmile_extractor().process_signal(segment, RATE)
    return table[list(_opensmile_names())].to_numpy(dtype=np.float64)[0]


@lru_cache
def _opensmile_extractor() -> Any:
    """Return the ``emobase`` set, which has just these statistics of 12 MFCCs and their slopes."""
    import opensmile  # an extra, free for research only

    return opensmile.Smile(
        feature_set=opensmile.FeatureSet.emobase,
        feature_level=opensmile.FeatureLevel.Functionals,
    )


def _opensmile_names() -> tuple[str, ...]:
    theirs = {"mean": "amean", "std": "stddev", "range": "range"}
    return tuple(
        f"mfcc_sma{domain}[{j}]_{theirs[statistic]}"
        for domain in ("", "_de")
        for j in range(1, N_COEFFICIENTS + 1)
        for statistic in STATISTICS
    )
