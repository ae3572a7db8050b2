"""Parquet files and folders of them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from covshift.tables import TableError, open_table, read_table


def make_frame(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n_rows, 3)), columns=["a", "b", "c"])
    frame["site"] = rng.choice(["north", "south"], n_rows)
    frame["ill"] = np.where(frame["a"] > 0, "yes", "no")
    frame["number"] = np.arange(n_rows, dtype=float)
    return frame


def write_folder(folder, frame, n_files=12):
    folder.mkdir()
    for index, rows in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[rows].to_parquet(folder / f"part.{index}.parquet", index=False)
    (folder / "_SUCCESS").touch()
    (folder / "_metadata.parquet").write_text("nothing")
    return folder


def test_a_folder_is_its_files_one_after_the_other(tmp_path):
    frame = make_frame(1000)
    table = read_table(write_folder(tmp_path / "rows", frame))
    assert table.frame["number"].tolist() == frame["number"].tolist()  # part.10 after part.9
    assert "The folder holds 12 Parquet files, read as one table." in table.notes
    assert table.rows is None


def test_files_of_a_folder_must_be_alike(tmp_path):
    folder = write_folder(tmp_path / "rows", make_frame(100), n_files=2)
    make_frame(10).rename(columns={"b": "beta"}).to_parquet(folder / "part.7.parquet", index=False)
    with pytest.raises(TableError, match=r"part\.7\.parquet has other columns.*'b'"):
        read_table(folder)
    (folder / "part.7.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="has the name of a Parquet file"):
        read_table(folder)


def test_a_folder_without_parquet_files(tmp_path):
    (tmp_path / "rows").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path / "rows")


@pytest.mark.parametrize("row_group_size", [20_000, 300_000], ids=["row groups", "one row group"])
def test_memory_does_not_grow_with_a_parquet_file(tmp_path, row_group_size):
    path, n_rows = tmp_path / "rows.parquet", 300_000
    values = np.random.default_rng(0).standard_normal((n_rows, 20))
    table = pa.table(dict(zip(map("x{}".format, range(20)), values.T.copy(), strict=True)))
    # Dictionaries, of a megabyte a column at most, would be kept.
    options = {"row_group_size": row_group_size, "compression": "none", "use_dictionary": False}
    pa.parquet.write_table(table, path, **options)
    del table
    before, held, n_read = pa.total_allocated_bytes(), [], 0
    for frame in open_table(path):
        n_read += len(frame)
        held.append(pa.total_allocated_bytes() - before)
    assert n_read == n_rows
    # Older versions of pyarrow (17 and 20 were tried) keep more of a single group of rows.
    share = 0.5 if int(pa.__version__.split(".")[0]) >= 26 else 0.9
    assert max(held) < share * path.stat().st_size
