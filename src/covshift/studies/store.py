"""Results of trials: each stored as its task ends, in one file, and written as one table.

The rollback journal is kept, not WAL: results stay in one file, which may lie on a network drive
and be copied as it is, and a commit of some milliseconds is nothing beside a task. SQLite's
exclusive lock is held as long as the file is open; the system drops it when the process
ends, however it ends, and forked workers do not inherit it. Only SQLite opens the
file: closing it elsewhere in the process would drop the lock.
"""

import csv
import io
import json
import math
import os
import sqlite3
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Self

from covshift._version import __version__
from covshift.output_files import prepare_folder, software_versions, temporary_beside, write_whole
from covshift.studies.trial import TaskOutcome, Trial, to_json

MIN_FREE_TRIAL_BYTES = 50_000_000  # some 50,000 trials
TIMINGS = ("finished", "task_seconds")
FORMAT = "1"
APPLICATION_ID = 0x636F7653  # "covS" in the file's header: no other program's database

# Each run is a row of `runs`, so that every trial says which versions computed it. The trials of
# a task share `task`; `task_size` tells whether all of them are still there.
SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        started TEXT NOT NULL, versions TEXT NOT NULL, settings TEXT NOT NULL
    )""",
    """CREATE TABLE trials (
        key TEXT PRIMARY KEY, task TEXT NOT NULL, task_size INTEGER NOT NULL,
        experiment TEXT NOT NULL, settings TEXT NOT NULL, seed INTEGER NOT NULL,
        result TEXT, error TEXT, traceback TEXT, warnings TEXT NOT NULL,
        seconds REAL NOT NULL, finished TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs
    )""",
)
WAY_OUT = "choose another file, or move or delete this one"
START_OVER = f"{WAY_OUT}, or start it over with fresh=True (--fresh)"


class StoreError(OSError):
    """A file of results cannot be used; the message says why and what to do."""


class MixedVersionsWarning(UserWarning):
    """Results of one file were computed with different versions of what they rest on."""


@dataclass(frozen=True)
class Record:
    """Stored result of one trial.

    Attributes
    ----------
    trial : Trial
        Measurements.
    result : dict, or None
        None if its task failed.
    error, traceback : str, or None
        Type and message of the exception, and where it came from.
    warnings : list of (str, str, int)
        Category, message and number of the warnings of its task.
    seconds : float
        Seconds that its task took, all trials of it together.
    finished : str
        When, in ISO format.
    """

    trial: Trial
    result: dict[str, Any] | None
    error: str | None
    traceback: str | None
    warnings: list[tuple[str, str, int]]
    seconds: float
    finished: str


class Store:
    """An open file of results, locked until it is closed; made by `open_store`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, run: int) -> None:
        self.path = path
        self.connection = connection
        self.run = run

    def finished_tasks(self) -> set[str]:
        """Return the keys of the tasks of which every trial is stored without an error."""
        # A task is finished as a whole. One that was stored with fewer trials than it has, or with
        # an error, is run again.
        query = (
            "SELECT task FROM trials GROUP BY task "
            "HAVING COUNT(*) = MAX(task_size) AND COUNT(error) = 0"
        )
        with _explaining(self.path):
            return {task for (task,) in self.connection.execute(query)}

    def save(self, trials: Sequence[Trial], outcome: TaskOutcome) -> None:
        """Store the outcome of one task in place of what there was: all of it, or nothing."""
        task = (task_key(trials), len(trials))
        shared = (json.dumps(outcome.warnings), outcome.seconds, _now(), self.run)
        # A task that failed has rows, too, so that the error can be shown and counted.
        results: Sequence[str | None] = outcome.results or [None] * len(trials)
        rows = [
            (
                *(trial.key, *task, trial.experiment, trial.settings_json, trial.seed),
                *(result, outcome.error, outcome.traceback, *shared),
            )
            for trial, result in zip(trials, results, strict=True)
        ]
        marks = ", ".join("?" * len(rows[0]))
        with _explaining(self.path), _transaction(self.connection):
            self.connection.executemany(f"INSERT OR REPLACE INTO trials VALUES ({marks})", rows)

    def records(self) -> list[Record]:
        """Return all that is stored, sorted by experiment, settings (as JSON) and seed."""
        with _explaining(self.path):
            return _records(self.connection)

    def close(self) -> None:
        """Close the file and give up its lock."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def task_key(trials: Sequence[Trial]) -> str:
    """Return the key that stores results of these trials, computed together in this order."""
    return sha256(" ".join(trial.key for trial in trials).encode()).hexdigest()


def open_store(
    path: str | os.PathLike[str],
    *,
    fresh: bool = False,
    run_settings: Mapping[str, Any] | None = None,
) -> Store:
    """Open a file of results to add to it, or make one, and lock it.

    Parameters
    ----------
    path : path
        The file. Its folder is made if missing.
    fresh : bool, default=False
        Whether to drop results of earlier runs. Other files are refused all the
        same.
    run_settings : mapping of str to plain data, default=None
        Settings of this run, such as those of the command line, to be recorded.

    Returns
    -------
    Store

    Raises
    ------
    StoreError
        If the folder cannot be written to or has less than 50 MB of room, or the file is in
        use, of another version of covshift, or not one of results.
    """
    path = Path(path)
    # Before the file is touched: settings that cannot be stored are an error of the caller.
    settings = to_json(run_settings or {}, "run_settings", finite=False)
    try:
        prepare_folder(path.parent, MIN_FREE_TRIAL_BYTES)
        if not path.exists():
            _make(path)
    except StoreError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"cannot write to the folder {path.parent}: {reason}.") from error
    connection = _connect(path)
    try:
        with _explaining(path), _transaction(connection, "EXCLUSIVE"):
            _check_origin(path, connection)
            # After the check of the origin: --fresh must not delete the database of another
            # program.
            if fresh:
                _write_schema(connection)
            _check_version(path, _check_format(path, connection))
            versions = software_versions()
            _warn_of_other_versions(path, connection, versions)
            cursor = connection.execute(
                "INSERT INTO runs (started, versions, settings) VALUES (?, ?, ?)",
                (_now(), json.dumps(versions), settings),
            )
        return Store(path, connection, int(cursor.lastrowid or 0))
    except BaseException:
        connection.close()
        raise


def load_results(path: str | os.PathLike[str]) -> list[Record]:
    """Read a file of results, which may be of another version of covshift.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of Record
        Sorted by experiment, settings (as JSON) and seed: the order does not depend on how the
        trials were run. Failed trials are among them.
    """
    path = Path(path)
    if not path.exists():
        raise StoreError(f"there is no file {path}.")
    with closing(_connect(path)) as connection, _explaining(path):
        _check_origin(path, connection)
        _check_format(path, connection)
        return _records(connection)


def stored_experiments(path: str | os.PathLike[str]) -> set[str]:
    """Return the names of the experiments that a file of results holds; none if it is missing."""
    path = Path(path)
    if not path.exists():
        return set()
    with closing(_connect(path)) as connection, _explaining(path):
        _check_origin(path, connection)
        _check_format(path, connection)
        return {name for (name,) in connection.execute("SELECT DISTINCT experiment FROM trials")}


def _warn_of_other_versions(
    path: Path, connection: sqlite3.Connection, versions: dict[str, str]
) -> None:
    # Runs whose trials were all replaced since do not count.
    used = "SELECT versions FROM runs WHERE run IN (SELECT run FROM trials)"
    earlier = [json.loads(text) for (text,) in connection.execute(used)]
    changes = []
    for name, now_used in versions.items():
        others = sorted({run[name] for run in earlier} - {now_used})
        if others:
            changes.append(f"{name} {', '.join(others)} then, {now_used} now")
    if changes:
        warnings.warn(
            f"{path} holds results computed with other versions ({'; '.join(changes)}): new ones "
            "may differ in their last digits. The file records which is which.",
            MixedVersionsWarning,
            stacklevel=4,
        )


def _records(connection: sqlite3.Connection) -> list[Record]:
    rows = connection.execute(
        "SELECT experiment, settings, seed, result, error, traceback, warnings, seconds, finished "
        "FROM trials ORDER BY experiment, settings, seed"
    )
    return [
        Record(
            Trial(experiment, json.loads(settings), seed),
            None if result is None else json.loads(result),
            error,
            traceback,
            [(category, message, count) for category, message, count in json.loads(warned)],
            seconds,
            finished,
        )
        for experiment, settings, seed, result, error, traceback, warned, seconds, finished in rows
    ]


def write_records(
    records: Iterable[Record], path: str | os.PathLike[str], *, timings: bool = False
) -> None:
    """Write stored records as CSV or JSON, after the ending of the file's name.

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
    objects. Not-a-number and infinities, which JSON does not have, are the strings "NaN",
    "Infinity" and "-Infinity" there. Floats are exact in both.
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


def _connect(path: Path) -> sqlite3.Connection:
    """Connect to an existing file; its format is checked when it is read."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a file of results: {WAY_OUT}.")
    if path.stat().st_size == 0:  # SQLite would take it for a new database
        raise StoreError(f"{path} is empty, not a file of results: {WAY_OUT}.")
    with _explaining(path):
        # mode=rw makes no new file. Without a timeout a file in use is an error at once; the lock
        # is kept until the file is closed, so that a second run cannot write between two tasks.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection


def _make(path: Path) -> None:
    """Make a file without results; under a temporary name first, so that no half file is left."""
    temporary = temporary_beside(path)
    try:
        with _explaining(path):
            temporary.unlink(missing_ok=True)
            with (
                closing(sqlite3.connect(temporary, isolation_level=None)) as connection,
                _transaction(connection),
            ):
                _write_schema(connection)
        try:
            os.link(temporary, path)  # unlike renaming, it cannot replace another's file
        except FileExistsError:
            pass  # somebody else was first: theirs is opened, or found locked
        except OSError:  # a file system without hard links
            os.rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_schema(connection: sqlite3.Connection) -> None:
    """Write the tables, without a trial; those of an earlier format go."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        connection.execute(f'DROP TABLE "{table}"')
    for statement in SCHEMA:
        connection.execute(statement)
    meta = {"format": FORMAT, "covshift": __version__, "created": _now()}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _check_origin(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database of another program."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StoreError(f"{path} is a database of another program: {WAY_OUT}.")


def _check_format(path: Path, connection: sqlite3.Connection) -> dict[str, str]:
    """Refuse another format; return what the file says of itself."""
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    if meta.get("format") != FORMAT:
        raise StoreError(
            f"{path} has format {meta.get('format')} of covshift {meta.get('covshift')}, and this "
            f"is covshift {__version__} with format {FORMAT}: {START_OVER}."
        )
    return meta


def _check_version(path: Path, meta: dict[str, str]) -> None:
    """Refuse to add to the results of another version of covshift."""
    if meta.get("covshift") != __version__:
        raise StoreError(
            f"{path} holds results of covshift {meta.get('covshift')}, which cannot be mixed with "
            f"those of covshift {__version__}: {START_OVER}."
        )


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Do all of the block, or nothing."""
    try:
        connection.execute(f"BEGIN {kind}")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has ended it by itself when the disk is full
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that name the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # higher bits distinguish its causes
        reasons = {
            sqlite3.SQLITE_BUSY: "is in use: wait for the end of the run that writes it, or "
            "choose another file",
            sqlite3.SQLITE_NOTADB: f"is not a file of results: {WAY_OUT}",
            sqlite3.SQLITE_CORRUPT: f"is damaged ({error}): {WAY_OUT}",
            sqlite3.SQLITE_FULL: "cannot grow, the disk is full: what was stored stays; make room "
            "and run the same again to resume",
        }
        default = f"cannot be read or written ({error}): {WAY_OUT}"
        raise StoreError(f"{path} {reasons.get(code, default)}.") from error


def _now() -> str:
    """Return the time in ISO format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
