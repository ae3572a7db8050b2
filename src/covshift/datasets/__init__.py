"""Data sets with a known shift, and readers of folders with recorded ones."""

from covshift.datasets.speech import load_speech_corpus
from covshift.datasets.synthetic import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)

__all__ = [
    "ShiftedData",
    "load_speech_corpus",
    "make_diagonal_shift",
    "make_periodic_shift",
    "make_radial_shift",
    "make_smooth_shift",
]
