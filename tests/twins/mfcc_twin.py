"""Mel-frequency cepstral coefficients loop by loop, from the formulas."""

import cmath
import functools
import math


def mel(frequency):
    return 1127 * math.log(1 + frequency / 700)


@functools.cache
def triangle(b, f, n_bands, n_fft, rate, lowest, highest):
    """Weight of frequency number f in band b = 1, ..., n_bands."""
    step = (mel(highest) - mel(lowest)) / (n_bands + 1)
    center = mel(lowest) + b * step
    return max(0.0, 1 - abs(mel(f * rate / n_fft) - center) / step)


def power_spectrum(frame, n_fft, preemphasis):
    """|sum_k h_k y_k exp(-2 pi i f k / n_fft)|^2 for f = 0, ..., n_fft / 2."""
    size = len(frame)
    windowed = []
    for k in range(size):
        before = frame[k - 1] if k else frame[0]
        h = 0.54 - 0.46 * math.cos(2 * math.pi * k / (size - 1))
        windowed.append(h * (frame[k] - preemphasis * before))
    turns = [cmath.exp(-2j * math.pi * k / n_fft) for k in range(n_fft)]
    powers = []
    for f in range(n_fft // 2 + 1):
        total = 0
        for k, value in enumerate(windowed):
            total += value * turns[f * k % n_fft]
        powers.append(abs(total) ** 2)
    return powers


def mfcc(frame, n_coefficients, *, n_bands, n_fft, rate, lowest, highest, preemphasis, lifter,
         floor):  # fmt: skip
    """c_1, ..., c_n of one frame."""
    powers = power_spectrum(frame, n_fft, preemphasis)
    logs = []
    for b in range(1, n_bands + 1):
        band = 0.0
        for f, power in enumerate(powers):
            band += triangle(b, f, n_bands, n_fft, rate, lowest, highest) * power
        logs.append(math.log(max(floor, band)))
    coefficients = []
    for j in range(1, n_coefficients + 1):
        total = 0.0
        for b, log in enumerate(logs, start=1):
            total += log * math.cos(math.pi * j * (b - 0.5) / n_bands)
        lift = 1 + lifter / 2 * math.sin(math.pi * j / lifter)
        coefficients.append(math.sqrt(2 / n_bands) * lift * total)
    return coefficients


def slope(values, t, reach):
    """Slope of the least-squares line through values[t - reach], ..., values[t + reach].

    Fitted as such: the formula of the kernel is its solution. Places outside repeat the end.
    """
    window = [values[min(max(t + k, 0), len(values) - 1)] for k in range(-reach, reach + 1)]
    mean = sum(window) / len(window)
    up = sum(k * (value - mean) for k, value in zip(range(-reach, reach + 1), window, strict=True))
    return up / sum(k * k for k in range(-reach, reach + 1))


def features(segment, *, frame, hop, reach, n_coefficients, **settings):
    """Mean, standard deviation and range of each coefficient, then of each slope."""
    starts = range(0, len(segment) - frame + 1, hop)
    rows = [mfcc(segment[s : s + frame], n_coefficients, **settings) for s in starts]
    raw = [[row[j] for row in rows] for j in range(n_coefficients)]
    changes = [[slope(values, t, reach) for t in range(len(values))] for values in raw]
    found = []
    for values in raw + changes:
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        found += [mean, math.sqrt(variance), max(values) - min(values)]
    return found
