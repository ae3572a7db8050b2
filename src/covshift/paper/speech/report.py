"""The speech study as a document: the verdict, scores, tests, controls, choices, protocol."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from covshift.paper.grid_systems import BASELINES, SYSTEMS, WITHOUT_TARGET
from covshift.paper.speech.plans import Plan
from covshift.paper.speech.printed import (
    PRINTED,
    PRINTED_COUNTS,
    PRINTED_PSF_PVALUES,
    TRAINED_ON,
    Counts,
    printed_statement,
)
from covshift.paper.speech.protocol import SpeechTable
from covshift.paper.speech.summary import (
    ORACLE,
    PRINTED_WAY,
    TEST_LEVEL,
    WAYS,
    Comparison,
    SpeechResults,
    above_chance,
    compare,
    compare_with_baselines,
    control_scores,
    summarize_records,
)
from covshift.report.document import make_cell, make_document, make_figure, make_section
from covshift.studies.result_tables import (
    Figure,
    Frame,
    Shown,
    build_evidence,
    build_table,
    estimate,
    figure_cell,
    number_column,
    text_column,
)
from covshift.studies.store import Record
from covshift.studies.study import TextTable

WAY_LABELS = {way: f"{way} (reads target labels)" if way == ORACLE else way for way in WAYS}
VERDICTS = {
    "helps": "PSF helps",
    "harms": "PSF harms",
    "unclear": "no difference between PSF and the SVM without adaptation is shown",
}
WAYS_EXPLAINED = (
    "Settings are chosen three ways. Oracle: the best on the labeled target half, as the paper "
    "did. It reads labels that are not available in practice and serves for comparison. It is "
    "not a bound, because a half has few rows to choose by. Source folds: the best where the "
    "speakers of a third of the source are taken as the target. Printed: the configuration that "
    "the paper's table of model selection prints."
)
PROTOCOL = {
    "corpus": "Each trial draws a speaker of the tested corpus; all speakers of the other corpora "
    "train.",
    "speaker": "Each trial draws a speaker of the tested corpus; the other speakers of the same "
    "corpus train.",
}
HALVES = (
    "The speaker's recordings are dealt at random into a target half, whose rows serve to adapt "
    "without their labels, and a test half. Features are standardized by speaker, the test half "
    "with the statistics of the target half. The smaller class is filled up by drawing with "
    "repetition, on the training side only. Halves whose test half lacks a class are drawn again."
)
# Differences from the paper in every run.
DIFFERENCES = (
    "Halves are halves of the recordings, not of the segments: segments of one recording are "
    "alike, and would be on both sides.",
    "Test halves are not resampled: UAR needs none.",
    "Auto-encoders are trained on source and target rows; their 10,000 epochs are mini-batches of "
    "50, as in the code that the paper names; encoder and decoder share the activation and the "
    "weights, and rows are scaled into the range of the decoder.",
    "Weights and LSPC have at most 250 bases, which matters in source folds only.",
    "SSA has at most one direction fewer than the target half has rows.",
    "Filters and auto-encoders are fitted in single precision; one start per setting.",
    "The control without target rows has no distance to stop by: its filters run all 50 "
    "iterations.",
)


def speech_document(
    results: SpeechResults,
    tables: Mapping[str, SpeechTable],
    plan: Plan,
    facts: Sequence[tuple[str, str]],
) -> Any:
    """Return the whole report of a run of speech."""
    verdicts = [_psf_verdict(results, corpus) for corpus in results.corpora]
    corpora = results.corpora
    sections = [
        make_section("verdict", "Does PSF help here?", paragraphs=verdicts),
        make_section(
            "scores",
            "UAR of every system",
            paragraphs=[WAYS_EXPLAINED],
            tables=[_score_table(results, corpus) for corpus in corpora],
            figures=[_score_figure(results)],
        ),
        make_section(
            "tests",
            "Against the baselines",
            paragraphs=[
                "Wilcoxon's test is the paper's, and takes trials as independent. They are not: "
                "speakers repeat. The clustered test flips the sign of all trials of a speaker "
                "together, so that its evidence is as many speakers as there are. Holm's "
                "correction is over the systems of a corpus. The paper's figures are for other "
                "training data: "
                f"{TRAINED_ON}.",
            ],
            tables=[_comparison_table(results, corpus) for corpus in corpora],
        ),
        make_section(
            "controls",
            "Controls: without the target half",
            paragraphs=["Where the control does as well, adaptation did not help."],
            tables=[_control_table(results, corpus) for corpus in corpora],
        ),
        make_section(
            "chosen", "Settings", tables=[_choice_table(results, corpus) for corpus in corpora]
        ),
        make_section(
            "protocol",
            "What was run",
            paragraphs=[
                f"{PROTOCOL[results.leave_out]} {HALVES}",
                f"Plan {plan.name}: {plan.describe()}",
                f"Different from the paper: {TRAINED_ON}. Here there are {', '.join(tables)}. "
                + " ".join(DIFFERENCES),
            ],
            tables=[_count_table(tables)],
        ),
    ]
    return make_document(
        "The paper's speech study, rebuilt",
        _lead(results),
        sections=sections,
        facts=facts,
        evidence=_score_evidence(results),
    )


def _lead(results: SpeechResults) -> str:
    found = []
    for corpus in results.corpora:
        tested = compare_with_baselines(results, corpus).get("PSF")
        if tested is None:
            found.append(f"{corpus}: no trials of PSF and its baseline to compare")
        else:
            gain = tested.comparison.difference
            best = above_chance(results, corpus)
            guesses = ", and no system is above chance" if best and not best.shown else ""
            found.append(f"{corpus}: {VERDICTS[tested.verdict]} (UAR {gain:+.3f}){guesses}")
    return f"With the settings that the paper prints, {'; '.join(found)}."


def _psf_verdict(results: SpeechResults, corpus: str) -> str:
    """Say in plain words what PSF does on a corpus, and whether target rows have part in it."""
    tested = compare_with_baselines(results, corpus).get("PSF")
    if tested is None:
        return f"{corpus}: no trials of PSF and its baseline to compare."
    one = tested.comparison
    text = (
        f"{corpus}: with the printed settings {VERDICTS[tested.verdict]} (mean difference of UAR "
        f"{one.difference:+.3f} over {one.n_trials} trials of {one.n_speakers} speakers; Wilcoxon "
        f"p = {one.wilcoxon:.2g}, by Holm {tested.wilcoxon_holm:.2g}"
    )
    if one.clustered is None or tested.clustered_holm is None:
        text += "; a single speaker allows no clustered test)."
    else:
        text += (
            f"; clustered by speaker p = {one.clustered:.2g}, by Holm {tested.clustered_holm:.2g})."
        )
        if not tested.could_be_shown:
            text += " So few speakers can show no difference at this level, however large."
    words = [text, *_chance_words(results, corpus), *_control_words(results, corpus)]
    return " ".join([*words, *_paper_words(corpus)])


def _chance_words(results: SpeechResults, corpus: str) -> list[str]:
    """Say so where nothing was learned that could be adapted."""
    best = above_chance(results, corpus)
    if best is None or best.shown:
        return []
    return [
        f"No system, adapted or not, is above chance there (the best, {best.system}, has a mean "
        f"UAR of {best.uar:.3f}; clustered by speaker and by Holm p = {best.pvalue:.2g}): what was "
        "learned does not carry over, and differences are between guesses."
    ]


def _control_words(results: SpeechResults, corpus: str) -> list[str]:
    scores = results.printed_scores(corpus, "PSF")
    controls = control_scores(scores)
    one, mean = compare(scores, controls), _mean_uar(controls)
    if one is None or mean is None:
        return []
    pvalues = [pvalue for pvalue in (one.wilcoxon, one.clustered) if pvalue is not None]
    shown = f"(mean {mean.mean:.3f}, difference {one.difference:+.3f})"
    if max(pvalues) > TEST_LEVEL:
        return [
            f"Whether it is fitted with or without the target rows shows no difference {shown}."
        ]
    worse_or_better = "worse" if one.difference > 0 else "better"
    return [f"Fitted without the target rows it does {worse_or_better} {shown}."]


def _paper_words(corpus: str) -> list[str]:
    if corpus not in PRINTED_PSF_PVALUES:
        return ["The paper has no such corpus."]
    pvalue = PRINTED_PSF_PVALUES[corpus]
    said = "p above .05" if pvalue is None else f"p = {pvalue:.2g}"
    return [f"The paper prints {said}, trained on other corpora."]


def terminal_table(records: Sequence[Record]) -> TextTable:
    """Report the UAR of every system of speech, printed settings: differences and p-values."""
    results = summarize_records(records)
    return TextTable(
        ["corpus", "system", "UAR", "difference", "Wilcoxon p", "clustered p"],
        [_terminal_rows(results, corpus) for corpus in results.corpora],
        "UAR with the printed settings over all trials; difference to the baseline.\n"
        + "\n".join(_psf_verdict(results, corpus) for corpus in results.corpora),
    )


def _terminal_rows(results: SpeechResults, corpus: str) -> list[list[str]]:
    """Return the rows for a terminal: system, mean over all trials, difference, both p-values."""
    tests = compare_with_baselines(results, corpus)
    rows = []
    for system in SYSTEMS:
        printed = _mean_uar(results.printed_scores(corpus, system))
        row = [corpus, system, "failed" if printed is None else f"{printed.mean:.3f}"]
        if system in tests:
            one = tests[system].comparison
            clustered = "" if one.clustered is None else f"{one.clustered:.2g}"
            row += [f"{one.difference:+.3f}", f"{one.wilcoxon:.2g}", clustered]
        rows.append(row + [""] * (6 - len(row)))
    return rows


# Tables


def _mean_uar(scores: Frame) -> Figure | None:
    """Return the mean UAR of some trials, and its standard error."""
    return estimate(scores["uar"].tolist())


def _rank_systems(results: SpeechResults, corpus: str) -> dict[str, int]:
    """Place of each system by its mean UAR over all trials with the printed settings."""
    found = {system: _mean_uar(results.printed_scores(corpus, system)) for system in SYSTEMS}
    means = {system: figure.mean for system, figure in found.items() if figure is not None}
    return {
        system: 1 + sum(other > mean for other in means.values()) for system, mean in means.items()
    }


def _score_table(results: SpeechResults, corpus: str) -> Any:
    """Return the UAR of every system, by the way its settings were chosen."""
    columns = [text_column("system"), *(number_column(way, WAY_LABELS[way]) for way in WAYS)]
    caption = (
        f"UAR on test halves of {corpus}, mean ± standard error over {len(results.seeds)} trials, "
        "by the way settings were chosen"
    )
    return build_table(f"uar-{corpus}", caption, columns, _by_way(results, corpus, _uar_cell))


def _comparison_table(results: SpeechResults, corpus: str) -> Any:
    """Return every system against its baseline, over all trials with the printed settings."""
    columns = [
        text_column("system"),
        text_column("baseline"),
        number_column("trials", cell=lambda row: row["n_trials"]),
        number_column("speakers", None, lambda row: row["n_speakers"], "tested in these trials"),
        number_column("without", "UAR of the baseline", digits=3),
        number_column("difference", "mean difference"),
        number_column("rank", help="of the mean UAR among all systems, 1 the best"),
        _pvalues("wilcoxon", "Wilcoxon p", "trials taken as independent"),
        _pvalues("wilcoxon_holm", "by Holm", "corrected for the systems"),
        _pvalues("clustered", "clustered p", "speakers flipped as a whole"),
        _pvalues("clustered_holm", "by Holm"),
        text_column("verdict", help="a difference where both corrected p-values are at most .05"),
        text_column("said", "the paper says", help="of other training corpora"),
    ]
    ranks = _rank_systems(results, corpus)
    rows = []
    for system, tested in compare_with_baselines(results, corpus).items():
        baseline = _mean_uar(results.printed_scores(corpus, BASELINES[system]))
        row = {
            "system": system,
            "baseline": BASELINES[system],
            "without": None if baseline is None else baseline.mean,
            "difference": _difference_cell(tested.comparison, _id(corpus, system, PRINTED_WAY)),
            "rank": ranks[system],
            "verdict": make_cell(mark=tested.verdict),
            "said": printed_statement(system, corpus),
        }
        rows.append({**tested.comparison._asdict(), **tested._asdict(), **row})
    caption = f"With the printed settings on {corpus}: UAR against the baseline"
    return build_table(f"tests-{corpus}", caption, columns, rows)


def _control_table(results: SpeechResults, corpus: str) -> Any:
    """Return the adapters fitted with and without the target half."""
    columns = [
        text_column("system"),
        number_column("with", "with target rows"),
        number_column("without", "without"),
        number_column("difference", "mean difference"),
        _pvalues("wilcoxon", "Wilcoxon p"),
        _pvalues("clustered", "clustered p"),
    ]
    rows = []
    for system in WITHOUT_TARGET:
        scores = results.printed_scores(corpus, system)
        controls = control_scores(scores)
        one = compare(scores, controls)
        if one is not None:
            row = {
                "system": system,
                "with": _uar_cell(scores, corpus, system, PRINTED_WAY),
                "without": _uar_cell(controls, corpus, system, PRINTED_WAY),
                "difference": _difference_cell(one),
            }
            rows.append({**one._asdict(), **row})
    caption = f"Fitted with and without the target half, on {corpus}; UAR"
    return build_table(f"controls-{corpus}", caption, columns, rows)


def _choice_table(results: SpeechResults, corpus: str) -> Any:
    """Return which settings were chosen each way; of the oracle's the most frequent."""

    def most_frequent(scores: Frame, *_: str) -> str | None:
        texts = scores["settings"].tolist()
        for text, times in Counter(texts).most_common(1):
            return text if times == len(texts) else f"{text} ({times} of {len(texts)})"
        return None

    columns = [text_column("system"), *(text_column(way, WAY_LABELS[way]) for way in WAYS)]
    caption = f"Settings chosen for {corpus}; where trials differ, the most frequent"
    if corpus not in PRINTED:
        caption += "; the paper prints none for it: those of EMODB stand in"
    return build_table(
        f"chosen-{corpus}", caption, columns, _by_way(results, corpus, most_frequent)
    )


def _count_table(tables: Mapping[str, SpeechTable]) -> Any:
    """Return the segments of each corpus beside the printed counts."""
    columns = [text_column("corpus")]
    for name in Counts._fields:
        columns += [number_column(name), number_column(f"printed_{name}", "printed")]
    rows = []
    for corpus, table in tables.items():
        positive = int((table.y == "positive").sum())
        ours = Counts(len(np.unique(table.speaker)), len(table.y), positive)
        printed = PRINTED_COUNTS.get(corpus, (None, None, None))
        row = {f"printed_{name}": count for name, count in zip(ours._fields, printed, strict=True)}
        rows.append({"corpus": corpus, **ours._asdict(), **row})
    return build_table("corpora", "Segments of one second", columns, rows)


def _by_way(results: SpeechResults, corpus: str, show: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return what to show of the scores of every system, by the way its settings were chosen."""

    def shown(system: str, way: str) -> Any:
        return show(results.scores(corpus, system, way), corpus, system, way)

    return [{"system": system} | {way: shown(system, way) for way in WAYS} for system in SYSTEMS]


def _uar_cell(scores: Frame, corpus: str, system: str, way: str) -> Any:
    return figure_cell(_mean_uar(scores), evidence=_id(corpus, system, way))


def _difference_cell(one: Comparison, evidence: str | None = None) -> Any:
    return make_cell(f"{one.difference:+.3f}", value=one.difference, evidence=evidence)


def _pvalues(key: str, label: str, help: str = "") -> Shown:
    """Return a column of p-values with two digits that count."""

    def cell(row: Mapping[str, Any]) -> Any:
        return None if row[key] is None else make_cell(f"{row[key]:.2g}", value=row[key])

    return number_column(key, label, cell, help)


def _score_evidence(results: SpeechResults) -> dict[str, Any]:
    """Return the trials behind each cell; those of the printed settings are all of them."""
    evidence = {}
    for corpus, system, way in product(results.corpora, SYSTEMS, WAYS):
        columns = [
            number_column("seed"),
            text_column("speaker"),
            number_column("uar", "UAR", digits=4),
            text_column("settings"),
        ]
        if way == PRINTED_WAY and system in WITHOUT_TARGET:
            columns.append(number_column("control", "no target", digits=4))
        columns.append(text_column("trial", help="key in the results file"))
        scores = results.all_scores(corpus, system, way)
        title = f"{corpus}, {system}, {WAY_LABELS[way]}"
        evidence[_id(corpus, system, way)] = build_evidence(title, columns, scores)
    return evidence


def _id(corpus: str, system: str, way: str) -> str:
    """Name of the evidence of a cell."""
    return "|".join((corpus, system, way))


def _score_figure(results: SpeechResults) -> Any:
    """Return the means and standard errors of every system, by the way settings were chosen."""
    from covshift.report.figures import (
        draw_scores,
        png_bytes,  # needs an extra
    )

    panels: dict[str, dict[str, dict[str, tuple[float, float | None]]]] = {}
    for corpus in results.corpora:
        panels[corpus] = {}
        for way in WAYS:
            series = panels[corpus].setdefault(WAY_LABELS[way], {})
            for system in SYSTEMS:
                found = _mean_uar(results.scores(corpus, system, way))
                if found is not None:
                    series[system] = found
    return make_figure(
        "uar",
        "UAR on test halves, mean and standard error over the trials. The oracle reads labels of "
        "the target half.",
        "Points with error bars for every system and corpus, in one color and shape for each way "
        "of choosing settings; a dotted line marks chance.",
        png=png_bytes(draw_scores(panels, score_name="UAR", chance=0.5)),
    )
