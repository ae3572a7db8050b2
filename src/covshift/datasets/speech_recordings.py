"""The recordings in a folder: who speaks in each, how, and which files are none."""

import csv
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from covshift.datasets.audio_files import AUDIO_SUFFIXES
from covshift.datasets.speech_corpora import CORPORA, Label, UnknownNameError

OWN_TABLE = "table"  # instead of a corpus: labels are used unchanged
COLUMNS = ("file", "speaker", "label")
MAX_NAMES = 5  # names in a message


def read_label_table(table: Path, files: Iterable[str]) -> dict[str, Label]:
    """Read who speaks in which file, and how.

    Parameters
    ----------
    table : Path
        CSV file in UTF-8 with a header and a row for each recording. Further columns are ignored.
    files : iterable of str
        The recordings there are, relative to the folder of the corpus, with slashes.

    Returns
    -------
    dict from str to Label
        Of the files in the table, under the names given in ``files``.

    Raises
    ------
    ValueError
        If columns, speakers or labels are missing, a file is named twice, or is not there.
    """
    # Systems differ in how they store accented letters, and in their separators.
    known = {_plain(file): file for file in files}
    labels: dict[str, Label] = {}
    unknown = []
    for line, row in _rows(table):
        name, speaker, label = row
        if not all(row):
            raise ValueError(f"{table}, line {line}: file, speaker and label must all be given.")
        file = known.get(_plain(name))
        if file is None:
            unknown.append(name)
        elif file in labels:
            raise ValueError(f"{table}, line {line}: {name!r} has a row already; leave one.")
        else:
            labels[file] = Label(speaker, label)
    if unknown:
        more = f" and {len(unknown) - MAX_NAMES} more" if len(unknown) > MAX_NAMES else ""
        raise ValueError(
            f"{table} names WAV or FLAC files that are not in the folder: "
            f"{', '.join(map(repr, unknown[:MAX_NAMES]))}{more}. Names are relative to the folder."
        )
    return labels


def _rows(table: Path) -> Iterable[tuple[int, tuple[str, str, str]]]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = [name.strip() for name in reader.fieldnames or []]
            reader.fieldnames = header
            missing = [column for column in COLUMNS if column not in header]
            if missing:
                raise ValueError(
                    f"{table} has no column {', '.join(missing)}: its first line must name the "
                    f"columns file, speaker and label, separated by commas; it names "
                    f"{', '.join(header) or 'nothing'}."
                )
            for row in reader:
                values = [(row[column] or "").strip() for column in COLUMNS]
                yield reader.line_num, (values[0], values[1], values[2])
    except UnicodeDecodeError as error:
        raise ValueError(f"{table} is not text in UTF-8: save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise ValueError(f"{table} cannot be read as CSV: {error}.") from error


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace("\\", "/").removeprefix("./"))


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
    """Return recordings whose speaker and target are known, by name, and the other sound files."""
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
    except PermissionError:  # the folder can only be listed; reading reports the error
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
