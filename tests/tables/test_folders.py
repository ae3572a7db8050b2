"""Folders of Parquet files, and samples drawn while a table is read."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from covshift.tables import TableError, open_table, read_pair, read_table
from covshift.tables.diagnosing import diagnose_tables, rows_to_label
from covshift.tables.reading import default_rows, sample_frames


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
    with pytest.raises(TableError, match=r"part\.7\.parquet: has other columns.*'b'"):
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


def test_a_sample_is_drawn_while_reading(tmp_path):
    path = tmp_path / "rows.csv"
    frame = make_frame(50_000)
    frame.to_csv(path, index=False)
    table = read_table(path, max_rows=1000)
    assert len(table.frame) == 1000
    assert table.frame["number"].tolist() == table.rows.tolist()  # in their order
    assert (np.diff(table.rows) > 0).all()
    # Uniform over the file: the mean of 1000 of its numbers has a standard error of 456.
    assert abs(table.rows.mean() - 25_000) < 4 * 456
    (note,) = [note for note in table.notes if "drawn at random" in note]
    assert note.startswith("1,000 of 50,000 rows are used")
    assert "within 0.0429" in note
    again = read_table(path, max_rows=1000)
    assert again.rows.tolist() == table.rows.tolist()


def test_every_row_is_equally_likely():
    counts = np.zeros(40)

    class Reader(list):
        """Three frames."""

    frames = Reader(pd.DataFrame({"x": np.arange(a, b)}) for a, b in ((0, 5), (5, 30), (30, 40)))
    for seed in range(2000):
        frame, rows = sample_frames(frames, 4, seed=seed)
        assert frame["x"].tolist() == rows.tolist()
        counts[rows] += 1
    expected = 2000 * 4 / 40
    assert ((counts - expected) ** 2 / expected).sum() < 72  # chi-squared of 39, p = .001


def test_a_table_that_fits_is_not_sampled(tmp_path):
    path = tmp_path / "rows.csv"
    make_frame(100).to_csv(path, index=False)
    assert read_table(path, max_rows=100).rows is None
    assert default_rows(17) == 1_176_470
    with pytest.raises(ValueError, match="max_rows"):
        read_table(path, max_rows=0)


def test_rows_of_a_sampled_pair_keep_their_numbers(tmp_path):
    train = write_folder(tmp_path / "train", make_frame(3000))
    new = make_frame(4000, seed=1).drop(columns="ill")
    new[["a", "b"]] += 5
    new = write_folder(tmp_path / "new", new)
    lines = []
    tables = read_pair(train, new, label="ill", domain="site", keep=["number"], max_rows=300,
                       progress=lambda *told: lines.append(told))  # fmt: skip
    assert tables.X_train["number"].tolist() == tables.train_rows.tolist()
    assert tables.X_new["number"].tolist() == tables.new_rows.tolist()
    assert lines[-1] == ("reading new: 4,000 rows", 1.0)
    assert any("300 of 4,000 rows are used" in note for note in tables.notes)
    found = diagnose_tables(tables, max_rows=60, time_budget=0.0)
    rows = rows_to_label(found, tables, 5)
    assert set(rows) <= set((tables.new_rows + 1).tolist())
