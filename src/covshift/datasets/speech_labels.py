"""A table of labels in place of file names: a CSV file with the columns file, speaker, label."""

import csv
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from covshift.datasets.speech_corpora import Label

COLUMNS = ("file", "speaker", "label")
SHOWN = 5  # names in a message


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
        more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
        raise ValueError(
            f"{table} names WAV or FLAC files that are not in the folder: "
            f"{', '.join(map(repr, unknown[:SHOWN]))}{more}. Names are relative to the folder."
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
