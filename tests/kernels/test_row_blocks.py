"""Blocks of rows: parts of sparse arrays, and what is kept between passes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from covshift.kernels.row_blocks import (
    KEPT_BYTES,
    blocks_are_kept,
    view_rows,
)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_parts_of_sparse_rows_have_all_columns(kind):
    dense = np.zeros((5, 7))
    dense[1, 2] = dense[4, 6] = 1.0  # the first rows have nothing in the last columns
    part = view_rows(kind(dense), 0, 3)
    assert part.shape == (3, 7)
    assert_array_equal(part.toarray(), dense[:3])
    assert_array_equal(view_rows(kind(dense), 3, 9, np.float32).toarray(), dense[3:])


def test_activations_and_slopes_are_kept_up_to_a_number_of_bytes():
    assert blocks_are_kept(1024, KEPT_BYTES // 2048)
    assert not blocks_are_kept(1024, KEPT_BYTES // 2048 + 1)
