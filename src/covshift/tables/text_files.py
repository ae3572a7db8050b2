"""Text files of any encoding, cut into cells: batches of columns of text, for `reading`.

A file is examined (`_examine_text`), decoded to a stream of UTF-8 (`Utf8Stream`), and cut by
pyarrow (`TextBatches`), several blocks at a time where no cell is quoted.

The encoding: a byte-order mark decides; without one, text that is valid UTF-8 is UTF-8, text
with a zero in every other byte is UTF-16, and the rest is Windows-1252, or Latin-1 where it
holds a byte that Windows-1252 does not define. One name with an accent may stand in the last row.
So the whole file is examined first, unless it is long and read twice anyway: then its beginning is
taken for the rest, and the first of the two readings checks that (`Examination`).
"""

import codecs
import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from covshift.solvers.threads import map_ahead, read_ahead
from covshift.tables.columns import MISSING
from covshift.tables.file_formats import check_unchanged, file_state, refuse_other_formats
from covshift.tables.messages import TableError, one_line, refused_as, table_error
from covshift.tables.text_layout import (
    SEPARATOR_NAMES,
    SEPARATORS,
    GivenLayout,
    find_layout,
    is_aligned,
    is_row_names,
    names_of_header,
    squeeze_spaces,
)

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
        # In these encodings nearly every byte is a character, so that decoding hardly ever fails.
        # Control characters show instead that a file is not text.
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


def _examine_text(
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
        # A mark of the encoding that the user names has been found with its length; another
        # encoding than the one guessed begins at the first byte.
        if given is not None and given != encoding:
            encoding, skipped = given, 0
        if first_bytes is not None and encoding == "utf-8":
            n_quotes = _count_first_quotes(path, compressed, skipped, first_bytes)
            if n_quotes is not None:
                return TextFile(path, compressed, encoding, skipped, n_quotes, examined=False)
        n_quotes = _count_quotes(path, compressed, encoding, skipped)
        if n_quotes is None and given is not None:
            raise table_error(path, f"is not valid {given.upper()}; give another --encoding.")
        # Latin-1 comes last: it takes every byte. Windows-1252 leaves five of them undefined.
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
        # A byte more shows that the file goes on: of a short one, all is examined.
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
        # How much of the file was read is told to the user as a share of its size on the disk. So
        # of a packed file the position in the packed bytes counts, which gzip's `fileobj` knows.
        data = self._read(size)
        self.position = getattr(self._file, "fileobj", self._file).tell()
        return data

    def _read(self, size: int) -> bytes:
        # The usual case, UTF-8 as it lies on the disk, is handed on without another copy.
        if self._decoder is None and not self._waiting and not self._aligned:
            return self._examined(bytes(self._file.read(size)))
        # Decoding changes lengths: what is decoded beyond the size asked for waits for the next
        # call.
        parts = [self._waiting]
        wanted = size - len(self._waiting)
        while not self._ended and (size < 0 or wanted > 0):
            block = self._examined(self._file.read(BLOCK_BYTES if size < 0 else max(wanted, 4096)))
            self._ended = not block
            if self._decoder is not None:
                block = self._decoder.decode(block, final=self._ended).encode("utf-8")
            if self._aligned:
                block = self._squeeze_spaces(block)
            parts.append(block)
            wanted -= len(block)
        data = b"".join(parts)
        self._waiting = b"" if size < 0 else data[size:]
        return data if size < 0 else data[:size]

    def _examined(self, block: bytes) -> bytes:
        if self._examination is not None:
            self._examination.look(block, final=not block)
        return block

    def _squeeze_spaces(self, block: bytes) -> bytes:
        block = self._spaces + block
        if not self._started:  # spaces in front of the first cell end none
            block = block.lstrip(SPACES)
            self._started = bool(block)
        # Spaces at the end of a block may go on in the next one, and several count as one.
        text = block if self._ended else block.rstrip(SPACES)
        self._spaces = block[len(text) :]
        return squeeze_spaces(text)

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


SAMPLE_BYTES = 1 << 20
PARSING_THREADS = 2  # two cut text faster than a third can use it


class TextBatches:
    """CSV, TSV and their kin as a source of batches (`covshift.tables.reading`).

    **Two ways to cut.** Without quotes, every line break ends a row: the text is cut at line breaks
    into blocks, which threads parse while others are used (`_read_blocks`). With quotes, a cell may
    hold a line break, and whether one ends a row depends on all the text before it: pyarrow parses
    one stream from its beginning (`_read_stream`).

    **Types or text.** Numbers that pyarrow parses while it cuts take a fraction of the time of text
    that is converted afterward. But one cell of another kind ends such a pass with an error. The
    file is then read once more as text, from its beginning; both passes cut batches at the same
    places, so that rows that were yielded before are skipped (`_read`).

    **Examined or not.** A long text that is read twice anyway is not examined before. Its first
    pass looks at every block for what the beginning did not show, another encoding or the first
    quote, and ends in an error; the caller opens the file again, with all of it examined.
    """

    typed = False

    def __init__(
        self,
        path: Path,
        compressed: bool,
        given: GivenLayout,
        chunk_bytes: int,
        examine_all: bool = True,
    ):
        self.path = self._source = path
        self._state = file_state(path)
        self.file = _examine_text(
            path,
            compressed=compressed,
            encoding=given.encoding,
            first_bytes=None if examine_all else SAMPLE_BYTES,
        )
        self._examination: Examination | None = None
        self.n_repeated = 0  # rows of this pass that repeat the column names
        self._size = path.stat().st_size
        text, complete = self._read_sample()
        if given.separator is None and is_aligned(text, complete=complete):
            self.file = replace(self.file, aligned=True)
            text, complete = self._read_sample()
        header = given.header
        try:
            layout = find_layout(text, given, complete=complete)
        except TableError as error:
            raise table_error(path, str(error)) from None
        self.separator = layout.separator
        # Of one column, a word that is its name may be a value.
        self._header = layout.names if header and len(layout.names) > 1 else None
        self.header_bytes = len(text[: layout.header_length].encode("utf-8"))
        self.chunk_bytes = max(chunk_bytes, SAMPLE_BYTES)
        self._missing: Sequence[str] = MISSING
        self.names, self.nameless, self.notes = names_of_header(layout.names)
        self.row_names = [
            self.names[i] for i, name in enumerate(layout.names) if header and is_row_names(i, name)
        ]
        self.notes += layout.notes
        if not header:
            self.nameless = []  # without names, no column is left out
        if len(self.row_names) == len(self.names):
            self.row_names = []
        if given.encoding is None and self.file.encoding in ("cp1252", "latin-1"):
            shown = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}[self.file.encoding]
            self.notes.append(
                f"The text is not UTF-8: it is read as {shown}. If it is another encoding: "
                "--encoding NAME, such as cp1251."
            )
        if (
            given.separator is None
            and self.separator in (*SEPARATORS[:3], " ")
            and len(self.names) > 1
        ):
            self.notes.append(f"Cells are separated by {SEPARATOR_NAMES[self.separator]}.")

    def _read_sample(self) -> tuple[str, bool]:
        """Return the beginning of the text, and whether it is all of it."""
        self._stream = stream = self.file.open()
        try:
            sample = stream.read(SAMPLE_BYTES)
            complete = not stream.read(1)
        finally:
            stream.close()
        # A character may be cut at the end of the sample.
        return sample.decode("utf-8", errors="strict" if complete else "ignore"), complete

    @property
    def share_read(self) -> float:
        """Share of the file that was read in this pass; batches made ahead count."""
        return min(1.0, self._stream.position / max(self._size, 1))

    def read(
        self, types: dict[str, Any] | None = None, missing: Sequence[str] = MISSING
    ) -> Iterator[Any]:
        """Yield batches with columns of these types of Arrow, the others as text.

        From the first batch on that holds a cell of another type, all columns come as text.
        ``missing``: texts that stand for nothing.
        """
        self._missing = missing
        self.n_repeated = 0
        batches = self._read(types) if self.examined else self._read_and_examine()
        try:
            yield from map(self._without_names, batches)
        except TableError:
            # Another program may be writing the file, which explains any other error.
            check_unchanged(self._source, self._state, self.path)
            raise
        check_unchanged(self._source, self._state, self.path)

    def _without_names(self, batch: Any) -> Any:
        """Return a batch without rows that repeat the names: files were put behind each other."""
        if self._header is None or any(map(_is_typed, batch.columns)):
            return batch  # a cell of a name is not a number
        repeated: Any = True
        for column, name in zip(batch.columns, self._header, strict=True):
            repeated = pa.compute.and_(repeated, pa.compute.equal(column.cast(pa.string()), name))
            if not pa.compute.any(repeated).as_py():
                return batch
        repeated = pa.compute.fill_null(repeated, False)
        self.n_repeated += pa.compute.sum(repeated).as_py()
        return batch.filter(pa.compute.invert(repeated))

    def _read(self, types: dict[str, Any] | None) -> Iterator[Any]:
        # Attempts from the fastest to the one that takes anything: with types, as text, and as text
        # in one stream. Generators start when they are asked, so that those not needed cost
        # nothing.
        wanted = [types, {}] if types else [{}]
        if self.file.n_quotes:
            attempts = [self._read_stream(columns) for columns in wanted]
        else:
            # Whatever stops the blocks, the stream knows what to say.
            attempts = [*map(self._read_blocks, wanted), self._read_stream({})]
        n_rows = 0
        for attempt in attempts:
            try:
                # Rows that an earlier attempt yielded are not yielded again.
                for batch in _without_first(attempt, n_rows):
                    n_rows += batch.num_rows
                    yield batch
                return
            except TableError:
                if attempt is attempts[-1]:
                    raise

    @property
    def examined(self) -> bool:
        """Whether the whole file was examined; else the first reading may end in an error."""
        return self.file.examined

    def _read_and_examine(self) -> Iterator[Any]:
        """Yield batches as text, and refuse the file if the rest is not as its beginning was."""
        self._examination = examination = Examination(self.path, "utf-8")
        read = self._read_stream if self.file.n_quotes else self._read_blocks
        for batch in read({}):
            if examination.n_quotes and not self.file.n_quotes:
                raise table_error(
                    self.path,
                    "has its first quotation mark late in the file, after its layout was detected; "
                    "save the table again, as CSV with all cells quoted or none.",
                )
            yield batch
        if examination.n_quotes % 2:
            raise table_error(
                self.path,
                "has an opening quotation mark without a closing one; close or remove it.",
            )
        self.file = replace(self.file, n_quotes=examination.n_quotes, examined=True)
        self._examination = None

    def _read_blocks(self, types: dict[str, Any]) -> Iterator[Any]:
        """Yield batches, of which several are made at a time: without quotes a line is a row."""
        options = self._options(types)

        def parse(block: bytes) -> list[Any]:
            # Larger than the block, so that pyarrow does not cut it further.
            read_options = self._read_options(len(block) + 1)
            source = pa.BufferReader(block)
            return pa.csv.read_csv(source, read_options=read_options, **options).to_batches()

        with self._refusing():
            yield from itertools.chain.from_iterable(
                map_ahead(parse, read_ahead(self._blocks()), PARSING_THREADS)
            )

    def _blocks(self) -> Iterator[bytes]:
        """Yield bytes of whole rows, cut where `_read_stream` cuts its batches."""
        self._stream = stream = self.file.open(self._examination)
        rest, too_long = b"", False
        try:
            stream.read(self.header_bytes)
            # `rest` is the beginning of a row whose end is yet to be read. It is put in front of
            # the next block, as pyarrow does; a row that has no end in two blocks is too long for
            # its stream, too.
            while block := stream.read(self.chunk_bytes):
                if rest.endswith(b"\r") and not block.startswith(b"\n"):
                    yield rest  # the carriage return was a whole line break
                    rest, too_long = b"", False
                if too_long:
                    raise TableError("a row is longer than a block")
                # A carriage return at the very end may be half of a line break.
                end = 1 + max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1))
                too_long = not end and bool(rest)
                if end:
                    yield b"".join((rest, memoryview(block)[:end]))
                    rest = block[end:]
                else:
                    rest += block
            if rest:
                yield rest
        finally:
            stream.close()

    def _read_stream(self, types: dict[str, Any]) -> Iterator[Any]:
        """Yield batches, one after the other: where a row ends depends on all before it."""
        last = None
        self._refused_row: Any = None
        try:
            with self._refusing():
                for batch in read_ahead(self._stream_batches(types)):
                    last = batch
                    yield batch
        except TableError as error:
            if self._refused_row is not None:
                raise self._ragged_error(self._refused_row) from None
            if "straddling" in str(error):
                limit = self.chunk_bytes >> 20
                raise table_error(
                    self.path, f"a row is longer than {limit} MiB; is a quote left open?"
                ) from None
            raise
        # An odd number of quotes may be right, as in 5" of an unquoted cell. Only a last cell that
        # goes over several lines shows that one was left open.
        if last is not None and last.num_rows and self.file.n_quotes % 2:
            self._check_last_row(last)

    def _stream_batches(self, types: dict[str, Any]) -> Iterator[Any]:
        """Yield what pyarrow makes of the stream, which stays open as long as that is read."""
        self._stream = stream = self.file.open(self._examination)
        try:
            stream.read(self.header_bytes)
            # pyarrow raises an error for a stream without rows, which is not one here.
            first = stream.read(1)
            if not first:
                return
            stream.give_back(first)
            options = self._options(types, invalid_row_handler=self._refuse_row)
            source = pa.PythonFile(stream, mode="r")
            yield from pa.csv.open_csv(
                source, read_options=self._read_options(self.chunk_bytes), **options
            )
        finally:
            stream.close()

    def _refusing(self) -> Any:
        advice = DAMAGED_GZIP if self.file.compressed else "cannot be read as a table; check it."
        return refused_as(self.path, advice, *GZIP_ERRORS, UnicodeError, pa.ArrowException)

    def _read_options(self, block_size: int) -> Any:
        # One thread: rows are then numbered, and batches come one at a time.
        return pa.csv.ReadOptions(column_names=self.names, block_size=block_size, use_threads=False)

    def _options(self, types: dict[str, Any], **parse_options: Any) -> dict[str, Any]:
        return {
            "parse_options": pa.csv.ParseOptions(
                delimiter=self.separator,
                # Without quotes no cell holds a line break, and cutting is simpler.
                quote_char='"' if self.file.n_quotes else False,
                newlines_in_values=bool(self.file.n_quotes),
                # In a table of one column an empty line is a row.
                ignore_empty_lines=len(self.names) > 1,
                **parse_options,
            ),
            "convert_options": pa.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()) | types,
                null_values=list(self._missing),
                strings_can_be_null=True,
            ),
        }

    def _refuse_row(self, row: Any) -> str:
        self._refused_row = row  # an exception raised here would not get through
        return "error"

    def _ragged_error(self, row: Any) -> TableError:
        number = "a row" if row.number is None else f"row {row.number + 1}"
        advice = (
            "put cells that hold the separator in quotes, or name the separator."
            if row.actual_columns > row.expected_columns
            else "complete it, or remove the line if it is not a row of the table."
        )
        return table_error(
            self.path,
            f"{number} has {row.actual_columns} cells where the first row has "
            f"{row.expected_columns} ('{one_line(row.text)}'): {advice}",
        )

    def _check_last_row(self, batch: Any) -> None:
        """Refuse a quote that was opened and never closed: it would swallow rows unseen."""
        cells = [column[-1].as_py() for column in batch.columns]
        if any(isinstance(cell, str) and "\n" in cell for cell in cells):
            raise table_error(
                self.path, "a quote is opened and not closed before the end; close or remove it."
            )


def _is_typed(column: Any) -> bool:
    """Return whether a column was cut as something else than text."""
    return not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type))


def _without_first(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Yield batches without their first rows."""
    for batch in batches:
        n_skipped = min(n_rows, batch.num_rows)
        n_rows -= n_skipped
        if n_skipped < batch.num_rows:
            yield batch.slice(n_skipped)
