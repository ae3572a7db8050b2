"""The leaderboard: each candidate with its scores, weight, cost, errors and warnings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.array_types import BoolArray, FloatArray
from covshift.predictors.objectives import METRICS, NUMBER_METRICS
from covshift.selection.bench import Bench, Output
from covshift.selection.candidates import Candidate
from covshift.selection.rehearsals import SOURCE_DOMAINS, rehearse

# --- All scores of all candidates, and which of them may be ranked ---


class ScoreTable(NamedTuple):
    """Scores by kind of rehearsal, one number for each candidate, and why some are not ranked."""

    candidates: Sequence[Candidate]
    scores: Mapping[str, FloatArray]
    reasons: Sequence[str | None]
    outputs: Sequence[Output]
    skipped: Sequence[str]  # kinds for which there was no time

    @property
    def allowed(self) -> BoolArray:
        """Candidates that may be ranked."""
        return np.array([reason is None for reason in self.reasons])


def score_table(
    bench: Bench,
    kinds: Sequence[str],
    *,
    deadline: float | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> ScoreTable:
    """Score a leaderboard's candidates by kinds of rehearsals; kinds due too late are skipped.

    Too late: after the deadline (`time.monotonic`).

    ``progress`` is told the name, number and count of the kinds as they begin.
    """
    outputs = bench.target
    problem = bench.problem
    n_classes = problem.n_classes if problem.values is None else 1
    reasons = disqualify(outputs, len(problem.X_source), n_classes)
    if len(problem.source_domains) < 2:
        kinds = [kind for kind in kinds if kind != SOURCE_DOMAINS]
    scores: dict[str, FloatArray] = {}
    skipped = []
    for number, kind in enumerate(kinds):
        if progress is not None:
            progress(kind, number, len(kinds))
        if deadline is not None and monotonic() > deadline:
            skipped.append(kind)
        else:
            scores[kind] = rehearse(bench, kind)
    _check_objective(bench, scores)
    return ScoreTable(bench.candidates, scores, reasons, outputs, skipped)


def _check_objective(bench: Bench, scores: Mapping[str, FloatArray]) -> None:
    """Raise where a user's own objective gives nothing to compare candidates by."""
    own = bench.metric not in (*METRICS.values(), *NUMBER_METRICS.values())
    if own and scores and all(np.isnan(one).all() for one in scores.values()):
        raise ValueError(
            "The objective gave NaN for every candidate, so that they cannot be compared. It must "
            "return a number, larger for better predictions."
        )


# --- Candidates that no score should ever see: those that failed, and those that are degenerate ---
#
# Scores of confidence and agreement can prefer a classifier that says the same of every row, and a
# fit on a handful of weighted rows can look well by luck.


MIN_EFFECTIVE_ROWS = 10.0  # effective source rows needed by weights
MIN_EFFECTIVE_SHARE = 0.01


def disqualify(outputs: Sequence[Output], n_source: int, n_classes: int) -> list[str | None]:
    """Return why a leaderboard disqualifies a candidate, by its output on the target, or None.

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
                f"(at least {needed:.0f} are needed)"
            )
    if n_classes == 1:  # the label is a number
        if len(output.logits) > 1 and not np.ptp(output.logits) > 0:
            return f"predicts one number for all {len(output.logits)} target rows"
        return None
    if len(output.codes) > 1 and (output.codes == output.codes[0]).all():
        return f"predicts one class for all {len(output.codes)} target rows"
    return None


GAIN, WEIGHT, SECONDS = "expected gain", "weight", "seconds"


class Leaderboard(Sequence[dict[str, Any]]):
    """Rows as dictionaries, the best first; those that may not be ranked come last.

    Keys of a row: ``candidate``, ``adapter``, ``estimator``, ``expected gain`` (over the plain
    model, in units of the objective; it ranks), ``weight`` in the vote, the scores by kind of
    rehearsal (`covshift.selection.rehearsals`), ``seconds`` (of one fit for the scores),
    ``disqualified`` (a reason, or None), ``warnings`` (a list of texts). ``to_frame`` makes a
    pandas frame of it.
    """

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = list(rows)

    @classmethod
    def of(cls, table: ScoreTable, gains: FloatArray, weights: FloatArray) -> "Leaderboard":
        """Return the leaderboard of a table of scores."""
        rows = [
            {
                "candidate": one.name,
                "adapter": one.adapter_name,
                "estimator": one.estimator_name,
                GAIN: float(gains[i]),
                WEIGHT: float(weights[i]),
                **{name: float(scores[i]) for name, scores in table.scores.items()},
                SECONDS: table.outputs[i].seconds,
                "disqualified": table.reasons[i],
                "warnings": list(table.outputs[i].warnings),
            }
            for i, one in enumerate(table.candidates)
        ]
        ranked = np.where(table.allowed & ~np.isnan(gains), gains, -np.inf)
        order = np.lexsort([np.arange(len(rows)), -weights, -ranked])
        return cls([rows[i] for i in order])

    def __getitem__(self, number: Any) -> Any:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def to_frame(self) -> Any:
        """Return a pandas frame; needs pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pd.DataFrame(self._rows)

    def __repr__(self) -> str:
        width = max(len(row["candidate"]) for row in self._rows)
        lines = [f"{'candidate':{width}}  expected gain  weight"]
        for row in self._rows:
            start = f"{row['candidate']:{width}}  "
            if row["disqualified"]:
                lines.append(f"{start}{row['disqualified']}")
            else:
                weight = f"{row[WEIGHT]:6.3f}" if row[WEIGHT] else "      "
                lines.append(f"{start}{row[GAIN]:+13.3f}  {weight}".rstrip())
        return "\n".join(lines)
