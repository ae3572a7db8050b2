"""Scores, probabilities and true scores of all candidates of a task, from lines of results.

Needs the methods "auto" (predictions of the candidates) and "pick by source CV" (scores).
"""

from functools import cached_property

import numpy as np
from covshift_bench.methods.picks import OURS, SKADAS
from covshift_bench.results import OK, decode_codes, decode_probabilities, read_results
from covshift_bench.summary import score, tasks_of


class CandidateResults:
    """All candidates on one task, in the order of their scores."""

    def __init__(self, task, by_method):
        extras = by_method[OURS]["extras"]
        self.task = task
        self.auto = by_method["auto"]
        self.truth = decode_codes(self.auto["truth"])
        self.names = extras["candidates"]
        self.class_counts = np.array(extras["class_counts"])
        self.allowed = np.array([reason is None for reason in extras["reasons"]])
        skada = by_method.get(SKADAS, {"extras": {"scores": {}}})["extras"]["scores"]
        self.scores = {
            name: np.array(values, dtype=float)
            for name, values in (extras["scores"] | skada).items()
        }
        self.lines = [by_method.get(name) for name in self.names]  # None if it failed

    def score_column(self, name, metric):
        """Return a score by its name, for a metric."""
        return self.scores[name if metric == "balanced accuracy" else f"{name}, {metric}"]

    def true_scores(self, metric):
        """Return the metric of each candidate on the test rows; NaN if it failed."""
        codes = [None if one is None else decode_codes(one["predicted"]) for one in self.lines]
        return np.array([np.nan if c is None else score(self.truth, c, metric) for c in codes])

    @cached_property
    def probabilities(self):
        """Calibrated probabilities (candidates, test rows, classes); zero if it failed."""
        P = np.zeros((len(self.names), len(self.truth), len(self.class_counts)))
        for number, line in enumerate(self.lines):
            if line is not None:
                P[number] = decode_probabilities(line["probabilities"], len(self.truth))
        return P

    def vote(self, weights, metric):
        """Return the score of a vote with these weights, decided for the metric."""
        P = np.tensordot(weights, self.probabilities, axes=1)
        shares = self.class_counts if metric == "balanced accuracy" else 1
        return score(self.truth, (P / shares).argmax(axis=1), metric)


def read_candidates(paths, size="standard"):
    """Return the results of every task that has those of both methods."""
    lines = [line for line in read_results(paths, size) if line["status"] == OK]
    tasks = {task.name: task for task in tasks_of(lines)}
    found = {}
    for line in lines:
        found.setdefault(line["task"], {})[line["method"]] = line
    return [
        CandidateResults(tasks[name], by_method)
        for name, by_method in found.items()
        if OURS in by_method and "auto" in by_method
    ]
