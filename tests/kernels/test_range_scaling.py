import numpy as np
import pytest

from covshift.kernels.range_scaling import center_and_spread, into_range, out_of_range


@pytest.mark.parametrize(("middle", "width"), [(0.5, 1.0), (0.0, 2.0)])
def test_equals_the_formula_of_each_entry(middle, width):
    X = np.random.RandomState(0).standard_normal((7, 3)) * [1, 1e-20, 1e30]
    X[:, 1] = -4e-3
    scaled = into_range(X, *center_and_spread(X), middle, width)
    for i, j in np.ndindex(X.shape):
        low, high = min(X[:, j]), max(X[:, j])
        share = 0.5 if low == high else (X[i, j] - low) / (high - low)
        assert scaled[i, j] == pytest.approx(middle + (share - 0.5) * width, abs=1e-14)


def test_the_way_back():
    X = np.random.RandomState(0).standard_normal((7, 3)) * [1, 0, 1e30] + [0, 2, 0]
    where = (*center_and_spread(X), 0.0, 2.0)
    np.testing.assert_allclose(out_of_range(into_range(X, *where), *where), X, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_precision_of_the_rows_is_kept(dtype):
    X = np.random.RandomState(0).standard_normal((7, 3))
    where = (*center_and_spread(X), 0.5, 1.0)
    scaled = into_range(X.astype(dtype), *where)
    assert scaled.dtype == out_of_range(scaled, *where).dtype == dtype
