"""The speech study as a document: the verdict, scores, tests, controls, choices, protocol."""

from collections.abc import Mapping, Sequence
from typing import Any

from covshift.paper.grid_systems import SYSTEMS
from covshift.paper.speech.figures import draw_score_figure
from covshift.paper.speech.plans import Plan
from covshift.paper.speech.printed import PRINTED_PSF_PVALUES, TRAINED_ON
from covshift.paper.speech.protocol import SpeechTable
from covshift.paper.speech.summary import (
    LEVEL,
    SpeechResults,
    above_chance,
    compare,
    compare_with_baselines,
    control_scores,
)
from covshift.paper.speech.tables import (
    choice_table,
    comparison_table,
    control_table,
    count_table,
    score_evidence,
    score_table,
)
from covshift.report.document import make_document, make_section
from covshift.studies.report import estimate

VERDICTS = {
    "helps": "PSF helps",
    "harms": "PSF harms",
    "unclear": "no difference between PSF and the SVM without adaptation is shown",
}
WAYS_EXPLAINED = (
    "Settings are chosen three ways. Oracle: the best on the labelled target half, as the paper "
    "did. That reads labels which whoever needs to adapt does not have: it is there to compare "
    "with, and no bound, for a half has few rows to choose by. Source folds: the best where the "
    "speakers of a third of the source play the target. Printed: the configuration that the "
    "paper's table of model selection prints."
)
PROTOCOL = {
    "corpus": "Each trial draws a speaker of the tested corpus; all speakers of the other corpora "
    "train.",
    "speaker": "Each trial draws a speaker of the tested corpus; the other speakers of the same "
    "corpus train.",
}
HALVES = (
    "The speaker's recordings are dealt at random into a target half, whose rows serve to adapt "
    "without their labels, and a test half. Features are standardised by speaker, the test half "
    "with the statistics of the target half. The smaller class is filled up by drawing with "
    "repetition, on the training side only. Halves whose test half lacks a class are drawn again."
)
# What differs from the paper, whatever is run.
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
    """The whole report of a run."""
    verdicts = [psf_verdict(results, corpus) for corpus in results.corpora]
    corpora = results.corpora
    sections = [
        make_section("verdict", "Does PSF help here?", paragraphs=verdicts),
        make_section(
            "scores",
            "UAR of every system",
            paragraphs=[WAYS_EXPLAINED],
            tables=[score_table(results, corpus) for corpus in corpora],
            figures=[draw_score_figure(results)],
        ),
        make_section(
            "tests",
            "Against the baselines",
            paragraphs=[
                "Wilcoxon's test is the paper's, and takes trials as independent. They are not: "
                "speakers repeat. The clustered test flips the sign of all trials of a speaker "
                "together, so that its evidence is as many speakers as there are. Holm's "
                "correction is over the systems of a corpus. What the paper says is of other "
                "training data: "
                f"{TRAINED_ON}.",
            ],
            tables=[comparison_table(results, corpus) for corpus in corpora],
        ),
        make_section(
            "controls",
            "Controls: without the target half",
            paragraphs=["Where the control does as well, the merit is not the adaptation's."],
            tables=[control_table(results, corpus) for corpus in corpora],
        ),
        make_section(
            "chosen", "Settings", tables=[choice_table(results, corpus) for corpus in corpora]
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
            tables=[count_table(tables)],
        ),
    ]
    return make_document(
        "The paper's speech study, rebuilt",
        _lead(results),
        sections=sections,
        facts=facts,
        evidence=score_evidence(results),
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


def psf_verdict(results: SpeechResults, corpus: str) -> str:
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
    one, mean = compare(scores, controls), estimate([score.uar for score in controls])
    if one is None or mean is None:
        return []
    pvalues = [pvalue for pvalue in (one.wilcoxon, one.clustered) if pvalue is not None]
    shown = f"(mean {mean.mean:.3f}, difference {one.difference:+.3f})"
    if max(pvalues) > LEVEL:
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


def terminal_rows(results: SpeechResults, corpus: str) -> list[list[str]]:
    """Rows for a terminal: system, mean over all trials, difference, both p-values."""
    tests = compare_with_baselines(results, corpus)
    rows = []
    for system in SYSTEMS:
        printed = estimate([score.uar for score in results.printed_scores(corpus, system)])
        row = [corpus, system, "failed" if printed is None else f"{printed.mean:.3f}"]
        if system in tests:
            one = tests[system].comparison
            clustered = "" if one.clustered is None else f"{one.clustered:.2g}"
            row += [f"{one.difference:+.3f}", f"{one.wilcoxon:.2g}", clustered]
        rows.append(row + [""] * (6 - len(row)))
    return rows
