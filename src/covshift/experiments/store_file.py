"""The SQLite file below a store: made whole, locked, and never taken for what it is not.

The rollback journal is kept, not WAL: results stay in one file, which may lie on a network drive
and be copied as it is, and a commit of some milliseconds is nothing beside a task. SQLite's
exclusive lock is held as long as the file is open; the system drops it when the process
ends, however it ends, and forked workers do not inherit it. Nothing but SQLite opens the
file: closing it elsewhere in the process would drop the lock.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from covshift._version import __version__
from covshift.output_files import temporary_beside

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


def connect(path: Path) -> sqlite3.Connection:
    """Connect to a file that exists. What it is shows only when it is read."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a file of results: {WAY_OUT}.")
    if path.stat().st_size == 0:  # SQLite would take it for a new database
        raise StoreError(f"{path} is empty, not a file of results: {WAY_OUT}.")
    with explaining(path):
        uri = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection


def make(path: Path) -> None:
    """Make a file without results; under a temporary name first, lest a kill leave half of it."""
    temporary = temporary_beside(path)
    try:
        with explaining(path):
            temporary.unlink(missing_ok=True)
            with (
                closing(sqlite3.connect(temporary, isolation_level=None)) as connection,
                transaction(connection),
            ):
                write_schema(connection)
        try:
            os.link(temporary, path)  # unlike renaming, it cannot replace another's file
        except FileExistsError:
            pass  # somebody else was first: theirs is opened, or found locked
        except OSError:  # a file system without hard links
            os.rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_schema(connection: sqlite3.Connection) -> None:
    """Write the tables, without a trial; those of an earlier format go."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        connection.execute(f'DROP TABLE "{table}"')
    for statement in SCHEMA:
        connection.execute(statement)
    meta = {"format": FORMAT, "covshift": __version__, "created": now()}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def check_origin(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a database of another program."""
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StoreError(f"{path} is a database of another program: {WAY_OUT}.")


def check_format(path: Path, connection: sqlite3.Connection) -> dict[str, str]:
    """Refuse another format; return what the file says of itself."""
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    if meta.get("format") != FORMAT:
        raise StoreError(
            f"{path} has format {meta.get('format')} of covshift {meta.get('covshift')}, and this "
            f"is covshift {__version__} with format {FORMAT}: {START_OVER}."
        )
    return meta


def check_version(path: Path, meta: dict[str, str]) -> None:
    """Refuse to add to the results of another version of covshift."""
    if meta.get("covshift") != __version__:
        raise StoreError(
            f"{path} holds results of covshift {meta.get('covshift')}, which cannot be mixed with "
            f"those of covshift {__version__}: {START_OVER}."
        )


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
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
def explaining(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that name the file and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # higher bits tell apart its causes
        reasons = {
            sqlite3.SQLITE_BUSY: "is in use: wait for the end of the run that writes it, or "
            "choose another file",
            sqlite3.SQLITE_NOTADB: f"is not a file of results: {WAY_OUT}",
            sqlite3.SQLITE_CORRUPT: f"is damaged ({error}): {WAY_OUT}",
            sqlite3.SQLITE_FULL: "cannot grow, the disk is full: what was stored stays; make room "
            "and run the same again to go on",
        }
        default = f"cannot be read or written ({error}): {WAY_OUT}"
        raise StoreError(f"{path} {reasons.get(code, default)}.") from error


def now() -> str:
    """Return the time in ISO format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
