"""Movement: sizes, order and names, and nothing where nothing moved."""

import json

import numpy as np
import pytest

from covshift.diagnosis.movement import _share_explained, measure_movement
from covshift.kernels.gaussian_kernels import rbf_kernel
from covshift.measures import median_bandwidth
from covshift.report.document import to_plain
from covshift.selection.bench import Problem
from tests.diagnosis.degenerate import DEGENERATE
from tests.selection.made_problems import Broken, make_bench, plain, standardized


def normal_problem(move=0.0, n=300, n_features=4, seed=0, shares=(0.5, 0.5), apart=3.0):
    """Two normal classes apart in the first feature; the target's rows are moved."""
    rng = np.random.RandomState(seed)
    codes, target_codes = rng.choice(2, n, p=[0.5, 0.5]), rng.choice(2, n, p=shares)
    X, T = rng.standard_normal((2, n, n_features))
    X[:, 0] += apart * codes
    T[:, 0] += apart * target_codes
    return Problem(X, codes, np.zeros(n, dtype=int), T + move, np.full(n, -1), 2)


def test_nothing_moved_is_said_at_the_level_of_the_tests():
    found = [
        measure_movement(make_bench([plain()], normal_problem(n=100, seed=seed), seed=seed))
        for seed in range(40)
    ]
    assert np.mean([one.moved for one in found]) <= 0.125  # 5 % nominal, two standard errors
    assert np.mean([one.n_features_moved > 0 for one in found]) <= 0.125
    assert np.mean([one.share_lost for one in found]) == pytest.approx(0, abs=0.005)
    assert all(np.isnan(one.share_explained) for one in found if one.auc_pvalue > 0.05)


def test_features_in_order_with_direction():
    problem = normal_problem(move=np.array([0, 2.0, 0, -0.7]))
    problem.X_target[:, 2] *= 3
    found = measure_movement(make_bench([plain()], problem), ["a", "b", "c", "d"])
    assert found.moved
    assert [one.name for one in found.features[:3]] == ["b", "d", "c"]
    assert found.n_features_moved == 3
    b, d, c, a = found.features
    assert b.mean_after - b.mean_before == pytest.approx(2, abs=0.2)
    assert d.mean_after - d.mean_before == pytest.approx(-0.7, abs=0.2)
    assert c.spread_ratio == pytest.approx(3, rel=0.2)
    assert a.pvalue > 0.05 > max(b.pvalue, c.pvalue, d.pvalue)


def test_at_most_ten_features_are_listed():
    found = measure_movement(make_bench([plain()], normal_problem(1.0, n_features=14)))
    assert (len(found.features), found.n_features_moved, found.n_features) == (10, 14, 14)
    distances = [one.distance for one in found.features]
    assert distances == sorted(distances, reverse=True)


def test_means_are_in_units_of_the_source():
    problem = normal_problem(1.0)
    scaled = problem._replace(X_source=100 * problem.X_source, X_target=100 * problem.X_target)
    one, other = (measure_movement(make_bench([plain()], p)) for p in (problem, scaled))
    np.testing.assert_allclose(one.features[1][2:], other.features[1][2:], rtol=1e-9)
    assert one.share_lost == pytest.approx(other.share_lost, rel=1e-6)


def test_the_share_lost_equals_its_formula():
    problem = normal_problem(0.8, n=40)
    found = measure_movement(make_bench([plain()], problem))
    scale = problem.X_source.std(axis=0)
    X, T = problem.X_source / scale, problem.X_target / scale
    kernel = rbf_kernel(np.array([median_bandwidth(X[::2], X[1::2])]))
    off = ~np.eye(40, dtype=bool)
    within = kernel(X, X)[off].mean() + kernel(T, T)[off].mean()
    assert found.share_lost == pytest.approx(1 - 2 * kernel(X, T).mean() / within, rel=1e-9)
    far = measure_movement(make_bench([plain()], normal_problem(1000.0, n=40)))
    assert far.share_lost > 0.99


def test_class_shares_explain_a_change_of_shares_and_not_a_movement():
    shares = measure_movement(make_bench([plain()], normal_problem(shares=(0.85, 0.15), n=500)))
    np.testing.assert_allclose(shares.target_shares, [0.85, 0.15], atol=0.06)
    assert shares.source_shares.sum() == pytest.approx(1)
    assert shares.auc_left_by_shares < 0.57 < shares.auc
    assert shares.share_explained > 0.7
    moved = measure_movement(make_bench([plain()], normal_problem(np.array([0, 2, 0, 0]))))
    assert moved.share_explained < 0.2


def test_no_shares_where_no_unadapted_model_can_be_fitted():
    for candidates in ([standardized()], [plain(Broken())]):
        found = measure_movement(make_bench(candidates, normal_problem(1.0, n=60)))
        assert np.isnan(found.target_shares).all()
        assert np.isnan([found.auc_left_by_shares, found.share_explained]).all()


@pytest.mark.parametrize(
    ("auc", "pvalue", "left", "expected"),
    [
        (0.9, 0.001, 0.5, 1.0),
        (0.9, 0.001, 0.7, 0.5),
        (0.9, 0.001, 0.95, 0.0),
        (0.9, 0.001, 0.45, 1.0),
        (0.9, 0.001, np.nan, np.nan),
        (0.53, 0.2, 0.5, np.nan),
        (np.nan, np.nan, 0.5, np.nan),
    ],
)
def test_the_share_explained(auc, pvalue, left, expected):
    assert _share_explained(auc, pvalue, left) == pytest.approx(expected, nan_ok=True)


def test_one_row_for_each_target_domain():
    problem = normal_problem(n=300)
    domain = np.repeat([-1, -2, -3], [150, 145, 5])
    problem.X_target[domain == -2] += 4
    bench = make_bench([plain()], problem._replace(target_domain=domain))
    same, moved, tiny = measure_movement(bench, domain_names={-1: "north", -2: "south"}).domains
    assert [one.name for one in (same, moved, tiny)] == ["north", "south", "-3"]
    assert [one.n_rows for one in (same, moved, tiny)] == [150, 145, 5]
    assert same.pvalue > 0.05 > moved.pvalue
    assert moved.effect_size > 0.9 > same.effect_size
    assert np.isnan([tiny.effect_size, tiny.pvalue]).all()
    assert same.overlap > 0.9 > moved.overlap
    assert 0 <= tiny.overlap <= 1


def test_rows_are_thinned_and_counted():
    problem = normal_problem(0.5, n=2500)
    found = measure_movement(make_bench([plain()], problem))
    assert (found.n_source, found.n_target) == (2500, 2500)
    assert sum(one.n_rows for one in found.domains) == 1000


def test_the_same_seed_gives_the_same_numbers():
    first, second = (
        measure_movement(make_bench([plain()], normal_problem(0.3), seed=3)).to_dict()
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_a_record(name):
    problem = DEGENERATE[name]
    found = measure_movement(make_bench([plain()], problem))
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.features) == min(10, problem.X_source.shape[1])
    if name in ("nothing but constants", "duplicated rows"):
        assert not found.moved


def test_only_plain_things_become_plain():
    assert to_plain({"a": np.float32(0.5), "b": (np.int64(1), np.nan), 3: object}) == {
        "a": 0.5,
        "b": [1, None],
    }
    with pytest.raises(TypeError, match="cannot be converted to plain"):
        to_plain(object())
