"""The archive of a model file: its members, and its card with digest and signature.

An archive is read once, and checked before any of it is decompressed. ``covshift.json`` has the
card, which says what a model is and what made it, and seals all members.
"""

import hashlib
import hmac
import io
import json
import math
import os
import re
import stat
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from covshift._version import __version__
from covshift.output_files import software_versions

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
FORMAT = 1
MIN_KEY_BYTES = 16


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


def read_file(path: Path, max_bytes: int) -> io.BytesIO:
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
        if name in seen:
            raise ModelFileError(f"It has two members named {name}.")
        seen.add(name)
        if _is_odd_member(member):
            raise ModelFileError(
                f"Its member {name} is a link, encrypted, or compressed in an unusual way."
            )
    # Python's zipfile stops at the declared size: no more is ever decompressed.
    packed = sum(member.compress_size for member in archive.infolist())
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
                check_density(data)
            digests[member.filename] = hashlib.sha256(data).hexdigest()
            copy.writestr(member.filename, data)
    content.seek(0)
    return content, digests


def check_density(text: bytes) -> None:
    """Refuse JSON of many small values, which would take far more memory than its text."""
    outside = TEXTS.sub(b"", text)
    n_values = outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    if n_values > 1000 + len(text) / MIN_BYTES_PER_VALUE:
        raise ModelFileError(f"Its {SCHEMA} holds {n_values:,} values, more than any model has.")


TEXTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"')


def check_array(archive: ZipFile, name: str) -> tuple[int, ...]:
    """Refuse an array whose header declares other than what follows, or objects; else its shape."""
    with archive.open(name) as file:
        read_header = {
            (1, 0): npy.read_array_header_1_0,
            (2, 0): npy.read_array_header_2_0,
        }.get(npy.read_magic(file))
        if read_header is None:
            raise ModelFileError(f"Its array {name} is of an unknown version.")
        shape, _, dtype = read_header(file)
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


# --- The card, and the seal of all members ---


def make_document(
    model: Any,
    card: Mapping[str, Any] | None,
    digests: Mapping[str, str],
    key: bytes | None = None,
    **versions: str,
) -> str:
    """Return ``covshift.json``: format, card, digest and, with a key, signature.

    ``digests`` has the SHA-256 of every other member of the file.
    """
    if card is not None and not isinstance(card, Mapping):
        raise TypeError(f"card must be a dictionary, got {type(card).__name__}.")
    own = describe(model)
    own["software"] = {"covshift": __version__, **software_versions(), **versions}
    own["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    given = dict(card or {})
    taken = sorted(own.keys() & given.keys())
    if taken:
        raise ValueError(f"These entries of the card are filled in by save: {', '.join(taken)}.")
    content = {"format": FORMAT, "covshift": __version__, "card": {**own, **given}}
    try:
        document = json.loads(json.dumps(content, default=_plain, allow_nan=False))
        document["digest"] = digest_of(document, digests)
        if key is not None:
            document["signature"] = sign(document["digest"], key)
        return json.dumps(document, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"The card must hold texts, finite numbers, lists and dictionaries: {error}"
        ) from None


def digest_of(document: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file: of its card and of the digests of all other members."""
    said = {name: one for name, one in document.items() if name not in ("digest", "signature")}
    members = {name: one for name, one in digests.items() if name != CARD}
    return hashlib.sha256(json.dumps([said, members], sort_keys=True).encode()).hexdigest()


def sign(digest: str, key: bytes) -> str:
    """Return the HMAC-SHA-256 of a file's digest."""
    return hmac.new(check_key(key), digest.encode(), "sha256").hexdigest()


def check_key(key: Any) -> bytes:
    """Refuse a key that is not secret bytes."""
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, got {type(key).__name__}.")
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(
            f"key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed. Make one with "
            "secrets.token_bytes(32)."
        )
    return key


def check_seal(content: bytes, digests: Mapping[str, str], key: bytes | None = None) -> None:
    """Refuse a file that differs from what was written or, with a key, that was not signed by it.

    Files of covshift 0.1 have no digest. Anyone who can write a file can write its digest as
    well: only a signature shows who wrote it.
    """
    document = json.loads(content)
    digest = digest_of(document, digests)
    if "digest" in document and document["digest"] != digest:
        raise ModelFileError("Its contents do not match its digest: it is damaged, or was changed.")
    if key is None:
        return
    signature = document.get("signature")
    if signature is None:
        raise ModelFileError("It has no signature: save(model, path, key=...) writes one.")
    if not hmac.compare_digest(str(signature).encode(), sign(digest, key).encode()):
        raise ModelFileError(
            "Its signature does not match the key: it was changed, or signed by another key."
        )


def read_document(content: bytes) -> dict[str, Any]:
    """Return the card of ``covshift.json``, or say why this version does not read it."""
    document = json.loads(content)
    version = document["format"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"Unknown format version {version!r}.")
    if version > FORMAT:
        raise ModelFileError(
            f"It has format {version}, written by covshift {document['covshift']!s:.50}; this is "
            f"covshift {__version__}, which reads formats up to {FORMAT}. Install that version or "
            "a newer one."
        )
    card = document["card"]
    if not isinstance(card, dict):
        raise ModelFileError("Its card is not a dictionary.")
    return card


def describe(model: Any) -> dict[str, Any]:
    """Return the facts about a fitted model; None where they are unknown."""
    return {
        "class_name": f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}",
        "model": repr(model),
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": _as_list(getattr(model, "feature_names_in_", None)),
        "classes": _as_list(getattr(model, "classes_", None)),
        "domains": _as_list(getattr(model, "domains_", None)),
        "domain_names": {
            str(number): name for number, name in getattr(model, "domain_names_", {}).items()
        },
    }


def given_entries(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card less what `make_document` fills in: what its maker said."""
    filled = {*describe(None), "software", "date"}
    return {name: value for name, value in card.items() if name not in filled}


def _as_list(values: Any) -> list[Any] | None:
    if values is None:
        return None
    plain = np.asarray(values).tolist()
    return [one if isinstance(one, str | int | float | bool) else str(one) for one in plain]


def _plain(value: Any) -> Any:
    """Return arrays and NumPy's scalars as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r:.100} is of type {type(value).__name__}")
