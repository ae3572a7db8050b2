"""Tables of the speech study's report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covshift.paper.grid_systems import BASELINES, SYSTEMS, WITHOUT_TARGET
from covshift.paper.speech.printed import PRINTED, PRINTED_COUNTS, Configuration, said_of
from covshift.paper.speech.protocol import SpeechTable
from covshift.paper.speech.summary import (
    ORACLE,
    PRINTED_WAY,
    WAYS,
    Score,
    SpeechResults,
    compare,
    compare_with_baselines,
    control_scores,
)
from covshift.report.document import make_cell, make_column, make_evidence, make_table
from covshift.studies.report import estimate, figure_text

WAY_LABELS = {way: f"{way} (reads target labels)" if way == ORACLE else way for way in WAYS}
SYMBOLS = {"label_reward": "λ", "lambda": "λ", "noise_level": "noise", "learning_rate": "rate"}
NOT_SHOWN = ("mini_batches",)  # the same for all


def score_table(results: SpeechResults, corpus: str) -> Any:
    """UAR of every system, by the way its settings were chosen."""
    columns = [make_column("system")]
    columns += [make_column(way, WAY_LABELS[way], numeric=True) for way in WAYS]
    rows = [
        {
            "system": system,
            **{
                way: score_cell(
                    results.scores(corpus, system, way), evidence_id(corpus, system, way)
                )
                for way in WAYS
            },
        }
        for system in SYSTEMS
    ]
    return make_table(
        f"uar-{corpus}",
        f"UAR on test halves of {corpus}, mean ± standard error over {results.n_trials} trials, by "
        "the way settings were chosen",
        columns,
        rows,
    )


def comparison_table(results: SpeechResults, corpus: str) -> Any:
    """Every system against its baseline, over all trials with the printed settings."""
    columns = [
        make_column("system"),
        make_column("baseline"),
        make_column("trials", numeric=True),
        make_column("speakers", numeric=True, help="tested in these trials"),
        make_column("without", "UAR of the baseline", numeric=True, digits=3),
        make_column("difference", "mean difference", numeric=True),
        make_column("rank", numeric=True, help="of the mean UAR among all systems, 1 the best"),
        make_column("wilcoxon", "Wilcoxon p", numeric=True, help="trials taken as independent"),
        make_column("wilcoxon_holm", "by Holm", numeric=True, help="corrected for the systems"),
        make_column("clustered", "clustered p", numeric=True, help="speakers flipped as a whole"),
        make_column("clustered_holm", "by Holm", numeric=True),
        make_column("verdict", help="a difference where both corrected p-values are at most .05"),
        make_column("said", "the paper says", help="of other training corpora"),
    ]
    ranks = rank_systems(results, corpus)
    rows = []
    for system, tested in compare_with_baselines(results, corpus).items():
        one = tested.comparison
        baseline = estimate(
            [score.uar for score in results.printed_scores(corpus, BASELINES[system])]
        )
        rows.append(
            {
                "system": system,
                "baseline": BASELINES[system],
                "trials": one.n_trials,
                "speakers": one.n_speakers,
                "without": None if baseline is None else baseline.mean,
                "difference": make_cell(
                    f"{one.difference:+.3f}",
                    value=one.difference,
                    evidence=evidence_id(corpus, system, PRINTED_WAY),
                ),
                "rank": ranks[system],
                "wilcoxon": pvalue_cell(one.wilcoxon),
                "wilcoxon_holm": pvalue_cell(tested.wilcoxon_holm),
                "clustered": pvalue_cell(one.clustered),
                "clustered_holm": pvalue_cell(tested.clustered_holm),
                "verdict": make_cell(mark=tested.verdict),
                "said": said_of(system, corpus),
            }
        )
    return make_table(
        f"tests-{corpus}", f"With the printed settings on {corpus}: UAR against the baseline",
        columns, rows,
    )  # fmt: skip


def rank_systems(results: SpeechResults, corpus: str) -> dict[str, int]:
    """Place of each system by its mean UAR over all trials with the printed settings."""
    found = {
        system: estimate([score.uar for score in results.printed_scores(corpus, system)])
        for system in SYSTEMS
    }
    means = {system: figure.mean for system, figure in found.items() if figure is not None}
    return {
        system: 1 + sum(other > mean for other in means.values()) for system, mean in means.items()
    }


def control_table(results: SpeechResults, corpus: str) -> Any:
    """Adapters fitted with and without the target half."""
    columns = [
        make_column("system"),
        make_column("with", "with target rows", numeric=True),
        make_column("without", "without", numeric=True),
        make_column("difference", "mean difference", numeric=True),
        make_column("wilcoxon", "Wilcoxon p", numeric=True),
        make_column("clustered", "clustered p", numeric=True),
    ]
    rows = []
    for system in WITHOUT_TARGET:
        scores = results.printed_scores(corpus, system)
        controls = control_scores(scores)
        one = compare(scores, controls)
        if one is None:
            continue
        evidence = evidence_id(corpus, system, PRINTED_WAY)
        rows.append(
            {
                "system": system,
                "with": score_cell(scores, evidence),
                "without": score_cell(controls, evidence),
                "difference": make_cell(f"{one.difference:+.3f}", value=one.difference),
                "wilcoxon": pvalue_cell(one.wilcoxon),
                "clustered": pvalue_cell(one.clustered),
            }
        )
    return make_table(
        f"controls-{corpus}", f"Fitted with and without the target half, on {corpus}; UAR",
        columns, rows,
    )  # fmt: skip


def choice_table(results: SpeechResults, corpus: str) -> Any:
    """Which settings were chosen each way; of the oracle's the most frequent."""
    columns = [make_column("system"), *(make_column(way, WAY_LABELS[way]) for way in WAYS)]
    rows = []
    for system in SYSTEMS:
        row: dict[str, Any] = {"system": system}
        for way in WAYS:
            chosen = Counter(
                shown_configuration(score.chosen) for score in results.scores(corpus, system, way)
            )
            if chosen:
                text, times = chosen.most_common(1)[0]
                total = sum(chosen.values())
                row[way] = text if times == total else f"{text} ({times} of {total})"
        rows.append(row)
    caption = f"Settings chosen for {corpus}; where trials differ, the most frequent"
    if corpus not in PRINTED:
        caption += "; the paper prints none for it: those of EMODB stand in"
    return make_table(f"chosen-{corpus}", caption, columns, rows)


def count_table(tables: Mapping[str, SpeechTable]) -> Any:
    """Segments of each corpus beside the printed counts."""
    columns = [make_column("corpus")]
    for name in ("speakers", "segments", "positive"):
        columns.append(make_column(name, numeric=True))
        columns.append(make_column(f"printed_{name}", "printed", numeric=True))
    rows = []
    for corpus, table in tables.items():
        row: dict[str, Any] = {
            "corpus": corpus,
            "speakers": len(np.unique(table.speaker)),
            "segments": len(table.y),
            "positive": int((table.y == "positive").sum()),
        }
        if corpus in PRINTED_COUNTS:
            printed = PRINTED_COUNTS[corpus]._asdict()
            row |= {f"printed_{name}": count for name, count in printed.items()}
        rows.append(row)
    return make_table("corpora", "Segments of one second", columns, rows)


def score_evidence(results: SpeechResults) -> dict[str, Any]:
    """The trials behind each cell; those of the printed settings are all of them."""
    evidence = {}
    for corpus in results.corpora:
        for system in SYSTEMS:
            for way in WAYS:
                printed = way == PRINTED_WAY
                scores = (
                    results.printed_scores(corpus, system)
                    if printed
                    else results.scores(corpus, system, way)
                )
                columns = [
                    make_column("seed", numeric=True),
                    make_column("speaker"),
                    make_column("uar", "UAR", numeric=True, digits=4),
                    make_column("settings"),
                ]
                if printed and system in WITHOUT_TARGET:
                    columns.append(make_column("control", "no target", numeric=True, digits=4))
                columns.append(make_column("trial", help="key in the results file"))
                evidence[evidence_id(corpus, system, way)] = make_evidence(
                    f"{corpus}, {system}, {WAY_LABELS[way]}",
                    columns,
                    [_evidence_row(score) for score in scores],
                )
    return evidence


def _evidence_row(score: Score) -> dict[str, Any]:
    row: dict[str, Any] = {
        "seed": score.seed,
        "speaker": score.speaker,
        "uar": score.uar,
        "settings": shown_configuration(score.chosen),
        "trial": score.record.trial.key[:12],
    }
    control = (score.record.result or {}).get("without_target_test_uar")
    return row if control is None else {**row, "control": control}


def evidence_id(corpus: str, system: str, way: str) -> str:
    """Id of the trials of a cell."""
    return "|".join((corpus, system, way))


def score_cell(scores: Sequence[Score], evidence: str) -> Any:
    """Mean and standard error of scores."""
    found = estimate([score.uar for score in scores])
    if found is None:
        return None
    return make_cell(figure_text(found), value=found.mean, evidence=evidence)


def pvalue_cell(pvalue: float | None) -> Any:
    """A p-value with two digits that count."""
    return None if pvalue is None else make_cell(f"{pvalue:.2g}", value=pvalue)


def shown_configuration(configuration: Configuration) -> str:
    """A configuration as the paper writes it: "cos, L 80, λ 1.8, C 7.5e-05"."""
    parts = [
        value if isinstance(value, str) else f"{SYMBOLS.get(name, name)} {value:g}"
        for name, value in configuration.setting.items()
        if name not in NOT_SHOWN
    ]
    if configuration.cost is not None:
        parts.append(f"C {configuration.cost:g}")
    return ", ".join(parts)
