"""Two tables -> a `Diagnosis`; rows of the new table to label, as a file, and back."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from covshift.diagnosis import Diagnosis, diagnose
from covshift.domains import Labels
from covshift.kernels.arrays import IntArray
from covshift.solvers.blas_threads import one_blas_thread
from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import listed, table_error
from covshift.tables.labels import class_kind, read_known_labels
from covshift.tables.matching import MatchedTables
from covshift.tables.reading import open_table, read_table
from covshift.tables.schema import TableSchema
from covshift.tables.writing import write_table

ROW = "row_to_label"  # column with the number of a row in the new table


class KnownLabels(NamedTuple):
    """Labels of rows of the new table."""

    rows: IntArray  # positions in ``X_new`` of the matched tables
    labels: Labels


def diagnose_tables(
    tables: MatchedTables, labels: KnownLabels | None = None, **options: Any
) -> Diagnosis:
    """Diagnose a training table and a new one.

    Rows are encoded and ordered as `TableClassifier` does, so that the advice is about the model
    that `adapt_tables` fits with the same settings and seed.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`.
    labels : KnownLabels or None, default=None
        Labels of rows of the new table, from `read_labels`.
    **options
        ``objective``, ``max_risk``, ``max_rows``, ``time_budget``, ``n_jobs``, ``random_state``,
        ``verbose``, ``progress`` of `diagnose`.

    Returns
    -------
    Diagnosis
        Its features are the encoded columns; rows are in the order of ``tables.stack()``.
    """
    import pandas as pd

    stacked = tables.stack()
    encoder = TableEncoder().fit(
        stacked.X, sample_domain=stacked.sample_domain, schema=tables.schema
    )
    features = pd.DataFrame(encoder.transform(stacked.X), columns=encoder.get_feature_names_out())
    y, known = stacked.y, stacked.sample_domain >= 0
    if labels is not None:
        places = _stacked_places(tables)[labels.rows]
        y = y.astype(np.result_type(y.dtype, labels.labels.dtype))
        y[places], known[places] = labels.labels, True
    with one_blas_thread():  # as `adapt_tables` does
        return diagnose(
            features,
            y,
            sample_domain=stacked.sample_domain,
            label_mask=known,
            domain_names=dict(tables.domain_names),
            **options,
        )


def _stacked_places(tables: MatchedTables) -> IntArray:
    """Positions in ``tables.stack()`` of the rows of the new table: ordered by domain, -1 first."""
    order = np.argsort(-tables.target_domain, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = len(tables.X_train) + np.arange(len(order))
    return places


def rows_to_label(diagnosis: Diagnosis, tables: MatchedTables, n_rows: int) -> list[int]:
    """Return rows of the new table to label, drawn at random; the first row of the table is 1."""
    asked = diagnosis.rows_to_label(n_rows) - len(tables.X_train)
    rows = np.argsort(-tables.target_domain, kind="stable")[asked]
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


def read_labels(tables: MatchedTables, path: Any, **options: Any) -> tuple[KnownLabels, list[str]]:
    """Read a file of `write_rows_to_label` in which somebody has filled in labels.

    Parameters
    ----------
    tables : MatchedTables
        The tables that the rows were asked for, read with the same options and seed.
    path : path
        Table with the numbers of rows and their labels; rows without a label are left alone.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    labels : KnownLabels
    notes : list of str
    """
    classes = np.unique(tables.y)
    schema = TableSchema({ROW: "number", tables.label: class_kind(classes)})
    table = read_table(path, schema=schema, **options)
    labels, known = read_known_labels(table.frame[tables.label], classes)
    if not known.any():
        raise table_error(path, f"no row has a label yet: fill in the column {tables.label!r}.")
    numbers, labels = table.frame[ROW].to_numpy()[known], labels[known]
    if np.isnan(numbers).any():
        raise table_error(path, f"a labeled row has no number in the column {ROW!r}; put it back.")
    rows = _positions(tables, numbers.astype(np.int64) - 1)
    if (rows < 0).any():
        raise table_error(
            path,
            f"row {numbers[rows < 0][0]:g} of the new table was not read: give the same tables, "
            "options and seed as when the rows were asked for.",
        )
    notes = list(table.notes)
    strangers = [name for name in np.unique(labels).tolist() if name not in classes.tolist()]
    if strangers:
        notes.append(f"Labels that no training row has: {listed(strangers)}.")
    # Of a row that is there twice, the last label counts.
    last = dict(zip(rows.tolist(), range(len(rows)), strict=True))
    kept = np.array([last[row] for row in sorted(last)])
    return KnownLabels(rows[kept], labels[kept]), notes


def _positions(tables: MatchedTables, rows: IntArray) -> IntArray:
    """Return the positions in ``X_new`` of rows of the new table; -1: not read."""
    if tables.new_rows is None:
        return np.where((rows >= 0) & (rows < len(tables.X_new)), rows, -1)
    places = np.searchsorted(tables.new_rows, rows).clip(max=len(tables.new_rows) - 1)
    return np.where(tables.new_rows[places] == rows, places, -1)
