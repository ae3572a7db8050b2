"""Anything at all as input: a good table or a `TableError` of one line, and nothing else."""

import csv
import gzip
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covshift.tables import TableEncoder, TableError, match_tables, read_table, write_table
from covshift.tables.columns import MISSING

QUICK, WHOLE = 60, 700  # of each of the four tests; the whole are 2,800


def fuzz(strategy):
    """Run a test on a quick sample, and on the whole if slow tests are asked for."""

    def decorate(check):
        def run(size):
            bounded = settings(
                max_examples=size,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            bounded(given(strategy)(check))()

        sizes = [pytest.param(QUICK, id="quick"), pytest.param(WHOLE, marks=pytest.mark.slow)]
        return pytest.mark.parametrize("size", sizes)(run)

    return decorate


def try_reading(content, **options):
    """Return the table, or None where it is refused as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        path.write_bytes(content)
        try:
            table = read_table(path, **options)
        except TableError as error:
            check_message(error, path)
            return None
    check_table(table)
    return table


def check_message(error, path):
    after = str(error).removeprefix(str(path))  # the file is the subject, or a heading
    assert after.startswith((": ", " is ", " has ", " holds ", " cannot "))
    check_one_line(error)


def check_one_line(error):
    assert str(error).isprintable()
    assert len(str(error)) < 600


def check_table(table):
    kinds = {"number": "float64", "boolean": "boolean", "date": "datetime64[us]", "text": "string"}
    assert len(table.frame)
    assert {name: str(dtype) for name, dtype in table.frame.dtypes.items()} == {
        name: kinds[kind] for name, kind in table.schema.kinds.items()
    }
    for name, kind in table.schema.kinds.items():
        if kind == "number":
            assert not np.isinf(table.frame[name]).any()
    assert all(note.isprintable() and len(note) < 600 for note in table.notes)


def valid_files():
    """Small files of every format, to be damaged."""
    frame = pd.DataFrame(
        {"a": [1.5, None, 3.0], "b": ["x", "é, y", None], "d": pd.to_datetime(["2024-01-01"] * 3)}
    )
    text = frame.to_csv(index=False)
    parquet, arrow, stream = io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    frame.to_feather(arrow)
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    typed = [file.getvalue() for file in (parquet, arrow, stream)]
    texts = [text.encode(), text.encode("utf-16"), text.encode("cp1252")]
    return [*texts, gzip.compress(texts[0], mtime=0), *typed]


damaged_files = st.tuples(
    st.sampled_from(valid_files()),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=4),
    st.floats(0, 1),
)
TEXTS = st.text(st.sampled_from("ab01,;\t|\"\n\r .-+eE'=é\ufeff\0NA"), max_size=200)


@fuzz(st.one_of(st.binary(max_size=300), TEXTS.map(str.encode), damaged_files))
def test_bytes(content):
    if isinstance(content, tuple):
        valid, changes, cut = content
        raw = bytearray(valid)
        for place, patch in changes:
            start = int(place * len(raw))
            raw[start : start + len(patch)] = patch
        content = bytes(raw[: int((0.5 + cut) * len(raw))])  # one in two is cut short
    try_reading(content)


CELLS = st.one_of(
    st.sampled_from([*MISSING, "1", "-2.5", "1,5", "1.234,5", "1,234", "007", "true", "=1+1", "é"]),
    st.sampled_from(
        ["2024-01-01", "2024-01-01T10:00Z", "2024-13-01", "1e999", "inf", "0x1", " 1 "]
    ),
    st.text(max_size=5),
    st.integers().map(str),
    st.floats().map(str),
)
structures = st.fixed_dictionaries(
    {
        "rows": st.lists(st.lists(CELLS, max_size=5), max_size=8),
        "width": st.one_of(st.none(), st.integers(1, 5)),
        "separator": st.sampled_from(",;\t| "),
        "line_end": st.sampled_from(["\n", "\r\n", "\r"]),
        "quoting": st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
        "encoding": st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
        "given": st.booleans(),
    }
)


def write_rows(structure):
    rows = structure["rows"]
    if structure["width"] is not None:  # else ragged
        rows = [(row + [""] * structure["width"])[: structure["width"]] for row in rows]
    file = io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=structure["separator"],
        lineterminator=structure["line_end"],
        quoting=structure["quoting"],
    )
    writer.writerows(rows)
    return file.getvalue().encode(structure["encoding"], "replace")


@fuzz(structures)
def test_structure(structure):
    options = {"separator": structure["separator"]} if structure["given"] else {}
    try_reading(write_rows(structure), **options)


columns = st.sampled_from(["number", "whole", "text", "flag", "day"])
tables = st.integers(1, 12).flatmap(
    lambda n: st.lists(
        columns.flatmap(
            lambda kind: st.lists(
                {
                    "number": st.floats(allow_nan=True, allow_infinity=False),
                    "whole": st.integers(-(2**53), 2**53),
                    "text": st.text(
                        st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
                    ),
                    "flag": st.booleans(),
                    "day": st.datetimes().map(pd.Timestamp),
                }[kind],
                min_size=n,
                max_size=n,
            )
        ),
        min_size=1,
        max_size=5,
    )
)


@fuzz(tables)
def test_what_pandas_writes_comes_back(lists):
    """Types: every value as it was, or text where the column as a whole is not of another kind."""
    frame = pd.DataFrame({f"x{i}": pd.Series(values) for i, values in enumerate(lists)})
    table = try_reading(frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode("utf-8"))
    if table is None:  # only missing values
        assert frame.map(lambda v: pd.isna(v) or str(v).strip() in MISSING).to_numpy().all()
        return
    for i, values in enumerate(lists):
        read = table.frame[f"x{i}"]
        for value, cell in zip(values, read, strict=False):
            if (isinstance(value, float) and not pd.isna(value)) or isinstance(
                value, int | bool | pd.Timestamp
            ):
                assert cell == value
    # Rows are lost at the end only, and only empty ones.
    rest = frame.iloc[len(table.frame) :]
    assert rest.map(lambda v: pd.isna(v) or str(v).strip() in MISSING).to_numpy().all()


@fuzz(st.tuples(structures, structures, st.sampled_from("abcde"), st.booleans()))
def test_from_files_to_features_and_back(case):
    """Two tables matched, encoded and written: good features, or a `TableError`."""
    train_rows, new_rows, label, with_domain = case
    header = list("abcde")
    frames = []
    for structure in (train_rows, new_rows):
        width = 5
        structure = {**structure, "separator": structure["separator"].replace(" ", ",")}
        rows = [header, *([*row, *[""] * width][:width] for row in structure["rows"] * 3)]
        table = try_reading(write_rows({**structure, "rows": rows, "width": width}))
        if table is None:
            return
        frames.append(table.frame)
    domain = "a" if with_domain and label != "a" else None
    try:
        matched = match_tables(*frames, label=label, domain=domain)
    except TableError as error:
        check_one_line(error)
        return
    assert all(note.isprintable() for note in matched.notes)
    X, y, sample_domain = matched.stack()
    assert len(X) == len(y) == len(sample_domain)
    encoder = TableEncoder(min_frequency=1).fit(X, sample_domain=sample_domain)
    features = encoder.transform(matched.X_new)
    assert np.isfinite(features).all()
    assert features.shape == (len(matched.X_new), len(encoder.get_feature_names_out()))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("out.csv", "out.parquet"):
            assert write_table(Path(folder, name), [matched.X_new]) == len(matched.X_new)
        assert sorted(os.listdir(folder)) == ["out.csv", "out.parquet"]
