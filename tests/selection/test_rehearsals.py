"""Rehearsals and expected gains, against naive twins."""

import json
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift.predictors.objectives import METRICS
from covshift.selection.bench import Bench, Problem
from covshift.selection.choice import choose_plain
from covshift.selection.expected_gains import (
    QUANTITIES,
    _separation,
    expected_gains,
    gain_coefficients,
    gain_features,
)
from covshift.selection.leaderboard import score_table
from covshift.selection.rehearsals import (
    KINDS,
    MAX_DOMAINS,
    MIN_PSEUDO_ROWS,
    _can_play,
    _mean_probability,
    decide,
    move_by_class,
    move_gaussian,
    move_mean_and_scale,
    move_quantiles,
    moved,
    predicted_score,
    pseudo_targets,
    rehearse,
    resampled,
    residual_clusters,
    source_domains,
    target_like,
)
from tests.selection.made_problems import Broken, make_bench, make_moved, plain, standardized

OBJECTIVES = list(METRICS)


def make_groups(n=60, n_domains=3, n_classes=3, seed=0):
    """Source domains that differ by an offset, and a target with another one."""
    rng = np.random.RandomState(seed)
    domain = np.repeat(np.arange(n_domains), n)
    codes = rng.choice(n_classes, len(domain), p=[0.6, 0.3, 0.1][:n_classes])
    X = rng.standard_normal((len(domain), 3)) + codes[:, None] + domain[:, None]
    target = rng.choice(n_classes, n)
    T = rng.standard_normal((n, 3)) + target[:, None] + 0.5
    return Problem(X, codes, domain, T, np.full(n, -1), n_classes)


def bench_of(problem, objective, candidates=None):
    candidates = candidates or [plain(), standardized()]
    return Bench(candidates, problem, METRICS[objective], seed=1)


def naive_credit(P, codes, shares, objective):
    """Mean probability of the true class; balanced: for equal shares, by class."""
    by_class = {}
    for row, code in zip(P, codes, strict=True):
        if objective == "balanced_accuracy":
            row = [p / share for p, share in zip(row, shares, strict=True)]
        by_class.setdefault(code, []).append(row[code] / sum(row))
    if objective == "balanced_accuracy":
        return np.mean([np.mean(values) for values in by_class.values()])
    return np.mean([value for values in by_class.values() for value in values])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_means_over_scenes_of_the_naive_credit(kind, objective):
    bench = bench_of(make_groups(), objective)
    shares = np.bincount(bench.problem.codes) / len(bench.problem.codes)
    found = rehearse(bench, kind)
    if kind == "source CV":
        scenes = [(bench.probabilities_left_out(), bench.problem.codes)]
    else:
        played = dict(pseudo_targets(bench, kind))
        outputs = bench.run({name: one.scene for name, one in played.items()})
        scenes = [(bench.calibrated(outputs[name]), one.codes) for name, one in played.items()]
    assert len(scenes) == {"source CV": 1, "moved": 2, "class shares": 2, "source domains": 3}[kind]
    for number in range(2):
        values = [naive_credit(P[number], codes, shares, objective) for P, codes in scenes]
        assert found[number] == pytest.approx(np.mean(values), abs=1e-12)


def test_a_users_metric_is_taken_of_predicted_classes():
    problem = make_groups()
    bench = Bench([plain()], problem, lambda codes, predicted: float(np.sum(predicted == 0)))
    P = bench.probabilities_left_out()[0]
    assert _mean_probability(bench)(P, problem.codes) == np.sum(P.argmax(axis=1) == 0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predicted_scores_are_the_metric_of_decided_classes(objective):
    bench = bench_of(make_groups(), objective)
    P = bench.probabilities_left_out()[0]
    score = predicted_score(bench)(P, bench.problem.codes)
    assert score == METRICS[objective](bench.problem.codes, decide(bench, P))


def naive_features(bench, table, plain_number):
    """Differences to the plain model, one candidate and quantity at a time."""
    shares = np.bincount(bench.problem.codes) / len(bench.problem.codes)
    P = bench.calibrated(bench.target)
    predicted = [decide(bench, one) for one in P]
    committee = decide(bench, sum(P) / len(P))
    plains = [i for i, one in enumerate(bench.candidates) if not one.adapts]
    rows = []
    for i, codes in enumerate(predicted):
        row = [table.scores[kind][i] if kind in table.scores else 0.0 for kind in KINDS]
        row.append(np.mean([a == b for a, b in zip(codes, committee, strict=True)]))
        others = [np.mean(codes == predicted[j]) for j in plains if j != i]
        row.append(np.mean(others) if others else np.nan)
        moved = [abs(np.mean(codes == k) - share) for k, share in enumerate(shares)]
        row.append(sum(moved) / 2)
        rows.append([*row, row[1] * _separation(bench), row[6] * _separation(bench)])
    return np.nan_to_num(np.array(rows) - rows[plain_number])  # unknown labels make no difference


def test_without_another_plain_model_agreement_says_nothing():
    bench = make_bench([plain(), standardized()])
    table = score_table(bench, KINDS)
    features = gain_features(bench, table.scores, table.allowed, 0)
    assert features[1, QUANTITIES.index("plain models")] == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_domains", [1, 3])
def test_expected_gains_are_those_of_the_formula(objective, n_domains):
    candidates = [plain(), plain(LogisticRegression(C=0.01)), standardized()]
    bench = bench_of(make_groups(n_domains=n_domains), objective, candidates)
    table = score_table(bench, KINDS)
    number = choose_plain(bench, table)
    features = gain_features(bench, table.scores, table.allowed, number)
    np.testing.assert_allclose(features, naive_features(bench, table, number), atol=1e-12)
    gains = expected_gains(bench, table.scores, table.allowed, number)
    beta = [gain_coefficients()[objective][name] for name in QUANTITIES]
    np.testing.assert_allclose(gains, features @ beta, atol=1e-12)
    assert gains[number] == 0


def test_a_failed_candidate_has_no_expected_gain_and_disturbs_no_other():
    alone = make_bench([plain(), standardized()])
    both = make_bench([plain(), standardized(), plain(Broken())])
    gains = []
    for bench in (alone, both):
        table = score_table(bench, KINDS)
        gains.append(expected_gains(bench, table.scores, table.allowed, 0))
    assert np.isnan(gains[1][2])
    np.testing.assert_allclose(gains[1][:2], gains[0])


def test_separation_is_near_zero_where_rows_overlap():
    rng = np.random.RandomState(0)
    X, T = rng.standard_normal((2, 200, 2))
    codes = np.arange(200) % 2
    for move, low, high in ((0.0, 0.0, 0.01), (1.0, 0.0, 0.3), (9.0, 0.99, 1.0)):
        problem = Problem(X, codes, np.zeros(200, int), T + move, np.full(200, -1), 2)
        assert low <= _separation(make_bench([plain()], problem)) <= high
    few = Problem(X[:5], codes[:5], np.zeros(5, int), T[:5], np.full(5, -1), 2)
    assert _separation(make_bench([plain()], few)) == 0


def test_coefficients_name_every_quantity_and_the_command_that_wrote_them():
    for objective in OBJECTIVES:
        assert tuple(gain_coefficients()[objective]) == QUANTITIES
    text = files("covshift.selection").joinpath("expected_gains.json").read_text()
    assert json.loads(text)["command"].startswith("python benchmarks/calibrate.py")


MOVES = [move_mean_and_scale, move_quantiles, move_gaussian]


def rng():
    return np.random.RandomState(0)


def all_kinds():
    move = pytest.param(lambda p, r: moved(p, r, move_quantiles), id="moved")
    return [source_domains, residual_clusters, target_like, move]


@pytest.mark.parametrize("make", all_kinds())
def test_every_row_is_in_one_place_and_keeps_its_class(make):
    problem, _ = make_moved(n_domains=3)
    played = list(make(problem, rng()))
    assert len(played) >= 2
    for scene, codes, _ in played:
        train, target = scene.sample_domain >= 0, scene.sample_domain < 0
        assert train.sum() + target.sum() == len(problem.codes)
        assert (scene.codes[target] == -1).all()  # their labels are hidden from the candidates
        assert set(scene.codes[train]) == {0, 1}
        np.testing.assert_array_equal(scene.X[target], scene.X_test)
        assert (scene.test_domain < 0).all()
        assert sorted([*scene.codes[train], *codes]) == sorted(problem.codes)


def test_each_source_domain_plays_the_target_once():
    problem, _ = make_moved(n_domains=3)
    played = list(source_domains(problem, rng()))
    assert len(played) == 3
    for number, (scene, codes, _) in enumerate(played):
        np.testing.assert_array_equal(
            scene.X_test, problem.X_source[problem.source_domain == number]
        )
        np.testing.assert_array_equal(codes, problem.codes[problem.source_domain == number])
        assert number not in scene.sample_domain


def test_many_source_domains_are_sampled():
    problem, _ = make_moved(n=400, n_domains=10)
    assert len(list(source_domains(problem, rng()))) == MAX_DOMAINS


def test_one_source_domain_cannot_play():
    assert list(source_domains(make_moved()[0], rng())) == []


def test_a_domain_with_the_only_rows_of_a_class_cannot_play():
    problem, _ = make_moved(n_domains=2)
    codes = np.where(problem.source_domain == 1, 2, problem.codes)
    played = list(source_domains(problem._replace(codes=codes, n_classes=3), rng()))
    assert played == []  # one has a single class, the other leaves none of class 2


def test_target_like_rows_are_those_nearest_to_the_target():
    problem, _ = make_moved()
    first, second = target_like(problem, rng())
    assert len(first.codes) < len(second.codes)
    for scene, codes, _ in (first, second):
        share = len(codes) / len(problem.codes)
        assert share in (pytest.approx(0.3), pytest.approx(0.5))
        for k in (0, 1):  # the target lies to the right, and up
            left = scene.X[: len(problem.codes) - len(codes)][:, :2][
                scene.codes[scene.codes >= 0] == k
            ]
            assert scene.X_test[codes == k][:, :2].sum(axis=1).mean() > left.sum(axis=1).mean()


def test_clusters_are_not_the_classes():
    problem, _ = make_moved(n=300)
    for _, codes, _ in residual_clusters(problem, rng()):
        assert 0.25 < codes.mean() < 0.75


# Moves


@pytest.mark.parametrize("move", MOVES)
def test_the_whole_source_moved_has_the_targets_means_and_spreads(move):
    problem, _ = make_moved(n=2000)
    rows = move(problem, problem.X_source, problem.codes)
    tolerance = 0.05
    np.testing.assert_allclose(rows.mean(axis=0), problem.X_target.mean(axis=0), atol=tolerance)
    np.testing.assert_allclose(rows.std(axis=0), problem.X_target.std(axis=0), rtol=tolerance)


def test_quantiles_match_the_whole_distribution():
    problem, _ = make_moved(n=1000)
    problem = problem._replace(X_target=np.exp(problem.X_target / 4))
    rows = move_quantiles(problem, problem.X_source, problem.codes)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    wanted = np.quantile(problem.X_target, levels, axis=0)
    np.testing.assert_allclose(np.quantile(rows, levels, axis=0), wanted, rtol=0.02)
    assert (np.argsort(rows, axis=0) == np.argsort(problem.X_source, axis=0)).mean() > 0.95


def test_the_gaussian_move_matches_covariances():
    problem, _ = make_moved(n=3000)
    mixing = np.array([[1, 0.8, 0], [0, 1, 0.3], [0.5, 0, 1]])
    problem = problem._replace(X_target=problem.X_target @ mixing)
    rows = move_gaussian(problem, problem.X_source, problem.codes)
    wanted = np.cov(problem.X_target.T)
    np.testing.assert_allclose(np.cov(rows.T), wanted, atol=0.03 * wanted.max())


def test_each_class_is_moved_by_its_own():
    problem, target_codes = make_moved(n=400)
    X_target = problem.X_target + 5.0 * target_codes[:, None]
    problem = problem._replace(X_target=X_target)
    rows = move_by_class(problem, problem.X_source, problem.codes, target_codes=target_codes)
    for k in (0, 1):
        moved_rows, target = rows[problem.codes == k], X_target[target_codes == k]
        np.testing.assert_allclose(moved_rows.mean(axis=0), target.mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(moved_rows.std(axis=0), target.std(axis=0), rtol=1e-9)


def test_a_class_that_is_not_found_in_the_target_moves_with_all_rows():
    problem, _ = make_moved()
    nobody = np.zeros(len(problem.X_target), dtype=int)
    rows = move_by_class(problem, problem.X_source, problem.codes, target_codes=nobody)
    together = move_mean_and_scale(problem, problem.X_source, problem.codes)
    np.testing.assert_array_equal(rows[problem.codes == 1], together[problem.codes == 1])


@pytest.mark.parametrize("move", MOVES)
def test_constant_features_make_no_nan(move):
    problem, _ = make_moved()
    X_source, X_target = problem.X_source.copy(), problem.X_target.copy()
    X_source[:, 1] = 4.0
    X_target[:, 2] = -1.0
    problem = problem._replace(X_source=X_source, X_target=X_target)
    assert np.isfinite(move(problem, problem.X_source, problem.codes)).all()


@pytest.mark.parametrize(
    ("n_played", "values", "can"),
    [
        (MIN_PSEUDO_ROWS, np.arange(30.0), True),
        (MIN_PSEUDO_ROWS - 1, np.arange(30.0), False),
        (31 - MIN_PSEUDO_ROWS, np.arange(30.0), False),  # too few are left
        (MIN_PSEUDO_ROWS, np.arange(30) >= MIN_PSEUDO_ROWS, False),  # nothing to distinguish
    ],
)
def test_numbers_that_can_be_scored(n_played, values, can):
    problem = SimpleNamespace(codes=np.zeros(30, dtype=int), values=np.asarray(values, dtype=float))
    assert _can_play(problem, np.arange(30) < n_played) is can


def test_halves_are_moved_in_turn():
    problem, _ = make_moved()
    first, second = moved(problem, rng(), move_mean_and_scale)
    assert len(first.codes) == len(second.codes) == len(problem.codes) // 2
    trained = [scene.X[scene.codes >= 0] for scene, _, _ in (first, second)]
    rows = np.concatenate(trained)
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(problem.X_source, axis=0))


@pytest.mark.parametrize("make", all_kinds())
def test_too_few_rows_play_nothing(make):
    problem, _ = make_moved(n=12, n_domains=2)
    assert list(make(problem, rng())) == []


def test_resampled_rows_have_the_shares_of_their_weights_and_only_rows_that_play():
    problem, _ = make_moved(n=400)
    weights = np.where(problem.codes == 1, 4.0, 1.0)
    played = list(resampled(problem, rng(), weights))
    assert len(played) == 2
    for scene, codes, _ in played:
        assert codes.mean() == pytest.approx(0.8, abs=0.06)
        training = scene.X[scene.sample_domain >= 0]
        assert not (scene.X_test[:, None] == training).all(axis=2).any()


@pytest.mark.parametrize("weights", [np.full(120, np.nan), np.zeros(120), np.arange(120) % 2 * 1.0])
def test_weights_that_leave_nothing_to_score_play_nothing(weights):
    problem, _ = make_moved()  # classes alternate, so that the last weights leave one
    assert list(resampled(problem, rng(), weights)) == []


def test_clusters_play_the_target_one_after_the_other():
    """Each row plays once: the clusters are not what is left of the source."""
    problem, _ = make_moved(n=300)
    played = list(residual_clusters(problem, rng()))
    rows = np.concatenate([scene.X_test for scene, _, _ in played])
    assert len(played) == 3
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(problem.X_source, axis=0))
    assert len(rows) == len(problem.X_source)
