"""KMM keeps its constraints and reaches the objective of a general-purpose solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint, linprog, minimize
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from covshift import KMMWeights
from covshift.kernels.gaussian_kernels import (
    lost_nystrom_diagonal,
    nystrom_features,
    nystrom_root,
    nystrom_sum,
)
from covshift.weights import kmm
from covshift.weights import kmm as estimator_module
from covshift.weights.kmm import _linear_gap, clip_to_mean
from tests.twins.weight_twins import nystrom_kernel, one_dimension, several_dimensions, stack


def naive_problem(source, target, sigma):
    def k(a, b):
        return np.exp(-np.sum((a - b) ** 2) / (2 * sigma**2))

    K = np.array([[k(a, b) for b in source] for a in source])
    kappa = np.array([sum(k(a, t) for t in target) for a in source])
    return K, kappa * len(source) / len(target)


def objective(w, K, kappa, ridge):
    return w @ K @ w / 2 + ridge * w @ w / 2 - kappa @ w


def general_solver(K, kappa, ridge, bound, epsilon):
    n = len(kappa)
    result = minimize(
        objective,
        np.ones(n),
        args=(K, kappa, ridge),
        jac=lambda w, *_: K @ w + ridge * w - kappa,
        bounds=[(0, bound)] * n,
        constraints=[LinearConstraint(np.full((1, n), 1 / n), 1 - epsilon, 1 + epsilon)],
        method="SLSQP",
        options={"maxiter": 5000, "ftol": 1e-13},
    )
    return result.fun


@pytest.mark.parametrize("ridge", [0.0, 0.1, 1.0, 20.0])
@pytest.mark.parametrize(("bound", "epsilon"), [(1000.0, 0.1), (1.5, 0.02), (1000.0, 0.0)])
@pytest.mark.parametrize("problem", [one_dimension(n=40), several_dimensions(3, n=40)])
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_objective_of_a_general_solver(ridge, bound, epsilon, problem):
    source, target, _ = problem
    X, sample_domain = stack(source, target[:30])
    model = KMMWeights(
        bound, ridge=ridge, bandwidth=1.0, epsilon=epsilon, tol=1e-6, max_iter=50_000
    ).fit(X, sample_domain=sample_domain)
    w = model.weights_
    assert w.min() >= 0
    assert w.max() <= bound
    assert abs(w.mean() - 1) <= epsilon + 1e-12
    K, kappa = naive_problem(source, target[:30], 1.0)
    theirs = general_solver(K, kappa, ridge, bound, epsilon)
    ours = objective(w, K, kappa, ridge)
    assert ours <= theirs + 1e-6 * abs(theirs)
    assert ours - model.gap_ <= theirs + 1e-9 * abs(theirs)  # the gap is a bound


def test_the_bound_binds():
    source, target, _ = one_dimension(n=300)
    X, sample_domain = stack(source, target)
    free = KMMWeights().fit(X, sample_domain=sample_domain)
    bounded = KMMWeights(1.5).fit(X, sample_domain=sample_domain)
    assert free.weights_.max() > 2
    assert bounded.weights_.max() == 1.5
    assert bounded.score_weights(X).max() == 1.5
    assert abs(bounded.mean_weight_ - 1) <= 300**-0.5 + 1e-12


def test_new_rows_continue_the_source_rows():
    source, target, _ = several_dimensions(3, n=400)
    X, sample_domain = stack(source, target)
    model = KMMWeights(tol=1e-12).fit(X, sample_domain=sample_domain)
    assert_allclose(model.score_weights(source), model.weights_, atol=1e-3)
    bare = KMMWeights(ridge=0, tol=1e-3).fit(X, sample_domain=sample_domain)
    assert_allclose(bare.score_weights(source), bare.weights_)


def test_the_ridge_is_what_ranks():
    source, target, ratio = several_dimensions(5, n=600)
    X, sample_domain = stack(source, target)
    correlations = [
        spearmanr(model.fit(X, sample_domain=sample_domain).weights_, ratio).statistic
        for model in (KMMWeights(ridge=0.01, tol=1e-6, max_iter=5000), KMMWeights())
    ]
    assert correlations[1] > correlations[0] + 0.1


def test_tiles_equal_the_whole_matrix(monkeypatch):
    source, target, _ = several_dimensions(3, n=150)
    whole = kmm._kernel_product(source, 1.0)(target[:, 0])
    monkeypatch.setattr(kmm, "KEPT_ROWS", 0)
    monkeypatch.setattr(kmm, "TILE_ROWS", 64)
    assert_allclose(kmm._kernel_product(source, 1.0)(target[:, 0]), whole, rtol=1e-10)
    K, kappa = naive_problem(source, target, 1.0)
    assert_allclose(kmm._kernel_sums(source, target, 1.0), kappa, rtol=1e-10)
    assert_allclose(whole, K @ target[:, 0], rtol=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("bound", [1.0, 1.2, 50.0])
@pytest.mark.parametrize("shift", [-30.0, 0.0, 0.9, 30.0])
def test_projection(epsilon, bound, shift):
    """Nearer than, or as near as, what a general solver finds."""
    v = np.random.default_rng(0).normal(size=12) * 3 + shift
    w = kmm.project(v, bound, epsilon)
    assert (w >= 0).all()
    assert (w <= bound).all()
    assert abs(w.mean() - 1) <= epsilon + 1e-12
    if bound == 1 and epsilon == 0:
        assert_allclose(w, 1)
        return
    theirs = -general_solver(np.zeros((12, 12)), v, 1.0, bound, epsilon)
    ours = v @ w - w @ w / 2
    assert ours >= theirs - 1e-6 * max(1, abs(theirs))


def test_too_few_iterations_are_warned_about():
    X, sample_domain = stack(*several_dimensions(3, n=100)[:2])
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        KMMWeights(max_iter=1).fit(X, sample_domain=sample_domain)


@pytest.mark.parametrize(
    "params",
    [{"bound": 0.5}, {"bound": np.inf}, {"ridge": -1}, {"bandwidth": 0}, {"bandwidth": "median"},
     {"epsilon": 1.0}, {"epsilon": -0.1}, {"tol": -1}, {"max_iter": 0}, {"ridge": True},
     {"n_landmarks": 0}, {"n_landmarks": 2.5}, {"n_landmarks": True}, {"n_landmarks": "all"},
     {"n_landmarks": 5, "ridge": 0}, {"random_state": "seed"}],
)  # fmt: skip
def test_bad_parameters(params):
    X, sample_domain = stack(*several_dimensions(2, n=20)[:2])
    name = next(iter(params)) if "random_state" not in params else "seed"
    with pytest.raises((ValueError, TypeError), match=name):
        KMMWeights(**params).fit(X, sample_domain=sample_domain)


@pytest.mark.parametrize("n_source", [16, 100])
def test_the_mean_may_differ_from_one_by_one_over_root_n(n_source):
    rng = np.random.RandomState(0)
    X, sample_domain = stack(rng.standard_normal((n_source, 1)), rng.standard_normal((30, 1)) + 1)
    assert KMMWeights().fit(X, sample_domain=sample_domain).epsilon_ == n_source**-0.5


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
    lost = lost_nystrom_diagonal(features)
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
def test_objective_of_a_general_solver_at_low_rank(ridge, bound, epsilon, problem):
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


def test_too_few_iterations_at_low_rank_are_warned_about():
    X, sample_domain = stack(*several_dimensions(3, n=100)[:2])
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        KMMWeights(max_iter=1, n_landmarks=20).fit(X, sample_domain=sample_domain)


def test_the_curvature_is_that_of_differences_of_the_slope():
    """Newton's steps rely on it; a wrong one would converge, only slowly."""
    rng = np.random.default_rng(0)
    features, diagonal = rng.normal(size=(12, 3)), rng.uniform(0.5, 2, size=12)
    v, goal = rng.normal(size=3), rng.normal(size=3)

    def slope(v):
        w, _ = clip_to_mean(features @ v, diagonal, bound, epsilon)
        return v - goal + w @ features, w

    for bound, epsilon, fixed in ((50.0, 0.0, True), (50.0, 20.0, False)):
        w = slope(v)[1]
        free = (w > 0) & (w < bound)
        assert (abs(w.mean() - 1) < epsilon) != fixed
        assert 2 <= free.sum() < 12
        found = kmm._curvature(features, free / diagonal, fixed_mean=fixed)
        steps = 1e-6 * np.eye(3)
        differences = [(slope(v + step)[0] - slope(v - step)[0]) / 2e-6 for step in steps]
        assert_allclose(found, differences, atol=1e-6)


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


def test_the_multiplier_is_that_of_the_weights_at_neither_bound():
    w, slopes = np.array([0.0, 0.5, 1.5, 3.0]), np.array([9.0, 1.0, 2.0, 7.0])
    product = np.array([1.0, 0.2, 0.3, 0.4])
    found = kmm._mean_multiplier(w, product, slopes + product + 0.1 * w, 0.1, 3.0)
    assert found == pytest.approx(1.5)
    assert kmm._mean_multiplier(np.array([0.0, 3.0]), np.zeros(2), np.ones(2), 0.1, 3.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("bound", [1.3, 3.0, 50.0])
def test_the_gap_is_the_decrease_that_a_linear_program_finds(bound, epsilon):
    rng = np.random.default_rng(0)
    n = 9
    w = clip_to_mean(rng.normal(1, 1, size=n), np.ones(n), bound, epsilon)[0]
    for shift in (-1.0, 0.0, 1.0):
        gradient = rng.normal(shift, 1, size=n)
        rows = np.ones((1, n))
        best = linprog(
            gradient, np.vstack([rows, -rows]), [n * (1 + epsilon), -n * (1 - epsilon)],
            bounds=(0, bound),
        )  # fmt: skip
        gap = _linear_gap(w, gradient, bound, epsilon)
        assert gap == pytest.approx(gradient @ w - best.fun, abs=1e-9)


def test_the_objective_is_that_of_the_weights():
    X, sample_domain = stack(*several_dimensions(3, n=40)[:2])
    model = KMMWeights(ridge=0.1).fit(X, sample_domain=sample_domain)
    source, target, w = X[sample_domain >= 0], X[sample_domain < 0], model.weights_
    K, ratio = kmm._kernel_product(source, model.bandwidth_), len(source) / len(target)
    kappa = ratio * kmm._kernel_sums(source, target, model.bandwidth_, np.ones(len(target)))
    expected = w @ (K(w) + 0.1 * w) / 2 - kappa @ w
    assert model._match(kappa)[1] == pytest.approx(expected)


def low_rank(tol):
    rng = np.random.default_rng(0)
    features, goal = rng.uniform(0, 1, size=(12, 4)), rng.uniform(2, 8, size=4)
    diagonal = rng.uniform(0.5, 1, size=12)
    found = kmm.match_feature_means(
        features, goal, diagonal, bound=3.0, epsilon=0.1, tol=tol, max_iter=50
    )
    return features, goal, diagonal, found


def test_the_objective_at_low_rank_is_that_of_the_weights():
    features, goal, diagonal, (w, _, _, objective, gap) = low_rank(tol=1e-9)
    reached = features.T @ w
    expected = reached @ reached / 2 + w @ (diagonal * w) / 2 - goal @ reached
    assert objective == pytest.approx(expected)
    assert gap <= 1e-9 * abs(objective)
    assert np.ptp(w) > 0.1


def test_a_gap_within_the_tolerance_is_good_enough():
    v = low_rank(tol=1e6)[-1][1]
    assert not v.any()  # the search ended where it began
