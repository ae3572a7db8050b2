"""Estimators that weigh the source rows by p_target(x) / p_source(x), one file each."""

from covshift.weights._weight_estimator import UnreliableWeightsWarning, scale_to_mean_one
from covshift.weights.classifier import ClassifierWeights
from covshift.weights.kliep import KLIEPWeights
from covshift.weights.kmm import KMMWeights
from covshift.weights.rulsif import RuLSIFWeights
from covshift.weights.ulsif import ULSIFWeights

__all__ = [
    "ClassifierWeights",
    "KLIEPWeights",
    "KMMWeights",
    "RuLSIFWeights",
    "ULSIFWeights",
    "UnreliableWeightsWarning",
    "scale_to_mean_one",
]
