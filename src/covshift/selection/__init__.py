"""Choosing among adapters without target labels, and what to expect of a model."""

from covshift.selection.auto_adapted import AutoAdaptedClassifier, AutoAdaptedRegressor
from covshift.selection.candidates import Candidate
from covshift.selection.choice import NoRankedCandidateWarning
from covshift.selection.label_free_scores import SCORERS
from covshift.selection.performance_estimate import PerformanceEstimate, estimate_performance

__all__ = [
    "SCORERS",
    "AutoAdaptedClassifier",
    "AutoAdaptedRegressor",
    "Candidate",
    "NoRankedCandidateWarning",
    "PerformanceEstimate",
    "estimate_performance",
]
