"""Writing results so that a file is whole or not there, in a folder that was tried first."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file under a temporary name first, so that it is whole or not there.

    Parameters
    ----------
    path : Path
        File to write; an old one is replaced.
    write : callable
        Writes the contents to the binary file it is given.
    """
    temporary = temporary_beside(path)
    try:
        with temporary.open("wb") as file:
            write(file)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """Return a hidden name in the same folder, of this process alone."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


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
