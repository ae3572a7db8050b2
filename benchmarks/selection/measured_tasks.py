"""Measured tasks as rules see them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covshift.kernels.vector_scaling import fit_scaling, scaled_probabilities
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.scorers import MOVED, mix_explanations


@dataclass(frozen=True)
class Measured:
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
    def family(self):
        """What must not be learned from when the task is judged: EMODB's four are one."""
        return "emodb" if self.collection.startswith("emodb") else self.collection

    @cached_property
    def truth(self):
        """Balanced accuracy of each candidate on the test rows; NaN for one that failed."""
        return np.array([self.score(codes) for codes in self.predictions])

    @cached_property
    def predictions(self):
        """Class numbers of the test rows by each candidate; None for one that failed."""
        return [
            None if np.isnan(logits).any() else logits.argmax(axis=1) for logits in self.test_logits
        ]

    @property
    def reference(self):
        """The first unadapted candidate that may be ranked, as in `ScoreTable`."""
        usable = np.flatnonzero(self.allowed & self.unadapted)
        return int(usable[0]) if len(usable) else 0

    @property
    def unadapted(self):
        """Which candidates adapt nothing."""
        return self.adapters == "none"

    @property
    def source_shares(self):
        """Share of each class in the source; none is zero."""
        counts = np.bincount(self.codes, minlength=self.test_logits.shape[2])
        return np.maximum(counts, 0.5) / len(self.codes)

    def score(self, codes):
        """Balanced accuracy of class numbers of the test rows."""
        return np.nan if codes is None else balanced_accuracy(self.test_codes, codes)

    @cached_property
    def probabilities(self):
        """Calibrated probabilities (candidates, test rows, classes); NaN for one that failed."""
        ones = np.ones(len(self.codes))
        P = np.full(self.test_logits.shape, np.nan, dtype=np.float32)
        for number, (on_source, on_test) in enumerate(
            zip(self.source_logits, self.test_logits, strict=True)
        ):
            if not (np.isnan(on_source).any() or np.isnan(on_test).any()):
                scaling = fit_scaling(on_source.astype(float), self.codes, ones)
                P[number] = scaled_probabilities(on_test.astype(float), scaling)
        return P


def read_tasks(folder):
    """All measured tasks of a folder, in the order of their names."""
    return [read_task(path) for path in sorted(folder.glob("*.npz"))]


def read_task(path):
    """One measured task; its collection is what comes before the last hyphen of its name."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    logits = {name: arrays[name] for name in ("source_logits", "target_logits", "test_logits")}
    codes = {name: arrays[name].astype(int) for name in ("codes", "target_codes", "test_codes")}
    explained = float(arrays["explained"])
    scores = dict(zip(arrays["score_names"].tolist(), arrays["scores"], strict=True))
    by_movement = [scores[name] for name in MOVED]
    by_shares = scores["resampled: class shares"]
    scores["what explains"] = mix_explanations(explained, by_shares, by_movement)
    return Measured(
        name=path.stem,
        collection=path.stem.rpartition("-")[0],
        candidates=arrays["names"].tolist(),
        adapters=arrays["adapters"],
        scores=scores,
        allowed=arrays["allowed"],
        explained=explained,
        **logits,
        **codes,
    )
