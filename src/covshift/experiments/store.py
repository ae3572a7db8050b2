"""Results of trials, each stored as its task ends, in one file."""

import json
import os
import sqlite3
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from covshift.experiments.software_versions import software_versions
from covshift.experiments.store_file import (
    StoreError,
    check_format,
    check_origin,
    check_version,
    connect,
    explaining,
    make,
    now,
    transaction,
    write_schema,
)
from covshift.experiments.task_call import TaskOutcome
from covshift.experiments.trial import Trial, to_json
from covshift.output_files import prepare_folder

MIN_FREE_BYTES = 50_000_000  # some 50,000 trials


class MixedVersionsWarning(UserWarning):
    """Results of one file were computed with different versions of what they rest on."""


@dataclass(frozen=True)
class Record:
    """What is stored of one trial.

    Attributes
    ----------
    trial : Trial
        What was measured.
    result : dict, or None
        None if its task failed.
    error, traceback : str, or None
        Type and message of the exception, and where it came from.
    warnings : list of (str, str, int)
        Category, message and number of the warnings of its task.
    seconds : float
        That its task took, all trials of it together.
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
        query = (
            "SELECT task FROM trials GROUP BY task "
            "HAVING COUNT(*) = MAX(task_size) AND COUNT(error) = 0"
        )
        with explaining(self.path):
            return {task for (task,) in self.connection.execute(query)}

    def save(self, trials: Sequence[Trial], outcome: TaskOutcome) -> None:
        """Store the outcome of one task in place of what there was: all of it, or nothing."""
        task = (task_key(trials), len(trials))
        shared = (json.dumps(outcome.warnings), outcome.seconds, now(), self.run)
        results: Sequence[str | None] = outcome.results or [None] * len(trials)
        rows = [
            (
                *(trial.key, *task, trial.experiment, trial.settings_json, trial.seed),
                *(result, outcome.error, outcome.traceback, *shared),
            )
            for trial, result in zip(trials, results, strict=True)
        ]
        marks = ", ".join("?" * len(rows[0]))
        with explaining(self.path), transaction(self.connection):
            self.connection.executemany(f"INSERT OR REPLACE INTO trials VALUES ({marks})", rows)

    def records(self) -> list[Record]:
        """Return all that is stored, sorted by experiment, settings (as JSON) and seed."""
        with explaining(self.path):
            return _records(self.connection)

    def close(self) -> None:
        """Close the file and give up its lock."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def task_key(trials: Sequence[Trial]) -> str:
    """Return the key of these trials computed together, in this order."""
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
        Whether to drop what earlier runs stored. What is no file of results is refused all the
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
    settings = to_json(run_settings or {}, "run_settings", finite=False)
    try:
        prepare_folder(path.parent, MIN_FREE_BYTES)
        if not path.exists():
            make(path)
    except StoreError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"cannot write to the folder {path.parent}: {reason}.") from error
    connection = connect(path)
    try:
        with explaining(path), transaction(connection, "EXCLUSIVE"):
            check_origin(path, connection)
            if fresh:
                write_schema(connection)
            check_version(path, check_format(path, connection))
            versions = software_versions()
            _warn_of_other_versions(path, connection, versions)
            cursor = connection.execute(
                "INSERT INTO runs (started, versions, settings) VALUES (?, ?, ?)",
                (now(), json.dumps(versions), settings),
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
    with closing(connect(path)) as connection, explaining(path):
        check_origin(path, connection)
        check_format(path, connection)
        return _records(connection)


def stored_experiments(path: str | os.PathLike[str]) -> set[str]:
    """Return the names of the experiments that a file of results holds; none if it is missing."""
    path = Path(path)
    if not path.exists():
        return set()
    with closing(connect(path)) as connection, explaining(path):
        check_origin(path, connection)
        check_format(path, connection)
        return {name for (name,) in connection.execute("SELECT DISTINCT experiment FROM trials")}


def _warn_of_other_versions(
    path: Path, connection: sqlite3.Connection, versions: dict[str, str]
) -> None:
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
