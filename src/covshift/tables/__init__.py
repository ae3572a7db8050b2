"""Users' files -> frames -> arrays: reading, matching, encoding, writing.

Needs the extra ``cli`` (pandas and pyarrow).
"""

from covshift.tables.adapting import adapt_model, adapt_tables, choose_estimator, describe_model
from covshift.tables.batch_history import append_history, read_history
from covshift.tables.batch_series import monitor_series
from covshift.tables.classifier import TableClassifier
from covshift.tables.diagnosing import diagnose_tables
from covshift.tables.encoder import TableEncoder
from covshift.tables.errors import TableError
from covshift.tables.label_updates import update_model
from covshift.tables.labeling import LabelingSession
from covshift.tables.matching import MatchedTables, match_tables
from covshift.tables.monitoring import monitor_batch
from covshift.tables.pairs import read_pair
from covshift.tables.predicting import predict_file
from covshift.tables.reading import Table, open_table, read_table
from covshift.tables.regressor import TableRegressor
from covshift.tables.schema import Intake, TableSchema
from covshift.tables.scoring import score_file
from covshift.tables.splits import Split
from covshift.tables.table_reader import TableReader
from covshift.tables.writing import check_output, write_table

__all__ = [
    "Intake",
    "LabelingSession",
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
    "append_history",
    "check_output",
    "choose_estimator",
    "describe_model",
    "diagnose_tables",
    "match_tables",
    "monitor_batch",
    "monitor_series",
    "open_table",
    "predict_file",
    "read_history",
    "read_pair",
    "read_table",
    "score_file",
    "update_model",
    "write_table",
]
