"""Numbers as labels in the selection, against slow twins."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel

from covshift.measures.labeled_scores import negative_mae, r2
from covshift.predictors.gaussian_kernel_ridge import GaussianKernelRidge
from covshift.selection.label_tasks import N_GROUPS, ROOM, number_task

RNG = np.random.RandomState(0)
LABELS = 50 + 10 * RNG.standard_normal(100)
SHARES = np.full(N_GROUPS, 1 / N_GROUPS)


def test_units_and_limits():
    task = number_task(LABELS)
    values = task.standardize(LABELS)
    assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-12)
    assert_allclose(task.restore(values), LABELS)
    room = ROOM * (LABELS.max() - LABELS.min())
    limits = task.restore(np.array([task.low, task.high]))
    assert_allclose(limits, [LABELS.min() - room, LABELS.max() + room])
    assert_allclose(task.apply(np.array([[-1e9], [0.0], [1e9]]))[:, 0], [task.low, 0, task.high])


def test_groups_have_equally_many_rows():
    task = number_task(LABELS)
    assert_array_equal(np.bincount(task.group(task.standardize(LABELS))), [20] * N_GROUPS)


@pytest.mark.parametrize("labels", [[3.0] * 9, [0.0] * 8 + [1.0], [0.0, 1.0] * 5])
def test_groups_of_few_values(labels):
    labels = np.array(labels)
    task = number_task(labels)
    groups = task.group(task.standardize(labels))
    assert groups.min() == 0
    assert groups.max() <= len(task.edges)
    assert np.isfinite([task.scale, task.low, task.high]).all()


def test_credit_is_bounded_and_orders_as_r2_does():
    task = number_task(LABELS)
    truth = RNG.standard_normal(30)
    predictions = [truth + spread * RNG.standard_normal(30) for spread in (0.1, 0.5, 1.0, 30.0)]
    credits = [task.credit(one[:, None], truth, r2, SHARES) for one in predictions]
    for one, credit in zip(predictions, credits, strict=True):
        error = sum((a - b) ** 2 for a, b in zip(truth, one, strict=True)) / 30
        assert credit == pytest.approx(truth.var() / (truth.var() + error))
        assert r2(truth, one) == pytest.approx(r2_score(truth, one))
    assert credits == sorted(credits, reverse=True)
    assert 0 < credits[-1] < credits[0] < 1
    worse = task.credit(truth[:, None] + 1, truth, negative_mae, SHARES)
    assert 0 < worse < task.credit(truth[:, None], truth, negative_mae, SHARES) == 1


def test_probabilities_of_groups_are_normal_masses():
    task = number_task(LABELS)
    found = task.group_probabilities(np.array([-1.0, 0.2]), 0.5)
    bounds = [-np.inf, *task.edges, np.inf]
    for row, mean in zip(found, (-1.0, 0.2), strict=True):
        masses = [
            norm.cdf(high, mean, 0.5) - norm.cdf(low, mean, 0.5)
            for low, high in itertools.pairwise(bounds)
        ]
        assert_allclose(row, masses, atol=1e-9)


def test_kernel_ridge_is_that_of_the_formula():
    X = RNG.standard_normal((40, 2))
    y = np.sin(X[:, 0]) + 5
    model = GaussianKernelRidge(n_components=40).fit(X, y)
    # K a + b with the penalty of the fit: minimize |y - K a - b|² + alpha a' K a.
    K = rbf_kernel(X, gamma=model.gamma_)
    C = np.eye(40) - 1 / 40
    a = np.linalg.solve(C @ K + model.alpha_ * np.eye(40), C @ y)
    b = (y - K @ a).mean()
    X_new = RNG.standard_normal((10, 2))
    expected = rbf_kernel(X_new, X, gamma=model.gamma_) @ a + b
    assert_allclose(model.predict(X_new), expected, rtol=1e-4)
    assert_allclose(model.predict(1e6 + X_new), model.intercept_)  # it cannot run away


def test_kernel_ridge_with_weights_forgets_rows_without():
    X = RNG.standard_normal((60, 2))
    y = X[:, 0].copy()
    y[30:] = 100.0
    weights = np.repeat([1.0, 0.0], 30)
    predicted = GaussianKernelRidge().fit(X, y, sample_weight=weights).predict(X[:30])
    assert np.abs(predicted - y[:30]).max() < 1
