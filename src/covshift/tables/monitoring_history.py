"""The history of batches that a model was monitored on: a file of JSON lines that only grows.

A line is written in one go under a lock and is on the disk before the command ends
(`covshift.output_files.append_locked`), so that several processes may write to one file and a kill
costs at most the line that was being written. There are two kinds of lines:

=========  ==================================================================================
batch      what was found of a batch: its ``key`` is made of its name, its contents and the model
labels     what labels of a batch showed later; ``of`` is the key of the batch
=========  ==================================================================================

A line whose key is there already is not written again: running a command twice changes nothing.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from covshift.output_files import append_locked
from covshift.tables.messages import TableError

FORMAT = 1
LINE_START = b'{"covshift_history"'  # of every line
BATCH, LABELS = "batch", "labels"
LABEL_FIELDS = ("n_labels", "observed", "updated", "covered")  # of a line of labels


class History(NamedTuple):
    """Batches in the order in which they were first written, labels included, and notes."""

    batches: list[dict[str, Any]]
    notes: list[str]


def batch_key(*parts: str) -> str:
    """Return the key of a batch in a history: no two lists of its parts have the same text.

    Examples
    --------
    >>> from covshift.tables.monitoring_history import batch_key
    >>> batch_key("a", "bc") == batch_key("ab", "c")
    False
    """
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def append_history(path: Any, lines: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Append lines to a history, those that it has not yet.

    Parameters
    ----------
    path : path
        The file, made if missing.
    lines : sequence of mappings
        Plain data, each with ``kind`` and ``key``.

    Returns
    -------
    list of bool
        For each line whether it was written; if not, it was there.

    Raises
    ------
    TableError
        If the file is not a history.
    """
    added: list[bool] = []

    def compose(contents: bytes) -> tuple[int, bytes]:
        known, _, n_whole = _parse(path, contents)
        keys = {line["key"] for line in known}
        text = "" if not n_whole or contents[n_whole - 1 : n_whole] == b"\n" else "\n"
        for line in lines:
            added.append(line["key"] not in keys)
            if added[-1]:
                keys.add(line["key"])
                text += json.dumps({"covshift_history": FORMAT, **line}, allow_nan=False) + "\n"
        return n_whole, text.encode()

    append_locked(Path(path), compose)
    return added


def read_history(path: Any) -> History:
    """Read the batches of a history, each with the last labels that arrived for it.

    Of several lines about one period of time, or about the same batch and another model, the last
    one counts.

    Parameters
    ----------
    path : path
        From `append_history`; a file that does not exist yet is an empty history.

    Returns
    -------
    History
    """
    path = Path(path)
    if not path.exists():
        return History([], [])
    lines, n_damaged, n_whole = _parse(path, contents := path.read_bytes())
    notes = []
    if n_damaged:
        notes.append(f"{path.name}: ignored {n_damaged} damaged lines of the history.")
    if n_whole < len(contents):
        notes.append(
            f"{path.name}: ignored the last line, which was not written completely. The next "
            "batch replaces it; run that command again."
        )
    batches = {line["key"]: dict(line) for line in lines if line["kind"] == BATCH}
    for line in lines:
        if line["kind"] == LABELS and line["of"] in batches:
            batches[line["of"]] |= {name: line.get(name) for name in LABEL_FIELDS}
    latest: dict[str, dict[str, Any]] = {}
    for line in batches.values():
        latest[_place(line)] = line  # keeps the place of the first line
    return History(_in_order(list(latest.values())), notes)


def _place(line: Mapping[str, Any]) -> str:
    """Return what a batch is shown as: its period, or else its name and contents."""
    period = line.get("period")
    return f"period {period}" if period else f"file {line['name']} {line['digest']}"


def _in_order(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put batches that are periods of time in their order, if all of them are."""
    if all(line.get("period") for line in batches):
        return sorted(batches, key=lambda line: str(line["period"]))
    return batches


def _parse(path: Any, contents: bytes) -> tuple[list[dict[str, Any]], int, int]:
    """Return the lines, the number of damaged ones, and the bytes of all whole lines.

    A last line without a line break counts if it is complete: an editor may have left it so.
    """
    lines: list[dict[str, Any]] = []
    n_damaged = 0
    *whole, rest = contents.split(b"\n")
    for text in whole:
        line = _read_line(text)
        if line is not None:
            lines.append(line)
        elif text.strip():
            n_damaged += 1
    n_whole = len(contents) - len(rest)
    if (last := _read_line(rest)) is not None:
        lines.append(last)
        n_whole = len(contents)
    is_torn = n_whole < len(contents) and rest.startswith(LINE_START[: len(rest)])
    if not lines and (n_damaged or (n_whole < len(contents) and not is_torn)):
        raise TableError(
            f"{path} is not a history of covshift monitor: name another file with --history."
        )
    return lines, n_damaged, n_whole


def _read_line(text: bytes) -> dict[str, Any] | None:
    """Return a line of a history; None: it is damaged."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or line.get("covshift_history") != FORMAT:
        return None
    kind = line.get("kind")
    fields = FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None or not all(is_like(line.get(name)) for name, is_like in fields.items()):
        return None
    return line


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_features(value: Any) -> bool:
    """Return whether they are names; lines of 0.1 have an object with the name for each."""
    return isinstance(value, list) and all(
        _is_text(one.get("feature") if isinstance(one, dict) else one) for one in value
    )


def _is_score(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(value.get(name)) for name in INTERVAL)


def _or_none(is_like: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_like(value)


# Fields that reports and later commands read, each with what it must be like.
INTERVAL = ("value", "low", "high")
FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    BATCH: {
        "key": _is_text, "name": _is_text, "digest": _is_text, "period": _or_none(_is_text),
        "rows": _is_count, "moved": _is_flag, "what_moved": _are_texts, "features": _are_features,
        "estimate": _or_none(_is_score), "reference": _or_none(_is_number),
    },
    LABELS: {
        "key": _is_text, "of": _is_text, "n_labels": _is_count, "observed": _or_none(_is_score),
        "updated": _or_none(_is_score), "covered": _or_none(_is_flag),
    },
}  # fmt: skip


def history_lines(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a history keeps of the batches of `monitor_series`, as plain data."""
    checked = datetime.now(UTC).isoformat(timespec="seconds")
    kept = (
        "name", "period", "digest", "model", "rows", "moved", "pvalue", "level", "what_moved",
        "estimate", "reference", "key",
    )  # fmt: skip
    lines: list[dict[str, Any]] = []
    for one in found["batches"]:
        line = {"kind": BATCH, "checked": checked, "objective": found["objective"]}
        line |= {name: one[name] for name in kept}
        line["features"] = [feature["feature"] for feature in one["features"]]
        lines.append(line)
        if one["n_labels"]:
            lines.append(
                {
                    "kind": LABELS,
                    "key": batch_key(one["key"], one["labels_digest"]),
                    "of": one["key"],
                    "checked": checked,
                    **{name: one[name] for name in ("n_labels", "observed", "updated", "covered")},
                }
            )
    return lines


def count_covered(batches: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Count the batches of a history whose labels tell whether the interval covered the score."""
    told = [one["covered"] for one in batches if one.get("covered") is not None]
    return {"batches": len(told), "covered": sum(told)}
