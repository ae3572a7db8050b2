"""Fitting the coefficients of expected gains, and restoring benches from files."""

import json

import numpy as np
import pytest
from calibrate import (
    CLIP,
    MADE_UP_WEIGHT,
    RIDGE,
    Case,
    fit_coefficients,
    left_out_coefficients,
    restore,
    write_coefficients,
)
from covshift_bench.methods.automatic import (
    OBJECTIVES,
    combine_candidates,
    make_bench,
    outputs_on_test,
)
from covshift_bench.runner import _write_arrays
from covshift_bench.tasks import MADE_UP, Task, draw_task, made_up_tasks

from covshift.selection.expected_gains import QUANTITIES

N = len(QUANTITIES)


def make_case(cluster, seed, made_up=False, beta=None, n_candidates=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_candidates, N)) * 0.1
    X[0] = 0
    gains = X @ (np.linspace(-0.5, 0.5, N) if beta is None else beta)
    collection = MADE_UP if made_up else cluster
    task = Task(f"{cluster} {seed}", collection, "", cluster, "pair", (0,), 1)
    return Case(task, OBJECTIVES[0], X, gains, np.ones(n_candidates, dtype=bool), 0)


def naive_coefficients(cases):
    """The ridge regression by stacking weighted rows and the penalty, task by task."""
    real = [case for case in cases if case.task.collection != MADE_UP]
    n_clusters = len({case.task.cluster for case in real})
    families = {case.task.cluster for case in cases if case.task.collection == MADE_UP}
    rows, values, weights = [], [], []
    for case in cases:
        of_cluster = [one for one in cases if one.task.cluster == case.task.cluster]
        weight = 1 / len(of_cluster)
        if case.task.collection == MADE_UP:
            weight *= MADE_UP_WEIGHT * n_clusters / len(families)
        for x, gain in zip(case.features, case.gains, strict=True):
            rows.append(x)
            values.append(min(max(gain, -CLIP), CLIP))
            weights.append(weight / len(case.gains))
    X, y, w = map(np.array, (rows, values, weights))
    scale = np.sqrt((w[:, None] * X**2).sum(axis=0) / w.sum())
    stacked = np.vstack([np.sqrt(w)[:, None] * X / scale, np.sqrt(RIDGE * w.sum()) * np.eye(N)])
    wanted = np.concatenate([np.sqrt(w) * y, np.zeros(N)])
    return np.linalg.lstsq(stacked, wanted)[0] / scale


def test_coefficients_equal_the_naive_twin():
    cases = [make_case("a", 0), make_case("a", 1), make_case("b", 2)]
    np.testing.assert_allclose(fit_coefficients(cases), naive_coefficients(cases), rtol=1e-8)
    cases += [make_case("family 1", 3, made_up=True), make_case("family 2", 4, made_up=True)]
    np.testing.assert_allclose(fit_coefficients(cases), naive_coefficients(cases), rtol=1e-8)


def test_a_failed_candidate_does_not_count():
    whole = make_case("a", 0)
    part = whole._replace(features=whole.features[:-1], gains=whole.gains[:-1])
    failed = whole._replace(gains=np.append(whole.gains[:-1], np.nan))
    np.testing.assert_allclose(fit_coefficients([failed]), fit_coefficients([part]))


def test_the_cluster_of_a_task_has_no_part_in_its_coefficients():
    cases = [make_case("a", 0), make_case("a", 1), make_case("b", 2), make_case("c", 3)]
    changed = [*cases[:2], *(case._replace(gains=-case.gains) for case in cases[2:3]), cases[3]]
    before, after = left_out_coefficients(cases), left_out_coefficients(changed)
    np.testing.assert_array_equal(before["b"], after["b"])
    assert np.abs(before["a"] - after["a"]).max() > 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of filters that reach their iterations
def test_a_restored_bench_predicts_the_same(tmp_path):
    task = draw_task(made_up_tasks(1)[0])
    codes = np.unique(task.y_source, return_inverse=True)[1]
    bench = make_bench(task, codes, 0)
    logits = outputs_on_test(bench, task, codes)[0]
    found = combine_candidates(bench, task, logits)
    _write_arrays(tmp_path / "arrays.npz", found["auto"].arrays)
    again, tests = restore(task, tmp_path / "arrays.npz", 0)
    for name, prediction in combine_candidates(again, task, tests).items():
        # Logits are kept in half precision.
        assert np.mean(prediction.labels == found[name].labels) > 0.98, name
        np.testing.assert_allclose(prediction.probabilities, found[name].probabilities, atol=0.02)


def test_coefficients_without_clusters(tmp_path):
    """Results of a cluster change nothing that is fitted without it."""
    own = [[make_case(name, seed)] * 2 for seed, name in enumerate("aabc")]
    other = [[make_case("d", 9, beta=np.ones(N))] * 2]
    write_coefficients(tmp_path / "all.json", own + other)
    write_coefficients(tmp_path / "without.json", own + other, without=["d"])
    write_coefficients(tmp_path / "own.json", own)
    with_all, without, alone = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("all", "without", "own")
    )
    assert (without.pop("without"), without) == (["d"], alone)
    for objective in OBJECTIVES:
        assert list(without[objective]) == list(QUANTITIES)
        assert without[objective] != with_all[objective]
    assert (without["real tasks"], without["clusters"], with_all["clusters"]) == (4, 3, 4)
