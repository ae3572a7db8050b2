"""The least-squares probabilistic classifier against its twin, row by row and refit by refit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covshift.kernels.distinct_rows import deal_folds, draw_rows, merge_rows, sum_by_class
from covshift.kernels.gaussian_kernels import gaussian, gaussian_mixture, squares_to_bases
from covshift.kernels.lspc import (
    Fold,
    Part,
    class_probabilities,
    cross_validation_scores,
    fit_coefficients,
    misclassification,
    squared_error,
)
from tests.twins import lspc_twins

RNG = np.random.default_rng(0)
N, N_CLASSES = 40, 3
X = RNG.normal(size=(N, 2))
CODES = RNG.integers(0, N_CLASSES, N)
WEIGHTS = RNG.uniform(0.1, 3, N)
BASES, SIGMA = X[:7] + 0.1, 0.8
P = gaussian(squares_to_bases(X, BASES), SIGMA)
CLASS_WEIGHTS = np.eye(N_CLASSES)[CODES] * WEIGHTS[:, None]
LAMBDAS = np.array([1e-4, 0.1, 2.0])
CRITERIA = {"misclassification": misclassification, "squared_error": squared_error}


def folds_of(splits):
    everything = set(range(N))
    folds = []
    for train, test in splits:
        left_out = np.array(sorted(everything - set(train)), dtype=int)
        parts = [Part(rows, CLASS_WEIGHTS[rows]) for rows in (left_out, np.asarray(test))]
        folds.append(Fold(*parts))
    return folds


def complements(fold_of):
    return [
        (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in np.unique(fold_of)
    ]


@pytest.mark.parametrize("lam", LAMBDAS)
def test_coefficients(lam):
    expected = lspc_twins.coefficients(X, CODES, WEIGHTS, N_CLASSES, BASES, SIGMA, lam)
    assert_allclose(fit_coefficients(P, CLASS_WEIGHTS, lam), expected, rtol=1e-9)


def test_probabilities():
    theta = fit_coefficients(P, CLASS_WEIGHTS, 1e-3)
    shares = CLASS_WEIGHTS.sum(axis=0) / CLASS_WEIGHTS.sum()
    rows = np.concatenate([X, RNG.normal(0, 4, (50, 2)), [[99.0, 0.0]]])  # some far from all bases
    ours = class_probabilities(gaussian_mixture(rows, BASES, theta, SIGMA), shares)
    naive = [lspc_twins.probabilities(x, theta, BASES, SIGMA, shares) for x in rows]
    assert_allclose(ours, naive, rtol=1e-9, atol=1e-12)
    assert_allclose(ours[-1], shares, rtol=1e-14)
    assert_allclose(ours.sum(axis=1), 1, rtol=1e-14)


def test_probabilities_of_tiny_values():
    values = np.array([[3e-320, 1e-320], [0.0, -1.0], [-2.0, 5e-324], [1e308, 1e308]])
    ours = class_probabilities(values, np.array([0.2, 0.8]))
    assert_allclose(ours, [[0.75, 0.25], [0.2, 0.8], [0, 1], [0.5, 0.5]], rtol=1e-2)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "splits",
    [
        complements(np.arange(N) % 5),
        complements(CODES),  # the class tested is missing from training
        [(np.arange(0, 20), np.arange(30, 40)), (np.arange(5, 40), np.arange(0, 25))],
    ],
    ids=["folds", "missing class", "ready-made"],
)
def test_cross_validation_equals_refitting(criterion, splits):
    ours = cross_validation_scores(P, CLASS_WEIGHTS, folds_of(splits), LAMBDAS, CRITERIA[criterion])
    data = X, CODES, WEIGHTS, splits, N_CLASSES, BASES, SIGMA
    naive = [lspc_twins.cross_validation(*data, lam, criterion) for lam in LAMBDAS]
    assert_allclose(ours, naive, rtol=1e-9)


def test_nothing_to_learn_from_or_to_test_on():
    everything, nothing = np.arange(N), np.arange(0)
    for train, test in ((nothing, everything), (everything, nothing)):
        fold = folds_of([(train, test)])
        assert_array_equal(
            cross_validation_scores(P, CLASS_WEIGHTS, fold, LAMBDAS, squared_error), 0
        )


def test_rows_of_which_several_are_alike():
    """A merged row of two classes loses as its copies do."""
    p = np.array([[0.7, 0.2, 0.1]])
    merged = np.array([[2.0, 0.0, 1.5]])
    for criterion in CRITERIA.values():
        copies = [criterion(p, row) for row in (merged * [1, 0, 0], merged * [0, 0, 1])]
        assert_allclose(criterion(p, merged), sum(copies))


def test_merging_rows():
    rows = np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0], [0.0, -3.0], [-0.0, 3.0]])
    merged, number = merge_rows(rows)
    assert_array_equal(merged, [[0, -3], [0, 3], [2, 1]])
    assert_array_equal(number, [2, 1, 2, 0, 1])
    table = sum_by_class(number, np.array([0, 1, 1, 0, 1]), np.array([1.0, 2, 4, 8, 16]), (3, 2))
    assert_array_equal(table, [[8, 0], [0, 18], [1, 4]])


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_hold_every_class_in_its_share(n_folds):
    strata = np.repeat([0, 1, 2], [31, 14, 2])
    folds = deal_folds(strata, n_folds, np.random.RandomState(0))
    for stratum in range(3):
        counts = np.bincount(folds[strata == stratum], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(folds)
    assert counts.max() - counts.min() <= 1
    assert not np.array_equal(folds, deal_folds(strata, n_folds, np.random.RandomState(1)))


def test_draws_hold_every_class_in_its_share():
    strata = np.random.RandomState(0).permutation(np.repeat([0, 1, 2], [600, 300, 100]))
    for seed in range(5):
        drawn = draw_rows(strata, 50, np.random.RandomState(seed))
        assert len(np.unique(drawn)) == 50
        assert_array_equal(drawn, np.sort(drawn))
        assert_array_equal(np.bincount(strata[drawn]), [30, 15, 5])
    assert_array_equal(draw_rows(strata, 9999, np.random.RandomState(0)), np.arange(1000))
    # within a class every row has its chance
    often = sum(np.isin(np.arange(1000), draw_rows(strata, 200, np.random.RandomState(seed)))
                for seed in range(100))  # fmt: skip
    assert often.min() >= 3
    assert often.max() <= 40


def test_rows_out_of_reach_get_the_shares_of_the_training_part():
    """Each basis reaches one row, so that a row that is left out meets no basis."""
    classes = np.array([0, 0, 0, 1])
    class_weights = np.eye(2)[classes]
    folds = [
        Fold(*(Part(np.array([row]), class_weights[[row]]) for _ in range(2))) for row in range(4)
    ]
    scores = cross_validation_scores(
        np.eye(4), class_weights, folds, np.array([0.1]), squared_error
    )
    shares = [np.array(pair) / 3 for pair in ([2, 1], [2, 1], [2, 1], [3, 0])]  # of the others
    losses = [(p**2).sum() / 2 - p[c] for p, c in zip(shares, classes, strict=True)]
    np.testing.assert_allclose(scores, np.mean(losses))
