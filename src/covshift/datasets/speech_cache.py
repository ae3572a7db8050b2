"""Features of recordings kept on disk, by what they were computed from.

An entry's name is the hash of the file's contents and of the settings, so it never grows stale:
renamed or copied files are found, changed ones are not. It holds the hash of its own contents, so
that a damaged entry is told from a good one, and is computed anew.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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
    """Folder of the entries for the parameter ``cache``; None for no cache at all."""
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
    """Features (n, n_features) of an entry, or None if it is missing or damaged."""
    try:
        contents = (folder / key).read_bytes()
    except OSError:
        return None
    digest, values = contents[:32], contents[32:]
    if hashlib.sha256(values).digest() != digest:
        return None
    return np.frombuffer(values, dtype="<f8").reshape(-1, n_features).astype(np.float64)


def write_entry(folder: Path, key: str, features: FloatArray) -> None:
    """Keep the features; the entry is whole or not there."""
    values = features.astype("<f8").tobytes()
    with _naming(folder):
        write_whole(folder / key, lambda file: file.write(hashlib.sha256(values).digest() + values))
