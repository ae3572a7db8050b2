"""Data sets with a known shift."""

from covshift.datasets.synthetic import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)

__all__ = [
    "ShiftedData",
    "make_diagonal_shift",
    "make_periodic_shift",
    "make_radial_shift",
    "make_smooth_shift",
]
