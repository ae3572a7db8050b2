"""The packages that tables need, or the error that names the extra."""

try:
    import pandas
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet
except ImportError as error:
    raise ImportError(
        f"Tables need {error.name or 'pandas and pyarrow'}, which is not installed: "
        'pip install "covshift[cli]"'
    ) from error

__all__ = ["pandas", "pyarrow"]
