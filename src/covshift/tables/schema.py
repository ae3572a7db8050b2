"""The names and kinds of a table's columns, and how they are found by reading it through once.

Decisions made here are in the schema, so that all later reading agrees; each decision is a note
that names the option that overrules it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unicodedata import normalize

from covshift.tables.columns import KINDS, MARKERS, MISSING, Kind
from covshift.tables.dates import DAYS, SPELLINGS, date_spelling, is_days
from covshift.tables.messages import TableError, listed
from covshift.tables.text_layout import plain_name


@dataclass(frozen=True)
class TableSchema:
    """Columns of a table, in order: ``kinds`` maps each name to its kind.

    ``decimal`` is the decimal sign of its numbers, which decides where another table could be
    read both ways. ``spellings`` maps columns to how their cells are written, where that is not
    plain: the unit of numbers, or the order of a date's parts (`covshift.tables.columns`).
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

    def __post_init__(self) -> None:
        # As the names and cells of files are read, with which these are compared.
        for name in ("missing", "present"):
            texts = tuple(normalize("NFC", text) for text in getattr(self, name))
            object.__setattr__(self, name, texts)
        kinds = {plain_name(name): kind for name, kind in self.kinds.items()}
        object.__setattr__(self, "kinds", kinds)

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
    """Parse a user's schema of texts ``COL=KIND``: return the kinds of columns."""
    pairs = {}
    for text in texts:
        name, sign, kind = text.rpartition("=")
        if not sign or not name.strip() or not kind.strip():
            raise TableError(f"--as takes COL=KIND, as in --as zip=text; got {text!r}.")
        pairs[name.strip()] = kind.strip()
    return pairs
