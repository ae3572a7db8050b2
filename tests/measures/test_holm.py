import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from covshift.measures.holm import holm
from tests.kernels.problems import FIXED
from tests.twins import naive

# From few values, so that many tie, and from all.
PVALUES = arrays(
    float,
    st.integers(0, 12),
    elements=st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]) | st.floats(0, 1),
)


@FIXED
@given(pvalues=PVALUES)
def test_equals_the_naive_twin(pvalues):
    np.testing.assert_allclose(holm(pvalues), naive.holm(pvalues), rtol=1e-15, atol=0)


@FIXED
@given(pvalues=PVALUES, seed=st.integers(0, 2**32 - 1))
def test_any_order_gives_the_same_and_keeps_the_order_of_the_pvalues(pvalues, seed):
    adjusted = holm(pvalues)
    order = np.random.default_rng(seed).permutation(len(pvalues))
    np.testing.assert_array_equal(holm(pvalues[order]), adjusted[order])
    assert (np.diff(adjusted[np.argsort(pvalues)]) >= 0).all()
    assert (adjusted >= pvalues).all()
    assert (adjusted <= 1).all()
    # No more than Bonferroni asks, and the smallest exactly that.
    bonferroni = np.minimum(1, len(pvalues) * pvalues)
    assert (adjusted <= bonferroni).all()
    if len(pvalues):
        assert adjusted.min() == bonferroni.min()


def test_a_worked_example():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.005]), [0.06, 0.03, 0.06, 0.02])
    np.testing.assert_array_equal(holm([0.3]), [0.3])
    assert holm([]).shape == (0,)


def test_the_pvalues_are_not_changed():
    pvalues = np.array([0.5, 0.1])
    pvalues.setflags(write=False)
    np.testing.assert_array_equal(holm(pvalues), [0.5, 0.2])


@pytest.mark.parametrize("bad", [[0.1, np.nan], [1.1], [-0.1], [np.inf]])
def test_what_is_no_pvalue_is_an_error(bad):
    with pytest.raises(ValueError, match="from 0 to 1, without NaN"):
        holm(bad)


def test_a_table_is_an_error():
    with pytest.raises(ValueError, match="one-dimensional"):
        holm([[0.1, 0.2]])
