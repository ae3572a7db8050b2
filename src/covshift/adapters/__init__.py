"""Estimators that change the representation, one file each."""

from covshift.adapters.periodic_sparse_filtering import PeriodicSparseFiltering
from covshift.adapters.sparse_filtering import SparseFiltering

__all__ = ["PeriodicSparseFiltering", "SparseFiltering"]
