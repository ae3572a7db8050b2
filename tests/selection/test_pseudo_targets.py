import numpy as np
import pytest

from covshift.selection import pseudo_targets
from covshift.selection.pseudo_targets import (
    move_by_class,
    move_gaussian,
    move_mean_and_scale,
    move_quantiles,
    moved,
    resampled,
    residual_clusters,
    source_domains,
    target_like,
)
from tests.selection.made_problems import make_moved

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
    assert len(list(source_domains(problem, rng()))) == pseudo_targets.MAX_DOMAINS


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
