"""The comparison as a document, and as a table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from covshift.report.document import (
    make_cell,
    make_column,
    make_document,
    make_evidence,
    make_figure,
    make_section,
    make_table,
)
from covshift.studies.comparison.collections import MAX_PAIRS, MAX_ROWS
from covshift.studies.comparison.recipes import BEST_UNADAPTED, C_VALUES, FOLDS, N_COMPONENTS
from covshift.studies.comparison.summary import SystemSummary, summarise
from covshift.studies.report import CLEAR, Difference, Figure, figure_text
from covshift.studies.store import Record
from covshift.studies.study import Facts, TextTable

HEADINGS = ("system", "score", "difference", "pairs", "no target")
CONTROL = "fitted without target rows"
NOTE = (
    "Balanced accuracy on the scored half of the target, mean ± standard error over pairs of "
    "domains."
)
TERMINAL_NOTE = (
    f"{NOTE} Difference to no adaptation of the same features, ± half of its 95 % interval; pairs "
    f"helped / harmed by more than {CLEAR}; score when fitted without target rows."
)
PROTOCOL = [
    "Every ordered pair of domains is a problem: one is the labelled source; half of the other's "
    "rows are the unlabelled target, and the other half is scored, by balanced accuracy. Rows of "
    "one speaker are in one half. Target labels are read to score the second half, and for nothing "
    f"else. Of larger domains {MAX_ROWS} rows of the source and of each half are drawn, and of "
    f"more than {MAX_PAIRS} pairs that many.",
    "All systems share one estimator: logistic regression on features standardised by the adapted "
    f"source rows, whose C (one of {', '.join(f'{C:g}' for C in C_VALUES)}) is chosen on unadapted "
    f"source rows in {FOLDS} folds, once for all features and once for components. Adapters with "
    f"covariance matrices, kernels or filters see {N_COMPONENTS} principal components of source "
    "and target rows together, if there are more "
    "features; they are compared with no adaptation on these components. Settings are fixed "
    "beforehand and stand beside every trial.",
    f'"{BEST_UNADAPTED}": the best of logistic regression, linear SVM, RBF SVM and gradient '
    f'boosting by the same folds of the source. "{CONTROL}": the same adapter, and the same '
    "components, without any target row: where that does as well, the target rows are worth "
    "nothing.",
    "The intervals are over pairs, which share their domains: over new domains they would be "
    "wider. They are not corrected for the number of adapters: of twenty adapters that change "
    "nothing, one would be said to help or to harm.",
]


def comparison_document(records: Sequence[Record], facts: Facts) -> Any:
    """The whole report, from the records of `covshift.studies.comparison.study.declare`."""
    names = collection_names(records)
    summaries = {name: summarise(records, name) for name in names}
    evidence = {
        f"{name}|{one.name}": _evidence(name, one) for name in names for one in summaries[name]
    }
    return make_document(
        "Adapters side by side",
        " ".join(_verdict(name, summaries[name]) for name in names),
        sections=[
            make_section("differences", "At a glance", figures=[_draw_differences(summaries)]),
            make_section("protocol", "What was done", paragraphs=PROTOCOL),
            *(_section(name, summaries[name]) for name in names),
        ],
        facts=facts,
        evidence=evidence,
    )


def _draw_differences(summaries: Mapping[str, Sequence[SystemSummary]]) -> Any:
    from covshift.report.figures import png_bytes  # needs an extra
    from covshift.report.score_figures import draw_differences

    panels: dict[str, dict[str, tuple[float, float | None]]] = {}
    for name, found in summaries.items():
        panels[name] = {}
        for one in found:
            if one.difference is not None:
                mean, low = one.difference.mean, one.difference.low
                panels[name][one.name] = mean, None if low is None else mean - low
    return make_figure(
        "differences",
        "Difference to no adaptation of the same features: right of the line an adapter helps. "
        "Bars are 95 % intervals over pairs.",
        "Points with error bars, one row for each system and one panel for each collection, about "
        "a dotted line at zero.",
        png=png_bytes(draw_differences(panels, difference_name="balanced accuracy")),
    )


def comparison_table(records: Sequence[Record]) -> TextTable:
    """One table of all collections, narrow enough for a terminal."""
    groups = []
    for name in collection_names(records):
        rows = [_texts(one) for one in summarise(records, name)]
        groups.append([[name, *[""] * (len(HEADINGS) - 1)], *rows])
    return TextTable(HEADINGS, groups, TERMINAL_NOTE)


def collection_names(records: Sequence[Record]) -> list[str]:
    """Names of the collections, in the order of the records."""
    return list(dict.fromkeys(record.trial.settings["collection"] for record in records))


def _texts(one: SystemSummary) -> list[str]:
    change = pairs = ""
    if one.difference is not None:
        mean, low, _, helped, harmed = one.difference
        change = _short(f"{mean:+.3f}" + ("" if low is None else f" ± {mean - low:.3f}"))
        pairs = f"{helped} / {harmed}"
    alone = "" if one.without_target is None else _short(f"{one.without_target.mean:.3f}")
    return [one.name, _short(figure_text(one.score)), change, pairs, alone]


def _short(text: str) -> str:
    return text.replace("0.", ".")


def _interval(difference: Difference) -> str:
    if difference.low is None or difference.high is None:
        return ""
    return f"{difference.low:+.3f} to {difference.high:+.3f}"


def _verdict(name: str, summaries: Sequence[SystemSummary]) -> str:
    found: dict[str, list[str]] = {"helps": [], "harms": []}
    for one in summaries:
        if one.difference is not None and one.name != BEST_UNADAPTED:
            found.setdefault(one.difference.verdict, []).append(one.name)
    if not found["helps"] and not found["harms"]:
        return f"{name}: no adapter clearly helps or harms."
    parts = [
        f"{word} {', '.join(systems)}"
        for word, systems in (("helped by", found["helps"]), ("harmed by", found["harms"]))
        if systems
    ]
    return f"{name}: {'; '.join(parts)}."


def _section(name: str, summaries: Sequence[SystemSummary]) -> Any:
    columns = [
        make_column("system"),
        make_column("score", "balanced accuracy", numeric=True, help=NOTE),
        make_column("difference", numeric=True, help="to no adaptation of the same features"),
        make_column("interval", "95 % interval", help="by Student's t over pairs"),
        make_column("helped", numeric=True, help=f"pairs better by more than {CLEAR}"),
        make_column("harmed", numeric=True, help=f"pairs worse by more than {CLEAR}"),
        make_column("alone", CONTROL, numeric=True),
    ]
    rows: list[dict[str, Any]] = []
    for one in summaries:
        difference = one.difference
        row: dict[str, Any] = {"system": one.name, "score": _figure_cell(one.score, name, one)}
        if difference is not None:
            row |= {
                "difference": make_cell(
                    f"{difference.mean:+.3f}", value=difference.mean, mark=difference.verdict
                ),
                "interval": _interval(difference),
                "helped": difference.helped,
                "harmed": difference.harmed,
            }
        row["alone"] = _figure_cell(one.without_target, name, one)
        rows.append(row)
    tables = [make_table(f"{name}-systems", f"{name}: all systems. {NOTE}", columns, rows)]
    return make_section(name, name, tables=[*tables, _pair_table(name, summaries)])


def _figure_cell(figure: Figure | None, name: str, one: SystemSummary) -> Any:
    if figure is None:
        return None
    return make_cell(figure_text(figure), value=figure.mean, evidence=f"{name}|{one.name}")


def _pair_table(name: str, summaries: Sequence[SystemSummary]) -> Any:
    pairs = list(dict.fromkeys(pair for one in summaries for pair in one.by_pair))
    columns = [make_column("pair")]
    columns += [make_column(one.name, numeric=True, digits=3) for one in summaries]
    rows: list[dict[str, Any]] = [
        {
            "pair": f"{pair[0]} → {pair[1]}",
            **{one.name: one.by_pair[pair] for one in summaries if pair in one.by_pair},
        }
        for pair in pairs
    ]
    caption = f"{name}: balanced accuracy pair by pair, mean over the draws"
    return make_table(f"{name}-pairs", caption, columns, rows)


def _evidence(name: str, one: SystemSummary) -> Any:
    more = [key for key in ("without_target", "C", "model") if key in (one.records[0].result or {})]
    columns = [make_column("source"), make_column("target"), make_column("seed", numeric=True)]
    columns.append(make_column("score", numeric=True, digits=4))
    columns += [make_column(key, numeric=key != "model") for key in more]
    rows = []
    for record in one.records:
        settings, result = record.trial.settings, record.result or {}
        row = {"source": settings["source"], "target": settings["target"]}
        rows.append(row | {"seed": record.trial.seed, "score": result["score"]}
                    | {key: result[key] for key in more})  # fmt: skip
    recipe = one.records[0].trial.settings.get("recipe")
    part = None if recipe is None else recipe["adapter"]
    title = f"{name}: {one.name}" + ("" if part is None else f" {part['params']}")
    return make_evidence(title, columns, rows)
