"""Predictors that adapt."""

from covshift.predictors.adapted_classifier import AdaptedClassifier
from covshift.predictors.adapted_regressor import AdaptedRegressor
from covshift.predictors.joint_alignment_classifier import JointAlignmentClassifier
from covshift.predictors.lsp_classifier import LSPClassifier

__all__ = ["AdaptedClassifier", "AdaptedRegressor", "JointAlignmentClassifier", "LSPClassifier"]
