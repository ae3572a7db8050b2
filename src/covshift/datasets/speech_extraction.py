"""Features of many sound files, in parallel, so that a stop at any moment costs little."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from covshift.datasets.audio_files import UnusableRecordingError, decode, sampling_rate
from covshift.datasets.speech_cache import entry_key, read_entry, write_entry
from covshift.datasets.speech_features import (
    FEATURE_NAMES,
    RATE,
    describe_settings,
    segment_features,
)
from covshift.kernels.arrays import FloatArray


class Extraction(NamedTuple):
    """What became of a file: its features, or the reason why there are none."""

    features: FloatArray
    rate: int = RATE
    reason: str = ""
    new_key: str = ""  # under which the features are still to be kept


def extract_all(
    paths: Sequence[Path],
    *,
    backend: str,
    bandwidth: str,
    cache: Path | None,
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> list[Extraction]:
    """Extract each file; new features are kept as they come, so that a stop costs little.

    Only this process writes: two threads with equal files would write the same entry.
    """
    if not paths:
        return []
    settings = describe_settings(backend, bandwidth)
    # One file a batch: a batch is handed over when it is whole.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    extractions: list[Any] = [None] * len(paths)
    calls = (
        delayed(_extract)(place, path, backend, bandwidth, cache, settings)
        for place, path in enumerate(paths)
    )
    outcomes = parallel(calls)
    try:
        for done, (place, extraction) in enumerate(outcomes, start=1):
            if cache is not None and extraction.new_key:
                write_entry(cache, extraction.new_key, extraction.features)
            extractions[place] = extraction
            if progress is not None:
                progress(done, len(paths))
    finally:
        with warnings.catch_warnings():
            # After a stop joblib warns of work that nobody fetches: that is what was asked for.
            warnings.simplefilter("ignore")
            outcomes.close()
    return extractions


def _extract(
    place: int, path: Path, backend: str, bandwidth: str, cache: Path | None, settings: str
) -> tuple[int, Extraction]:
    """Features of one file, from the cache if they are there."""
    nothing = np.empty((0, len(FEATURE_NAMES)))
    try:
        contents = path.read_bytes()
        rate = sampling_rate(contents)
        key = "" if cache is None else entry_key(contents, settings)
        if cache is not None:
            kept = read_entry(cache, key, len(FEATURE_NAMES))
            if kept is not None:
                return place, Extraction(kept, rate)
        signal, rate = decode(contents)
        if len(signal) < rate:
            return place, Extraction(nothing, rate, "shorter than one second")
        features = segment_features(signal, rate, backend=backend, bandwidth=bandwidth)
    except UnusableRecordingError as error:
        return place, Extraction(nothing, reason=str(error))
    except OSError as error:
        return place, Extraction(nothing, reason=f"cannot be read ({error.strerror})")
    return place, Extraction(features, rate, new_key=key)
