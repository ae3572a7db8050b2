"""KMM keeps its constraints and reaches the objective of a general-purpose solver."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from covshift import KMMWeights
from covshift.weights import kmm
from tests.twins.weight_twins import one_dimension, several_dimensions, stack


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
    whole = kmm.kernel_product(source, 1.0)(target[:, 0])
    monkeypatch.setattr(kmm, "KEPT_ROWS", 0)
    monkeypatch.setattr(kmm, "TILE_ROWS", 64)
    assert_allclose(kmm.kernel_product(source, 1.0)(target[:, 0]), whole, rtol=1e-10)
    K, kappa = naive_problem(source, target, 1.0)
    assert_allclose(kmm.kernel_sums(source, target, 1.0), kappa, rtol=1e-10)
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
