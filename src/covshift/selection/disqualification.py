"""Candidates that no score should ever see: those that failed, and those that are degenerate.

Scores of confidence and agreement can prefer a classifier that says the same of every row, and a
fit on a handful of weighted rows can look well by luck.
"""

from collections.abc import Sequence

import numpy as np

from covshift.selection.outputs import Output

MIN_EFFECTIVE_ROWS = 10.0  # effective source rows needed by weights
MIN_EFFECTIVE_SHARE = 0.01


def disqualify(outputs: Sequence[Output], n_source: int, n_classes: int) -> list[str | None]:
    """Return the reason to disqualify a candidate, from its output on the target, or None.

    One class means that the label is a number.
    """
    return [_reason(output, n_source, n_classes) for output in outputs]


def _reason(output: Output, n_source: int, n_classes: int) -> str | None:
    if output.logits is None:
        return f"failed: {output.error}"
    if output.n_effective is not None:
        needed = max(MIN_EFFECTIVE_ROWS, MIN_EFFECTIVE_SHARE * n_source)
        if output.n_effective < needed:
            return (
                f"its weights rest on about {output.n_effective:.0f} of {n_source} source rows "
                f"(at least {needed:.0f} are asked for)"
            )
    if n_classes == 1:  # the label is a number
        if len(output.logits) > 1 and not np.ptp(output.logits) > 0:
            return f"predicts one number for all {len(output.logits)} target rows"
        return None
    if len(output.codes) > 1 and (output.codes == output.codes[0]).all():
        return f"predicts one class for all {len(output.codes)} target rows"
    return None
