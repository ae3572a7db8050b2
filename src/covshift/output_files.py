"""Writing results so that a file is whole or not there, in a folder that was tried first."""

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file that is whole or not there, also after a kill or a loss of power.

    Where the system can, the file has no name until it is whole, so that a process that dies
    leaves nothing behind; elsewhere it has a hidden, temporary one. Contents are on the disk before
    the file gets its name, and the name is on the disk when this returns.

    Parameters
    ----------
    path : Path
        File to write; an old one is replaced. Of a symbolic link, the file that it points to.
    write : callable
        Writes the contents to the binary file it is given.
    """
    path = Path(os.path.realpath(path))
    temporary = temporary_beside(path)
    try:
        unnamed = open_unnamed(path.parent)
        if unnamed is None:
            with temporary.open("wb") as file:
                write(file)
                _flush_to_disk(file)
        else:
            with unnamed:
                write(unnamed)
                _flush_to_disk(unnamed)
                _give_name(unnamed.fileno(), temporary)
        os.replace(temporary, path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _flush_to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Bring a new name in a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems of networks know no such thing
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_unnamed(folder: Path) -> IO[bytes] | None:
    """Return a new file in the folder that has no name yet, or None where that cannot be."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except (IsADirectoryError, NotADirectoryError):  # old kernels do not know the request
        return None
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):  # the file system does not
            return None
        raise
    return os.fdopen(descriptor, "w+b")


def _give_name(descriptor: int, path: Path) -> None:
    # With a folder given, Python follows the link to the open file instead of linking the link.
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)


def temporary_beside(path: Path) -> Path:
    """Return a hidden name in the same folder that nobody else uses: no process, no thread."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def prepare_folder(folder: Path, min_free_bytes: int = 0) -> None:
    """Make a folder and try to write to it, before anything is computed.

    Parameters
    ----------
    folder : Path
        Folder, made with those above it if missing.
    min_free_bytes : int, default=0
        Room that must be free.

    Raises
    ------
    OSError
        If the folder cannot be made or written to, or has too little room.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    free = shutil.disk_usage(folder).free
    if free < min_free_bytes:
        raise OSError(
            f"{free / 1e6:.0f} MB are free there, and {min_free_bytes / 1e6:.0f} MB are wanted"
        )
