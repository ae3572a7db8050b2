"""Users' files -> frames -> arrays: reading, matching, encoding, writing.

Needs the extra ``cli`` (pandas and pyarrow).
"""

from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import TableError
from covshift.tables.matching import MatchedTables, match_tables
from covshift.tables.pairs import read_pair
from covshift.tables.reading import Table, TableReader, open_table, read_table
from covshift.tables.schema import TableSchema
from covshift.tables.writing import check_output, write_table

__all__ = [
    "MatchedTables",
    "Table",
    "TableEncoder",
    "TableError",
    "TableReader",
    "TableSchema",
    "check_output",
    "match_tables",
    "open_table",
    "read_pair",
    "read_table",
    "write_table",
]
