"""Measured tasks as rules see them, and what a rule is worth on one."""

from typing import NamedTuple

import numpy as np

from covshift.kernels.vector_scaling import fit_scaling, scaled_probabilities
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.scorers import MOVED, mix_explanations


class Measured(NamedTuple):
    """One task: scores by name, who may be ranked, logits, and labels to judge by."""

    name: str
    collection: str  # a family of made-up tasks, or real data
    candidates: list
    adapters: np.ndarray
    scores: dict
    allowed: np.ndarray
    explained: float  # by class shares, from 0 to 1
    codes: np.ndarray
    source_logits: np.ndarray
    target_logits: np.ndarray
    target_codes: np.ndarray
    test_logits: np.ndarray
    test_codes: np.ndarray

    @property
    def truth(self):
        """Balanced accuracy of each candidate on the test rows."""
        return np.array([self.score(logits) for logits in self.test_logits])

    @property
    def reference(self):
        """The first unadapted candidate that may be ranked, as in `ScoreTable`."""
        usable = np.flatnonzero(self.allowed & (self.adapters == "none"))
        return int(usable[0]) if len(usable) else 0

    def score(self, logits):
        """Balanced accuracy of logits or probabilities on the test rows."""
        if np.isnan(logits).any():
            return np.nan
        return balanced_accuracy(self.test_codes, logits.argmax(axis=1))

    def probabilities(self, number):
        """Calibrated probabilities of one candidate on the test rows."""
        scaling = fit_scaling(self.source_logits[number], self.codes, np.ones(len(self.codes)))
        return scaled_probabilities(self.test_logits[number], scaling)

    def vote(self, weights):
        """Balanced accuracy of the vote with these weights of the candidates."""
        members = np.flatnonzero(weights)
        P = sum(weights[i] * self.probabilities(i) for i in members)
        return balanced_accuracy(self.test_codes, P.argmax(axis=1))


def read_tasks(folder):
    """All measured tasks of a folder, in the order of their names."""
    return [read_task(path) for path in sorted(folder.glob("*.npz"))]


def read_task(path):
    """One measured task; its collection is what comes before the last hyphen of its name."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    logits = {
        name: arrays[name].astype(np.float64)
        for name in ("source_logits", "target_logits", "test_logits")
    }
    codes = {name: arrays[name].astype(int) for name in ("codes", "target_codes", "test_codes")}
    scores = dict(zip(arrays["score_names"].tolist(), arrays["scores"], strict=True))
    scores["what explains"] = mix_explanations(
        float(arrays["explained"]),
        scores["resampled: class shares"],
        [scores[name] for name in MOVED],
    )
    return Measured(
        name=path.stem,
        collection=path.stem.rpartition("-")[0],
        candidates=arrays["names"].tolist(),
        adapters=arrays["adapters"],
        scores=scores,
        allowed=arrays["allowed"],
        explained=float(arrays["explained"]),
        **logits,
        **codes,
    )
