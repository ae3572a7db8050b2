"""Files of scores: the outputs of a bench, so that a later command need not fit it again.

A file is a NumPy archive (``.npz``) without Python objects: the arrays of `Bench.to_arrays`, and
``"about"``, a JSON text with the format, the versions, the fingerprint of the bench and a SHA-256
of the arrays. It is read without NumPy's loader: every declared shape must fit the size of its
member before anything is built. A digest shows damage, not forgery: anyone who can write a file can
write its digest as well. A forged file can mislead the choice of candidates, and no more.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import sklearn
from numpy.lib import format as npy

from covshift._version import __version__
from covshift.output_files import write_whole
from covshift.selection.bench import Bench

ABOUT, FACTS, CANDIDATES = "about", "facts", "candidates"
FORMAT = 1
MAX_BYTES = 1 << 30  # size of all arrays, at most
MAX_MEMBERS = 100_000
WHAT_TO_DO = "Run diagnose again, or leave out --from."


class ScoreFileError(ValueError):
    """A file of scores is damaged, or belongs to other rows or settings."""


def write_scores(bench: Bench, path: str | PathLike[str]) -> None:
    """Write a file of the scores' outputs: of all scenes that a bench has run.

    Parameters
    ----------
    bench : Bench
        After `covshift.selection.choice.choose`.
    path : str or path
        File to write, by custom ``*.npz``. It is written atomically; an old one is replaced.
    """
    arrays = bench.to_arrays()
    about = _about(bench) | {"digest": _digest(arrays)}
    content = arrays | {ABOUT: np.array(json.dumps(about))}

    def write(file: IO[bytes]) -> None:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for name, array in content.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, np.asarray(array), allow_pickle=False)

    write_whole(Path(path), write)


def read_scores(bench: Bench, path: str | PathLike[str]) -> None:
    """Give a bench the outputs of a file, so that it does not run these scenes.

    Parameters
    ----------
    bench : Bench
        Which has run nothing yet.
    path : str or path
        File of `write_scores`.

    Raises
    ------
    ScoreFileError
        If the file is damaged, or of other rows, settings or versions.
    """
    name = Path(path).name
    try:
        with ZipFile(path) as archive:
            arrays = _read_arrays(archive)
        about = json.loads(str(arrays.pop(ABOUT)))
        if about["format"] == FORMAT and about["digest"] != _digest(arrays):
            raise ValueError("its contents do not match its digest")
        known = {key: about[key] for key in _about(bench)}
    except OSError as error:
        raise ScoreFileError(
            f"Cannot read the scores in {name}: {error.strerror or error}."
        ) from None
    except Exception as error:  # whatever a damaged archive raises: zlib, zipfile, NumPy, JSON
        raise ScoreFileError(
            f"{name} is not a file of scores, or is damaged: {error!s:.100}. {WHAT_TO_DO}"
        ) from None
    if known != _about(bench):
        raise ScoreFileError(f"The scores in {name} belong to other rows or settings. {WHAT_TO_DO}")
    try:
        bench.restore(arrays)
    except Exception:  # a forged file whose parts do not fit each other
        raise ScoreFileError(f"The parts of {name} do not fit each other. {WHAT_TO_DO}") from None


def _about(bench: Bench) -> dict[str, Any]:
    versions = {"covshift": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__}
    return {"format": FORMAT, "versions": versions, "fingerprint": bench.fingerprint()}


def _digest(arrays: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str} {np.shape(arrays[name])}".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def _read_arrays(archive: ZipFile) -> dict[str, Any]:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS or sum(one.file_size for one in members) > MAX_BYTES:
        raise ValueError("it is too large")
    arrays: dict[str, Any] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name in arrays or name == member.filename:
            raise ValueError("it holds objects other than arrays")
        with archive.open(member) as file:
            arrays[name] = _read_array(file, member.file_size, name)
    return arrays


def _read_array(file: IO[bytes], size: int, name: str) -> Any:
    """Return an array of floats or texts; its header must fit the size of the member."""
    if npy.read_magic(file) != (1, 0):
        raise ValueError(f"unknown kind of array in {name!r}")
    shape, fortran, dtype = npy.read_array_header_1_0(file)
    texts = name in (ABOUT, FACTS, CANDIDATES)
    dimensions = {ABOUT: 0, FACTS: 0, CANDIDATES: 1}.get(name, 2)
    fits = dtype.kind == "U" if texts else dtype == np.float64
    if not fits or fortran or len(shape) != dimensions or min(shape, default=0) < 0:
        raise ValueError(f"unexpected type or shape of {name!r}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes != size - file.tell():
        raise ValueError(f"the size of {name!r} is not that of its shape")
    array = np.frombuffer(file.read(n_bytes + 1), dtype=dtype)
    if not texts and not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds values that are not finite")
    return array.reshape(shape)
