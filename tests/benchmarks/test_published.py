"""Tasks by published protocols, against protocols written a second time."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from covshift_bench.published import (
    DRIFT,
    KINDS,
    PAIRS,
    POINTS,
    PUBLISHED,
    SIMULATED,
    draw_task,
    mean_by_cut,
    published_markdown,
    published_tasks,
    score_published,
    tables_beside_published,
)
from covshift_bench.real_collections import read_cuts
from covshift_bench.results import decode_probabilities, encode_codes, encode_probabilities

DATA = os.environ.get("COVSHIFT_DATA")
needs_data = pytest.mark.skipif(
    DATA is None or not Path(DATA, "real_domains").is_dir(), reason="set COVSHIFT_DATA"
)


def test_the_simulated_part_has_its_sizes_seeds_and_splits():
    tasks = published_tasks("simulated")
    assert len(tasks) == 100
    assert len({task.name for task in tasks}) == 100
    assert Counter(task.cut for task in tasks) == dict.fromkeys(KINDS, 25)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_simulated_task_is_what_the_generator_draws(kind):
    datasets = pytest.importorskip("skada.datasets")
    task = next(one for one in published_tasks("simulated") if one.cut == kind)
    drawn = draw_task(task)
    shift, noise, factor = KINDS[kind]
    n = {"subspace": 4}.get(kind, 8) * 100 * factor  # the generator's clusters of points
    assert (len(drawn.X_source), len(drawn.X_target), len(drawn.X_test)) == (
        0.8 * n,
        0.8 * n,
        0.2 * n,
    )
    X, y, domain = datasets.make_shifted_datasets(
        100 * factor, 100 * factor, shift=shift, noise=noise, random_state=0,
        center_cov_shift=(-0.4, 3),
    )  # fmt: skip
    rows = {tuple(row): (int(c), int(d)) for row, c, d in zip(X, y, domain, strict=True)}
    for part, labels, sign in (
        (drawn.X_source, drawn.y_source, 1),
        (drawn.X_target, drawn.y_target, -1),
        (drawn.X_test, drawn.y_test, -1),
    ):
        found = [rows[tuple(row)] for row in part]
        assert [code for code, _ in found] == labels.tolist()
        assert {np.sign(where) for _, where in found} == {sign}
    assert not {map(tuple, drawn.X_target)} & {map(tuple, drawn.X_test)}
    again = draw_task(task)
    np.testing.assert_array_equal(again.X_test, drawn.X_test)


@needs_data
def test_sources_of_tables_with_drift_are_earlier_than_targets():
    tasks = published_tasks("drift", DATA)
    assert len(tasks) == len(DRIFT) * len(POINTS)
    for task in tasks[::4]:
        drawn = draw_task(task, DATA)
        cut = read_cuts(DATA, task.collection)[""]
        n_domains = len(np.unique(cut.domain))
        first = round(POINTS[task.target] * n_domains)
        assert len(np.unique(drawn.source_domain)) == first
        earlier = (cut.domain < first).sum()
        assert len(drawn.X_source) <= earlier
        assert len(drawn.X_target) + len(drawn.X_test) <= len(cut.y) - earlier
        assert set(drawn.y_test.tolist()) <= set(drawn.y_source.tolist())


@needs_data
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_pairs_of_skada_s_collections_are_split_four_to_one():
    pytest.importorskip("skada")
    tasks = published_tasks("skada", DATA)
    assert Counter(task.collection for task in tasks)["mushrooms"] == 10
    task = next(one for one in tasks if one.collection == "mushrooms")
    drawn = draw_task(task, DATA)
    assert len(drawn.X_target) == 4 * len(drawn.X_test)


def test_scores_are_averaged_over_seeds_then_splits():
    rng = np.random.default_rng(0)
    tasks = published_tasks("simulated")[:10]
    lines = []
    for task in tasks:
        truth = rng.integers(2, size=40)
        for seed in range(2 if task.target else 1):
            P = rng.dirichlet([1, 1], size=40)
            line = {"task": task.name, "method": "m", "status": "ok", "seed": seed}
            codes = {"truth": encode_codes(truth), "predicted": encode_codes(P.argmax(axis=1))}
            lines.append(line | codes | {"probabilities": encode_probabilities(P)})
    lines.append(lines[0] | {"status": "failed", "predicted": None})
    scored = score_published(lines, tasks)
    assert len(scored) == len(lines) - 1
    line = lines[3]
    truth = np.array([int(digit) for digit in line["truth"]])
    row = scored.iloc[3]
    pairs = zip(line["truth"], line["predicted"], strict=True)
    assert row.accuracy == np.mean([a == b for a, b in pairs])
    P = decode_probabilities(line["probabilities"], 40)[:, 1]
    differences = P[truth == 1][:, None] - P[truth == 0]
    ordered = (differences > 0) + (differences == 0) / 2
    assert row.auc == pytest.approx(ordered.mean())
    table = mean_by_cut(scored)
    by_task = scored.groupby(["cut", "task"])["accuracy"].mean()
    for kind in ("covariate", "target"):
        assert table.loc["m", kind] == pytest.approx(by_task[kind].mean())


@pytest.mark.parametrize("ground", ["simulated", "drift"])
def test_tables_beside_the_published_figures(ground):
    frame = {"collection": [], "cut": [], "task": [], "method": [], "accuracy": [], "auc": []}
    cuts = KINDS if ground == "simulated" else ("later",)
    collections = [SIMULATED] if ground == "simulated" else ["a", "b"]
    rng = np.random.default_rng(0)
    for method in ("m", "n"):
        for collection in collections:
            for cut in cuts:
                for split in range(3 if collection == "a" else 1):
                    values = collection, cut, f"{collection} {cut} {split}", method, *rng.random(2)
                    for key, value in zip(frame, values, strict=True):
                        frame[key].append(value)
    scored = pd.DataFrame(frame)
    tables = tables_beside_published(scored, ground)
    (table,) = tables.values()
    text = published_markdown(tables)
    if ground == "drift":
        means = scored.groupby(["method", "collection"])["auc"].mean()
        assert table.loc["m", "auc"] == pytest.approx((means["m", "a"] + means["m", "b"]) / 2)
        return
    assert list(table.index[:3]) == [f"published: {name}" for name in PUBLISHED[SIMULATED]]
    unadapted = table.loc["published: unadapted"]
    assert unadapted.to_dict() == pytest.approx(
        {"concept": 0.662, "covariate": 0.881, "subspace": 0.190, "target": 0.850, "mean": 0.646},
        abs=6e-4,
    )
    assert table.loc["published: best method with a label-free scorer"].dropna().tolist() == [0.725]
    own = scored[scored["method"] == "m"].set_index("cut")["accuracy"]
    for kind in KINDS:
        assert table.loc["m", kind] == own[kind]
        assert f"{own[kind]:.3f}" in text
    assert table.loc["m", "mean"] == pytest.approx(own.mean())
    # Of a part of the kinds, only means can be compared.
    (part,) = tables_beside_published(scored[scored["cut"] != "target"], ground).values()
    assert set(part.index) == {"published: best method with a label-free scorer", "m", "n"}


def test_published_figures_have_a_place_for_each_pair():
    for name, pairs in PAIRS.items():
        for values in PUBLISHED[name].values():
            assert len(values) == (len(pairs) if pairs else {"amazon_reviews": 12}.get(name, 2))
    means = {name: np.mean(values) for name, values in PUBLISHED["amazon_reviews"].items()}
    assert means == pytest.approx(
        {"unadapted": 0.703, "CORAL": 0.697, "linear OT": 0.699, "SA": 0.665}, abs=6e-4
    )
