"""Diagnosis: what moved, whether weights could work, what `AutoAdaptedClassifier` does."""

from covshift.diagnosis.diagnose import diagnose
from covshift.diagnosis.diagnosis import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
