"""Files read as a saved model wants them: its columns, and some more that are asked for."""

import difflib
from collections.abc import Sequence
from typing import Any

from covshift.tables.cells import Kind
from covshift.tables.classifier import TableClassifier
from covshift.tables.errors import TableError, listed, table_error
from covshift.tables.labels import class_kind
from covshift.tables.reading import Table, open_table, read_rows
from covshift.tables.row_sample import default_rows
from covshift.tables.schema import TableSchema
from covshift.tables.table_reader import TableReader


def open_for_model(
    model: Any, path: Any, *, extra: Sequence[str] = (), label: str | None = None, **options: Any
) -> TableReader:
    """Open a file for a model, chunk by chunk.

    Parameters
    ----------
    model : TableClassifier
        Whose columns and kinds are read.
    path : path
        As in `open_table`.
    extra : sequence of str
        More columns, read as text, just as they are written.
    label : str or None
        Label column, read as the model's classes are.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    TableReader

    Raises
    ------
    TableError
        If columns are missing; the nearest name is said.
    """
    if not isinstance(model, TableClassifier):
        raise TableError(
            f"The model is a {type(model).__name__}, not one made by covshift adapt: it takes "
            "arrays. Use it in Python, covshift.load."
        )
    kinds: dict[str, Kind] = dict(model.schema_.kinds)
    wanted: dict[str, Kind] = {name: "text" for name in extra}
    if label is not None:
        wanted[label] = class_kind(model.classes_)
    # A column of the model keeps its kind.
    schema = TableSchema({**wanted, **kinds}, model.decimal_)
    reader = open_table(path, schema=schema, allow_absent=True, **options)
    for names, others in ((wanted, [*reader.schema.kinds]), (kinds, [])):
        absent = [name for name in names if name not in reader.schema.kinds]
        if absent:
            raise table_error(path, _absent(absent, [*reader.other_names, *others]))
    return reader


def _absent(absent: list[str], others: list[str]) -> str:
    """Say which columns are missing, and what there is instead."""
    close = difflib.get_close_matches(absent[0], others, n=1)
    if close:
        return f"has no column {listed(absent)}; is it {listed(close)}?"
    return f"has no column {listed(absent)}{f'; it has {listed(others)}' if others else ''}."


def notes_of(model: TableClassifier, reader: TableReader) -> list[str]:
    """Return the notes of a file that was read, one on a label column that was not among them."""
    notes = list(reader.notes)
    if empty := [name for name in model.schema_.kinds if name in reader.empty_names]:
        notes.append(
            f"No row has a value in {listed(empty)}, which the model reads: what is usual in the "
            "training table stands in for all."
        )
    if model.label_ is not None and model.label_ in reader.other_names:
        notes.append(f"The file has a column {listed([model.label_])}: it is not read.")
    return notes


def read_most(reader: TableReader) -> Table:
    """Return all rows of a reader, or a sample if they are more than 20 million cells."""
    return read_rows(reader, default_rows(len(reader.schema.kinds)))
