"""Rows in memory, and rows that are passed over in parts: of a file on disk, or of a cluster."""

from covshift.streams.rows import (
    ArrayRows,
    MemoryRows,
    OpenRows,
    RowStream,
    SampledRowsWarning,
    bring_home,
    is_streamed,
    map_rows,
    open_rows,
    open_stream,
    release,
    rows_in_memory,
    sample_rows,
)

__all__ = [
    "ArrayRows",
    "MemoryRows",
    "OpenRows",
    "RowStream",
    "SampledRowsWarning",
    "bring_home",
    "is_streamed",
    "map_rows",
    "open_rows",
    "open_stream",
    "release",
    "rows_in_memory",
    "sample_rows",
]
