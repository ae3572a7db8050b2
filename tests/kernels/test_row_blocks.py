"""Blocks of rows: parts of sparse arrays, and what is kept between passes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from covshift.kernels.row_blocks import (
    KEPT_BYTES,
    _cut_evenly,
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


def test_blocks_are_as_few_as_their_width_allows():
    """Each block has a cost of its own: what fits into one is not cut."""
    assert _cut_evenly(np.zeros(100, dtype=int), 200).tolist() == [0, 100]
    assert _cut_evenly(np.zeros(100, dtype=int), 50).tolist() == [0, 50, 100]
    assert _cut_evenly(np.repeat([0, 1], [40, 60]), 30).tolist() == [0, 40, 70, 100]
    assert _cut_evenly(np.arange(100), 30).tolist() == [0, 33, 66, 100]  # not one for each class
