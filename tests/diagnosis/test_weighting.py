"""Whether weighting can work, and which rows no source row represents."""

import json
import pickle

import numpy as np
import pytest

from covshift.diagnosis.weighting import find_obstacles, measure_weighting
from covshift.measures import SourceSupport, effective_sample_size, pareto_k, support_overlap
from covshift.measures.weights_and_overlap import fit_support
from covshift.selection.bench import Problem
from tests.diagnosis.degenerate import DEGENERATE
from tests.diagnosis.test_movement import normal_problem
from tests.selection.made_problems import make_bench, plain


def test_a_small_shift_can_be_weighed():
    problem = normal_problem(np.array([0, 0.7, 0, 0]))
    found = measure_weighting(make_bench([plain()], problem))
    assert found.possible
    assert found.obstacles == []
    assert found.effective_size == pytest.approx(effective_sample_size(found.weights))
    assert found.pareto_k == pytest.approx(pareto_k(found.weights))
    assert found.effective_share == pytest.approx(found.effective_size / 300)
    overlap = support_overlap(problem.X_source, problem.X_target)
    np.testing.assert_array_equal(found.outside, overlap.outside)
    assert found.overlap == pytest.approx(1 - overlap.share_outside)
    correlation = np.corrcoef(np.log(found.weights), problem.X_source[:, 1])[0, 1]
    assert correlation > 0.8


def test_a_target_elsewhere_cannot():
    found = measure_weighting(make_bench([plain()], normal_problem(6.0)))
    assert not found.possible
    assert {"overlap", "left over"} <= set(found.obstacles)
    assert found.outside.all()
    assert found.overlap == 0


@pytest.mark.parametrize(
    ("figures", "obstacles"),
    [
        ((0.95, 200, 0.5, 0.3, 0.52), []),
        ((0.7, 200, 0.5, 0.3, 0.52), ["overlap"]),
        ((0.95, 20, 0.5, 0.3, 0.52), ["effective size"]),
        ((0.95, 200, 0.05, 0.3, 0.52), ["effective size"]),
        ((0.95, 200, 0.5, 0.8, 0.52), ["tail"]),
        ((0.95, 200, 0.5, np.inf, 0.52), ["tail"]),
        ((0.95, 200, 0.5, 0.3, 0.7), ["left over"]),
        ((np.nan,) * 5, ["overlap", "effective size", "tail", "left over"]),
    ],
)
def test_each_threshold(figures, obstacles):
    assert find_obstacles(*figures) == obstacles


def test_too_few_rows_are_one_obstacle():
    found = measure_weighting(make_bench([plain()], normal_problem(n=8)))
    assert found.obstacles == ["rows"]
    assert np.isnan(found.weights).all()
    assert found.support is not None


@pytest.mark.parametrize("n_features", [2, 10, 50])
def test_one_in_a_hundred_rows_like_the_source_is_flagged(n_features):
    shares = []
    for seed in range(12):
        rng = np.random.RandomState(seed)
        mixing = rng.standard_normal((n_features, n_features))
        X_source, X_new = rng.standard_normal((2, 800, n_features)) @ mixing
        shares.append(fit_support(X_source).outside(X_new).mean())
    assert np.mean(shares) == pytest.approx(0.01, abs=0.004)


def test_new_rows_are_judged_one_by_one():
    rng = np.random.RandomState(0)
    X_source, X_new = rng.standard_normal((2, 100, 3))
    support = SourceSupport().fit(X_source)
    X_new[::2] += 9
    together = support.outside(X_new)
    assert together[::2].all()
    np.testing.assert_array_equal(together, [support.outside(row[None])[0] for row in X_new])
    with pytest.raises(ValueError, match="features"):
        support.outside(X_new[:, :2])


def test_a_small_source_has_fewer_neighbors_and_one_row_has_no_support():
    X = np.random.RandomState(0).standard_normal((3, 2))
    assert fit_support(X).n_neighbors == 2
    assert fit_support(X[:1]) is None


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_a_record(name):
    found = measure_weighting(make_bench([plain()], DEGENERATE[name]))
    plain_form = found.to_dict()
    json.dumps(plain_form, allow_nan=False)
    assert "support" not in plain_form
    assert found.possible == (not found.obstacles)
    assert len(plain_form["outside"]) == found.n_target


def test_the_same_seed_gives_the_same_numbers():
    first, second = (
        measure_weighting(make_bench([plain()], normal_problem(0.3), seed=3)).to_dict()
        for _ in range(2)
    )
    assert first == second


def test_the_support_survives_pickling():
    X = np.random.RandomState(0).standard_normal((60, 3))
    support = fit_support(X)
    loaded = pickle.loads(pickle.dumps(support))
    np.testing.assert_array_equal(loaded.outside(2 * X), support.outside(2 * X))


def test_no_stage_could_read_a_label_of_the_target():
    """The arguments of the stages have no place for one."""
    fields = {"X_source", "codes", "source_domain", "X_target", "target_domain", "n_classes"}
    fields |= {"values", "task"}  # of the source rows; what the label is
    assert set(Problem._fields) == fields
    problem = normal_problem(0.3)
    assert len(problem.codes) == len(problem.X_source)
