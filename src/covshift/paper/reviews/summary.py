"""What the trials of the reviews' study say."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from covshift.paper.grid_systems import BASELINES, SYSTEMS, best_setting
from covshift.paper.reviews.plans import N_FOLDS, TARGETS, VOCABULARIES
from covshift.studies.report import (
    Difference,
    Figure,
    Verdict,
    compare_pairs,
    estimate,
    paired_verdict,
)
from covshift.studies.store import Record

BY_FOLDS, ORACLE = "by source folds", "oracle"


class Choice(NamedTuple):
    """One system on one target with hyper-parameters chosen in one way."""

    target: str
    system: str
    chosen_by: str
    scores: dict[int, float]  # seed -> UAR on the scored half
    picked: list[str]  # setting and C of each seed
    records: list[Record]


def choices(records: Sequence[Record]) -> list[Choice]:
    """Every system on every target, by source folds and by the oracle."""
    found = []
    for target in TARGETS:
        for system in SYSTEMS:
            own = [record for record in _of(records, "target", system) if _target(record) == target]
            folds = [(record.result or {})["fold_uar"] for record in _of(records, "fold", system)]
            for chosen_by in (BY_FOLDS, ORACLE):
                scores, picked = {}, []
                for record in own:
                    result = record.result or {}
                    if chosen_by == BY_FOLDS and len(folds) < N_FOLDS:
                        continue  # a choice by some of the folds would be another rule
                    criterion = (
                        np.mean(folds, axis=0) if chosen_by == BY_FOLDS else result["oracle_uar"]
                    )
                    setting, cost = best_setting(criterion)
                    scores[record.trial.seed] = result["test_uar"][setting][cost]
                    picked.append(_name(record.trial.settings, setting, cost))
                found.append(Choice(target, system, chosen_by, scores, picked, own))
    return found


def difference_to_baseline(
    choice: Choice, others: Sequence[Choice]
) -> tuple[Figure | None, Verdict]:
    """Of a system to the one without adaptation that is chosen in the same way, by draw."""
    if choice.system not in BASELINES:
        return None, "unclear"
    key = (choice.target, BASELINES[choice.system], choice.chosen_by)
    (baseline,) = [other for other in others if (other[0], other[1], other[2]) == key]
    seeds = [seed for seed in choice.scores if seed in baseline.scores]
    differences = [choice.scores[seed] - baseline.scores[seed] for seed in seeds]
    return estimate(differences), paired_verdict(differences)


class Width(NamedTuple):
    """One system with so many words, over all pairs of domains."""

    n_words: int
    system: str
    score: Figure | None
    difference: Difference | None
    without_target: Figure | None
    seconds: float
    records: list[Record]


def widths(records: Sequence[Record]) -> list[Width]:
    """Every system with every number of words."""
    found: list[Width] = []
    for n_words in VOCABULARIES:
        scores: dict[str, dict[Any, float]] = {}
        for system in SYSTEMS:
            own = [
                record
                for record in _of(records, "wide", system)
                if record.trial.settings["n_words"] == n_words
            ]
            if not own:
                continue
            main, alone = (
                [one for one in own if one.trial.settings["without_target"] is value]
                for value in (False, True)
            )
            scores[system] = {_pair(one): (one.result or {})["test_uar"] for one in main}
            baseline = scores.get(BASELINES.get(system, ""), {})
            differences = [
                value - baseline[pair] for pair, value in scores[system].items() if pair in baseline
            ]
            found.append(
                Width(
                    n_words,
                    system,
                    estimate(list(scores[system].values())),
                    compare_pairs(differences),
                    estimate([(one.result or {})["test_uar"] for one in alone]),
                    float(np.median([one.seconds for one in main])) if main else float("nan"),
                    own,
                )
            )
    return found


def _of(records: Sequence[Record], kind: str, system: str) -> list[Record]:
    return [
        record
        for record in records
        if record.result is not None
        and record.trial.settings["kind"] == kind
        and record.trial.settings["system"] == system
    ]


def _target(record: Record) -> str:
    return str(record.trial.settings["target"])


def _pair(record: Record) -> tuple[str, str]:
    settings = record.trial.settings
    return settings["source"], settings["target"]


def _name(settings: dict[str, Any], setting: int, cost: int) -> str:
    parts = [f"{name} {value}" for name, value in settings["settings"][setting].items()]
    parts = [part for part in parts if not part.startswith("mini_batches")]
    costs = settings["costs"]
    return ", ".join(parts + ([f"C {costs[cost]:g}"] if len(costs) > 1 else []))
