"""The oracle: the only code of the speech study that reads labels of a target half.

The paper chooses hyper-parameters on the target set. Adaptation works without its labels,
so this choice is not available in practice. Results that rest on this are called "oracle"
wherever they are shown.
"""

from collections.abc import Mapping
from typing import Any

from covshift.paper.grid_systems import average_recalls, best_setting
from covshift.paper.speech.protocol import Halves, SpeechTable

ORACLE_SCORES = "oracle_target_uar"  # key in the result of a trial


def oracle_scores(predicted: Any, table: SpeechTable, halves: Halves) -> dict[str, Any]:
    """Return the UAR on the target half of every setting and C, marked as the oracle's."""
    return {ORACLE_SCORES: average_recalls(predicted, table.y[halves.target]).tolist()}


def oracle_choice(result: Mapping[str, Any]) -> tuple[int, int]:
    """Return the oracle's number of the setting and of the C: best on the target half."""
    return best_setting(result[ORACLE_SCORES])
