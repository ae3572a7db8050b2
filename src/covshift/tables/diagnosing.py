"""Two tables -> a `Diagnosis`; rows of the new table to be labelled, as a file, and back."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from covshift.diagnosis import Diagnosis, diagnose
from covshift.domains import placeholder_label
from covshift.kernels.arrays import IntArray
from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import listed, table_error
from covshift.tables.labels import class_kind, read_known_labels
from covshift.tables.matching import MatchedTables
from covshift.tables.reading import open_table, read_table
from covshift.tables.schema import TableSchema
from covshift.tables.writing import write_table

ROW = "row_to_label"  # column with the number of a row in the new table


def diagnose_tables(tables: MatchedTables, **options: Any) -> Diagnosis:
    """Diagnose a training table and a new one.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`.
    **options
        ``objective``, ``max_rows``, ``time_budget``, ``n_jobs``, ``random_state``, ``verbose``,
        ``progress`` of `diagnose`.

    Returns
    -------
    Diagnosis
        Its features are the encoded columns; rows of the new table come after the training rows.
    """
    import pandas as pd

    X = pd.concat([tables.X_train, tables.X_new], ignore_index=True)
    domain = np.concatenate([tables.source_domain, tables.target_domain])
    encoder = TableEncoder().fit(X, sample_domain=domain, schema=tables.schema)
    features = pd.DataFrame(encoder.transform(X), columns=encoder.get_feature_names_out())
    unknown = np.full(len(tables.X_new), placeholder_label(tables.y), dtype=tables.y.dtype)
    y = np.concatenate([tables.y, unknown])
    return diagnose(
        features, y, sample_domain=domain, domain_names=dict(tables.domain_names), **options
    )


def rows_to_label(diagnosis: Diagnosis, tables: MatchedTables, n_rows: int) -> list[int]:
    """Rows of the new table to label, the first row being 1, the most telling first."""
    rows = diagnosis.rows_to_label(n_rows) - len(tables.X_train)
    if tables.new_rows is not None:  # a sample was read
        rows = tables.new_rows[rows]
    return [int(row) + 1 for row in rows]


def write_rows_to_label(
    out: Any,
    new_path: Any,
    rows: Sequence[int],
    label: str,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Write rows of a table as they stand there, with their numbers and an empty label.

    Parameters
    ----------
    out : path
        As in `write_table`.
    new_path : path
        The new table.
    rows : sequence of int
        From `rows_to_label`; so are they ordered.
    label : str
        Name of the column to fill in.
    columns : sequence of str or None, default=None
        Columns to repeat. None: all.
    **options
        ``separator`` and ``decimal``, as in `open_table`.
    """
    import pandas as pd

    names = open_table(new_path, **options).schema.kinds if columns is None else columns
    # As text, so that cells come out as they went in.
    reader = open_table(new_path, schema=TableSchema(dict.fromkeys(names, "text")), **options)
    found = pd.concat(_numbered(reader, rows)).set_index(ROW).loc[list(rows)].reset_index()
    found = found.drop(columns=label, errors="ignore")
    found.insert(1, label, pd.array([pd.NA] * len(found), dtype="string"))
    write_table(out, [found])


def _numbered(reader: Any, rows: Sequence[int]) -> Iterator[Any]:
    start = 1
    for frame in reader:
        numbered = frame.drop(columns=ROW, errors="ignore")
        numbered.insert(0, ROW, np.arange(start, start + len(frame)))
        yield numbered[numbered[ROW].isin(rows)]
        start += len(frame)


def update_from_file(
    diagnosis: Diagnosis, tables: MatchedTables, path: Any, **options: Any
) -> tuple[Diagnosis, list[str]]:
    """Use the labels of a file of `write_rows_to_label` that somebody has filled in.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of `diagnose_tables`, with the same options as when the rows were asked for.
    tables : MatchedTables
        What it is the diagnosis of.
    path : path
        Table with the numbers of rows and their labels; rows without a label are left alone.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    diagnosis : Diagnosis
    notes : list of str
    """
    schema = TableSchema({ROW: "number", tables.label: class_kind(diagnosis.classes)})
    table = read_table(path, schema=schema, **options)
    labels, known = read_known_labels(table.frame[tables.label], diagnosis.classes)
    if not known.any():
        raise table_error(path, f"no row has a label yet: fill in the column {tables.label!r}.")
    numbers, labels = table.frame[ROW].to_numpy()[known], labels[known]
    if np.isnan(numbers).any():
        raise table_error(path, f"a labelled row has no number in the column {ROW!r}; put it back.")
    rows = _rows_of_both(tables, numbers)
    looked_at = np.isin(rows, diagnosis.target_rows)
    if not looked_at.all():
        raise table_error(
            path,
            f"row {numbers[~looked_at][0]:g} of the new table was not looked at: give the same "
            "tables, options and seed as when the rows were asked for.",
        )
    notes = list(table.notes)
    strangers = [name for name in np.unique(labels).tolist() if name not in diagnosis.classes]
    if strangers:
        notes.append(f"No training row has these labels; all are wrong there: {listed(strangers)}.")
    return diagnosis.update(rows, labels), notes


def _rows_of_both(tables: MatchedTables, numbers: IntArray) -> IntArray:
    """Positions, after the training rows, of rows of the new table; -1: not read."""
    rows = numbers.astype(int) - 1
    if tables.new_rows is not None:  # a sample was read
        places = np.minimum(np.searchsorted(tables.new_rows, rows), len(tables.new_rows) - 1)
        rows = np.where(tables.new_rows[places] == rows, places, -len(tables.X_train) - 1)
    return rows + len(tables.X_train)
