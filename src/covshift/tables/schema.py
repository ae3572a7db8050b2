"""The names and kinds of a table's columns, and how they are found by reading it through once.

Decisions made here are in the schema, so that all later reading agrees; each decision is a note
that names the option that overrules it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from covshift.tables.cells import (
    DAYS,
    KINDS,
    MARKERS,
    MISSING,
    Kind,
    NumberStyle,
    date_spelling,
    is_days,
)
from covshift.tables.column_types import POSSIBLE_SHARE, ColumnTypes, choose_style
from covshift.tables.columns import arrow_kind, plain_column
from covshift.tables.dates import MEANINGS, SPELLINGS
from covshift.tables.errors import TableError, listed, table_error
from covshift.tables.extra import pyarrow as pa


@dataclass(frozen=True)
class TableSchema:
    """Columns of a table, in order: ``kinds`` maps each name to its kind.

    ``decimal`` is the decimal sign of its numbers, which decides where another table could be
    read both ways. ``spellings`` maps columns to how their cells are written, where that is not
    plain: the unit of numbers, or the order of a date's parts (`covshift.tables.cells`).
    ``missing`` holds the texts that stand for nothing, and numbers that do, such as ``-999``.

    The kinds are "number" (float64), "boolean", "date" (without zone) and "text". A table read
    with the schema of another has that one's columns and kinds; cells that do not fit are
    missing values.

    Examples
    --------
    >>> from covshift.tables import TableSchema
    >>> schema = TableSchema({"age": "number", "city": "text"})
    >>> TableSchema.from_dict(schema.to_dict()) == schema
    True
    """

    kinds: Mapping[str, Kind]
    decimal: str = "."
    spellings: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise TableError(f"The decimal sign of a schema is '.' or ',', not {self.decimal!r}.")
        for name, kind in self.kinds.items():
            if not isinstance(name, str) or kind not in KINDS:
                raise TableError(
                    f"A schema maps names of columns to one of {', '.join(KINDS)}; got "
                    f"{name!r}: {kind!r}."
                )
        for name, spelling in self.spellings.items():
            days = self.kinds.get(name) == "number" and is_days(spelling)
            shown = date_spelling(spelling) if days else spelling
            if (days or self.kinds.get(name) == "date") and shown not in ("", *SPELLINGS):
                raise TableError(
                    f"Dates of column {name!r} are spelled in one of {', '.join(SPELLINGS)}; "
                    f"got {shown!r}."
                )

    def without(self, names: Any) -> "TableSchema":
        """Return the schema less some columns."""
        dropped = set(names)
        return self.with_kinds({n: kind for n, kind in self.kinds.items() if n not in dropped})

    def with_kinds(self, kinds: Mapping[str, Kind]) -> "TableSchema":
        """Return a schema of these columns, whose cells are written as in this one."""
        kept = {name: kind for name, kind in self.kinds.items() if kinds.get(name) == kind}
        spellings = {name: one for name, one in self.spellings.items() if name in kept}
        return replace(self, kinds=kinds, spellings=spellings)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        columns = [[name, kind] for name, kind in self.kinds.items()]
        data: dict[str, Any] = {"columns": columns, "decimal": self.decimal}
        if self.spellings:
            data["spellings"] = dict(self.spellings)
        if self.missing != MISSING:
            data["missing"] = list(self.missing)
        return data

    @classmethod
    def from_dict(cls, data: Any) -> "TableSchema":
        """Return the schema that `to_dict` wrote."""
        try:
            pairs, decimal = [(name, kind) for name, kind in data["columns"]], data["decimal"]
            spellings = dict(data.get("spellings", {}))
            missing = tuple(data.get("missing", MISSING))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise TableError(
                "This is not a schema of a table: expected {'columns': ...}."
            ) from None
        return cls(dict(pairs), decimal, spellings, missing)


MIN_CELLS_FOR_ADVICE = 5


@dataclass(frozen=True)
class Intake:
    """Facts about the cells of a training file from the user, which are then not guessed.

    Attributes
    ----------
    missing : more texts that stand for nothing, ``-999`` among them.
    present : texts that are values, though they usually stand for nothing.
    kinds : column -> a kind, ``days`` for dates used as numbers, each perhaps with a colon and a
        spelling: ``text``, ``number:kg``, ``date:dmy``, ``days:mdy``.
    names : columns that hold names, read as text whatever they look like.
    """

    missing: Sequence[str] = ()
    present: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that stand for nothing beside the usual ones."""
        return tuple(one for one in (*MARKERS, *self.missing) if one not in self.present)

    @property
    def all_missing(self) -> tuple[str, ...]:
        """All texts that stand for nothing, each once."""
        usual = [one for one in MISSING if one not in self.present]
        return tuple(dict.fromkeys((*usual, *self.markers)))

    def kind_of(self, name: str) -> tuple[Kind, str] | None:
        """Return the kind and the spelling that the user named for a column, or None."""
        if name not in self.kinds:
            return ("text", "") if name in self.names else None
        word, _, spelling = self.kinds[name].partition(":")
        word, spelling = word.strip(), spelling.strip()
        dates = word in ("date", DAYS)
        if word not in (*KINDS, DAYS) or (dates and spelling not in ("", *SPELLINGS)):
            raise TableError(
                f"Column {listed([name])} cannot be read as {self.kinds[name]!r}: use one of "
                f"{', '.join(KINDS)} or {DAYS}; dates may be spelled {', '.join(SPELLINGS)}, as in "
                "date:dmy."
            )
        if word == DAYS:
            return "number", f"{DAYS} {spelling}".strip()
        kind: Kind = word  # type: ignore[assignment]
        return kind, spelling if kind in ("number", "date") else ""


def parse_kinds(texts: Sequence[str]) -> dict[str, str]:
    """Return what ``COL=KIND`` says, by column."""
    pairs = {}
    for text in texts:
        name, sign, kind = text.rpartition("=")
        if not sign or not name.strip() or not kind.strip():
            raise TableError(f"--as takes COL=KIND, as in --as zip=text; got {text!r}.")
        pairs[name.strip()] = kind.strip()
    return pairs


@dataclass(frozen=True)
class FoundSchema:
    """Findings of one reading of a table.

    Attributes
    ----------
    schema : `TableSchema` of its columns.
    style : style of its numbers; None: its columns have types.
    notes : what was decided, in plain sentences.
    uneven : columns of numbers with cells that are not plain numbers.
    """

    schema: TableSchema
    style: NumberStyle | None
    notes: list[str]
    uneven: frozenset[str] = frozenset()


def find_schema(source: Any, style: NumberStyle | None, intake: Intake) -> FoundSchema:
    """Read a source of batches and return what its columns are."""
    notes: list[str] = []
    uneven: frozenset[str] = frozenset()
    unknown = [name for name in intake.kinds if name not in source.names]
    if unknown:
        raise table_error(source.path, f"has no column {listed(unknown)}, which --as names.")
    spellings: dict[str, str] = {}
    kinds = _typed_kinds(source, notes) if source.typed else {}
    if texts := text_columns(source):
        columns = _look_at_texts(source, texts, intake, notes)
        uneven = frozenset(name for name, column in columns.items() if not column.plain)
        found, spellings, style = _text_kinds(source, columns, style, intake, notes)
        kinds = {name: found.get(name, kinds.get(name, "text")) for name in kinds or found}
    if row_names := [name for name in source.row_names if name in kinds]:
        notes.append(f"Ignored {listed(row_names)}: it holds row names.")
    kinds = {name: kind for name, kind in kinds.items() if name not in row_names}
    for name in kinds:
        if (named := intake.kind_of(name)) is not None:
            kinds[name], spellings[name] = _spelled(*named, kinds[name], spellings.get(name, ""))
    if not kinds:
        raise table_error(source.path, "has no column that can be used.")
    spelled = {name: one for name, one in spellings.items() if one and name in kinds}
    decimal = "," if style == "comma" else "."
    uneven &= {name for name, kind in kinds.items() if kind == "number"}
    return FoundSchema(
        TableSchema(kinds, decimal, spelled, intake.all_missing), style, notes, uneven
    )


def _spelled(kind: Kind, spelling: str, found: Kind, found_spelling: str) -> tuple[Kind, str]:
    """Return the kind that the user named, with the spelling found where none was named."""
    if spelling == DAYS and found == "date":
        return kind, f"{DAYS} {found_spelling}".strip()
    return kind, spelling or (found_spelling if kind == found else "")


def _typed_kinds(source: Any, notes: list[str]) -> dict[str, Kind]:
    found = dict(zip(source.names, map(arrow_kind, source.types), strict=True))
    unusable = [name for name, kind in found.items() if kind is None]
    if unusable:
        notes.append(f"Ignored {listed(unusable)}: lists, records or bytes cannot be used.")
    return {name: kind for name, kind in found.items() if kind is not None}


def text_columns(source: Any) -> list[str]:
    """Return the columns of a source of batches that are text, whatever the cells mean.

    Not categories: who wrote them knew that they are text.
    """
    if not source.typed:
        return list(source.names)
    if getattr(source, "texts_stay", False):
        return []
    typed = zip(source.names, source.types, strict=True)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return [name for name, kind in typed if any(test(kind) for test in tests)]


def _look_at_texts(
    source: Any, names: list[str], intake: Intake, notes: list[str]
) -> dict[str, ColumnTypes]:
    """Read all rows and return what the cells of columns of text look like."""
    usual = [one for one in MISSING if one not in intake.present]
    columns = {name: ColumnTypes(usual, intake.markers, intake.present) for name in names}
    n_rows = 0
    for batch in source.read(missing=usual):
        n_rows += batch.num_rows
        for name, column in columns.items():
            column.look_at(plain_column(batch.column(name)))
    if not n_rows:
        raise table_error(source.path, "has column names, but no rows below them.")
    nameless = [source.names[i] for i in source.nameless]
    empty = [name for name in nameless if name in columns and not columns[name].filled]
    if empty and len(empty) < len(columns):
        columns = {name: column for name, column in columns.items() if name not in empty}
        notes.append(f"Ignored {len(empty)} columns without name or cells.")
    return columns


def _text_kinds(
    source: Any,
    columns: dict[str, ColumnTypes],
    style: NumberStyle | None,
    intake: Intake,
    notes: list[str],
) -> tuple[dict[str, Kind], dict[str, str], NumberStyle]:
    if style is None:
        style = choose_style(list(columns.values()), source.separator)
    kinds = {name: column.kind(style) for name, column in columns.items()}
    spellings = {name: column.spelling(style) for name, column in columns.items()}
    # Nothing is said of what the user has decided.
    guessed = {
        name: column
        for name, column in columns.items()
        if intake.kind_of(name) is None and name not in source.row_names
    }
    if source.typed:
        _note_texts(guessed, kinds, notes)
    _note_missing(guessed, kinds, notes)
    _note_numbers(guessed, kinds, style, notes)
    _note_dates(guessed, kinds, spellings, notes)
    return kinds, spellings, style


def _note_texts(
    columns: Mapping[str, ColumnTypes], kinds: Mapping[str, Kind], notes: list[str]
) -> None:
    """Say which columns are text in a file whose columns have types, and are read otherwise."""
    for kind in KINDS[:-1]:
        if names := [name for name in columns if kinds[name] == kind]:
            notes.append(
                f"Read {listed(names)} as {kind}s: the file holds them as text. If they are text: "
                f"--as {quoted(f'{names[0]}=text')}."
            )


def _note_missing(
    columns: Mapping[str, ColumnTypes], kinds: Mapping[str, Kind], notes: list[str]
) -> None:
    met: dict[str, list[str]] = {}
    for name, column in columns.items():
        for marker in column.marked:
            met.setdefault(marker, []).append(name)
    for marker, names in met.items():
        n_cells = sum(columns[name].marked[marker] for name in names)
        notes.append(
            f"Read {listed([marker])} as missing in {listed(names)} ({n_cells:,} cells). If it is "
            f"a value: --not-missing {quoted(marker)}."
        )
    for name, column in columns.items():
        if column.placeholders and kinds[name] != "text":
            n_cells = sum(column.placeholders.values())
            notes.append(
                f"Read {listed(column.placeholders)} as missing in {listed([name])} ({n_cells:,} "
                f"cells): the others are {kinds[name]}s. If it is a value: "
                f"--as {quoted(f'{name}=text')}."
            )


def _note_numbers(
    columns: Mapping[str, ColumnTypes],
    kinds: Mapping[str, Kind],
    style: NumberStyle,
    notes: list[str],
) -> None:
    if codes := [name for name, column in columns.items() if column.codes]:
        notes.append(
            f"Read {listed(codes)} as text: numbers that begin with a zero are codes. If they are "
            f"numbers: --as {quoted(f'{codes[0]}=number')}."
        )
    grouped = [n for n, column in columns.items() if column.has_comma and kinds[n] == "number"]
    if style == "point" and grouped:
        notes.append(
            f"Read commas in {listed(grouped)} as separators of thousands, as in '1,234'. If they "
            "are decimal signs: --decimal ,"
        )
    if bracketed := [n for n, c in columns.items() if c.has_brackets and kinds[n] == "number"]:
        notes.append(
            f"Read numbers in brackets in {listed(bracketed)} as negative, as in '(5)'. If they "
            f"are not: --as {quoted(f'{bracketed[0]}=text')}."
        )
    other: NumberStyle = "comma" if style == "point" else "point"
    for name, column in columns.items():
        numbers = max(column.numbers.values(), default=0)
        if kinds[name] == "number" and column.unit:
            bare = f"; {column.n_bare:,} cells have none" if column.n_bare else ""
            notes.append(
                f"Read {listed([name])} as numbers with the unit {listed([column.unit])}{bare}. If "
                f"they are not: --as {quoted(f'{name}=text')}."
            )
        elif kinds[name] == "text" and column.is_number(other):
            notes.append(
                f"Read {listed([name])} as text: its numbers have a decimal {other}, and those of "
                f"other columns a decimal {style}. Write them alike."
            )
        elif kinds[name] == "text" and len(column.units) > 1 and column.unit:
            units = [unit for unit, _ in column.units.most_common(3)]
            notes.append(
                f"Read {listed([name])} as text: its numbers have several units ({listed(units)}). "
                "Convert them to one unit."
            )
        elif (
            kinds[name] == "text"
            and not column.codes
            and column.judged >= MIN_CELLS_FOR_ADVICE
            and POSSIBLE_SHARE * column.judged <= numbers < column.judged
            and column.others_than_numbers
        ):
            odd = column.others_than_numbers.most_common(1)[0][0]
            notes.append(
                f"Read {listed([name])} as text: {column.judged - numbers:,} of "
                f"{column.judged:,} cells are not numbers (most often {listed([odd])}). If these "
                f"are missing: --missing {quoted(odd)}, or --as {quoted(f'{name}=number')}."
            )


def _note_dates(
    columns: Mapping[str, ColumnTypes],
    kinds: Mapping[str, Kind],
    spellings: Mapping[str, str],
    notes: list[str],
) -> None:
    for name, column in columns.items():
        if kinds[name] == "text" and (odd := column.odd_dates):
            notes.append(
                f"Read {listed([name])} as text: {odd[0]:,} of {column.judged:,} cells are not "
                f"dates as the others are (first: {listed([odd[1]])}). Write all dates in one way, "
                f"or leave the column out: --ignore {quoted(name)}."
            )
        if kinds[name] != "date" or not spellings[name]:
            continue
        if column.date_is_ambiguous:
            other = "dmy" if spellings[name] == "mdy" else "mdy"
            notes.append(
                f"Read {listed([name])} as dates, {MEANINGS[spellings[name]]}; the cells do not "
                f"show which comes first. If it is the other: "
                f"--as {quoted(f'{name}=date:{other}')}."
            )
        elif spellings[name] == "packed":
            notes.append(
                f"Read {listed([name])} as dates, {MEANINGS['packed']}. If they are numbers: "
                f"--as {quoted(f'{name}=number')}."
            )


def quoted(text: str) -> str:
    """Return text as an argument for a shell to paste, on one line."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    plain = shown and all(c.isalnum() or c in "_-.=:/+%" for c in shown)
    return shown if plain else f'"{shown}"'
