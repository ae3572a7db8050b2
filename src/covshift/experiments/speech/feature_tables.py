"""Feature tables of a run, in its folder: what every worker reads, and a digest that names them."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from covshift.experiments.speech.protocol import SpeechTable
from covshift.output_files import write_whole


def file_of(folder: Path, digest: str) -> Path:
    """Where the tables of this digest lie: those of another run in the folder lie elsewhere."""
    return folder / f"features-{digest}.npz"


def table_of(bunch: Any) -> SpeechTable:
    """The table of a corpus as `covshift.datasets.load_speech_corpus` returns it."""
    names = np.array([bunch.domain_names[number] for number in sorted(bunch.domain_names)])
    numbers = np.array(sorted(bunch.domain_names))
    speaker = names[np.searchsorted(numbers, bunch.domain)]
    return SpeechTable(bunch.data, bunch.target, speaker, np.asarray(bunch.recording, dtype=str))


def digest_of(tables: Mapping[str, SpeechTable]) -> str:
    """Hash of everything in the tables: results of other data have another one."""
    digest = hashlib.sha256()
    for corpus in sorted(tables):
        for name, part in tables[corpus]._asdict().items():
            # Texts by their contents: the width of an array of them tells nothing.
            text = part.dtype.kind == "U"
            contents = "\n".join(part).encode() if text else np.ascontiguousarray(part).tobytes()
            digest.update(f"{corpus}/{name} {part.shape} {len(contents)}\n".encode() + contents)
    return digest.hexdigest()[:16]


def save_tables(tables: Mapping[str, SpeechTable], folder: Path) -> None:
    """Write the tables where `load_tables` finds them."""
    arrays: dict[str, Any] = {
        f"{corpus}/{name}": part
        for corpus, table in tables.items()
        for name, part in table._asdict().items()
    }
    write_whole(file_of(folder, digest_of(tables)), lambda file: np.savez(file, **arrays))


@lru_cache(maxsize=1)
def load_tables(folder: str, digest: str) -> dict[str, SpeechTable]:
    """Read the tables of a run, once in each process, and check that they are those meant."""
    path = file_of(Path(folder), digest)
    with np.load(path) as arrays:
        corpora = dict.fromkeys(name.partition("/")[0] for name in arrays.files)
        tables = {
            corpus: SpeechTable(*(arrays[f"{corpus}/{name}"] for name in SpeechTable._fields))
            for corpus in corpora
        }
    if digest_of(tables) != digest:
        raise ValueError(
            f"{path} does not hold what its name says: remove it, and run the same command again."
        )
    return tables
