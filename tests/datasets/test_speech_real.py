"""The corpora themselves, where COVSHIFT_DATA names the folder that holds them."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from covshift.datasets import load_speech_corpus


def load(corpus, tmp_path):
    if "COVSHIFT_DATA" not in os.environ:
        pytest.skip("COVSHIFT_DATA is not set: it names the folder with real data sets")
    folder = Path(os.environ["COVSHIFT_DATA"]) / corpus
    if not folder.is_dir():
        pytest.skip(f"COVSHIFT_DATA has no folder {corpus}")
    return load_speech_corpus(folder, corpus, cache=tmp_path)


# Seconds with positive and negative valence: the paper's, and for RAVDESS what was found.
@pytest.mark.parametrize(
    ("corpus", "positive", "negative", "n_speakers", "n_files"),
    [
        ("emodb", 289, 922, 10, 535),
        ("des", 579, 395, 4, None),
        ("vam", 167, 2328, 47, None),
        ("enterface", 877, 2111, 43, None),
        ("ravdess", 2089, 2487, 24, 1440),
    ],
)
def test_counts(corpus, positive, negative, n_speakers, n_files, tmp_path):
    speech = load(corpus, tmp_path)
    assert Counter(speech.target.tolist()) == {"positive": positive, "negative": negative}
    assert len(speech.domain_names) == n_speakers
    assert np.isfinite(speech.data).all()
    if n_files is not None:
        assert len(set(speech.recording)) == n_files
        assert speech.skipped == []
