"""Records of trials as one table, in a file that other programs read."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO, Any

from covshift.experiments.store import Record
from covshift.output_files import write_whole

TIMINGS = ("finished", "task_seconds")


def write_table(
    records: Iterable[Record], path: str | os.PathLike[str], *, timings: bool = False
) -> None:
    """Write records as CSV or JSON, after the ending of the file's name.

    The same results give the same bytes, however they were run, unless timings are asked for.

    Parameters
    ----------
    records : iterable of Record
        As `load_results` returns them, or some of these.
    path : path
        File to write, ending in ``.csv`` or ``.json``. An old one is replaced when the new one
        is whole.
    timings : bool, default=False
        Whether to add when each trial was finished and the seconds that its task took.

    Notes
    -----
    CSV: a column for each setting, ``settings.name``, and each result, ``result.name``, empty
    where a trial has none. Strings stand as they are; everything else as JSON. JSON: a list of
    objects. Not-a-number and infinities, which JSON has not, are the strings "NaN", "Infinity"
    and "-Infinity" there. Floats are exact in both.
    """
    path = Path(path)
    rows = [_row(record, timings) for record in records]
    writers = {".csv": _write_csv, ".json": _write_json}
    if path.suffix not in writers:
        raise ValueError(f"the name of a table must end in .csv or .json, got {path.name!r}.")
    write_whole(path, partial(writers[path.suffix], rows))


def _row(record: Record, timings: bool) -> dict[str, Any]:
    trial = record.trial
    row: dict[str, Any] = {
        "experiment": trial.experiment,
        "settings": trial.settings,
        "seed": trial.seed,
        "result": record.result,
        "error": record.error,
    }
    if timings:
        row |= dict(zip(TIMINGS, (record.finished, record.seconds), strict=True))
    return row


def _write_json(rows: list[dict[str, Any]], file: IO[bytes]) -> None:
    text = json.dumps(_strict(rows), indent=1, allow_nan=False)
    file.write(f"{text}\n".encode())


def _write_csv(rows: list[dict[str, Any]], file: IO[bytes]) -> None:
    flat = [_flattened(row) for row in rows]
    names = sorted({name for row in flat for name in row})
    settings, results = (
        [name for name in names if name.startswith(part)] for part in ("settings.", "result.")
    )
    timings = [name for name in TIMINGS if name in names]
    heading = ["experiment", *settings, "seed", *results, "error", *timings]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, heading, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in flat)
    file.write(text.getvalue().encode(errors="backslashreplace"))


def _flattened(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("settings", "result"):
            flat |= {f"{name}.{part}": cell for part, cell in (value or {}).items()}
        else:
            flat[name] = value
    return flat


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _strict(value: Any) -> Any:
    """Replace what strict JSON has no number for."""
    if isinstance(value, dict):
        return {key: _strict(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_strict(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value
