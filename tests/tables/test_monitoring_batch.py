"""Batches against what a model keeps: level, power, rows drawn from a stream."""

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.tables import TableClassifier, TableError, match_tables, monitor_batch
from covshift.tables.monitoring_batch import Sample, _compare, _spread_pvalues

rng = np.random.RandomState(0)


def rows(n, moved=0.0, site="C"):
    X = rng.standard_normal((n, 3)) + np.array([moved, 0, 0])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame.assign(city=rng.choice(["Oslo", "Rome"], n), site=site)


@pytest.fixture(scope="module")
def model():
    train = rows(200, site="A").assign(label=["x", "y"] * 100)
    new = pd.concat([rows(300), rows(300, 2, "D")])
    matched = match_tables(train, new, label="label", domain="site")
    return TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(matched)


def monitor(model, frame, tmp_path, **options):
    frame.to_csv(tmp_path / "batch.csv", index=False)
    return monitor_batch(model, tmp_path / "batch.csv", **options)


def test_what_moved_is_named(model, tmp_path):
    found = monitor(model, rows(300, 1), tmp_path, domain="site")
    assert found["moved"]
    assert found["features"][0]["feature"] == "a"
    assert found["reference_rows"] == 300
    assert found["auc_low"] < found["auc"] < found["auc_high"]
    assert found["pvalue"] < 1e-6


def test_the_domains_of_the_batch_decide_what_it_is_compared_with(model, tmp_path):
    batch = rows(300, 2, "D")
    assert not monitor(model, batch, tmp_path, domain="site")["moved"]
    assert not monitor(model, batch, tmp_path)["moved"]  # the column of the training table
    together = monitor(model, batch.drop(columns="site"), tmp_path)
    assert together["moved"]  # against C and D
    assert "has no column 'site', which named the domains" in together["notes"][0]
    strange = monitor(model, batch.assign(site="Z"), tmp_path, domain="site")
    assert strange["reference_rows"] == 600
    assert "no rows of these domains" in strange["notes"][1]


def test_a_category_that_becomes_common(model, tmp_path):
    found = monitor(model, rows(300).assign(city="Rome"), tmp_path, domain="site")
    assert found["moved"]
    assert {one["feature"] for one in found["features"]} == {"city=Oslo", "city=Rome"}


def test_the_smaller_of_two_pvalues_counts_twice():
    """A linear classifier sees small shifts of many features, a test of each one sees a spread."""
    draws = np.random.RandomState(0)
    A = draws.standard_normal((300, 20))
    many = draws.standard_normal((300, 20)) + 0.12
    spread = draws.standard_normal((300, 20)) * np.where(np.arange(20) == 3, 3, 1)
    for B, smaller in ((many, "auc_pvalue"), (spread, "ks_pvalue")):
        found = _compare(A, B, list(range(20)), np.random.RandomState(0))
        pair = {name: found[name] for name in ("auc_pvalue", "ks_pvalue")}
        assert min(pair, key=pair.get) == smaller
        assert 2 * pair[smaller] < max(pair.values())
        assert found["pvalue"] == pytest.approx(2 * pair[smaller])


def test_spreads_beside_permutations():
    """A naive twin: the rank sum of distances from the common median, under permuted sides."""
    draws = np.random.RandomState(3)
    A, B = draws.standard_normal((60, 1)), 1.3 * draws.standard_normal((40, 1))
    distances = np.abs(np.concatenate([A, B]) - np.median(np.concatenate([A, B])))[:, 0]
    ranks = distances.argsort().argsort() + 1

    def apart(order):
        return abs(ranks[order[60:]].sum() - 40 * 101 / 2)

    observed = apart(np.arange(100))
    permuted = np.mean([apart(draws.permutation(100)) >= observed for _ in range(4000)])
    assert _spread_pvalues(A, B)[0] == pytest.approx(permuted, abs=0.03)


def test_rows_that_the_model_keeps_are_recognized(tmp_path):
    train, new = rows(200, site="A").assign(label=["x", "y"] * 100), rows(200)
    matched = match_tables(train, new, label="label", domain="site")
    model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(matched)
    found = monitor(model, new, tmp_path, domain="site")
    assert not found["moved"]
    assert found["auc_high"] < 0.5
    note = found["notes"][-1]
    assert note.startswith(
        "100 % of the compared rows of the batch are among the rows that the model keeps"
    )
    assert "why the AUC is below 0.5" in note
    assert "keeps" not in " ".join(monitor(model, rows(200), tmp_path, domain="site")["notes"])


@pytest.mark.slow
def test_alarms_of_batches_that_have_not_moved(tmp_path):
    """At most as many as the level allows, up to chance."""
    alarms = 0
    for _ in range(300):
        train = rows(100, site="A").assign(label=["x", "y"] * 50)
        matched = match_tables(train, rows(200), label="label", ignore=["site"])
        model = TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(matched)
        alarms += monitor(model, rows(200), tmp_path, level=0.05)["moved"]
    assert alarms / 300 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_the_same_seed_gives_the_same(model, tmp_path):
    batch = rows(2500)
    first, second = (monitor(model, batch, tmp_path) for _ in range(2))
    assert first == second
    assert first["rows"] == 2500
    assert first["rows_compared"] == 1000
    assert monitor(model, batch, tmp_path, seed=1)["auc"] != first["auc"]


def test_samples_of_a_stream_are_fair():
    hits = np.zeros(100)
    generator = np.random.RandomState(0)
    for _ in range(400):
        sample = Sample(20, generator)
        for start in (0, 10, 70):
            stop = {0: 10, 10: 70, 70: 100}[start]
            sample.add(np.arange(start, stop, dtype=float)[:, None])
        assert len(sample.rows) == 20
        assert sample.n_seen == 100
        hits[sample.rows[:, 0].astype(int)] += 1
    # Each row is drawn 80 times on average, with a standard deviation of 8.
    assert 80 - 5 * 8 < hits.min() <= hits.max() < 80 + 5 * 8


def test_models_of_other_kinds(tmp_path):
    rows(20).to_csv(tmp_path / "batch.csv", index=False)
    with pytest.raises(TableError, match="not one made by covshift adapt"):
        monitor_batch(AdaptedClassifier(), tmp_path / "batch.csv")


def test_a_sensor_that_becomes_noisy_is_found(model, tmp_path):
    noisy = rows(300).assign(b=lambda one: 1.6 * one["b"])
    found = monitor(model, noisy, tmp_path, domain="site")
    assert "spread" in found["what_moved"]
    assert _spread_pvalues(np.ones((9, 2)), np.ones((9, 2))).tolist() == []
    thirds = np.tile([0.0, 1.0, 2.0], 20)[:, None]
    assert _spread_pvalues(thirds, thirds)[0] > 0.5
