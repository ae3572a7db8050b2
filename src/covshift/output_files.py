"""Writing results atomically, in a folder that was tried first.

Files of lines that grow (a history, labels) are appended to under a lock, in one write. Files of
results say with which versions they were made.
"""

import errno
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy
import scipy
import sklearn

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically: it is complete or absent, also after a kill or a loss of power.

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
        unnamed = _open_unnamed(path.parent)
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


def append_locked(path: Path, compose: Callable[[bytes], tuple[int, bytes]]) -> None:
    """Append to a file that other processes append to as well; on the disk when this returns.

    The file is locked while it is read and written, so that what is appended may depend on what is
    there. The system drops the lock of a process that dies. A process that is killed in the middle
    of its write leaves a part of its last line, without a line break: the next reader sees it in
    the contents and says how much of them to keep.

    Parameters
    ----------
    path : Path
        File, made if missing. Of a symbolic link, the file that it points to.
    compose : callable
        Gets the contents; returns how many bytes of them to keep, and the bytes to append.
    """
    path = Path(os.path.realpath(path))
    is_new = not path.exists()
    with path.open("ab+", buffering=0) as file, _locked(file):
        file.seek(0)
        contents = file.read()
        n_kept, addition = compose(contents)
        if n_kept < len(contents):
            file.truncate(n_kept)
        if addition:
            file.seek(0, os.SEEK_END)
            left = memoryview(addition)
            while left:  # one write, unless the disk is full or the file is on a network
                left = left[file.write(left) :]
        if addition or n_kept < len(contents):
            os.fsync(file.fileno())
    if is_new:
        _flush_folder(path.parent)


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Hold the only lock of an open file; wait for it."""
    if fcntl is not None:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # closing the file releases it
        yield
        return
    import msvcrt  # pragma: no cover

    # Windows locks bytes: one far beyond the end of any such file stands for all of them.
    where = 1 << 60  # pragma: no cover
    while True:  # pragma: no cover
        file.seek(where)
        with suppress(OSError):  # after ten tries, a second apart
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
            break
    try:  # pragma: no cover
        yield
    finally:  # pragma: no cover
        file.seek(where)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]


def _flush_to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Bring a new name in a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    with suppress(OSError):  # a folder that may be written to but not read; network file systems
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _open_unnamed(folder: Path) -> IO[bytes] | None:
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
    """Return a hidden name in the same folder that no other process or thread uses."""
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
            f"{free / 1e6:.0f} MB are free there, {min_free_bytes / 1e6:.0f} MB are needed"
        )


def software_versions() -> dict[str, str]:
    """Return what output files name: versions of Python and libraries, and the kind of machine.

    Returns
    -------
    dict of str to str
    """
    return {
        "Python": platform.python_version(),
        "NumPy": numpy.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
    }


def same_file(one: Any, other: Any) -> bool:
    """Return whether two paths name one file."""
    return os.path.realpath(os.fspath(one)) == os.path.realpath(os.fspath(other))
