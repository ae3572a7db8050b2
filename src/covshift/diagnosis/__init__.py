"""Diagnosis: what moved, whether weights could work, what `AutoAdaptedClassifier` does."""

from covshift.diagnosis.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
