"""A sound -> 72 features of each whole second, as the paper's speech study has them.

12 MFCCs and their slopes in frames of 25 ms, one every 10 ms, and of each the mean, the standard
deviation and the range over the 98 frames that lie inside the second. Sounds are brought to 16 kHz
first, so that frames and bands are the same for all rates. 26 mel bands reach from 0 to 8 kHz; with
``bandwidth="narrow"`` to 3.8 kHz, which telephone rates hold as well.

Silence gives zeros: every band is at the floor, and a flat spectrum has no coefficient but the 0th.
"""

import importlib.util
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from math import gcd
from typing import Any

import numpy as np

from covshift.base import check_option
from covshift.kernels.arrays import FloatArray, Rows
from covshift.kernels.mfcc import mel_triangles, mfccs, overlapping_frames, slopes

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


def check_backend(backend: Any, bandwidth: Any) -> None:
    """Raise unless the features can be computed here as asked for."""
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
            'pip install "covshift[speech-opensmile]". Its licence allows research and private '
            'use, not commercial use; backend="scipy" needs nothing more.'
        )


def describe_settings(backend: str, bandwidth: str) -> str:
    """Return everything that the numbers depend on besides the sound, as text."""
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
        Columns in the order of ``FEATURE_NAMES``; what is left of the last second is dropped.
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
            overlapping_frames(segment, FRAME, HOP),
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
