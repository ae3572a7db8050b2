"""The recordings in a folder: who speaks in each, how, and which files are none."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from covshift.datasets.audio_files import AUDIO_SUFFIXES
from covshift.datasets.speech_corpora import CORPORA, Label, UnknownNameError
from covshift.datasets.speech_labels import read_label_table

OWN_TABLE = "table"  # in place of a corpus: labels are the targets as they are


class Recording(NamedTuple):
    """A file that is to be read."""

    file: str  # relative to the folder, with slashes
    path: Path
    speaker: str
    emotion: str
    target: str


def find_recordings(
    folder: Path, corpus: str, labels: Any
) -> tuple[list[Recording], list[tuple[str, str]]]:
    """Recordings whose speaker and target are known, by name, and the other sound files."""
    paths = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.suffix.lower() in AUDIO_SUFFIXES
        and _is_file(path)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    table = None if labels is None else read_label_table(_check_table(labels), paths)
    recordings, skipped = [], []
    seen: dict[tuple[str, str], str] = {}
    for file, path in sorted(paths.items()):
        try:
            label = _label(folder, file, corpus, table)
            target = (
                label.emotion if corpus == OWN_TABLE else CORPORA[corpus].valence(label.emotion)
            )
            if table is None:
                # Corpora are often unpacked twice, or kept as WAV and as FLAC.
                first = seen.setdefault((label.speaker, path.stem.lower()), file)
                if first != file:
                    raise UnknownNameError(f"the same recording as {first}, by its name")
        except UnknownNameError as reason:
            skipped.append((file, str(reason)))
        else:
            recordings.append(Recording(file, path, *label, target))
    return recordings, skipped


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # in a folder that can be listed only: reading it will say so
        return True


def _check_table(labels: Any) -> Path:
    if not isinstance(labels, str | os.PathLike):
        raise TypeError(f"labels must be the path of a CSV file, got {labels!r}.")
    table = Path(labels)
    if not table.is_file():
        raise FileNotFoundError(f"There is no file {table}, which labels should name.")
    return table


def _label(folder: Path, file: str, corpus: str, table: dict[str, Label] | None) -> Label:
    if table is None:
        return CORPORA[corpus].read_name(folder, Path(file))
    if file not in table:
        raise UnknownNameError("not in the table of labels")
    return table[file]
