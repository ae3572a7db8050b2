"""Text files of any encoding, as a stream of UTF-8.

The encoding: a byte-order mark decides; without one, text that is valid UTF-8 is UTF-8, text
with a zero in every other byte is UTF-16, and the rest is Windows-1252, or Latin-1 where it
holds a byte that Windows-1252 has not. One name with an accent may stand in the last row. So the
whole file is examined first, unless it is long and read twice anyway: then its beginning is taken
for the rest, and the first of the two readings checks that (`Examination`).
"""

import codecs
import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from covshift.tables.errors import TableError, refused_as, table_error
from covshift.tables.file_formats import refuse_other_formats
from covshift.tables.text_layout import squeeze

BLOCK_BYTES = 1 << 16  # a block and its text stay in the processor's cache
GZIP_ERRORS = (EOFError, zlib.error)
SPACES = b" \t\r\n"
DAMAGED_GZIP = "is damaged or cut short; compress it again."
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, with which it begins
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# Text has none of them, except the end-of-file mark of DOS.
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a"))


@dataclass(frozen=True)
class TextFile:
    """How to open a text file: its encoding, and what the first look at all of it found.

    Attributes
    ----------
    encoding : name of a Python codec.
    skipped_bytes : length of the byte-order mark.
    n_quotes : number of quotes; odd if one has no partner.
    aligned : whether several spaces stand between cells; one of them is read.
    examined : whether the whole file was examined, not only its beginning.
    """

    path: Path
    compressed: bool
    encoding: str
    skipped_bytes: int
    n_quotes: int
    aligned: bool = False
    examined: bool = True

    def open(self, examination: "Examination | None" = None) -> "Utf8Stream":
        """Return the contents as a stream of UTF-8 without byte-order mark.

        An ``examination`` gets what is read of a file of UTF-8.
        """
        file = _open_bytes(self.path, self.compressed)
        file.read(self.skipped_bytes)
        return Utf8Stream(file, self.encoding, self.aligned, examination)


class Examination:
    """Look at a text, block after block, for another encoding and for quotes, which are counted.

    ``look`` raises `UnicodeDecodeError` for a block of another encoding.
    """

    def __init__(self, path: Path, encoding: str):
        self._path = path
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._single_byte = encoding in ("cp1252", "latin-1")
        self.n_quotes = 0

    def look(self, block: bytes, *, final: bool) -> None:
        """Take in a block; the last one may be empty."""
        view = memoryview(block)
        # In pieces: a piece and its text stay in the processor's cache.
        for start in range(0, len(block) or 1, BLOCK_BYTES):
            piece = bytes(view[start : start + BLOCK_BYTES])
            text = self._decoder.decode(piece, final=final and start + BLOCK_BYTES >= len(block))
            binary = self._single_byte and len(piece.translate(None, CONTROLS)) < len(piece)
            if binary or "\0" in text:
                raise table_error(
                    self._path,
                    "holds bytes that text files do not have, such as NUL; export it as CSV.",
                )
            # To look is faster than to count.
            self.n_quotes += text.count('"') if '"' in text else 0


def examine_text(
    path: Path, *, compressed: bool, encoding: str | None = None, first_bytes: int | None = None
) -> TextFile:
    """Read a file through once, a block at a time, and detect its encoding.

    An ``encoding`` that the user names is only checked. With ``first_bytes``, only these are
    examined where the file is longer and they are UTF-8.
    """
    given = None if encoding is None else _codec_name(encoding)
    kinds = GZIP_ERRORS if compressed else ()
    with refused_as(path, DAMAGED_GZIP if compressed else "cannot be read.", *kinds):
        with _open_bytes(path, compressed) as file:
            sample = file.read(4096)
        if not sample:
            raise table_error(path, "is empty; a table needs a row of names and rows below.")
        refuse_other_formats(path, sample)
        if compressed and sample.startswith((b"PAR1", b"ARROW1", b"PK", b"\x1f\x8b")):
            raise table_error(path, "holds no text under its compression; decompress it first.")
        encoding, skipped = _guess_encoding(sample)
        if given is not None and given != encoding:
            encoding, skipped = given, 0
        if first_bytes is not None and encoding == "utf-8":
            n_quotes = _count_first_quotes(path, compressed, skipped, first_bytes)
            if n_quotes is not None:
                return TextFile(path, compressed, encoding, skipped, n_quotes, examined=False)
        n_quotes = _count_quotes(path, compressed, encoding, skipped)
        if n_quotes is None and given is not None:
            raise table_error(path, f"is not valid {given.upper()}; give another --encoding.")
        if n_quotes is None and encoding == "utf-8" and not skipped:
            encoding = "cp1252"
            n_quotes = _count_quotes(path, compressed, encoding, skipped)
            if n_quotes is None:
                encoding = "latin-1"
                n_quotes = _count_quotes(path, compressed, encoding, skipped)
    if n_quotes is None:
        raise table_error(
            path,
            f"declares {encoding.upper()}, but its bytes differ; save it again as UTF-8.",
        )
    return TextFile(path, compressed, encoding, skipped, n_quotes)


def _open_bytes(path: Path, compressed: bool) -> Any:
    return gzip.open(path, "rb") if compressed else path.open("rb")


def _codec_name(encoding: str) -> str:
    """Return Python's name of an encoding of text."""
    try:
        "".encode(encoding)  # some codecs are not of text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise TableError(
            f"--encoding: {encoding!r} is not an encoding. Use one such as utf-8, cp1252, cp1251, "
            "shift_jis or gb18030."
        ) from None


def _guess_encoding(sample: bytes) -> tuple[str, int]:
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if sample.startswith(mark):
            return encoding, len(mark)
    # Tables are mostly ASCII, of which UTF-16 makes every second byte a zero.
    first, second = sample[0::2], sample[1::2]
    for zeros, others, encoding in (
        (second, first, "utf-16-le"),
        (first, second, "utf-16-be"),
    ):
        if zeros.count(0) > len(zeros) / 2 and others.count(0) == 0:
            return encoding, 0
    return "utf-8", 0


def _count_quotes(path: Path, compressed: bool, encoding: str, skipped: int) -> int | None:
    """Return the number of quotes in the text, or None if this is not its encoding."""
    examination = Examination(path, encoding)
    with _open_bytes(path, compressed) as file:
        file.read(skipped)
        while True:
            block = file.read(BLOCK_BYTES)
            try:
                examination.look(block, final=not block)
            except UnicodeDecodeError:
                return None
            if not block:
                return examination.n_quotes


def _count_first_quotes(path: Path, compressed: bool, skipped: int, n_bytes: int) -> int | None:
    """Return the quotes in the beginning of a text; None: it is all there is, or not UTF-8."""
    examination = Examination(path, "utf-8")
    with _open_bytes(path, compressed) as file:
        file.read(skipped)
        block = file.read(n_bytes)
        if not file.read(1):
            return None
    try:
        examination.look(block, final=False)
    except UnicodeDecodeError:
        return None
    return examination.n_quotes


class Utf8Stream:
    """A file-like object that gives UTF-8, whatever the encoding below."""

    def __init__(
        self,
        file: IO[Any],
        encoding: str,
        aligned: bool = False,
        examination: Examination | None = None,
    ):
        self._file = file
        self._examination = examination
        self._aligned = aligned
        self._started = False
        self._spaces = b""  # at the end of the last block, if aligned: more may follow
        self._decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)()
        self._waiting = b""
        self._ended = False
        self.closed = False
        self.position = 0  # in the file as it is stored, packed or not

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end."""
        data = self._read(size)
        self.position = getattr(self._file, "fileobj", self._file).tell()
        return data

    def _read(self, size: int) -> bytes:
        if self._decoder is None and not self._waiting and not self._aligned:
            return self._examined(bytes(self._file.read(size)))
        parts = [self._waiting]
        wanted = size - len(self._waiting)
        while not self._ended and (size < 0 or wanted > 0):
            block = self._examined(self._file.read(BLOCK_BYTES if size < 0 else max(wanted, 4096)))
            self._ended = not block
            if self._decoder is not None:
                block = self._decoder.decode(block, final=self._ended).encode("utf-8")
            if self._aligned:
                block = self._squeeze(block)
            parts.append(block)
            wanted -= len(block)
        data = b"".join(parts)
        self._waiting = b"" if size < 0 else data[size:]
        return data if size < 0 else data[:size]

    def _examined(self, block: bytes) -> bytes:
        if self._examination is not None:
            self._examination.look(block, final=not block)
        return block

    def _squeeze(self, block: bytes) -> bytes:
        block = self._spaces + block
        if not self._started:  # spaces in front of the first cell end none
            block = block.lstrip(SPACES)
            self._started = bool(block)
        text = block if self._ended else block.rstrip(SPACES)
        self._spaces = block[len(text) :]
        return squeeze(text)

    def give_back(self, data: bytes) -> None:
        """Put bytes in front of what comes next."""
        self._waiting = data + self._waiting

    def close(self) -> None:
        """Close the file below."""
        self._file.close()
        self.closed = True

    def readable(self) -> bool:
        """Return whether it can be read: always."""
        return True

    def writable(self) -> bool:
        """Return whether it can be written: never."""
        return False

    def seekable(self) -> bool:
        """Return whether one can go back: no."""
        return False
