"""Labeling rows of a table one by one: which row is next, what the model says, labels on the disk.

Rows are drawn at random, in an order that the seed fixes: of six rules to choose rows, none was
better than that at everything, and labels of rows that are chosen for their difficulty say a wrong
accuracy (``docs/results/selection.md``). The first 20 rows of 40 are those of 20.

Each label is a line of a CSV file with the columns ``row_to_label`` and the label, as ``covshift
adapt --labels`` and ``covshift monitor --labels`` read it. It is on the disk before the next row is
shown. Labels in the file at the start of a session are from earlier sessions.
"""

import csv
import io
import re
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import check_random_state

from covshift.base import check_count
from covshift.measures.labeled_scores import score_predictions
from covshift.output_files import append_locked
from covshift.tables.label_column import match_spellings
from covshift.tables.label_files import ROW
from covshift.tables.messages import TableError, listed, one_line, table_error
from covshift.tables.model_reader import open_for_model
from covshift.tables.monitoring_batch import Sample
from covshift.tables.monitoring_series import MAX_ESTIMATE_ROWS
from covshift.tables.reading import open_table
from covshift.tables.schema import TableSchema
from covshift.tables.table_models import (
    TARGET,
    TableClassifier,
    estimate_score,
    objective_of,
    predict_encoded,
)
from covshift.tables.text_layout import plain_name

MAX_CELL = 300  # characters of a cell that are shown
N_ROWS = 20
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")  # of a row, as sessions write it


class LabelingSession:
    """Rows of a table that are labeled one by one.

    Parameters
    ----------
    model : TableClassifier
        From `covshift.load`; knows its label column.
    path : path
        The table.
    out : path
        File of labels, made if missing; labels that it has stay.
    n_rows : int, default=20
        Rows to label.
    domain : str or None, default=None
        Column that names each row's domain; None: that of the training table, if the file has it.
    seed : int, default=0
        Which rows, and in which order.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Attributes
    ----------
    classes : list of str
        As they are written to the file.
    rows : list of int
        Numbers of the rows to label, in their order; the first row of the table is 1.
    labels : dict of int to str
        Labels in the file, by the number of the row.
    """

    def __init__(
        self,
        model: TableClassifier,
        path: Any,
        out: Any,
        *,
        n_rows: int = N_ROWS,
        domain: str | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        check_count("--rows", n_rows, minimum=1)
        if model.label_ is None:
            raise TableError("The model does not know its label column.")
        if is_regressor(model):
            raise TableError(
                "The page shows classes to choose from, and this model predicts numbers: fill in "
                "numbers in the file of covshift diagnose --to-label instead."
            )
        if model.label_edges_:
            raise TableError(
                "The model predicts ranges of a number (--bins): fill in numbers in the file of "
                "covshift diagnose --to-label instead."
            )
        self.model, self.path, self.out = model, path, Path(out)
        self.label = model.label_
        self.classes = [str(one) for one in model.classes_.tolist()]
        self._lock = Lock()
        self._sample, self.notes = _draw(model, path, domain, seed, options)
        self.rows = [int(one) + 1 for one in self._sample.numbers[:n_rows]]
        self._cells = _read_cells(path, self.rows, self.label, options)
        self._views = _view_rows(model, self._sample, len(self.rows))
        self.labels: dict[int, str] = {}
        append_locked(self.out, self._open)
        self._skipped: list[int] = []
        # Labels that "undo" takes back, the last one first: labels of earlier sessions, too.
        self._steps = [("label", row) for row in self.labels if row in self.rows]
        self.trail: list[dict[str, Any]] = []  # how the interval narrows
        self._remember()

    def state(self) -> dict[str, Any]:
        """Return what the page shows: the next row, progress, and the expected score."""
        with self._lock:
            return self._state()

    def give(self, row: int, number: int) -> dict[str, Any]:
        """Write the label of a row, by the number of its class; one that has a label keeps it."""
        with self._lock:
            if row not in self.rows:
                raise ValueError(f"Row {row} is not one of the rows to label.")
            if not 0 <= number < len(self.classes):
                raise ValueError(f"There is no class number {number}.")
            if row not in self.labels:
                label = self.classes[number]
                append_locked(self.out, lambda contents: (len(contents), _line(row, label)))
                self.labels[row] = label
                self._steps.append(("label", row))
                self._remember()
            return self._state()

    def skip(self, row: int) -> dict[str, Any]:
        """Show other rows first; a skipped row comes back when the session is started again."""
        with self._lock:
            if row in self.rows and row not in self.labels and row not in self._skipped:
                self._skipped.append(row)
                self._steps.append(("skip", row))
            return self._state()

    def undo(self) -> dict[str, Any]:
        """Take the last label back, out of the file, or bring back the row skipped last."""
        with self._lock:
            kind, row = self._steps[-1] if self._steps else ("", 0)
            if kind == "skip":
                self._skipped.remove(row)
            elif kind == "label":
                append_locked(self.out, lambda contents: _without(contents, row))
                del self.labels[row]
                self.trail = self.trail[:-1]
                if not self.trail:  # the label is of an earlier session
                    self._remember()
            self._steps = self._steps[:-1]
            return self._state()

    def _state(self) -> dict[str, Any]:
        row = self._next()
        given = sum(one in self.labels for one in self.rows)
        found: dict[str, Any] = {
            "label": self.label, "classes": self.classes, "total": len(self.rows), "given": given,
            "skipped": len(self._skipped), "objective": objective_of(self.model).replace("_", " "),
            "trail": self.trail, "row": None, "file": self.out.name,
        }  # fmt: skip
        if row is not None:
            place = self.rows.index(row)
            found["row"] = {"number": row, "cells": self._cells[row], **self._views[place]}
        return found

    def _next(self) -> int | None:
        left = [row for row in self.rows if row not in self.labels and row not in self._skipped]
        return left[0] if left else None

    def _remember(self) -> None:
        """Add the score that is expected with the labels so far to the trail."""
        n_labels = sum(one in self.labels for one in self.rows)
        entry: dict[str, Any] = {"labels": n_labels, "right": self._n_right()}
        if n_labels:
            entry["observed"] = self._observed()
        y_known = np.full(len(self._sample.rows), None, dtype=object)
        for place, row in enumerate(self.rows):
            if row in self.labels:
                y_known[place] = self.model.classes_[self.classes.index(self.labels[row])]
        try:
            estimate = estimate_score(
                self.model, self._sample.rows, self._sample.domain, y_known if n_labels else None
            )
        except ValueError as error:
            entry["no_estimate"] = one_line(error, 300)
        else:
            names = ("value", "low", "high", "reference")
            entry["expected"] = {name: float(getattr(estimate, name)) for name in names}
        self.trail = [*self.trail, entry]

    def _n_right(self) -> int:
        pairs = zip(self.rows, self._views, strict=True)
        return sum(self.labels.get(row) == view["predicted"] for row, view in pairs)

    def _observed(self) -> dict[str, float]:
        known = [i for i, row in enumerate(self.rows) if row in self.labels]
        truth = [self.labels[self.rows[i]] for i in known]
        predicted = [self._views[i]["predicted"] for i in known]
        scored: dict[str, float] = score_predictions(truth, predicted)[objective_of(self.model)]
        return scored

    def _open(self, contents: bytes) -> tuple[int, bytes]:
        """Take over the labels of a file; begin one that is empty; drop a line cut short."""
        header = _csv_line([ROW, self.label])
        n_whole = contents.rfind(b"\n") + 1
        if not n_whole:
            if contents and not header.startswith(contents):
                raise self._not_ours()
            return 0, header
        lines = list(csv.reader(io.StringIO(contents[:n_whole].decode("utf-8-sig"))))
        if list(map(plain_name, lines[0])) != [ROW, self.label]:
            raise self._not_ours()
        for number, label in map(self._read_line, filter(None, lines[1:])):
            if not 1 <= (row := int(number)) <= self._sample.n_seen:
                raise table_error(
                    self.out,
                    f"row {one_line(number, 20)} is not a row of {one_line(Path(self.path).name)}, "
                    f"whose last is {self._sample.n_seen}: correct it, or name another file with "
                    "--out.",
                )
            if self.labels.setdefault(row, label) != label:
                raise table_error(
                    self.out,
                    f"row {row} has two labels, {listed([self.labels[row], label])}: remove the "
                    "line that is wrong.",
                )
        return n_whole, b""

    def _read_line(self, line: list[str]) -> tuple[str, str]:
        """Return the number of a row as it is written, and its label as the class is."""
        if len(line) == 2 and NUMBER.fullmatch(line[0]):
            (label,) = match_spellings(line[1:], self.classes)
            if label in self.classes:
                return line[0], label
        raise table_error(
            self.out,
            f"the line {one_line(','.join(line))!r} is not a number of a row and one of "
            f"{listed(self.classes)}: correct it, or name another file with --out.",
        )

    def _not_ours(self) -> TableError:
        return table_error(
            self.out,
            f"is another file: its columns are not {listed([ROW, self.label])}. Name another one "
            "with --out.",
        )


def _without(contents: bytes, row: int) -> tuple[int, bytes]:
    """Return what to keep of a file of labels without a row's, and what to append again."""
    lines = contents.splitlines(keepends=True)
    starts = [one.split(b",", 1)[0].strip(b'"') for one in lines]  # spreadsheets may quote
    places = [i for i, one in enumerate(starts) if one == b"%d" % row]
    if not places:  # somebody else took it out
        return len(contents), b""
    start = sum(map(len, lines[: places[-1]]))
    return start, b"".join(lines[places[-1] + 1 :])


def _draw(
    model: TableClassifier, path: Any, domain: str | None, seed: int, options: dict[str, Any]
) -> tuple[Sample, list[str]]:
    """Return rows of a table in random order, encoded, and notes of reading."""
    reader = open_for_model(model, path, domain=domain, **options)
    sample = Sample(MAX_ESTIMATE_ROWS, check_random_state(seed))
    for chunk in reader.chunks():
        Z, numbers = model.encode(chunk), reader.domain_numbers(chunk)
        sample.add(Z, np.full(len(Z), TARGET) if numbers is None else numbers)
    if not sample.n_seen:
        raise table_error(path, "has no rows.")
    return sample, reader.notes()


def _read_cells(
    path: Any, rows: list[int], label: str, options: dict[str, Any]
) -> dict[int, list[tuple[str, str]]]:
    """Return the cells of rows as they are written, by the number of the row."""
    names = [name for name in open_table(path, **options).schema.kinds if name != label]
    reader = open_table(path, schema=TableSchema(dict.fromkeys(names, "text")), **options)
    found: dict[int, list[tuple[str, str]]] = {}
    wanted, start = np.array(sorted(rows)) - 1, 0
    for frame in reader:
        here = wanted[(wanted >= start) & (wanted < start + len(frame))] - start
        for place in here.tolist():
            cells = frame.iloc[place]
            found[start + place + 1] = [
                (one_line(name, 100), "" if cells[name] is None else _shown(cells[name]))
                for name in names
            ]
        start += len(frame)
    return found


def _shown(cell: Any) -> str:
    return "" if cell != cell or str(cell) == "<NA>" else one_line(cell, MAX_CELL)


def _view_rows(model: TableClassifier, sample: Sample, n_rows: int) -> list[dict[str, Any]]:
    """Return what the model says of the first rows: the class, and probabilities if it has any."""
    Z, domain = sample.rows[:n_rows], sample.domain[:n_rows]
    codes = predict_encoded(model, Z, domain).codes
    P: Any = [None] * len(Z)
    if hasattr(model.estimator_, "predict_proba"):
        where = None if (domain == TARGET).all() else domain
        P = np.round(model.estimator_.predict_proba(Z, sample_domain=where), 4).tolist()
    return [
        {"predicted": str(model.classes_[code]), "probabilities": p}
        for code, p in zip(codes.tolist(), P, strict=True)
    ]


def _csv_line(cells: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _line(row: int, label: str) -> bytes:
    return _csv_line([str(row), label])
