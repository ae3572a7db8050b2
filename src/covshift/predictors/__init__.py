"""Predictors that adapt."""

from covshift.predictors.adapted import AdaptedClassifier, AdaptedRegressor
from covshift.predictors.held_out_rows import HeldOutRows, NoHeldOutRowsError
from covshift.predictors.joint_alignment_classifier import JointAlignmentClassifier
from covshift.predictors.lsp_classifier import LSPClassifier
from covshift.predictors.prediction_sets import PredictionIntervals, PredictionSets

__all__ = [
    "AdaptedClassifier",
    "AdaptedRegressor",
    "HeldOutRows",
    "JointAlignmentClassifier",
    "LSPClassifier",
    "NoHeldOutRowsError",
    "PredictionIntervals",
    "PredictionSets",
]
