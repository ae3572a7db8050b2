"""One table split in two: the rows of a domain, or the later rows, are the target."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.kernels.arrays import BoolArray
from covshift.tables.cells import MISSING
from covshift.tables.columns import column_days, column_kind, column_numbers
from covshift.tables.domain_codes import domain_texts
from covshift.tables.errors import TableError, listed
from covshift.tables.extra import pandas as pd


@dataclass(frozen=True)
class Split:
    """How one table becomes training rows and target rows.

    Attributes
    ----------
    target_domain : names of the domains that are the target.
    time : column by which rows are split; a date or a number.
    train_before : rows before this date, or number, are training rows; or the share of the rows,
        the earliest ones, that are.
    """

    target_domain: Sequence[str] = ()
    time: str | None = None
    train_before: str | None = None

    def __post_init__(self) -> None:
        if (self.time is None) != (self.train_before is None):
            raise TableError("--time COLUMN and --train-before DATE belong together.")
        if bool(self.target_domain) == (self.time is not None):
            raise TableError(
                "One table needs a split: --target-domain NAME with --domain COLUMN, or --time "
                "COLUMN with --train-before DATE. Otherwise name a second table."
            )

    def target_rows(
        self,
        frame: Any,
        domain: str | None,
        notes: list[str],
        missing: Sequence[str] = MISSING,
    ) -> BoolArray:
        """Return which rows are the target; add notes."""
        if self.time is not None:
            found = self._later_rows(frame, notes)
        else:
            found = self._rows_of_domains(frame, domain, missing)
        if found.all() or not found.any():
            raise TableError(
                f"The split leaves {int((~found).sum())} training rows and {int(found.sum())} "
                "target rows; both are needed."
            )
        notes.append(
            f"Split the table into {int((~found).sum()):,} training rows and "
            f"{int(found.sum()):,} target rows, whose labels are not read."
        )
        return found

    def _rows_of_domains(self, frame: Any, domain: str | None, missing: Sequence[str]) -> BoolArray:
        if domain is None:
            raise TableError("--target-domain needs --domain COLUMN, the column that holds it.")
        names = np.array(domain_texts(frame[domain], missing), dtype=object)
        known = sorted(set(names))
        for name in self.target_domain:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"is it {listed(close)}?" if close else f"it has {listed(known)}."
                raise TableError(
                    f"Column {listed([domain])} has no domain {listed([name])}; {hint}"
                )
        return np.isin(names, list(self.target_domain))

    def _later_rows(self, frame: Any, notes: list[str]) -> BoolArray:
        assert self.time is not None
        assert self.train_before is not None
        name = listed([self.time])
        if self.time not in frame.columns:
            raise TableError(f"--time: the table has no column {name}.")
        kind = column_kind(frame[self.time])
        if kind not in ("date", "number"):
            raise TableError(f"--time: column {name} holds {kind}, not dates or numbers.")
        read = column_days if kind == "date" else column_numbers
        times = read(frame[self.time])
        known = times[~np.isnan(times)]
        if not len(known):
            raise TableError(f"--time: column {name} has no values.")
        if len(known) < len(times):
            n_unknown = len(times) - len(known)
            notes.append(f"{n_unknown:,} rows have no value in {name}: they are training rows.")
        later = np.zeros(len(times), dtype=bool)
        later[~np.isnan(times)] = known >= self._threshold(known, kind)
        return later

    def _threshold(self, times: Any, kind: str) -> float:
        assert self.train_before is not None
        share = _number(self.train_before)
        if share is not None and 0 < share < 1:
            # The first time that is not among the earliest rows; rows of one time stay together.
            return float(np.sort(times)[min(int(np.ceil(share * len(times))), len(times) - 1)])
        if kind == "number":
            if share is None:
                raise TableError(
                    f"--train-before: {listed([self.train_before])} is not a number, and column "
                    f"{listed([self.time])} holds numbers."
                )
            return share
        try:
            date = pd.Timestamp(self.train_before)
        except ValueError:
            date = pd.NaT
        if pd.isna(date):
            raise TableError(
                f"--train-before: {listed([self.train_before])} is not a date, as 2024-05-31 is, "
                "nor a share of the rows between 0 and 1."
            )
        if date.tzinfo is not None:
            date = date.tz_convert("UTC").tz_localize(None)
        return float((date - pd.Timestamp(0)) / pd.Timedelta(days=1))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
