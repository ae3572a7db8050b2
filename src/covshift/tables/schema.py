"""The names and kinds of a table's columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from covshift.tables.cells import KINDS, MISSING, Kind, date_spelling, is_days
from covshift.tables.date_spellings import SPELLINGS
from covshift.tables.errors import TableError


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
