"""Features of many sound files, in parallel, so that a stop at any moment costs little.

Features are kept on disk, by what they were computed from. An entry's name is the hash of the
file's contents and of the settings, so it never grows stale: renamed or copied files are found,
changed ones are not. It holds the hash of its own contents, so that a damaged entry is told from a
good one, and is computed anew.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from covshift.datasets.audio_files import UnusableRecordingError, decode, sampling_rate
from covshift.datasets.speech_features import (
    FEATURE_NAMES,
    RATE,
    describe_settings,
    segment_features,
)
from covshift.kernels.arrays import FloatArray
from covshift.output_files import prepare_folder, write_whole

WAY_OUT = (
    "choose another folder by cache=... or by the environment variable XDG_CACHE_HOME, or "
    "cache=False to keep none."
)


def default_cache_folder() -> Path:
    """``$XDG_CACHE_HOME/covshift/speech``, or ``~/.cache/covshift/speech`` if that is unset."""
    above = os.environ.get("XDG_CACHE_HOME")
    if not above:
        try:
            above = str(Path.home() / ".cache")
        except RuntimeError as error:  # a user whom the system does not know, as in containers
            raise OSError(f"Features have no folder to be kept in ({error}): {WAY_OUT}") from error
    return Path(above) / "covshift" / "speech"


def open_cache(cache: Any) -> Path | None:
    """Return the folder of the entries for the parameter ``cache``; None for no cache at all."""
    if cache is False:
        return None
    if cache is not None and not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be a folder, None (the default one) or False, got {cache!r}.")
    folder = default_cache_folder() if cache is None else Path(cache)
    with _naming(folder):
        prepare_folder(folder)
    return folder


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Say of a failure to write which folder it is, and what to do."""
    try:
        yield
    except OSError as error:
        raise OSError(
            f"Features cannot be kept in {folder} ({error.strerror or error}): {WAY_OUT}"
        ) from error


def entry_key(contents: bytes, settings: str) -> str:
    """Name of the entry for a file with these contents."""
    return hashlib.sha256(hashlib.sha256(contents).digest() + settings.encode()).hexdigest()


def read_entry(folder: Path, key: str, n_features: int) -> FloatArray | None:
    """Return the features (n, n_features) of an entry, or None if it is missing or damaged."""
    try:
        contents = (folder / key).read_bytes()
    except OSError:
        return None
    digest, values = contents[:32], contents[32:]
    if hashlib.sha256(values).digest() != digest:
        return None
    return np.frombuffer(values, dtype="<f8").reshape(-1, n_features).astype(np.float64)


def write_entry(folder: Path, key: str, features: FloatArray) -> None:
    """Keep the features; the entry is written atomically."""
    values = features.astype("<f8").tobytes()
    with _naming(folder):
        write_whole(folder / key, lambda file: file.write(hashlib.sha256(values).digest() + values))


class Extraction(NamedTuple):
    """Result for a file: its features, or the reason why it has none."""

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
            # After a stop joblib warns of results that are not fetched: this is intended.
            warnings.simplefilter("ignore")
            outcomes.close()
    return extractions


def _extract(
    place: int, path: Path, backend: str, bandwidth: str, cache: Path | None, settings: str
) -> tuple[int, Extraction]:
    """Return the features of one file, from the cache if they are there."""
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
