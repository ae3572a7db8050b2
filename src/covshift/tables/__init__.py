"""Users' files -> frames -> arrays: reading, matching, encoding, writing.

Needs the extra ``cli`` (pandas and pyarrow).
"""

from importlib import import_module
from typing import TYPE_CHECKING

try:
    import pandas  # noqa: F401
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"Tables need {error.name or 'pandas and pyarrow'}, which is not installed: "
        'pip install "covshift[cli]"'
    ) from error

# Names are imported on first use: predicting needs neither diagnosis nor monitoring.
# Type checkers and editors read this block.
if TYPE_CHECKING:
    from covshift.tables.adapting import adapt_model, adapt_tables, choose_estimator, describe_model
    from covshift.tables.diagnosing import diagnose_tables
    from covshift.tables.encoder import TableEncoder
    from covshift.tables.file_pairs import Split, read_pair
    from covshift.tables.labeling import LabelingSession
    from covshift.tables.matching import MatchedTables, match_tables
    from covshift.tables.messages import TableError
    from covshift.tables.model_updates import update_model
    from covshift.tables.monitoring_batch import monitor_batch
    from covshift.tables.monitoring_history import append_history, read_history
    from covshift.tables.monitoring_series import monitor_series
    from covshift.tables.predicting import predict_file
    from covshift.tables.reading import Table, TableReader, open_table, read_table
    from covshift.tables.schema import Intake, TableSchema
    from covshift.tables.scoring import score_file
    from covshift.tables.table_models import TableClassifier, TableRegressor
    from covshift.tables.writing import check_output, write_table

_MODULE_OF = {
    "Intake": "schema",
    "LabelingSession": "labeling",
    "MatchedTables": "matching",
    "Split": "file_pairs",
    "Table": "reading",
    "TableClassifier": "table_models",
    "TableEncoder": "encoder",
    "TableError": "messages",
    "TableReader": "reading",
    "TableRegressor": "table_models",
    "TableSchema": "schema",
    "adapt_model": "adapting",
    "adapt_tables": "adapting",
    "append_history": "monitoring_history",
    "check_output": "writing",
    "choose_estimator": "adapting",
    "describe_model": "adapting",
    "diagnose_tables": "diagnosing",
    "match_tables": "matching",
    "monitor_batch": "monitoring_batch",
    "monitor_series": "monitoring_series",
    "open_table": "reading",
    "predict_file": "predicting",
    "read_history": "monitoring_history",
    "read_pair": "file_pairs",
    "read_table": "reading",
    "score_file": "scoring",
    "update_model": "model_updates",
    "write_table": "writing",
}
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

# Hidden from type checkers, which would accept any misspelled name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name of the package on first use (PEP 562)."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
