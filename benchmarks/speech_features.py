"""MFCC features of one-second segments: ours against the libraries that compute MFCCs.

python benchmarks/speech_features.py FOLDER_WITH_WAV_OR_FLAC [N_FILES]

Candidates that are not installed are left out:
pip install librosa python_speech_features kaldi-native-fbank opensmile

All are set to the same frames, bands and lifter, as far as they allow. Agreement is the correlation
of each of the 72 features with ours over all segments: the median, and the worst.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import soundfile
from measuring import median_seconds

from covshift.datasets.speech_features import FEATURE_NAMES, RATE, segment_features, slopes


def statistics_of(raw):
    """Mean, standard deviation and range of coefficients (frames, 12) and their slopes."""
    both = np.concatenate([raw, slopes(raw, 2)], axis=1)
    return np.stack([both.mean(axis=0), both.std(axis=0), np.ptp(both, axis=0)], axis=1).ravel()


def ours(segment):
    """Features by `covshift.datasets.speech_features`."""
    return segment_features(segment, RATE)[0]


def librosa_features(segment):
    """Its triangles are straight over hertz, not over mels, and its window is periodic."""
    import librosa

    power = librosa.feature.melspectrogram(
        y=librosa.effects.preemphasis(segment, coef=0.97),
        sr=RATE, n_fft=512, win_length=400, hop_length=160, window="hamming", center=False,
        n_mels=26, htk=True, norm=None,
    )  # fmt: skip
    logs = librosa.power_to_db(power, amin=2.0**-30, top_db=None) / (10 / np.log(10))
    return statistics_of(librosa.feature.mfcc(S=logs, n_mfcc=13, lifter=22)[1:].T)


def python_speech_features_features(segment):
    """Its bands begin and end at whole frequencies of the spectrum."""
    from python_speech_features import mfcc

    raw = mfcc(segment, RATE, nfft=512, appendEnergy=False, winfunc=np.hamming)
    return statistics_of(raw[:, 1:])


def kaldi_features(segment):
    """In single precision; samples are scaled as 16-bit ones are."""
    import kaldi_native_fbank

    options = kaldi_native_fbank.MfccOptions()
    options.frame_opts.dither = 0
    options.frame_opts.window_type = "hamming"
    options.frame_opts.remove_dc_offset = False
    options.mel_opts.num_bins, options.mel_opts.low_freq = 26, 0
    options.mel_opts.high_freq = 8000
    options.use_energy = False
    computer = kaldi_native_fbank.OnlineMfcc(options)
    computer.accept_waveform(RATE, (segment * 2**15).tolist())
    computer.input_finished()
    frames = [computer.get_frame(t) for t in range(computer.num_frames_ready)]
    return statistics_of(np.array(frames, dtype=np.float64)[:, 1:])


def opensmile_features(segment):
    """Its set emobase smooths the coefficients over three frames."""
    return segment_features(segment, RATE, backend="opensmile")[0]


CANDIDATES = {
    "librosa": librosa_features,
    "python_speech_features": python_speech_features_features,
    "kaldi_native_fbank": kaldi_features,
    "opensmile": opensmile_features,
}


def main(folder, n_files):
    """Print the time for each segment, and the agreement."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.suffix in (".wav", ".flac"))
    # Spread over the folder, which is sorted by speaker.
    chosen = [paths[i] for i in np.linspace(0, len(paths) - 1, n_files).astype(int)]
    segments = []
    for path in chosen:
        signal, rate = soundfile.read(path)
        assert (rate, signal.ndim) == (RATE, 1), "the comparison is for mono files of 16 kHz"
        segments += list(signal[: len(signal) // RATE * RATE].reshape(-1, RATE))
    found = {name: f for name, f in CANDIDATES.items() if importlib.util.find_spec(name)}
    seconds = median_seconds(
        {
            name: lambda describe=describe: [describe(segment) for segment in segments[:20]]
            for name, describe in {"ours": ours, **found}.items()
        },
        repetitions=5,
    )
    expected = np.array([ours(segment) for segment in segments])
    print(f"{len(segments)} segments of {len(chosen)} files")
    print(f"{'ours':24s} {1000 * seconds['ours'] / 20:8.2f} ms a segment")
    for name, describe in found.items():
        features = np.array([describe(segment) for segment in segments])
        correlations = [
            np.corrcoef(a, b)[0, 1] for a, b in zip(features.T, expected.T, strict=True)
        ]
        worst = int(np.argmin(correlations))
        print(
            f"{name:24s} {1000 * seconds[name] / 20:8.2f} ms a segment; correlation "
            f"{np.median(correlations):.4f}, worst {correlations[worst]:.4f} "
            f"({FEATURE_NAMES[worst]})"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100)
