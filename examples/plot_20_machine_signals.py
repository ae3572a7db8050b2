"""
Bearing faults at another load
==============================

Vibration of a machine was recorded at one load with known faults, and must be diagnosed at
another load, without labels. The recordings are made up here: a damaged
bearing rings each time that a rolling element passes the damage, and which part is damaged shows
in the resonance and in how often it rings. At the other load the gain of the sensor path is
larger, the machine turns more slowly, and a neighbor hums.
"""

import tempfile
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from covshift import (
    AdaptedClassifier,
    DomainQuantileTransformer,
    DomainStandardScaler,
    SegmentSparseFiltering,
    SourceStandardScaler,
    load,
    save,
    stack_domains,
)
from covshift.signals import EnvelopeSpectrum, Spectrum, check_recordings_apart, cut_windows

RATE = 12_000
FAULTS = {
    "healthy": None,
    "ball": (1500, 2.4),
    "inner race": (2700, 5.4),
    "outer race": (3400, 3.6),
}
rng = np.random.default_rng(0)


def record(fault, rpm, gain, hum, seconds=3):
    """One recording: impacts that ring at a resonance, the shaft, a hum, and noise."""
    t = np.arange(seconds * RATE) / RATE
    x = 0.5 * np.sin(2 * np.pi * rpm / 60 * t) + hum * np.sin(2 * np.pi * 1100 * t)
    if FAULTS[fault] is not None:
        resonance, per_turn = FAULTS[fault]
        since = t % (60 / (rpm * per_turn))
        x += np.exp(-700 * since) * np.sin(2 * np.pi * resonance * since)
    return gain * (x + rng.normal(0, 0.3, len(t)))


loads = {"light": (1797, 1.0, 0.0), "heavy": (1720, 2.5, 0.6)}
labels = np.array(list(FAULTS) * len(loads))
domains = np.repeat(list(loads), len(FAULTS))
recordings = [record(label, *loads[domain]) for label, domain in zip(labels, domains, strict=True)]

# %%
# Windows carry the number of their recording. Labels and domains are given per recording, so
# that no recording is on both sides.

windows = cut_windows(recordings, length=1200)
y, domain = labels[windows.recording], domains[windows.recording]
check_recordings_apart(windows.recording, domain)
source, target = domain == "light", domain == "heavy"
X, y_all, sample_domain = stack_domains(windows.X[source], y[source], windows.X[target])
print(f"{source.sum()} windows of the light load, {target.sum()} of the heavy one")

# %%
# The spectrum of a window shows the resonance, its envelope how often it rings.

one = windows.X[(y == "inner race") & source][:1]
figure, axes = plt.subplots(1, 3, figsize=(10, 2.6), layout="constrained")
axes[0].plot(np.arange(1200) / RATE * 1000, one[0], lw=0.6)
axes[0].set(xlabel="ms", title="window, inner race fault")
for ax, transformer, limit in (
    (axes[1], Spectrum(RATE), 6000),
    (axes[2], EnvelopeSpectrum(RATE, band=(2000, 4000)), 600),
):
    amplitudes = transformer.fit_transform(one)[0]
    frequencies = np.arange(1, len(amplitudes) + 1) * RATE / 1200
    ax.plot(frequencies[frequencies <= limit], amplitudes[frequencies <= limit], lw=0.8)
    ax.set(xlabel="Hz", title=type(transformer).__name__)
plt.show()

# %%
# Three ways over the shift, with the same model: spectra in units of the source, spectra as ranks
# within each load, and filters that are learned from short segments of the raw signal. Loud
# segments count for more here (``normalize=False``): between impacts there is only noise.

filters = SegmentSparseFiltering(
    30, segment_length=60, n_segments=4000, normalize=False, max_iter=60, random_state=0
)
adapters = {
    "spectra, no adaptation": make_pipeline(Spectrum(RATE), SourceStandardScaler()),
    "spectra, ranks": make_pipeline(Spectrum(RATE), DomainQuantileTransformer()),
    "segments, standardized": make_pipeline(filters, DomainStandardScaler()),
}
models = {}
for name, adapter in adapters.items():
    model = AdaptedClassifier(adapter, LogisticRegression(max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty iterations are enough here
        models[name] = model.fit(X, y_all, sample_domain=sample_domain)
    print(f"{name}: accuracy {model.score(windows.X[target], y[target]):.2f} at the heavy load")

# %%
# The learned filters are waveforms. Drawn in time and in frequency, they show what they listen for.

W = models["segments, standardized"].adapter_[0].components_
strongest = np.argsort(np.abs(np.fft.rfft(W)).max(axis=1) / np.linalg.norm(W, axis=1))[::-1][:4]
figure, axes = plt.subplots(2, 4, figsize=(10, 3.4), sharex="row", layout="constrained")
for (in_time, in_frequency), w in zip(axes.T, W[strongest], strict=True):
    in_time.plot(np.arange(len(w)) / RATE * 1000, w, lw=0.9)
    in_frequency.plot(np.fft.rfftfreq(len(w), 1 / RATE), np.abs(np.fft.rfft(w)), lw=0.9)
    in_time.set(xlabel="ms", yticks=[])
    in_frequency.set(xlabel="Hz", yticks=[])
plt.show()

# %%
# A saved model predicts a single window.

path = Path(tempfile.mkdtemp()) / "bearings.skops"
save(models["spectra, ranks"], path)
again = load(path)
window = windows.X[target][:1]
again.predict(window)
start = time.perf_counter()
for _ in range(20):
    (label,) = again.predict(window)
milliseconds = (time.perf_counter() - start) / 20 * 1000
print(f"{label}, in {milliseconds:.1f} ms; a window lasts {1200 / RATE * 1000:.0f} ms")
