"""The reviews' study as a document, and as a table for a terminal."""

from collections.abc import Sequence
from typing import Any

from covshift.paper.grid_systems import BASELINES, SYSTEMS
from covshift.paper.reviews.plans import FIXED_COST, N_FOLDS, N_WORDS, SOURCE, TARGETS, ReviewPlan
from covshift.paper.reviews.summary import (
    BY_FOLDS,
    ORACLE,
    Choice,
    Width,
    choices,
    difference_to_baseline,
    widths,
)
from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_section,
    make_table,
)
from covshift.studies.report import CLEAR, Figure, estimate, figure_text
from covshift.studies.store import Record
from covshift.studies.study import Facts, TextTable

ARROWS = {"helps": " ↑", "harms": " ↓", "unclear": ""}


def reviews_document(records: Sequence[Record], facts: Facts, plan: ReviewPlan) -> Any:
    """The whole report."""
    chosen, wide = choices(records), widths(records)
    evidence = {_choice_id(one): _choice_evidence(one) for one in chosen if one.scores}
    evidence |= {_width_id(one): _width_evidence(one) for one in wide}
    return make_document(
        "The supplement's reviews, rebuilt",
        _lead(chosen, wide),
        sections=[
            make_section("protocol", "What was done", paragraphs=_protocol(plan)),
            _choice_section(chosen),
            _width_section(wide),
        ],
        facts=[("plan", plan.name), *facts],
        evidence=evidence,
    )


def reviews_table(records: Sequence[Record]) -> TextTable:
    """UAR with hyper-parameters chosen by source folds, and by the oracle."""
    chosen = choices(records)
    by_key = {(one.target, one.system, one.chosen_by): one for one in chosen}

    def row(target: str, system: str) -> list[str]:
        cells = []
        for chosen_by in (BY_FOLDS, ORACLE):
            choice = by_key[target, system, chosen_by]
            _, verdict = difference_to_baseline(choice, chosen)
            cells.append(figure_text(_score(choice)) + ARROWS[verdict])
        return [target, system, *cells]

    return TextTable(
        ["target", "system", "chosen by source folds", "chosen by the oracle"],
        [[row(target, system) for system in SYSTEMS] for target in TARGETS],
        "UAR on the scored half, mean ± standard error over draws of the halves; ↑ better, ↓ worse "
        "than SVM (IW+LSPC: LSPC) chosen in the same way (t-test of the draws at 5 %). The oracle "
        "reads target labels.",
    )


def _protocol(plan: ReviewPlan) -> list[str]:
    settings = ", ".join(f"{system} {len(plan.grids[system])}" for system in SYSTEMS)
    return [
        f"Trained on {SOURCE}, adapted to {', '.join(TARGETS)}. Features: TF-IDF of the {N_WORDS} "
        f"single words most common in {SOURCE}; which words, and their weights, are learnt from "
        "the training rows alone. Half of a target's reviews are adapted to, without labels; the "
        f"other half is scored. {plan.n_draws} draws of the halves; a standard error is over these "
        "draws of the same reviews, and says nothing of other reviews. Nor are its marks corrected "
        "for the number of cells.",
        f"Settings of each system: {settings}; C: {', '.join(f'{C:g}' for C in plan.costs)}. Under "
        "the default plan settings of PSF and DAE are drawn from their grids with seed 0, and "
        "fewer values of C are taken, by what they cost. By source folds: the setting with the "
        f"best mean UAR when each of {N_FOLDS} parts of the training rows plays the target. By the "
        "oracle: the best on the labels of the half that is adapted to, which nobody has; the "
        "paper chose so.",
        f"What is added: one setting of each system, fixed beforehand, C = {FIXED_COST:g}, on all "
        "twelve pairs of domains, with 50 and 400 single words (dense), and with 4,000 words and "
        "pairs of words (sparse) for the systems that take sparse rows. Fitted without target "
        "rows, SF and PSF have no distance to stop by and run all of their 50 iterations. Seconds "
        "are of a whole trial, with the weighing of words.",
    ]


def _lead(chosen: Sequence[Choice], wide: Sequence[Width]) -> str:
    counts = {BY_FOLDS: [0, 0], ORACLE: [0, 0]}
    for one in chosen:
        _, verdict = difference_to_baseline(one, chosen)
        if verdict != "unclear":
            counts[one.chosen_by][verdict == "harms"] += 1
    n_cells = len(TARGETS) * len(BASELINES)
    parts = [
        f"Of {n_cells} cells (target and adapted system), adaptation is better than none in "
        f"{helped} and worse in {harmed} when settings are chosen {name}"
        for name, (helped, harmed) in (
            ("by source folds", counts[BY_FOLDS]),
            ("by an oracle that reads target labels", counts[ORACLE]),
        )
    ]
    helped_wide = [
        f"{one.system} ({one.n_words} words)"
        for one in wide
        if one.difference is not None and one.difference.verdict == "helps"
    ]
    said = f"{', '.join(helped_wide)} help" if helped_wide else "no system helps"
    return f"{parts[0]}. {parts[1]}. Over all twelve pairs with fixed settings, {said}."


def _choice_section(chosen: Sequence[Choice]) -> Any:
    columns = [make_column("target"), make_column("system")]
    for key, label in ((BY_FOLDS, "source folds"), (ORACLE, "oracle")):
        columns += [
            make_column(key, f"chosen by {label}", numeric=True, help="UAR on the scored half"),
            make_column(f"{key} difference", "difference", numeric=True,
                        help="to SVM, of IW+LSPC to LSPC, chosen in the same way"),
        ]  # fmt: skip
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one in chosen:
        row = rows.setdefault((one.target, one.system), {"target": one.target})
        row["system"] = one.system
        score = _score(one)
        if score is None:
            continue
        row[one.chosen_by] = make_cell(
            figure_text(score), value=score.mean, evidence=_choice_id(one)
        )
        difference, verdict = difference_to_baseline(one, chosen)
        if difference is not None:
            text = f"{difference.mean:+.3f}"
            cell = make_cell(text, value=difference.mean, mark=verdict)
            row[f"{one.chosen_by} difference"] = cell
    table = make_table(
        "targets",
        f"UAR on targets after training on {SOURCE}, mean ± standard error over draws; the oracle "
        "reads target labels",
        columns,
        list(rows.values()),
    )
    return make_section("targets", "The supplement's targets", tables=[table])


def _width_section(wide: Sequence[Width]) -> Any:
    columns = [
        make_column("words", numeric=True),
        make_column("system"),
        make_column("score", "UAR", numeric=True, help="mean ± standard error over twelve pairs"),
        make_column("difference", numeric=True, help="to SVM, of IW+LSPC to LSPC, within pairs"),
        make_column("interval", "95 % interval", help="over pairs, which share their domains"),
        make_column("pairs", "helped / harmed", help=f"pairs by more than {CLEAR}"),
        make_column("alone", "fitted without target rows", numeric=True),
        make_column("seconds", numeric=True, digits=1, help="median of a trial"),
    ]
    rows = []
    for one in wide:
        row: dict[str, Any] = {"words": one.n_words, "system": one.system}
        row["score"] = _cell(one.score, _width_id(one))
        if one.difference is not None:
            mean, low, high, helped, harmed = one.difference
            row["difference"] = make_cell(f"{mean:+.3f}", value=mean, mark=one.difference.verdict)
            row["interval"] = "" if low is None else f"{low:+.3f} to {high:+.3f}"
            row["pairs"] = f"{helped} / {harmed}"
        row["alone"] = _cell(one.without_target, _width_id(one))
        row["seconds"] = one.seconds
        rows.append(row)
    caption = "One fixed setting on all twelve pairs, with more and more words"
    table = make_table("words", caption, columns, rows)
    return make_section("words", "All pairs, and more words", tables=[table])


def _score(choice: Choice) -> Figure | None:
    return estimate(list(choice.scores.values()))


def _cell(figure: Figure | None, evidence: str) -> Any:
    if figure is None:
        return None
    return make_cell(figure_text(figure), value=figure.mean, evidence=evidence)


def _choice_id(one: Choice) -> str:
    return f"{one.target}|{one.system}|{one.chosen_by}"


def _width_id(one: Width) -> str:
    return f"{one.n_words}|{one.system}"


def _choice_evidence(one: Choice) -> Any:
    columns = [
        make_column("seed", numeric=True),
        make_column("UAR", numeric=True, digits=4),
        make_column("chosen", "setting chosen"),
    ]
    rows: list[dict[str, Any]] = [
        {"seed": seed, "UAR": score, "chosen": picked or "none to choose"}
        for (seed, score), picked in zip(one.scores.items(), one.picked, strict=True)
    ]
    return make_evidence(f"{one.target}, {one.system}, chosen {one.chosen_by}", columns, rows)


def _width_evidence(one: Width) -> Any:
    columns = [
        make_column("source"),
        make_column("target"),
        make_column("control", "without target rows"),
        make_column("UAR", numeric=True, digits=4),
        make_column("seconds", numeric=True, digits=1),
    ]
    rows: list[dict[str, Any]] = []
    for record in one.records:
        settings = record.trial.settings
        rows.append(
            {
                "source": settings["source"],
                "target": settings["target"],
                "control": "yes" if settings["without_target"] else "no",
                "UAR": (record.result or {})["test_uar"],
                "seconds": record.seconds,
            }
        )
    title = f"{one.system}, {one.n_words} words: {one.records[0].trial.settings['setting']}"
    return make_evidence(title, columns, rows)
