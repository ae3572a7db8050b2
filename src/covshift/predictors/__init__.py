"""Predictors that adapt."""

from covshift.predictors.adapted_classifier import AdaptedClassifier
from covshift.predictors.adapted_regressor import AdaptedRegressor

__all__ = ["AdaptedClassifier", "AdaptedRegressor"]
