"""Two tables -> a `Diagnosis`; rows of the new table to label, as a file."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covshift.diagnosis import Diagnosis, diagnose
from covshift.solvers.threads import one_blas_thread
from covshift.tables.encoder import TableEncoder
from covshift.tables.label_files import ROW
from covshift.tables.matching import MatchedTables
from covshift.tables.reading import open_table
from covshift.tables.schema import TableSchema
from covshift.tables.writing import write_table


def diagnose_tables(tables: MatchedTables, **options: Any) -> Diagnosis:
    """Diagnose a training table and a new one.

    Rows are encoded and ordered as `TableClassifier` does, so that the advice is about the model
    that `adapt_tables` fits with the same settings and seed.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`, with known labels of new rows if ``with_new_labels`` has
        read some.
    **options
        ``objective``, ``min_gain``, ``max_risk``, ``max_rows``, ``time_budget``, ``n_jobs``,
        ``random_state``, ``verbose``, ``progress`` of `diagnose`.

    Returns
    -------
    Diagnosis
        Its features are the encoded columns; rows are in the order of ``tables.stack()``.
    """
    stacked = tables.stack()
    encoder = TableEncoder().fit(
        stacked.X, sample_domain=stacked.sample_domain, schema=tables.schema
    )
    features = pd.DataFrame(encoder.transform(stacked.X), columns=encoder.get_feature_names_out())
    with one_blas_thread():  # as `adapt_tables` does
        return diagnose(
            features,
            stacked.y,
            sample_domain=stacked.sample_domain,
            label_mask=tables.label_mask,
            domain_names=dict(tables.domain_names),
            task=tables.task,
            **options,
        )


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
    """Write rows of a table unchanged, with their numbers and an empty label.

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
    names = open_table(new_path, **options).schema.kinds if columns is None else columns
    # As text, so that cells come out as they went in.
    reader = open_table(new_path, schema=TableSchema(dict.fromkeys(names, "text")), **options)
    found = pd.concat(_with_row_numbers(reader, rows)).set_index(ROW).loc[list(rows)].reset_index()
    found = found.drop(columns=label, errors="ignore")
    found.insert(1, label, pd.array([pd.NA] * len(found), dtype="string"))
    write_table(out, [found])


def _with_row_numbers(reader: Any, rows: Sequence[int]) -> Iterator[Any]:
    start = 1
    for frame in reader:
        numbered = frame.drop(columns=ROW, errors="ignore")
        numbered.insert(0, ROW, np.arange(start, start + len(frame)))
        yield numbered[numbered[ROW].isin(rows)]
        start += len(frame)
