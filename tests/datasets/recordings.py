"""Sound files made for the tests; run as a module it loads a folder and stops when told to."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import soundfile


def voice(seconds, rate=16_000, seed=0):
    """Made-up speech: a buzz of harmonics below 3 kHz with moving formants, and a little noise.

    The same seed at two rates gives the same sound, up to the noise.
    """
    t = np.arange(round(seconds * rate)) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * (0.7 + 0.1 * seed) * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    formant = 900 + 500 * np.sin(2 * np.pi * (2 + 0.3 * seed) * t)
    sound = sum(
        np.exp(-(((pitch * k - formant) / 400) ** 2)) * np.sin(k * phase) for k in range(1, 18)
    )
    noise = np.random.default_rng(seed).normal(scale=1e-3, size=len(t))
    return 0.1 * sound + noise


def write(path, seconds=1.5, rate=16_000, *, seed=0, samples=None, **options):
    """Write a sound file, with the folders above it; return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = voice(seconds, rate, seed) if samples is None else samples
    kind = {".flac": "FLAC", ".wav": "WAV"}[path.suffix.lower()]
    soundfile.write(path, samples, rate, format=kind, **options)
    return path


def write_emodb(folder, n=6):
    """Write recordings of three speakers, of 1.5 to 2.5 seconds."""
    for i in range(n):
        speaker, letter = ("03", "08", "16")[i % 3], "FWNTAEL"[i % 7]
        write(Path(folder) / f"{speaker}a0{i}{letter}a.wav", 1.5 + i % 2, seed=i)
    return Path(folder)


def main(folder, cache, n_jobs, kill_after):
    """Load a folder, and die without a word after a number of files."""
    from covshift.datasets import load_speech_corpus

    def progress(done, total):
        if done == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    load_speech_corpus(folder, "emodb", cache=cache, n_jobs=n_jobs, progress=progress)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
