"""Rows that are alike, and rows of one table in another."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from covshift.kernels.distinct_rows import count_distinct, share_repeated
from covshift.kernels.drawn_rows import draw_rows


def test_the_share_of_rows_that_are_known():
    known = np.random.default_rng(0).normal(size=(40, 3))
    X = np.concatenate([known[:6], known[:4] + 1e-9])
    assert share_repeated(known, X) == 0.6
    assert share_repeated(known, known[::-1].astype(np.float32)) == 0.0
    assert share_repeated(known[:0], X) == share_repeated(known, X[:0]) == 0.0
    known[0, 0] = 0.0
    assert share_repeated(known, np.where(known == 0, -0.0, known)) == 1.0


@pytest.mark.parametrize(("n_twins", "share"), [(5, 0.5), (6, 0.0)])
def test_rows_of_few_values_repeat_by_chance(n_twins, share):
    """Of 20 known rows some have a twin; half of the rows are known."""
    known = np.arange(20.0)[:, None]
    known[:n_twins] = 0.0
    assert share_repeated(known, np.arange(10.0, 30.0)[:, None]) == share


def test_draws_are_spread_evenly_over_the_strata():
    strata = np.repeat([0, 1], [30, 10])
    drawn = draw_rows(strata, 4, np.random.RandomState(0))
    assert_array_equal(np.bincount(strata[drawn]), [3, 1])


def test_a_small_stratum_is_drawn_from_in_its_middle():
    """Of strata of 4 rows and of 1 the single row comes third."""
    strata = np.array([0, 0, 0, 0, 1])
    for n_rows, drawn in [(2, False), (3, True)]:
        assert (4 in draw_rows(strata, n_rows, np.random.RandomState(0))) == drawn


def test_copies_are_counted_once_unless_rows_repeat_by_chance():
    known = np.arange(40.0).reshape(20, 2)
    X = np.repeat([[1.0, 0.0], [2.0, -0.0], [2.0, 0.0]], 4, axis=0)
    assert count_distinct(known, X) == 2
    assert count_distinct(known, known) == 20
    few_values = np.repeat([[0.0, 0.0], [1.0, 0.0]], 10, axis=0)
    assert count_distinct(few_values, X) == 12
