"""Users' files -> frames -> arrays: reading, matching, encoding, writing.

Needs the extra ``cli`` (pandas and pyarrow).
"""

from covshift.tables.errors import TableError
from covshift.tables.reading import Table, TableReader, open_table, read_table
from covshift.tables.schema import TableSchema

__all__ = [
    "Table",
    "TableError",
    "TableReader",
    "TableSchema",
    "open_table",
    "read_table",
]
