"""Vowels of men, women, boys and girls (Hillenbrand et al. 1995)."""

import csv
import os
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from covshift.datasets.collection import damaged_data, find_file, find_folder, make_collection
from covshift.shared_docs import documented_like

FEATURES = ("dur", "f0", "f1", "f2", "f3")
COLUMNS = ("type", "speaker", "vowel", *FEATURES)
DOMAINS = {"m": "men", "w": "women", "b": "boys", "g": "girls"}
WHERE = (
    "The file h95.csv is the data frame `h95` of the R package phonTools: "
    "write.csv(phonTools::h95, 'h95.csv', row.names = FALSE)."
)
DESCRIPTION = """Vowels of American English (Hillenbrand et al. 1995)

Rows are vowels that 139 speakers said in words such as "heed" and "hid", once each. Features:
duration in ms, fundamental frequency and the first three formants in Hz at the steady state; where
a formant could not be measured, the R package has put an estimate. Labels: 12 vowels, in X-SAMPA.
Domains: men, women, boys and girls, whose vocal tracts differ in length; `speaker` names the
speaker of each row.

J. M. Hillenbrand, L. A. Getty, M. J. Clark, K. Wheeler, "Acoustic characteristics of American
English vowels", Journal of the Acoustical Society of America 97, 1995, 3099-3111. In this form from
the R package phonTools (S. Barreda; BSD 2-clause)."""


@documented_like(find_folder)
def load_vowels(folder: str | os.PathLike[str]) -> Bunch:
    r"""Load the vowels of men, women, boys and girls from ``h95.csv``.

    Parameters
    ----------
    folder : path
        Folder with ``h95.csv``: columns ``type`` (m, w, b, g), ``speaker``, ``vowel``, ``dur``,
        ``f0``, ``f1``, ``f2``, ``f3``, in any order; others are left alone.

    Returns
    -------
    Bunch
        ``data`` of shape (n, 5), ``target`` (the vowels, as strings), ``domain`` (0 men, 1 women,
        2 boys, 3 girls), ``domain_names``, ``speaker``, ``feature_names``, ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from covshift.datasets import load_vowels
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = "type,speaker,vowel,dur,f0,f1,f2,f3\nm,1,i,243,138,342,2322,3000\n"
    >>> table += "w,2,i,306,227,437,2761,3372\n"
    >>> _ = (folder / "h95.csv").write_text(table)
    >>> vowels = load_vowels(folder)
    >>> vowels.data.shape, vowels.domain.tolist()
    ((2, 5), [0, 1])
    """
    path = find_file(find_folder(folder, WHERE), "h95.csv", WHERE)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
            if missing:
                raise damaged_data(path, f"has no column {', '.join(missing)}")
            rows: list[dict[str, Any]] = list(reader)
    except UnicodeDecodeError:
        raise damaged_data(path, "is no text") from None
    except csv.Error as error:
        raise damaged_data(path, f"cannot be read as CSV ({error})") from None
    if not rows:
        raise damaged_data(path, "has no rows")
    for number, row in enumerate(rows, start=2):
        if row["type"] not in DOMAINS:
            raise damaged_data(path, f"line {number}: type {row['type']!r} is none of m, w, b, g")
        if not row["vowel"]:
            raise damaged_data(path, f"line {number}: no vowel")
    try:
        data = np.array([[float(row[name]) for name in FEATURES] for row in rows])
        speaker = np.array([int(float(row["speaker"])) for row in rows])
    except (OverflowError, TypeError, ValueError) as error:
        raise damaged_data(path, f"has a value that is not a number ({error})") from None
    if not np.isfinite(data).all():
        raise damaged_data(path, "holds numbers that are not finite")
    return make_collection(
        data,
        [row["vowel"] for row in rows],
        [DOMAINS[row["type"]] for row in rows],
        list(DOMAINS.values()),
        feature_names=FEATURES,
        description=DESCRIPTION,
        speaker=speaker,
    )
