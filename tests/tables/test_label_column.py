"""Labels from the training table: classes, quantities, ranges."""

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, SourceStandardScaler
from covshift.tables import (
    TableClassifier,
    TableError,
    match_tables,
    read_pair,
    score_file,
)
from covshift.tables.label_column import read_labels

N = 120
rng = np.random.default_rng(0)
BASE = pd.DataFrame(
    {"x": rng.normal(size=N).round(3), "label": np.repeat(["no", "yes"], N // 2)},
)


def test_counts_are_no_classes_however_many_rows_they_have():
    train = pd.DataFrame({"x": rng.normal(size=5000), "label": np.arange(5000) % 200})
    with pytest.raises(TableError, match=r"is a number \(200 different values in 5,000 rows"):
        match_tables(train, train[["x"]], label="label")


def test_ranges_of_a_numeric_label(tmp_path):
    x = rng.normal(size=400)
    train = pd.DataFrame(
        {"x": x.round(4), "z": rng.normal(size=400), "price": (50 + 9 * x).round(2)}
    )
    train.to_csv(tmp_path / "train.csv", index=False)
    train[["x", "z"]].to_csv(tmp_path / "new.csv", index=False)
    paths = tmp_path / "train.csv", tmp_path / "new.csv"
    tables = read_pair(*paths, label="price", bins=4)
    names, counts = np.unique(tables.y, return_counts=True)
    assert len(names) == 4
    assert np.abs(counts - 100).max() <= 1
    assert [name[:2] for name in names] == ["1:", "2:", "3:", "4:"]
    assert any("is cut into 4 ranges: '1: up to " in note for note in tables.notes)
    assert ((tables.y == names[0]) == (train["price"] <= tables.label_edges[0])).all()
    model = TableClassifier(AdaptedClassifier(SourceStandardScaler())).fit_tables(tables)
    assert score_file(model, paths[0])["accuracy"]["value"] > 0.6
    for bins, message in ((1, "from 2 to 50"), (51, "from 2 to 50")):
        with pytest.raises(TableError, match=message):
            read_pair(*paths, label="price", bins=bins)
    with pytest.raises(TableError, match="leave --bins out"):
        match_tables(BASE, BASE[["x"]], label="label", bins=3)


def test_fractions_and_huge_numbers_are_classes_as_text():
    for given, classes in (
        ([0.5, 1.5, 0.5], ["0.5", "1.5"]),
        ([2.0**60, 0.0, 2.0**60], ["0", "1.152921504606847e+18"]),
    ):
        labels, _ = read_labels(pd.Series(given, name="y"), "classification", [])
        assert sorted(set(labels.tolist())) == classes
    labels, _ = read_labels(pd.Series([2.0, 1.0, 2.0], name="y"), "classification", [])
    assert labels.dtype == np.int64
