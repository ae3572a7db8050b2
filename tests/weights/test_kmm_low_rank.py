"""KMM with landmarks: the projected kernel, its solver, and how near it is to the exact one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from covshift import KMMWeights
from covshift.kernels.gaussian_kernels import (
    lost_diagonal,
    nystrom_features,
    nystrom_root,
    nystrom_sum,
)
from covshift.weights import kmm as estimator_module
from covshift.weights.kmm import clip_to_mean
from tests.twins.weight_twins import nystrom_kernel, one_dimension, several_dimensions, stack
from tests.weights.test_kmm import general_solver, objective

PROBLEMS = [one_dimension(n=400), several_dimensions(5, n=400)]


def fit(source, target, **params):
    X, sample_domain = stack(source, target)
    return KMMWeights(random_state=0, **params).fit(X, sample_domain=sample_domain)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 5.0])
def test_features_equal_the_projection(d, bandwidth):
    rows = np.random.default_rng(0).normal(size=(60, d))
    landmarks = rows[::3]
    root = nystrom_root(landmarks, bandwidth)
    features = nystrom_features(rows, landmarks, root, bandwidth)
    lost = lost_diagonal(features)
    assert (lost >= 0).all()
    assert_allclose(lost[::3], 0, atol=1e-8)
    K = features @ features.T + np.diag(lost)
    assert_allclose(K, nystrom_kernel(rows, landmarks, bandwidth), atol=1e-8)
    total = nystrom_sum(rows, landmarks, root, bandwidth)
    assert_allclose(total, features.sum(axis=0), rtol=1e-8, atol=1e-8)


def test_tiles_equal_the_whole(monkeypatch):
    source, target, _ = several_dimensions(3, n=300)
    whole = fit(source, target, n_landmarks=40)
    monkeypatch.setattr("covshift.kernels.gaussian_kernels.TILE_ROWS", 64)
    monkeypatch.setattr(estimator_module, "TILE_ROWS", 64)
    tiled = fit(source, target, n_landmarks=40)
    assert_allclose(tiled.weights_, whole.weights_, atol=1e-8)
    assert_allclose(tiled.score_weights(target), whole.score_weights(target), atol=1e-8)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 20.0])
@pytest.mark.parametrize(("bound", "epsilon"), [(1000.0, 0.1), (1.5, 0.02), (1000.0, 0.0)])
@pytest.mark.parametrize("problem", [one_dimension(n=40), several_dimensions(3, n=40)])
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_objective_of_a_general_solver(ridge, bound, epsilon, problem):
    """The projected problem, made by the naive twin and solved by SciPy."""
    source, target = problem[0], problem[1][:30]
    model = fit(
        source, target, n_landmarks=10, bound=bound, ridge=ridge, epsilon=epsilon, bandwidth=1.0,
        tol=1e-10,
    )  # fmt: skip
    w = model.weights_
    assert w.min() >= 0
    assert w.max() <= bound
    assert abs(w.mean() - 1) <= epsilon + 1e-12
    K = nystrom_kernel(np.concatenate([source, target]), model.landmarks_, 1.0)
    kappa = K[:40, 40:].sum(axis=1) * 40 / 30
    theirs = general_solver(K[:40, :40], kappa, ridge, bound, epsilon)
    ours = objective(w, K[:40, :40], kappa, ridge)
    assert ours <= theirs + 1e-6 * abs(theirs)
    # The gap is a bound; SciPy's weights may be outside the constraints by 1e-10.
    assert ours - model.gap_ <= theirs + 1e-8 * abs(theirs)


@pytest.mark.parametrize("params", [{}, {"bound": 1.5}, {"epsilon": 0.0}, {"ridge": 0.1}])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_all_rows_as_landmarks_are_exact(problem, params):
    source, target, _ = problem
    # An objective that is near by 1e-20 has weights that are near by 1e-10 or so.
    options = {"tol": 1e-20, "max_iter": 50_000, **params}
    projected = fit(source, target, n_landmarks=len(source), **options)
    exact = fit(source, target, n_landmarks=None, **options)
    assert_allclose(projected.weights_, exact.weights_, atol=1e-6)
    assert_allclose(projected.score_weights(source), exact.score_weights(source), atol=1e-6)
    assert projected.kernel_error_ < 1e-9
    assert exact.kernel_error_ == 0
    assert exact.landmarks_ is None


@pytest.mark.parametrize(
    ("problem", "n_landmarks"), [(one_dimension(), 10), (several_dimensions(5), 60)]
)
def test_few_landmarks_rank_as_the_exact_kernel(problem, n_landmarks):
    source, target, ratio = problem
    exact = spearmanr(fit(source, target, n_landmarks=None).weights_, ratio).statistic
    few = spearmanr(fit(source, target, n_landmarks=n_landmarks).weights_, ratio).statistic
    assert few >= 0.9 * exact


def test_the_target_is_projected_too():
    """Exact kernel sums of the target against projected ones of the source rank at .7 here."""
    source, target, ratio = several_dimensions(50, n=1500)
    model = fit(source, target, n_landmarks=100)
    assert spearmanr(model.weights_, ratio).statistic >= 0.85


def test_the_error_falls_with_more_landmarks():
    source, target, _ = several_dimensions(5, n=800)
    errors = [fit(source, target, n_landmarks=r).kernel_error_ for r in (10, 40, 160, 800)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 10 * errors[2] > 0
    model = fit(source, target, n_landmarks=40, bandwidth=1.0)
    K = np.exp(-np.square(source[:, None] - source).sum(axis=2) / 2)
    exact = K @ model.weights_
    naive = nystrom_kernel(source, model.landmarks_, 1.0) @ model.weights_
    error = np.linalg.norm(exact - naive) / np.linalg.norm(exact)
    assert model.kernel_error_ == pytest.approx(error, rel=0.3)  # of 200 of the 800 rows


@pytest.mark.parametrize("params", [{}, {"bound": 1.5}, {"tol": 1e-2}])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_source_rows_weigh_the_same_again(problem, params):
    source, target, _ = problem
    model = fit(source, target, n_landmarks=30, **params)
    assert_allclose(model.score_weights(source), model.weights_, rtol=1e-6, atol=1e-8)


def test_auto_is_exact_for_few_rows(monkeypatch):
    source, target, _ = several_dimensions(3, n=100)
    exact = fit(source, target, n_landmarks=None)
    assert_array_equal(fit(source, target).weights_, exact.weights_)
    monkeypatch.setattr(estimator_module, "EXACT_ROWS", 99)
    monkeypatch.setattr(estimator_module, "AUTO_LANDMARKS", 20)
    assert fit(source, target).landmarks_.shape == (20, 3)
    assert fit(source, target, ridge=0, tol=1e-3).landmarks_ is None


def test_landmarks_are_drawn_from_the_source():
    source, target, _ = several_dimensions(3, n=100)
    models = [
        KMMWeights(n_landmarks=20, random_state=seed).fit(
            np.concatenate([source, target]), sample_domain=np.repeat([0, -1], 100)
        )
        for seed in (0, 0, 1)
    ]
    rows = {tuple(row) for row in source}
    assert len({tuple(row) for row in models[0].landmarks_} & rows) == 20
    assert_array_equal(models[0].weights_, models[1].weights_)
    assert not np.array_equal(models[0].weights_, models[2].weights_)


def test_too_few_iterations_are_warned_about():
    X, sample_domain = stack(*several_dimensions(3, n=100)[:2])
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        KMMWeights(max_iter=1, n_landmarks=20).fit(X, sample_domain=sample_domain)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("bound", [1.2, 50.0])
@pytest.mark.parametrize("shift", [-30.0, 0.0, 0.9, 30.0])
def test_clipping_to_a_mean(epsilon, bound, shift):
    """As good as what a general solver finds, with a curvature of its own for each entry."""
    rng = np.random.default_rng(0)
    scores, diagonal = rng.normal(size=12) * 3 + shift, rng.uniform(0.5, 2, size=12)
    w, multiplier = clip_to_mean(scores, diagonal, bound, epsilon)
    assert_allclose(w, np.clip((scores - multiplier) / diagonal, 0, bound))
    assert abs(w.mean() - 1) <= epsilon + 1e-12
    theirs = -general_solver(np.diag(diagonal), scores, 0.0, bound, epsilon)
    assert scores @ w - diagonal @ w**2 / 2 >= theirs - 1e-6 * max(1, abs(theirs))
