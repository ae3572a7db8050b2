"""Rows that are passed over in parts: of an array, of a file on disk, or of a cluster."""

from covshift.streams.mapping import map_rows
from covshift.streams.opening import bring_home, is_streamed, open_rows, open_stream
from covshift.streams.row_stream import ArrayRows, RowStream, release
from covshift.streams.sampling import SampledRowsWarning

__all__ = [
    "ArrayRows",
    "RowStream",
    "SampledRowsWarning",
    "bring_home",
    "is_streamed",
    "map_rows",
    "open_rows",
    "open_stream",
    "release",
]
