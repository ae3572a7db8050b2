"""Choosing among adapters without target labels."""

from covshift.selection.auto_adapted_classifier import AutoAdaptedClassifier
from covshift.selection.auto_adapted_regressor import AutoAdaptedRegressor
from covshift.selection.candidates import Candidate
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.selection.scorers import SCORERS

__all__ = [
    "SCORERS",
    "AutoAdaptedClassifier",
    "AutoAdaptedRegressor",
    "Candidate",
    "NoRankedCandidateWarning",
]
