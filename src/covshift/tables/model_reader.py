"""Files read as a saved model wants them: its columns, and some more that are asked for.

Values that the model does not know (a word never seen, a number far out) are counted while rows
are read, and named in a note.
"""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from covshift.kernels.array_types import IntArray
from covshift.tables.columns import Kind, as_columns, column_categories, domain_texts
from covshift.tables.encoder import OTHER_NAME
from covshift.tables.label_column import label_kind
from covshift.tables.matching import case_hint
from covshift.tables.messages import TableError, listed, table_error
from covshift.tables.reading import TableReader, open_table
from covshift.tables.table_models import TableEstimator, known_numbers
from covshift.tables.table_words import NO_PLAIN_MODEL
from covshift.tables.text_layout import plain_name

# --- Values in the rows of a file that a model does not know, counted while they are read ---
#
# - texts that no training row has;
# - numbers outside the range of the training rows and of the target rows kept in the model;
# - missing values in columns that had none.
#
# `adapt`, `predict`, `score` and `monitor` report the same.


MIN_SHARE_OUTSIDE = 0.05  # of rows outside the range; a few always are
MAX_REMEMBERED_TEXTS = 1000
MAX_OUTSIDE = 10  # columns outside their range with a note each; more share one


class Departures:
    """Counts over the batches of a file, for a model.

    Parameters
    ----------
    model : TableEstimator
        Fitted. Facts that older models did not keep are not reported.
    """

    def __init__(self, model: TableEstimator):
        self._encoder = model.encoder_
        self._known = self._encoder.known_texts()
        self._ranges = _ranges(model)
        self.n_rows = 0
        self.unseen: dict[str, Counter[str]] = {name: Counter() for name in self._known}
        self.n_unseen: Counter[str] = Counter()
        self.n_outside: Counter[str] = Counter()
        self.n_missing: Counter[str] = Counter()

    def add(self, rows: Any) -> None:
        """Count one batch of Arrow, or one frame."""
        columns, n_rows = as_columns(rows)
        self.n_rows += n_rows
        for name, known in self._known.items():
            texts, places = column_categories(columns[name], self._encoder.missing_)
            strange = [i for i, text in enumerate(texts) if text is not None and text not in known]
            if strange:
                counts = np.bincount(places, minlength=len(texts))
                self._count_unseen(name, {texts[i]: int(counts[i]) for i in strange})
        for name, (low, high) in self._ranges.items():
            if _lies_within(columns[name], low, high):
                self.n_missing[name] += columns[name].null_count
                continue
            values = self._encoder.column_floats(columns[name], name)
            missing = np.isnan(values)
            self.n_missing[name] += int(missing.sum())
            if not missing.all() and (np.nanmin(values) < low or np.nanmax(values) > high):
                self.n_outside[name] += int(((values < low) | (values > high)).sum())

    def _count_unseen(self, name: str, counts: dict[Any, int]) -> None:
        self.n_unseen[name] += sum(counts.values())
        remembered = self.unseen[name]
        for text, count in counts.items():
            if count and (text in remembered or len(remembered) < MAX_REMEMBERED_TEXTS):
                remembered[text] += count

    def notes(self) -> list[str]:
        """Return what was found, in plain sentences."""
        notes = []
        for name, count in self.n_unseen.items():
            if count:
                with_other = OTHER_NAME in self._encoder.categories_[name]
                fate = "count as '(other)'" if with_other else "have no effect there"
                notes.append(
                    f"Column {listed([name])}: {_of(count, self.n_rows, 'have')} values that no "
                    f"training row has ({listed(sorted(self.unseen[name]), 3)}); they {fate}."
                    + case_hint(self.unseen[name], self._known[name])
                )
        notes += self._outside_notes()
        for name, count in self.n_missing.items():
            usual = name in self._encoder.with_indicator_
            if MIN_SHARE_OUTSIDE * self.n_rows <= count < self.n_rows and not usual:
                notes.append(
                    f"Column {listed([name])}: {_of(count, self.n_rows, 'have')} no value, and all "
                    "training rows had one; the training median is used."
                )
        return notes

    def _outside_notes(self) -> list[str]:
        """Return a note for each column outside its range, or one for many."""
        least = MIN_SHARE_OUTSIDE * self.n_rows
        outside = {name: count for name, count in self.n_outside.items() if count >= least}
        if len(outside) > MAX_OUTSIDE:  # amplitudes of a spectrum leave their ranges together
            worst = sorted(outside, key=lambda name: -outside[name])
            note = (
                f"{len(outside):,} of {len(self._ranges):,} columns have values outside the range "
                f"that the model knows ({listed(worst, 3)}), the first in "
                f"{_of(outside[worst[0]], self.n_rows).strip()}."
            )
            if len(outside) > len(self._ranges) / 2:
                note += " Check units and sensors before you use the predictions."
            return [note]
        notes = []
        for name, count in outside.items():
            low, high = self._ranges[name]
            notes.append(
                f"Column {listed([name])}: {_of(count, self.n_rows, 'lie')} outside the range "
                f"that the model knows ({low:g} to {high:g})."
            )
        return notes


def _lies_within(column: Any, low: float, high: float) -> bool:
    """Whether a column is numbers of Arrow, all in the range: one pass, and nothing is converted.

    So are most batches of most files, and `predict` reads them all.
    """
    if not isinstance(column, pa.Array) or column.type != pa.float64():
        return False
    ends = pa.compute.min_max(column).as_py()
    return ends["min"] is None or bool(low <= ends["min"] and ends["max"] <= high)


def _of(count: int, n_rows: int, verb: str = "") -> str:
    """Return ``12 of 40 rows lie``, or of a file with one row ``the row lies``."""
    if n_rows == 1:
        return f"the row {({'have': 'has', 'lie': 'lies'}).get(verb, verb)}"
    return f"{f'all {n_rows:,}' if count == n_rows else f'{count:,} of {n_rows:,}'} rows {verb}"


def _ranges(model: TableEstimator) -> dict[str, tuple[float, float]]:
    """Return the range of each column of numbers, in training and target rows together."""
    ranges = dict(model.encoder_.ranges_)
    names = model.encoder_.get_feature_names_out().tolist()
    if len(model.reference_):
        lows, highs = model.reference_.min(axis=0), model.reference_.max(axis=0)
        for name, (low, high) in ranges.items():
            feature = names.index(name)
            ranges[name] = min(low, float(lows[feature])), max(high, float(highs[feature]))
    return {name: (low, high) for name, (low, high) in ranges.items()}


CHUNK_ROWS = 50_000  # read at a time; kernel machines compute a matrix for them


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
                f"No row has a value in {listed(empty)}, which the model reads: all rows get the "
                "usual value of the training table."
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
    """Open a file as a saved model reads it, chunk by chunk.

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
    domain = None if domain is None else plain_name(domain)
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
    """Return the plain model beside a saved one that reads files, or say that it has none."""
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
