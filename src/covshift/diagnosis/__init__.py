"""What moved, what holds, what to do: evidence from which a verdict is made."""

from covshift.diagnosis.diagnose import diagnose
from covshift.diagnosis.diagnosis import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
