"""How far the mel bands should reach: features of one sound at three rates, and what they tell.

python benchmarks/speech_rates.py FOLDER_OF_EMODB

For each highest band: differences between the features at 16 kHz and those of the same files
resampled to 44.1 and to 8 kHz, in standard deviations over segments (the median over all values;
the largest shift of a feature's mean), and the UAR of valence with one speaker left out.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly
from sklearn.svm import LinearSVC

from covshift.datasets import load_speech_corpus
from covshift.datasets.speech_features import HIGHEST_FREQUENCY, RATE, decode, segment_features
from covshift.measures import unweighted_average_recall


def features_at(rate, up, down, signals, bandwidth):
    """Features of the signals resampled to a rate: the same seconds at any rate."""
    rows = []
    for signal in signals:
        found = segment_features(resample_poly(signal, up, down), rate, bandwidth=bandwidth)
        rows.append(found[: len(signal) // RATE])
    return np.concatenate(rows)


def differences(features, reference):
    """Median difference of a value, and the largest shift of a mean, in standard deviations."""
    scaled = (features - reference) / reference.std(axis=0)
    return np.median(np.abs(scaled)), np.abs(scaled.mean(axis=0)).max()


def recalls(X, speech):
    """UAR of each speaker, left out; features standardized per speaker."""
    X = X.copy()
    for speaker in speech.domain_names:
        rows = speech.domain == speaker
        X[rows] = (X[rows] - X[rows].mean(axis=0)) / X[rows].std(axis=0)
    for speaker in speech.domain_names:
        rows = speech.domain == speaker
        model = LinearSVC(C=0.01, class_weight="balanced").fit(X[~rows], speech.target[~rows])
        yield unweighted_average_recall(speech.target[rows], model.predict(X[rows]))


def main(folder):
    """Print a line for each highest band."""
    speech = load_speech_corpus(folder, "emodb", cache=False)
    signals = [decode((folder / file).read_bytes())[0] for file in dict.fromkeys(speech.recording)]
    for highest in (8000.0, 4000.0, 3800.0, 3400.0):
        bandwidth = f"up to {highest}"
        HIGHEST_FREQUENCY[bandwidth] = highest
        reference = features_at(RATE, 1, 1, signals, bandwidth)
        figures = [
            *differences(features_at(44_100, 441, 160, signals, bandwidth), reference),
            *differences(features_at(8000, 1, 2, signals, bandwidth), reference),
        ]
        uar = list(recalls(reference, speech))
        print(
            f"{highest:6.0f} Hz: 44.1 kHz {figures[0]:.3f}, {figures[1]:.3f}; 8 kHz "
            f"{figures[2]:.3f}, {figures[3]:.3f}; UAR {np.mean(uar):.3f} "
            f"± {np.std(uar) / np.sqrt(len(uar)):.3f}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
