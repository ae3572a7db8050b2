"""Data sets with a known shift, and loaders of recorded ones from a user's folder."""

from covshift.datasets.amazon_reviews import load_amazon_reviews
from covshift.datasets.bearings import load_bearings
from covshift.datasets.office_caltech import load_office_caltech
from covshift.datasets.speech import load_speech_corpus
from covshift.datasets.synthetic import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)
from covshift.datasets.vowels import load_vowels

__all__ = [
    "ShiftedData",
    "load_amazon_reviews",
    "load_bearings",
    "load_office_caltech",
    "load_speech_corpus",
    "load_vowels",
    "make_diagonal_shift",
    "make_periodic_shift",
    "make_radial_shift",
    "make_smooth_shift",
]
