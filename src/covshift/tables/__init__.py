"""Users' files -> frames -> arrays: reading, matching, encoding, writing.

Needs the extra ``cli`` (pandas and pyarrow).
"""

from covshift.tables.adapting import adapt_model, adapt_tables, choose_estimator, describe_model
from covshift.tables.classifier import TableClassifier
from covshift.tables.diagnosing import diagnose_tables
from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import TableError
from covshift.tables.matching import MatchedTables, match_tables
from covshift.tables.monitoring import monitor_batch
from covshift.tables.pairs import read_pair
from covshift.tables.predicting import predict_file
from covshift.tables.reading import Table, open_table, read_table
from covshift.tables.regressor import TableRegressor
from covshift.tables.schema import TableSchema
from covshift.tables.schema_finding import Intake
from covshift.tables.scoring import score_file
from covshift.tables.splits import Split
from covshift.tables.table_reader import TableReader
from covshift.tables.writing import check_output, write_table

__all__ = [
    "Intake",
    "MatchedTables",
    "Split",
    "Table",
    "TableClassifier",
    "TableEncoder",
    "TableError",
    "TableReader",
    "TableRegressor",
    "TableSchema",
    "adapt_model",
    "adapt_tables",
    "check_output",
    "choose_estimator",
    "describe_model",
    "diagnose_tables",
    "match_tables",
    "monitor_batch",
    "open_table",
    "predict_file",
    "read_pair",
    "read_table",
    "score_file",
    "write_table",
]
