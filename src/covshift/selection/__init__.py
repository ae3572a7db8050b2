"""Choosing among adapters without target labels, and what to expect of a model."""

from covshift.selection.auto_adapted_classifier import AutoAdaptedClassifier
from covshift.selection.auto_adapted_regressor import AutoAdaptedRegressor
from covshift.selection.candidates import Candidate
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.selection.performance import PerformanceEstimate, estimate_performance
from covshift.selection.scorers import SCORERS

__all__ = [
    "SCORERS",
    "AutoAdaptedClassifier",
    "AutoAdaptedRegressor",
    "Candidate",
    "NoRankedCandidateWarning",
    "PerformanceEstimate",
    "estimate_performance",
]
