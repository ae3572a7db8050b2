"""Scales of features: rounding is not variation, in any module that divides by a scale."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.preprocessing import StandardScaler

from covshift import (
    CorrelationAlignment,
    DenoisingAutoencoder,
    DomainStandardScaler,
    LinearMongeAlignment,
    SourceStandardScaler,
    SubspaceAlignment,
)
from covshift.kernels.feature_scales import (
    feature_deviations,
    feature_scales,
    feature_variances,
    is_constant,
)
from covshift.kernels.probabilities import fit_scaling
from covshift.measures import median_bandwidth
from covshift.measures.labeled_scores import r2
from covshift.predictors.fit_and_predict import problem_size
from covshift.predictors.gaussian_kernel_ridge import _median_gamma
from covshift.selection.assessment import judge_determinability
from covshift.selection.label_tasks import number_task
from covshift.selection.rehearsals import move_by_class, move_mean_and_scale
from tests.selection.made_problems import make_moved
from tests.shifted import make_problem

# Their means are rounded: NumPy's standard deviation of them is not zero.
CONSTANTS = (0.1, 1e9 + 0.1, -1 / 3, 1e-5)
ADAPTERS = (
    DomainStandardScaler(),
    SourceStandardScaler(),
    CorrelationAlignment(),
    CorrelationAlignment(direction="target_to_source", shrinkage=None),
    LinearMongeAlignment(),
    SubspaceAlignment(center=True, scale=True),
    DenoisingAutoencoder(n_components=2, max_epochs=5, random_state=0),
)


def nearly(value, n):
    """A constant whose last digit differs in every third row."""
    column = np.full(n, value)
    column[::3] = np.nextafter(value, np.inf)
    return column


def naive_variance(column):
    """The variance in exact sums; zero if it is within the error that the formula allows."""
    n = len(column)
    mean = math.fsum(column) / n
    variance = math.fsum((x - mean) ** 2 for x in column) / n
    rounding = n * np.finfo(float).eps
    return variance if variance > rounding * variance + (rounding * mean) ** 2 else 0.0


@pytest.mark.parametrize("value", CONSTANTS)
@pytest.mark.parametrize("n", [3, 11, 1000, 100_003])
def test_constants_have_no_variance(value, n):
    columns = np.column_stack([np.full(n, value), nearly(value, n), np.arange(n) % 2])
    assert_array_equal(feature_variances(columns)[:2], 0.0)
    assert_array_equal(feature_deviations(columns)[:2], 0.0)
    assert_array_equal(feature_scales(columns)[:2], 1.0)
    theirs = StandardScaler().fit(columns).scale_
    np.testing.assert_allclose(feature_scales(columns), theirs, rtol=1e-12)


def test_small_variances_stay():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [1e-150, 1e-8, 1.0, 1e8, 1e100] + [0.0, 1.0, 1e9, 0.0, 0.0]
    expected = [naive_variance(column) for column in X.T]
    assert min(expected) > 0
    np.testing.assert_allclose(feature_variances(X), expected, rtol=1e-6)
    assert_array_equal(feature_variances(X), X.var(axis=0))


def test_float32_is_measured_in_double_precision():
    X = np.full((300_000, 1), 0.1, dtype=np.float32)
    X[::2] = np.nextafter(np.float32(0.1), np.float32(1))  # a difference that float32 can hold
    assert feature_variances(X)[0] > 0
    assert feature_variances(X[1::2])[0] == 0


def test_missing_values_are_no_constants():
    assert not is_constant([np.nan], [np.nan], [3])[0]


def with_constant(value, *, of_target=None):
    X, y, sample_domain, _ = make_problem()
    X[:, 1] = nearly(value, len(X))
    if of_target is not None:
        target = sample_domain < 0
        X[target, 1] = of_target[: target.sum()]
    return X, y, sample_domain


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("value", CONSTANTS)
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda one: type(one).__name__)
def test_adapters_do_not_magnify_rounding(adapter, value, streamed):
    X, _, sample_domain = with_constant(value)
    rows = X
    if streamed:
        if isinstance(adapter, DenoisingAutoencoder):
            pytest.skip("takes rows in memory")
        da = pytest.importorskip("dask.array")
        rows = da.from_array(X, chunks=(40, -1))
    adapter.fit(rows, sample_domain=sample_domain)
    Z = np.asarray(adapter.transform(X, sample_domain=sample_domain))
    moved = X + np.array([0.0, 1e-3 * abs(value), 0.0])
    change = np.asarray(adapter.transform(moved, sample_domain=sample_domain)) - Z
    assert np.abs(change).max() <= 1e-2 * abs(value)


@pytest.mark.parametrize("adapter", [CorrelationAlignment(), LinearMongeAlignment()])
def test_a_constant_is_not_spread_over_another_role(adapter):
    X = np.column_stack([nearly(value, 80) for value in CONSTANTS])
    X[40:] += np.random.default_rng(0).normal(size=(40, len(CONSTANTS)))
    adapter.fit(X, sample_domain=np.repeat([0, -1], 40))
    assert_array_equal(adapter.matrices_, 0.0)


@pytest.mark.parametrize("value", CONSTANTS)
def test_rehearsals_and_determinability(value):
    problem, target_codes = make_moved()
    X, T = problem.X_source.copy(), problem.X_target.copy()
    X[:, 1] = nearly(value, len(X))
    T[:, 1] += value
    problem = problem._replace(X_source=X, X_target=T)
    for move in (move_mean_and_scale, partial(move_by_class, target_codes=target_codes)):
        rows = move(problem, X, problem.codes)
        for k in np.unique(problem.codes):
            assert np.ptp(rows[problem.codes == k, 1]) <= 1e-6 * abs(value)
    exact = X.copy()
    exact[:, 1] = value
    shifts = [
        judge_determinability(problem._replace(X_source=rows)).target_shift for rows in (X, exact)
    ]
    assert max(shifts) < 10


def test_sizes_bandwidths_and_slopes():
    X, _, sample_domain = with_constant(0.1)
    constants = np.column_stack([nearly(value, len(X)) for value in CONSTANTS])
    assert problem_size(constants, 2, sample_domain).spread == 0.0
    assert median_bandwidth(constants[:40], constants[40:]) == 1.0
    assert _median_gamma(constants) == 1.0
    exact = X.copy()
    exact[:, 1] = 0.0
    assert median_bandwidth(X[:40], X[40:]) == median_bandwidth(exact[:40], exact[40:])
    scores = np.full((30, 3), 0.1) + np.spacing(0.1) * np.eye(3)[np.arange(30) % 3]
    assert fit_scaling(scores, np.arange(30) % 3, np.ones(30)).slope == pytest.approx(1.0)


def test_labels_that_are_constant():
    labels = nearly(0.1, 50)
    assert number_task(labels).scale == 1.0
    assert r2(labels, np.full(50, 0.2)) == 0.0
    assert r2(labels, labels) == 1.0
