"""Slow and obvious versions of what `covshift.signals` computes."""

import cmath
import math

import numpy as np
from scipy.signal import hilbert


def naive_windows(recordings, length, step):
    """Rows, recordings and starts, one window at a time."""
    rows, numbers, starts = [], [], []
    for number, recording in enumerate(recordings):
        recording = np.asarray(recording)
        channels = [recording] if recording.ndim == 1 else list(recording.T)
        start = 0
        while start + length <= len(recording):
            rows.append(np.concatenate([one[start : start + length] for one in channels]))
            numbers.append(number)
            starts.append(start)
            start += step
    return np.array(rows), numbers, starts


def naive_spectrum(x):
    """Amplitudes by the sum of the definition."""
    N = len(x)
    return np.array(
        [
            2 / N * abs(sum(x[t] * cmath.exp(-2j * cmath.pi * k * t / N) for t in range(N)))
            for k in range(1, N // 2 + 1)
        ]
    )


def naive_envelope_spectrum(x, low=0.0, high=np.inf, rate=1.0):
    """SciPy's Hilbert transform of a signal rebuilt from the sines of the band."""
    N = len(x)
    coefficients = np.fft.rfft(x - np.mean(x))
    for k in range(len(coefficients)):
        if not low * N <= k * rate <= high * N:  # whole numbers, without rounding
            coefficients[k] = 0
    return naive_spectrum(np.abs(hilbert(np.fft.irfft(coefficients, N))))


def naive_prewhitened(x):
    """The window that has the phases of x, equal amplitudes, no mean and a power of one."""
    N = len(x)
    found = np.zeros(N)
    for k in range(1, N // 2 + 1):
        c = sum(x[t] * cmath.exp(-2j * cmath.pi * k * t / N) for t in range(N))
        sides = 1 if 2 * k == N else 2  # Nyquist's frequency is its own negative
        found += [sides * math.cos(2 * math.pi * k * t / N + cmath.phase(c)) for t in range(N)]
    return found / math.sqrt(np.mean(found**2))
