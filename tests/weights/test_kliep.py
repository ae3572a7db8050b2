"""KLIEP reaches the optimum of its convex problem, and chooses by held-out likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from covshift import KLIEPWeights
from covshift.weights import kliep
from covshift.weights.kliep import _newton_point, _step_length, fit_kliep_coefficients
from tests.twins.weight_twins import basis_functions, one_dimension, several_dimensions, stack


def objective(theta, target, bases, sigma):
    return np.mean([np.log(theta @ basis_functions(x, bases, sigma)) for x in target])


def general_solver(source, target, bases, sigma):
    """The problem as it is printed, handed to a general-purpose solver."""
    P_source = np.array([basis_functions(x, bases, sigma) for x in source])
    P_target = np.array([basis_functions(x, bases, sigma) for x in target])
    m = P_source.mean(axis=0)
    result = minimize(
        lambda theta: -np.mean(np.log(P_target @ theta)),
        np.full(len(bases), 1 / m.sum()),
        jac=lambda theta: -np.mean(P_target / (P_target @ theta)[:, None], axis=0),
        bounds=[(0, None)] * len(bases),
        constraints={"type": "eq", "fun": lambda theta: m @ theta - 1, "jac": lambda theta: m},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-12},
    )
    return result.x / (m @ result.x)


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.5, 4.0])
@pytest.mark.parametrize("problem", [one_dimension(n=80), several_dimensions(3, n=80)])
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
def test_objective_no_worse_than_a_general_solver(sigma, problem):
    source, target, _ = problem
    X, sample_domain = stack(source, target)
    model = KLIEPWeights(n_bases=15, sigmas=sigma, tol=1e-10, random_state=0)
    model.fit(X, sample_domain=sample_domain)
    assert (model.coefficients_ >= 0).all()
    assert model.weights_.mean() == pytest.approx(1, abs=1e-10)
    theirs = general_solver(source, target, model.bases_, sigma)
    ours = objective(model.coefficients_, target, model.bases_, sigma)
    assert ours >= objective(np.maximum(theirs, 0), target, model.bases_, sigma) - 1e-7


def test_the_bound_on_the_gap_holds():
    source, target, _ = several_dimensions(3, n=100)
    P_source, P_target = (
        np.array([basis_functions(x, target[:20], 1.0) for x in rows]) for rows in (source, target)
    )
    m = P_source.mean(axis=0)
    best, gap = fit_kliep_coefficients(P_target, m, tol=1e-9, max_iter=500)
    assert gap <= 1e-9
    optimum = np.mean(np.log(P_target @ best))
    for max_iter in (1, 2, 3):
        theta, gap = fit_kliep_coefficients(P_target, m, tol=0, max_iter=max_iter)
        # The gap is that of the iterate before the last step, which only ascends.
        assert optimum - gap <= np.mean(np.log(P_target @ theta)) <= optimum + 1e-9


def test_a_start_changes_nothing():
    rng = np.random.default_rng(0)
    P, m = rng.uniform(size=(50, 10)), rng.uniform(0.1, 1, size=10)
    cold, _ = fit_kliep_coefficients(P, m, tol=1e-12, max_iter=500)
    warm, _ = fit_kliep_coefficients(P, m, tol=1e-12, max_iter=500, start=rng.uniform(size=10))
    assert_allclose(warm, cold, atol=1e-5)


def test_a_start_without_the_only_base_of_a_row():
    """A little of every base keeps that row's density positive; both rows count alike."""
    found, gap = fit_kliep_coefficients(
        np.eye(2), np.ones(2), tol=1e-10, max_iter=99, start=np.array([1.0, 0.0])
    )
    assert_allclose(found, [0.5, 0.5])
    assert gap <= 1e-10


def test_bases_without_source_and_rows_without_bases_are_left_out():
    P = np.array([[1.0, 0.5, 1.0], [0.2, 1.0, 0.0], [0.0, 0.0, 0.0]])
    theta, _ = fit_kliep_coefficients(P, np.array([0.5, 0.4, 0.0]), tol=1e-10, max_iter=99)
    alone, _ = fit_kliep_coefficients(P[:2, :2], np.array([0.5, 0.4]), tol=1e-10, max_iter=99)
    assert_allclose(theta, [*alone, 0])
    nothing, _ = fit_kliep_coefficients(P, np.zeros(3), tol=1e-10, max_iter=99)
    assert_array_equal(nothing, 0)


def test_bandwidth_by_held_out_likelihood():
    source, target, _ = one_dimension(n=200)
    X, sample_domain = stack(source, target)
    sigmas = [0.02, 0.5, 8.0]
    model = KLIEPWeights(sigmas=sigmas, random_state=0).fit(X, sample_domain=sample_domain)
    assert model.bandwidth_ == 0.5
    assert model.score_table_.argmax() == 1
    # A naive twin of one entry: the same folds, each fitted from scratch.
    rng = np.random.RandomState(0)
    rng.choice(200, 100, replace=False)  # the bases
    folds = np.array_split(rng.permutation(200), 5)
    m = np.mean([basis_functions(x, model.bases_, 0.5) for x in source], axis=0)
    total = 0.0
    for test in folds:
        train = np.delete(target, test, axis=0)
        P = np.array([basis_functions(x, model.bases_, 0.5) for x in train])
        theta, _ = fit_kliep_coefficients(P, m, tol=1e-10, max_iter=500)
        total += sum(np.log(theta @ basis_functions(x, model.bases_, 0.5)) for x in target[test])
    assert model.score_table_[1] == pytest.approx(total / 200, abs=1e-5)


def test_one_target_row_cannot_be_held_out():
    source, target, _ = one_dimension(n=50)
    X, sample_domain = stack(source, target[:1])
    model = KLIEPWeights(sigmas=[0.5, 8.0, 2.0]).fit(X, sample_domain=sample_domain)
    assert model.bandwidth_ == 8.0
    assert_array_equal(model.score_table_, 0)


def test_too_few_iterations_are_warned_about():
    X, sample_domain = stack(*several_dimensions(3, n=100)[:2])
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        KLIEPWeights(max_iter=1, random_state=0).fit(X, sample_domain=sample_domain)


@pytest.mark.parametrize("params", [{"cv": 1}, {"tol": -1}, {"max_iter": 0}, {"sigmas": 0}])
def test_bad_parameters(params):
    X, sample_domain = stack(*several_dimensions(2, n=20)[:2])
    with pytest.raises((ValueError, TypeError), match=next(iter(params))):
        KLIEPWeights(**params).fit(X, sample_domain=sample_domain)


def naive_step_length(mixture, change):
    slope = np.mean([c / m for c, m in zip(change, mixture, strict=True)])
    for halvings in range(34 if slope > 0 else 0):
        step = 0.5**halvings
        ratios = [1 + step * c / m for c, m in zip(change, mixture, strict=True)]
        if min(ratios) > 0 and np.mean(np.log(ratios)) >= 0.01 * step * slope:
            return step
    return 0.0


def test_steps_are_the_first_that_raise_the_objective_enough():
    rng = np.random.default_rng(0)
    found = set()
    for spread in np.repeat([0.1, 0.5, 1, 1.5, 2, 3, 8, 20], 25):
        mixture, change = rng.uniform(0.5, 2, size=6), rng.normal(spread / 3, spread, size=6)
        found.add(step := _step_length(mixture, change))
        assert step == naive_step_length(mixture, change)
    assert {0.0, 0.25, 0.5, 1.0} <= found


def test_no_step_is_taken_without_a_slope_or_to_a_density_of_zero():
    assert _step_length(np.ones(3), np.zeros(3)) == 0.0
    assert _step_length(np.ones(2), np.array([-1.0, 3.0])) == 0.5


def test_the_newton_point_maximizes_the_second_order_model():
    """Around proportions that sum to one; scaled to that sum again."""
    rng = np.random.default_rng(0)
    columns, proportions = rng.uniform(0.1, 2, (30, 4)), rng.dirichlet(np.ones(4))
    mixture = columns @ proportions
    slopes = np.mean(columns / mixture[:, None], axis=0)
    curvature = columns.T @ (columns / mixture[:, None] ** 2) / 30

    def loss(point):
        step = point - proportions
        return -(slopes @ step - step @ curvature @ step / 2 - point.sum())

    best = minimize(loss, proportions, bounds=[(0, None)] * 4, tol=1e-12).x
    found = _newton_point(columns, mixture, slopes)
    assert_allclose(found, best / best.sum(), atol=1e-4)
    assert (best == 0).any()
    assert np.abs(found - proportions).max() > 0.05


def test_a_step_that_cannot_be_computed_goes_to_the_best_base(monkeypatch):
    def fails(*arguments, **options):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(kliep, "nnls", fails)
    scores = np.array([1.0, 3.0, 2.0])
    point = _newton_point(np.random.default_rng(0).uniform(1, 2, (5, 3)), np.ones(5), scores)
    assert_array_equal(point, [0, 1, 0])


@pytest.mark.parametrize("bad", [{"n_bases": 0}, {"sigmas": []}, {"cv": 1}, {"tol": -1.0}])
def test_every_parameter_is_checked(bad):
    X, sample_domain = stack(*one_dimension(n=60)[:2])
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        KLIEPWeights(**bad).fit(X, sample_domain=sample_domain)
