"""The comparison as a document, and as a table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from covshift.registry import NO_ADAPTATION
from covshift.report.document import make_document, make_figure, make_section
from covshift.studies.comparison.collections import MAX_PAIRS, MAX_ROWS
from covshift.studies.comparison.systems import BEST_UNADAPTED, C_VALUES, FOLDS, NOMINAL
from covshift.studies.result_tables import (
    CLEAR,
    Frame,
    Summary,
    build_evidence,
    build_table,
    difference_cell,
    estimate,
    figure_cell,
    figure_text,
    interval_text,
    number_column,
    score_cell,
    summarize,
    text_column,
    tidy,
    unit_means,
    verdict_of,
)
from covshift.studies.store import Record
from covshift.studies.study import Facts, TextTable

PAIR = ("source", "target")
HEADINGS = ("system", "score", "difference", "pairs", "no target")
CONTROL = "fitted without target rows"
NOTE = (
    "Balanced accuracy on the scored half of the target, mean ± standard error over pairs of "
    "domains."
)
TERMINAL_NOTE = (
    f"{NOTE} Difference to no adaptation, ± half of its 95 % interval; pairs "
    f"helped / harmed by more than {CLEAR}; score when fitted without target rows."
)
PROTOCOL = [
    "Every ordered pair of domains is a problem: one is the labeled source; half of the other's "
    "rows are the unlabeled target, and the other half is scored, by balanced accuracy. Rows of "
    "one speaker are in one half. Target labels are read only to score the second half. "
    f"Of larger domains {MAX_ROWS} rows of the source and of each half are drawn, and of "
    f"more than {MAX_PAIRS} pairs that many.",
    "All systems share one estimator: logistic regression on features standardized by the adapted "
    f"source rows, whose C (one of {', '.join(f'{C:g}' for C in C_VALUES)}) is chosen on unadapted "
    f"source rows in {FOLDS} folds. Adapters are those of the registry, each with the "
    "preprocessing and settings that its name has everywhere. Settings that depend on the number "
    f"of rows are shown for {NOMINAL['n_source']:,} source and {NOMINAL['n_target']:,} target "
    "rows; each draw uses those for its own rows.",
    f'"{BEST_UNADAPTED}": the best of logistic regression, linear SVM, RBF SVM and gradient '
    f'boosting by the same folds of the source. "{CONTROL}": the same adapter, and the same '
    "components, without any target row: where that does as well, the target rows do not help.",
    "The intervals are over pairs, which share their domains: over new domains they would be "
    "wider. They are not corrected for the number of adapters: of twenty adapters that change "
    "nothing, one would be said to help or to harm.",
]


def comparison_document(records: Sequence[Record], facts: Facts) -> Any:
    """Return the whole report of the comparison, from the records of its trials."""
    summaries = summarize_systems(records)
    return make_document(
        "Adapters side by side",
        " ".join(_verdict(name, found) for name, found in summaries.items()),
        sections=[
            make_section("differences", "At a glance", figures=[_draw_differences(summaries)]),
            make_section("protocol", "What was done", paragraphs=PROTOCOL),
            *(
                make_section(name, name, tables=[_systems(name, found), _pairs(name, found)])
                for name, found in summaries.items()
            ),
        ],
        facts=facts,
        evidence={one.id: _evidence(one) for found in summaries.values() for one in found},
    )


def comparison_table(records: Sequence[Record]) -> TextTable:
    """Report the comparison: one table of all collections, narrow enough for a terminal."""
    groups = [
        [[name, *[""] * (len(HEADINGS) - 1)], *map(_texts, found)]
        for name, found in summarize_systems(records).items()
    ]
    return TextTable(HEADINGS, groups, TERMINAL_NOTE)


def summarize_systems(records: Sequence[Record]) -> dict[str, list[Summary]]:
    """Report the summaries of all systems by collection, in the order of the records."""
    names = dict.fromkeys(record.trial.settings["collection"] for record in records)
    found: dict[str, list[Summary]] = {name: [] for name in names}
    for one in summarize(tidy(records), ("collection", "system"), PAIR, "score", _baseline):
        found[one.key[0]].append(one)
    # The best model without adapting is computed first, and shown after those it is like.
    order = [NO_ADAPTATION, BEST_UNADAPTED]
    for summaries in found.values():
        summaries.sort(key=lambda one: order.index(_name(one)) if _name(one) in order else 2)
    return found


def _baseline(system: str, trials: Frame) -> str | None:
    return None if system == NO_ADAPTATION else NO_ADAPTATION


def _name(one: Summary) -> str:
    return str(one.key[1])


def _alone(one: Summary) -> Any:
    return estimate(list(unit_means(one.trials, PAIR, "without_target").values()))


def _verdict(name: str, summaries: Sequence[Summary]) -> str:
    said = []
    for verdict, words in (("helps", "helped by"), ("harms", "harmed by")):
        systems = [_name(one) for one in summaries if verdict_of(one.difference) == verdict]
        adapters = [system for system in systems if system != BEST_UNADAPTED]
        said += [f"{words} {', '.join(adapters)}"] if adapters else []
    return f"{name}: {'; '.join(said) or 'no adapter clearly helps or harms'}."


def _draw_differences(summaries: Mapping[str, Sequence[Summary]]) -> Any:
    from covshift.report.figures import (
        draw_differences,
        png_bytes,  # needs an extra
    )

    panels: dict[str, dict[str, tuple[float, float | None]]] = {name: {} for name in summaries}
    for name, found in summaries.items():
        for one in found:
            if one.difference is not None:
                mean, low = one.difference.mean, one.difference.low
                panels[name][_name(one)] = mean, None if low is None else mean - low
    return make_figure(
        "differences",
        "Difference to no adaptation: right of the line an adapter helps. "
        "Bars are 95 % intervals over pairs.",
        "Points with error bars, one row for each system and one panel for each collection, about "
        "a dotted line at zero.",
        png=png_bytes(draw_differences(panels, difference_name="balanced accuracy")),
    )


def _systems(name: str, summaries: Sequence[Summary]) -> Any:
    def count(part: str) -> Any:
        return lambda one: None if one.difference is None else getattr(one.difference, part)

    columns = [
        text_column("system", cell=_name),
        number_column("score", "balanced accuracy", score_cell, NOTE),
        number_column("difference", cell=difference_cell, help="to no adaptation"),
        text_column("interval", "95 % interval", interval_text, "by Student's t over pairs"),
        number_column("helped", None, count("helped"), f"pairs better by more than {CLEAR}"),
        number_column("harmed", None, count("harmed"), f"pairs worse by more than {CLEAR}"),
        number_column("alone", CONTROL, lambda one: figure_cell(_alone(one), evidence=one.id)),
    ]
    return build_table(f"{name}-systems", f"{name}: all systems. {NOTE}", columns, summaries)


def _pairs(name: str, summaries: Sequence[Summary]) -> Any:
    pairs = list(dict.fromkeys(pair for one in summaries for pair in one.by_unit))
    columns = [
        text_column("pair", cell=" → ".join),
        *(number_column(_name(one), cell=one.by_unit.get, digits=3) for one in summaries),
    ]
    caption = f"{name}: balanced accuracy pair by pair, mean over the draws"
    return build_table(f"{name}-pairs", caption, columns, pairs)


def _evidence(one: Summary) -> Any:
    first = one.trials.iloc[0]
    columns = [*map(text_column, PAIR), number_column("seed"), number_column("score", digits=4)]
    columns += [number_column(key) for key in ("without_target", "C") if first.get(key) is not None]
    if _name(one) == BEST_UNADAPTED:
        columns.append(text_column("model"))
    recipe = first.get("recipe")
    title = f"{one.key[0]}: {_name(one)}"
    if recipe is not None:
        rows = f"{NOMINAL['n_source']:,} and {NOMINAL['n_target']:,} rows"
        title += f", settings for {rows}: {recipe['settings']}"
    return build_evidence(title, columns, one.trials)


def _texts(one: Summary) -> list[str]:
    change = pairs = ""
    if one.difference is not None:
        mean, low, _, helped, harmed = one.difference
        change = f"{mean:+.3f}" + ("" if low is None else f" ± {mean - low:.3f}")
        pairs = f"{helped} / {harmed}"
    alone = _alone(one)
    texts = [figure_text(one.score), change, pairs, "" if alone is None else f"{alone.mean:.3f}"]
    return [_name(one), *(text.replace("0.", ".") for text in texts)]
