"""What moved, whether weights could work, and the advice that `AutoAdaptedClassifier` follows."""

from covshift.diagnosis.diagnose import diagnose
from covshift.diagnosis.diagnosis import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
