"""Files read as a saved model wants them: its columns, and some more that are asked for."""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from covshift.kernels.arrays import IntArray
from covshift.tables.cells import Kind
from covshift.tables.departures import Departures
from covshift.tables.domain_codes import domain_texts, known_numbers
from covshift.tables.errors import TableError, listed, table_error
from covshift.tables.estimator import TableEstimator
from covshift.tables.labels import label_kind
from covshift.tables.reading import Table, open_table, read_rows
from covshift.tables.row_sample import default_rows
from covshift.tables.table_reader import TableReader

NO_PLAIN_MODEL = (
    "The model file holds no plain model to compare with: version 0.1 kept none. Run covshift "
    "adapt TRAIN NEW again to have one."
)
CHUNK_ROWS = 50_000  # of which some models need a matrix of kernels


class ModelReader:
    """A file opened for a model: its rows in pieces, the domain of each row, and notes.

    Attributes
    ----------
    reader : TableReader
        Reader of the file.
    domain : str or None
        Column that names each row's domain, if there is one.
    domains_seen : Counter of str
        Rows of each domain so far.
    departures : Departures
        Values in the rows read so far that the model does not know.
    """

    def __init__(self, model: TableEstimator, reader: TableReader, domain: str | None):
        self.model = model
        self.reader = reader
        self.domain = domain
        self.domains_seen: Counter[str] = Counter()
        self.departures = Departures(model)

    def chunks(self) -> Iterator[Any]:
        """Yield record batches of a size that any model can predict."""
        for batch in self.reader.batches():
            for start in range(0, batch.num_rows, CHUNK_ROWS):
                chunk = batch.slice(start, CHUNK_ROWS)
                self.departures.add(chunk)
                yield chunk

    def domain_names(self, rows: Any) -> list[str] | None:
        """Return the domain of each row of a batch or frame; None: no column names them."""
        if self.domain is None:
            return None
        column = rows[self.domain] if hasattr(rows, "columns") else rows.column(self.domain)
        names = domain_texts(column, self.model.schema_.missing)
        self.domains_seen.update(names)
        return names

    def domain_numbers(self, rows: Any) -> IntArray | None:
        """Return the domain of each row as the model's ``predict`` takes it."""
        names = self.domain_names(rows)
        return None if names is None else self.model.domain_numbers(names)

    def notes(self, *, labels_read: bool = False) -> list[str]:
        """Return the notes of a file that was read; ``labels_read``: also its labels were."""
        model, reader = self.model, self.reader
        notes = [*reader.notes, *self.departures.notes()]
        if empty := [name for name in model.schema_.kinds if name in reader.empty_names]:
            notes.append(
                f"No row has a value in {listed(empty)}, which the model reads: what is usual in "
                "the training table stands in for all."
            )
        if not labels_read and model.label_ is not None and model.label_ in reader.other_names:
            notes.append(f"The file has a column {listed([model.label_])}: it is not read.")
        known = known_numbers(model.domain_names_)
        strangers = {name: n for name, n in self.domains_seen.items() if name not in known}
        if strangers:
            notes.append(
                f"{sum(strangers.values())} rows are of domains that the model does not know "
                f"({listed(strangers, 3)}): treated as rows of the target as a whole."
            )
        if self.domain is None and model.domain_ is not None:
            notes.append(
                f"The file has no column {listed([model.domain_])}, which named the domains in "
                "training: its rows are treated as rows of the target as a whole."
            )
        return notes


def open_for_model(
    model: Any,
    path: Any,
    *,
    extra: Sequence[str] = (),
    label: str | None = None,
    domain: str | None = None,
    **options: Any,
) -> ModelReader:
    """Open a file for a model, chunk by chunk.

    Parameters
    ----------
    model : TableEstimator
        Whose columns and kinds are read.
    path : path
        As in `open_table`.
    extra : sequence of str
        More columns, read as text, just as they are written.
    label : str or None
        Label column, read as the model's classes are.
    domain : str or None
        Column that names each row's domain. None: that of the training table, if the file has it.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    ModelReader

    Raises
    ------
    TableError
        If columns are missing; the nearest name is said.
    """
    _check_kind(model)
    own = model.schema_
    kinds: dict[str, Kind] = dict(own.kinds)
    column = domain or model.domain_
    wanted: dict[str, Kind] = {name: "text" for name in [*extra, *([domain] if domain else [])]}
    spellings = dict(own.spellings)
    if label is not None:
        wanted[label] = label_kind(getattr(model, "classes_", None), model.label_edges_)
        if model.label_spelling_ and wanted[label] == "number":
            spellings[label] = model.label_spelling_
    # A column of the model keeps its kind.
    read = {**({column: "text"} if column else {}), **wanted, **kinds}
    schema = replace(own, kinds=cast(dict[str, Kind], read), spellings=spellings)
    reader = open_table(path, schema=schema, allow_absent=True, **options)
    for names, others in ((wanted, [*reader.schema.kinds]), (kinds, [])):
        absent = [name for name in names if name not in reader.schema.kinds]
        if absent:
            raise table_error(path, _absent(absent, [*reader.other_names, *others]))
    return ModelReader(model, reader, column if column in reader.schema.kinds else None)


def _absent(absent: list[str], others: list[str]) -> str:
    """Say which columns are missing, and what there is instead."""
    close = difflib.get_close_matches(absent[0], others, n=1)
    if close:
        return f"has no column {listed(absent)}; is it {listed(close)}?"
    return f"has no column {listed(absent)}{f'; it has {listed(others)}' if others else ''}."


def plain_model(model: Any) -> TableEstimator:
    """Return the plain model of one made by ``covshift adapt``, or say that it has none."""
    _check_kind(model)
    if model.plain_ is None:
        raise TableError(NO_PLAIN_MODEL)
    plain: TableEstimator = model.plain_
    return plain


def _check_kind(model: Any) -> None:
    if not isinstance(model, TableEstimator):
        raise TableError(
            f"The model is a {type(model).__name__}, not one made by covshift adapt: it takes "
            "arrays. Use it in Python, covshift.load."
        )


def read_most(reader: TableReader) -> Table:
    """Return all rows of a reader, or a sample if they are more than 20 million cells."""
    return read_rows(reader, default_rows(len(reader.schema.kinds)))
