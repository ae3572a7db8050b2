"""The archive of a model file and its members, checked before any of it is decompressed.

An archive is read once. `covshift.persistence.card_and_seal` has the card, which says what a model
is, and the seal of all members.
"""

import hashlib
import io
import math
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from numpy.lib import format as npy

CARD, SCHEMA = "covshift.json", "schema.json"
# The description of all objects: at most this, and no more than a file of its size can need. Those
# of fitted models shrink 10 to 50 times by compression, a list of a million zeros 250 times.
MAX_SCHEMA_BYTES = 128 * 2**20
FREE_SCHEMA_BYTES, SCHEMA_BYTES_PER_BYTE = 4 * 2**20, 300
# Parsed, a value of JSON takes up to 200 bytes. In descriptions that skops writes, each value takes
# 30 or more bytes of text, since its type is spelled out.
MIN_BYTES_PER_VALUE = 20
MAX_CARD_BYTES = 8 * 2**20
# All members together, decompressed, and the file itself.
MAX_UNPACKED_BYTES = 2 * 2**30

# The names that skops gives: a number for an array or a sparse matrix.
MEMBER = re.compile(rf"[0-9]+\.np[yz]|{re.escape(CARD)}|{re.escape(SCHEMA)}")
# Those of SciPy's files of sparse matrices, which are archives in the archive.
SPARSE_MEMBER = re.compile(r"(data|indices|indptr|row|col|offsets|shape|format|_is_array)\.npy")
ENCRYPTED = 0x1


class ModelFileError(ValueError):
    """A model file that is damaged, hostile, or of a kind that this version does not read."""


class UntrustedTypesError(ModelFileError):
    """A model file that holds types that are not trusted.

    Attributes
    ----------
    types : list of str
        Their names, "module.Class".
    """

    def __init__(self, message: str, types: Sequence[str]) -> None:
        super().__init__(message)
        self.types = list(types)


def read_archive(path: Path, max_bytes: int) -> io.BytesIO:
    """Return the contents of a regular file, whatever happens to the file afterward."""
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    # A pipe would block here for ever, a device might never end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(f"{path} is not a regular file.")
        if status.st_size > max_bytes:
            raise ModelFileError(_too_large(str(path), status.st_size, max_bytes))
        return io.BytesIO(file.read(max_bytes))


_BINARY = getattr(os, "O_BINARY", 0)  # Windows


def check_members(archive: ZipFile, max_bytes: int, names: re.Pattern[str] = MEMBER) -> None:
    """Refuse an archive with members that no model file has, or that are too large together."""
    seen = set()
    for member in archive.infolist():
        name = member.filename
        if not names.fullmatch(name):
            raise ModelFileError(f"It has an unexpected member {name[:100]!r}.")
        # Which of two members is read depends on the reader: one could be checked and the other
        # used.
        if name in seen:
            raise ModelFileError(f"It has two members named {name}.")
        seen.add(name)
        if _is_odd_member(member):
            raise ModelFileError(
                f"Its member {name} is a link, encrypted, or compressed in an unusual way."
            )
    # Python's zipfile stops at the declared size: no more is ever decompressed.
    packed = sum(member.compress_size for member in archive.infolist())
    # Parsed JSON takes many times the memory of its text, so that its limit is lower than that of
    # arrays, and grows with the file: small models have small descriptions.
    schema_limit = min(MAX_SCHEMA_BYTES, FREE_SCHEMA_BYTES + SCHEMA_BYTES_PER_BYTE * packed)
    limits = {SCHEMA: schema_limit, CARD: MAX_CARD_BYTES}
    for member in archive.infolist():
        limit = limits.get(member.filename, max_bytes)
        if member.file_size > limit:
            raise ModelFileError(
                _too_large(f"Its member {member.filename}", member.file_size, limit)
            )
    total = sum(member.file_size for member in archive.infolist())
    if total > max_bytes:
        raise ModelFileError(_too_large("What it holds", total, max_bytes))


def unpack(archive: ZipFile) -> tuple[io.BytesIO, dict[str, str]]:
    """Unpack every member of a checked archive, once.

    Returns
    -------
    content : BytesIO
        An archive of the same members without compression, which is cheap to read repeatedly.
    digests : dict
        SHA-256 of each member.
    """
    content, digests = io.BytesIO(), {}
    with ZipFile(content, "w", ZIP_STORED) as copy:
        for member in archive.infolist():
            data = archive.read(member)
            if member.filename == SCHEMA:
                _check_density(data)
            digests[member.filename] = hashlib.sha256(data).hexdigest()
            copy.writestr(member.filename, data)
    content.seek(0)
    return content, digests


def _check_density(text: bytes) -> None:
    """Refuse JSON of many small values, which would take far more memory than its text."""
    # Separators within texts do not count. The pattern cannot backtrack (++ and *+), or a text
    # made for it would take for ever.
    outside = TEXTS.sub(b"", text)
    n_values = outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    if n_values > 1000 + len(text) / MIN_BYTES_PER_VALUE:
        raise ModelFileError(f"Its {SCHEMA} holds {n_values:,} values, more than any model has.")


TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"')


def check_array(archive: ZipFile, name: str) -> tuple[int, ...]:
    """Refuse an array of the archive whose header declares other than what follows, or objects.

    Return its shape.
    """
    with archive.open(name) as file:
        read_header = {
            (1, 0): npy.read_array_header_1_0,
            (2, 0): npy.read_array_header_2_0,
        }.get(npy.read_magic(file))
        if read_header is None:
            raise ModelFileError(f"Its array {name} is of an unknown version.")
        shape, _, dtype = read_header(file)
        # NumPy would allocate what the header declares before it sees that less follows.
        n_bytes = archive.getinfo(name).file_size - file.tell()
    # An itemsize of zero would allow any number of items.
    if dtype.hasobject or dtype.itemsize == 0:
        raise ModelFileError(f"Its array {name} has an unexpected type, {dtype}.")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != n_bytes:
        raise ModelFileError(
            f"Its array {name} declares shape {shape} of {dtype}, but {n_bytes} bytes follow."
        )
    return shape


def check_sparse(archive: ZipFile, name: str, max_bytes: int) -> int:
    """Return the same for a sparse matrix, an archive of arrays; return their bytes."""
    with ZipFile(io.BytesIO(archive.read(name))) as inner:
        check_members(inner, max_bytes, SPARSE_MEMBER)
        for part in inner.namelist():
            check_array(inner, part)
        return sum(part.file_size for part in inner.infolist())


def _is_odd_member(member: ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return (
        kind not in (0, stat.S_IFREG)
        or bool(member.flag_bits & ENCRYPTED)
        or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED)
    )


def _too_large(what: str, size: int, limit: int) -> str:
    return (
        f"{what} takes {size / 2**20:,.0f} MiB, more than the {limit / 2**20:,.0f} MiB allowed "
        "(load and read_card take max_bytes; descriptions and cards have limits of their own)."
    )
