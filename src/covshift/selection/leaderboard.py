"""The leaderboard: each candidate with its scores, weight, cost, errors and warnings."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray
from covshift.selection.score_table import ScoreTable

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
