"""The reviews' study as a document, and as a table for a terminal."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from covshift.paper.grid_systems import BASELINES, SYSTEMS, best_setting
from covshift.paper.reviews.protocol import (
    FIXED_COST,
    N_FOLDS,
    N_WORDS,
    SOURCE,
    TARGETS,
    ReviewPlan,
)
from covshift.report.document import make_document, make_section
from covshift.studies.result_tables import (
    CLEAR,
    STEP,
    Frame,
    Summary,
    build_evidence,
    build_section,
    difference_cell,
    estimate,
    figure_cell,
    figure_text,
    interval_text,
    make_frame,
    number_column,
    score_cell,
    summarize,
    text_column,
    tidy,
    values,
    verdict_of,
)
from covshift.studies.store import Record
from covshift.studies.study import Facts, TextTable

WAYS = BY_FOLDS, ORACLE = "by source folds", "oracle"  # ways to choose settings
ARROWS = {"helps": " ↑", "harms": " ↓", "unclear": ""}


# Results of the trials


def _choices(records: Sequence[Record]) -> dict[tuple[str, ...], Summary]:
    """Return every system on every target with settings chosen each way, over the draws of halves.

    By target, system and way; those without a trial are not there.
    """
    frame = tidy(records, kind=None)
    folds, targets = (frame[frame["kind"] == kind] for kind in ("fold", "target"))
    chosen = []
    for trial in targets.to_dict("records"):
        criteria = {ORACLE: trial["oracle_uar"]}
        by_fold = values(folds[folds["system"] == trial["system"]], "fold_uar")
        if len(by_fold) >= N_FOLDS:  # a choice by some of the folds would be another rule
            criteria[BY_FOLDS] = np.mean(by_fold, axis=0)
        for way, criterion in criteria.items():
            setting, cost = best_setting(criterion)
            row = {name: trial[name] for name in ("target", "system", "seed")}
            row |= {"chosen_by": way, "UAR": trial["test_uar"][setting][cost]}
            chosen.append(row | {"chosen": _picked(trial, setting, cost) or "none to choose"})
    by = ("target", "system", "chosen_by")
    found = summarize(make_frame(chosen), by, ("seed",), "UAR", _baseline, STEP)
    by_key = {one.key: one for one in found}
    return {key: by_key[key] for key in product(TARGETS, SYSTEMS, WAYS) if key in by_key}


def _widths(records: Sequence[Record]) -> list[Summary]:
    """Return every system with every number of words and one setting, over all pairs of domains."""
    frame = tidy(records, kind=None)
    trials = [
        {**trial, "alone" if trial["without_target"] else "adapted": trial["test_uar"]}
        for trial in frame[frame["kind"] == "wide"].to_dict("records")
    ]
    by, pair = ("n_words", "system"), ("source", "target")
    found = summarize(make_frame(trials), by, pair, "adapted", _baseline)
    return sorted(found, key=lambda one: (one.key[0], SYSTEMS.index(one.key[1])))


def _baseline(system: str, trials: Frame) -> str | None:
    return BASELINES.get(system)


def _picked(trial: Mapping[str, Any], setting: int, cost: int) -> str:
    names = trial["settings"][setting].items()
    parts = [f"{name} {value}" for name, value in names if name != "mini_batches"]
    costs = trial["costs"]
    return ", ".join(parts + ([f"C {costs[cost]:g}"] if len(costs) > 1 else []))


# The report


def reviews_document(records: Sequence[Record], facts: Facts, plan: ReviewPlan) -> Any:
    """Return the whole report of the study of reviews."""
    chosen, wide = _choices(records), _widths(records)
    evidence = {one.id: _choice_evidence(one) for one in chosen.values()}
    evidence |= {one.id: _width_evidence(one) for one in wide}
    return make_document(
        "The supplement's reviews, rebuilt",
        _lead(list(chosen.values()), wide),
        sections=[
            make_section("protocol", "What was done", paragraphs=_protocol(plan)),
            _choice_section(chosen),
            _width_section(wide),
        ],
        facts=[("plan", plan.name), *facts],
        evidence=evidence,
    )


def reviews_table(records: Sequence[Record]) -> TextTable:
    """Report the UAR on reviews, hyper-parameters chosen by source folds, and by the oracle."""
    chosen = _choices(records)

    def cell(*key: str) -> str:
        one = chosen.get(key)
        return "?" if one is None else figure_text(one.score) + ARROWS[verdict_of(one.difference)]

    return TextTable(
        ["target", "system", "chosen by source folds", "chosen by the oracle"],
        [
            [[target, system, *(cell(target, system, way) for way in WAYS)] for system in SYSTEMS]
            for target in TARGETS
        ],
        "UAR on the scored half, mean ± standard error over draws of the halves; ↑ better, ↓ worse "
        "than SVM (IW+LSPC: LSPC) chosen in the same way (t-test of the draws at 5 %). The oracle "
        "reads target labels.",
    )


def _protocol(plan: ReviewPlan) -> list[str]:
    settings = ", ".join(f"{system} {len(plan.grids[system])}" for system in SYSTEMS)
    return [
        f"Trained on {SOURCE}, adapted to {', '.join(TARGETS)}. Features: TF-IDF of the {N_WORDS} "
        f"single words most common in {SOURCE}; which words, and their weights, are learned from "
        "the training rows alone. Half of a target's reviews are adapted to, without labels; the "
        f"other half is scored. {plan.n_draws} draws of the halves; a standard error is over these "
        "draws of the same reviews, not over other reviews. Marks are not corrected for the "
        "number of cells.",
        f"Settings of each system: {settings}; C: {', '.join(f'{C:g}' for C in plan.costs)}. Under "
        "the default plan settings of PSF and DAE are drawn from their grids with seed 0, and "
        "fewer values of C are taken, by what they cost. By source folds: the setting with the "
        f"best mean UAR when each of {N_FOLDS} parts of the training rows is taken as the target. "
        "By the oracle: the best on the labels of the half that is adapted to, which are not "
        "available in practice; the paper chose so.",
        f"Added to the paper: one setting of each system, fixed beforehand, C = {FIXED_COST:g}, on "
        "all twelve pairs of domains, with 50 and 400 single words (dense), and with 4,000 words "
        "and pairs of words (sparse) for the systems that take sparse rows. Fitted without target "
        "rows, SF and PSF have no distance to stop by and run all of their 50 iterations. Seconds "
        "are of a whole trial, with the weighing of words.",
    ]


def _lead(chosen: Sequence[Summary], wide: Sequence[Summary]) -> str:
    n_cells = len(TARGETS) * len(BASELINES)
    parts = []
    for way, words in zip(WAYS, (BY_FOLDS, "by an oracle that reads target labels"), strict=True):
        verdicts = [verdict_of(one.difference) for one in chosen if one.key[2] == way]
        parts.append(
            f"Of {n_cells} cells (target and adapted system), adaptation is better than none in "
            f"{verdicts.count('helps')} and worse in {verdicts.count('harms')} when settings are "
            f"chosen {words}"
        )
    helped = [
        f"{one.key[1]} ({one.key[0]} words)"
        for one in wide
        if verdict_of(one.difference) == "helps"
    ]
    said = f"{', '.join(helped)} help" if helped else "no system helps"
    return f"{parts[0]}. {parts[1]}. Over all twelve pairs with fixed settings, {said}."


def _choice_section(chosen: Mapping[tuple[str, ...], Summary]) -> Any:
    def of(way: str, show: Callable[[Summary], Any]) -> Any:
        return lambda key: show(chosen[*key, way]) if (*key, way) in chosen else None

    columns = [
        text_column("target", cell=lambda key: key[0]),
        text_column("system", cell=lambda key: key[1]),
    ]
    for way, label in zip(WAYS, ("source folds", "oracle"), strict=True):
        columns += [
            number_column(way, f"chosen by {label}", of(way, score_cell), "UAR on the scored half"),
            number_column(
                f"{way} difference",
                "difference",
                of(way, difference_cell),
                "to SVM, of IW+LSPC to LSPC, chosen in the same way",
            ),
        ]
    caption = (
        f"UAR on targets after training on {SOURCE}, mean ± standard error over draws; the oracle "
        "reads target labels"
    )
    rows = list(product(TARGETS, SYSTEMS))
    return build_section("targets", "The supplement's targets", caption, columns, rows)


def _width_section(wide: Sequence[Summary]) -> Any:
    def counts(one: Summary) -> str | None:
        found = one.difference
        return None if found is None else f"{found.helped} / {found.harmed}"

    def alone(one: Summary) -> Any:
        return figure_cell(estimate(values(one.trials, "alone")), evidence=one.id)

    def seconds(one: Summary) -> float:
        adapted = one.trials[one.trials["adapted"].notna()]
        return float(np.median(adapted["seconds"].tolist())) if len(adapted) else float("nan")

    columns = [
        number_column("words", cell=lambda one: one.key[0]),
        text_column("system", cell=lambda one: one.key[1]),
        number_column("score", "UAR", score_cell, "mean ± standard error over twelve pairs"),
        number_column(
            "difference", None, difference_cell, "to SVM, of IW+LSPC to LSPC, within pairs"
        ),
        text_column(
            "interval", "95 % interval", interval_text, "over pairs, which share their domains"
        ),
        text_column("pairs", "helped / harmed", counts, f"pairs by more than {CLEAR}"),
        number_column("alone", "fitted without target rows", alone),
        number_column("seconds", None, seconds, "median of a trial", digits=1),
    ]
    caption = "One fixed setting on all twelve pairs, with more and more words"
    return build_section("words", "All pairs, and more words", caption, columns, wide)


def _choice_evidence(one: Summary) -> Any:
    columns = [
        number_column("seed"),
        number_column("UAR", digits=4),
        text_column("chosen", "setting chosen"),
    ]
    target, system, way = one.key
    return build_evidence(f"{target}, {system}, chosen {way}", columns, one.trials)


def _width_evidence(one: Summary) -> Any:
    def control(trial: Mapping[str, Any]) -> str:
        return "yes" if trial["without_target"] else "no"

    columns = [
        text_column("source"),
        text_column("target"),
        text_column(
            "control",
            "without target rows",
            lambda trial: "yes" if trial["without_target"] else "no",
        ),
        number_column("UAR", cell=lambda trial: trial["test_uar"], digits=4),
        number_column("seconds", digits=1),
    ]
    n_words, system = one.key
    title = f"{system}, {n_words} words: {one.trials['setting'].iloc[0]}"
    return build_evidence(title, columns, one.trials)
