"""The names and kinds of a table's columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from covshift.tables.cells import KINDS, Kind
from covshift.tables.errors import TableError


@dataclass(frozen=True)
class TableSchema:
    """Columns of a table, in order: ``kinds`` maps each name to its kind.

    ``decimal`` is the decimal sign of its numbers, which decides where another table could be
    read both ways.

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

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise TableError(f"The decimal sign of a schema is '.' or ',', not {self.decimal!r}.")
        for name, kind in self.kinds.items():
            if not isinstance(name, str) or kind not in KINDS:
                raise TableError(
                    f"A schema maps names of columns to one of {', '.join(KINDS)}; got "
                    f"{name!r}: {kind!r}."
                )

    def without(self, names: Any) -> "TableSchema":
        """Return the schema less some columns."""
        dropped = set(names)
        kinds = {name: kind for name, kind in self.kinds.items() if name not in dropped}
        return TableSchema(kinds, self.decimal)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        columns = [[name, kind] for name, kind in self.kinds.items()]
        return {"columns": columns, "decimal": self.decimal}

    @classmethod
    def from_dict(cls, data: Any) -> "TableSchema":
        """Return the schema that `to_dict` wrote."""
        try:
            pairs, decimal = [(name, kind) for name, kind in data["columns"]], data["decimal"]
        except (KeyError, TypeError, ValueError):
            raise TableError("This is no schema of a table: expected {'columns': ...}.") from None
        return cls(dict(pairs), decimal)
