"""The speech study from its records to the report, and runs that are killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from covshift.measures import clustered_permutation_test, holm, paired_wilcoxon
from covshift.paper.grid_systems import SYSTEMS
from covshift.paper.speech.oracle import ORACLE_SCORES
from covshift.paper.speech.printed import printed_configuration
from covshift.paper.speech.report import _psf_verdict, _rank_systems, speech_document
from covshift.paper.speech.summary import (
    FOLDS,
    ORACLE,
    PRINTED_WAY,
    _shown_configuration,
    above_chance,
    compare,
    compare_with_baselines,
    summarize_records,
)
from covshift.report.document import validate_document
from covshift.report.files import document_markdown
from covshift.studies.store import Record, load_results, write_records
from covshift.studies.trial import Trial
from tests.paper.speech.made_corpora import (
    SMALL_PLAN,
    TINY_PLAN,
    make_corpora,
    make_table,
    run,
    small_study,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    study = small_study(folder)
    return study, run(study, folder), folder


def record_of(settings, seed, result):
    where = {"corpus": "emodb", "leave_out": "corpus", "data": "digest"}
    trial = Trial("speech", {**where, **settings}, seed)
    return Record(trial, result, None, None, [], 0.0, "2025-01-01T00:00:00+00:00")


def printed_record(system, seed, uar, speaker, control=None):
    setting, cost = printed_configuration("emodb", system)
    result = {"speaker": speaker, "test_uar": uar}
    if control is not None:
        result["without_target_test_uar"] = control
    return record_of(
        {"kind": "printed", "system": system, "setting": setting, "cost": cost}, seed, result
    )


def test_each_way_takes_its_own_choice():
    grid = {"system": "SF", "settings": [{"L": 4}, {"L": 8}], "costs": [0.1, 1.0]}
    scores = {"speaker": "a", "n_target": 9, "n_test": 9, "test_uar": [[0.1, 0.2], [0.3, 0.4]]}
    records = [
        record_of({"kind": "grid", **grid}, 0, {**scores, ORACLE_SCORES: [[0.5, 0.9], [0.6, 0.7]]}),
        *(
            record_of(
                {"kind": "fold", **grid, "tested_speaker": None, "fold": fold, "n_folds": 2},
                0,
                {"fold_uar": [[0.5, 0.5], [0.5 + sign * 0.2, 0.6]]},
            )
            for fold, sign in enumerate((1, -1))
        ),
        printed_record("SF", 0, 0.55, "a"),
        printed_record("SF", 1, 0.65, "b"),  # beyond the trials on which settings are chosen
    ]
    results = summarize_records(records)
    expected = {
        ORACLE: (0.2, "L 4, C 1"),
        FOLDS: (0.4, "L 8, C 1"),
        PRINTED_WAY: (0.55, "L 50, C 0.075"),
    }
    for way, (uar, chosen) in expected.items():
        (score,) = results.scores("emodb", "SF", way).to_dict("records")
        assert (score["uar"], score["settings"]) == (uar, chosen)
    assert len(results.printed_scores("emodb", "SF")) == 2
    # A fold that failed leaves no choice.
    assert len(summarize_records(records[:2]).scores("emodb", "SF", FOLDS)) == 0


def test_tests_are_those_of_the_measures():
    rng = np.random.RandomState(0)
    speakers = [f"s{seed % 7}" for seed in range(40)]
    uars = {system: rng.uniform(0.4, 0.7, 40) for system in SYSTEMS}
    uars["PSF"] = uars["SVM"] + 0.05 + 0.01 * rng.standard_normal(40)
    records = [
        printed_record(system, seed, float(uars[system][seed]), speakers[seed])
        for system in SYSTEMS
        for seed in range(40)
    ]
    results = summarize_records(records)
    tests = compare_with_baselines(results, "emodb")
    assert list(tests) == ["SF", "PSF", "IW+LSPC", "SSA", "DAE"]
    one = tests["PSF"]
    wilcoxon = [
        paired_wilcoxon(uars[system], uars["LSPC" if system == "IW+LSPC" else "SVM"]).pvalue
        for system in tests
    ]
    assert one.comparison.wilcoxon == wilcoxon[1]
    assert one.wilcoxon_holm == holm(wilcoxon)[1]
    clustered = clustered_permutation_test(uars["PSF"] - uars["SVM"], speakers)
    assert one.comparison.clustered == pytest.approx(clustered.pvalue)
    assert (one.comparison.n_trials, one.comparison.n_speakers) == (40, 7)
    # Seven speakers allow 2/128 at best: by Holm that is above the level.
    assert one.clustered_holm == pytest.approx(5 * 2 / 128)
    assert one.verdict == "unclear"
    assert "no difference between PSF" in _psf_verdict(results, "emodb")
    assert "So few speakers can show no difference" in _psf_verdict(results, "emodb")
    ranks = _rank_systems(results, "emodb")
    order = sorted(SYSTEMS, key=lambda system: -uars[system].mean())
    assert [ranks[system] for system in order] == list(range(1, 8))


@pytest.mark.parametrize(("gain", "word"), [(0.1, "PSF helps"), (-0.1, "PSF harms")])
def test_verdicts_in_words(gain, word):
    rng = np.random.RandomState(1)
    records = []
    for seed in range(40):
        speaker, base = f"s{seed % 10}", float(rng.uniform(0.5, 0.6))
        jitter = float(rng.uniform(-0.01, 0.01))
        records.append(printed_record("SVM", seed, base, speaker))
        records.append(printed_record("PSF", seed, base + gain + jitter, speaker, base + gain))
    text = _psf_verdict(summarize_records(records), "emodb")
    assert text.startswith(f"emodb: with the printed settings {word} (mean difference of UAR")
    assert "over 40 trials of 10 speakers" in text
    assert "So few speakers" not in text
    assert "fitted with or without the target rows shows no difference" in text
    assert "The paper prints p = 9.5e-05, trained on other corpora." in text


def test_guesses_are_called_guesses():
    rng = np.random.RandomState(0)
    speakers = [f"s{seed % 9}" for seed in range(45)]

    def records(level):
        return [
            printed_record(system, seed, level + 0.05 * rng.standard_normal(), speakers[seed])
            for system in SYSTEMS
            for seed in range(45)
        ]

    guesses, knows = summarize_records(records(0.5)), summarize_records(records(0.7))
    assert not above_chance(guesses, "emodb").shown
    assert "No system, adapted or not, is above chance" in _psf_verdict(guesses, "emodb")
    best = above_chance(knows, "emodb")
    assert best.shown
    assert best.uar == max(
        np.mean(knows.printed_scores("emodb", system)["uar"].tolist()) for system in SYSTEMS
    )
    assert "chance" not in _psf_verdict(knows, "emodb")
    one_speaker = [printed_record("PSF", seed, 0.5, "only") for seed in range(3)]
    assert above_chance(summarize_records(one_speaker), "emodb") is None


def test_what_is_left_with_one_speaker_does_not_lift_the_correction_of_others():
    """DAE failed except for one speaker: the p-values of the others are corrected all the same."""
    rng = np.random.RandomState(2)
    base = rng.uniform(0.5, 0.6, 40)
    records = []
    for seed in range(40):
        speaker = f"s{seed % 10}"
        for system in ("SVM", "SF", "PSF", "SSA"):
            gain = 0.0 if system == "SVM" else float(rng.uniform(-0.02, 0.06))
            records.append(printed_record(system, seed, float(base[seed]) + gain, speaker))
        if speaker == "s0":
            records.append(printed_record("DAE", seed, float(base[seed]) + 0.1, speaker))
    tests = compare_with_baselines(summarize_records(records), "emodb")
    assert list(tests) == ["SF", "PSF", "SSA", "DAE"]
    raw = [tests[system].comparison.clustered for system in ("SF", "PSF", "SSA")]
    found = [tests[system].clustered_holm for system in ("SF", "PSF", "SSA")]
    assert found == holm(raw).tolist()
    assert tests["DAE"].clustered_holm is None
    assert tests["DAE"].verdict == "unclear"


def test_tests_that_point_both_ways_are_no_verdict():
    """Most trials gain a little, and the few trials of most speakers lose much."""
    records = []
    for seed in range(120):
        often = seed < 100
        speaker = "s0" if often else f"s{1 + seed % 10}"
        jitter = 1e-4 * (seed % 7)
        records.append(printed_record("SVM", seed, 0.5, speaker))
        records.append(printed_record("PSF", seed, (0.53 if often else 0.45) + jitter, speaker))
    tested = compare_with_baselines(summarize_records(records), "emodb")["PSF"]
    assert tested.comparison.difference > 0
    assert tested.wilcoxon_holm < 0.05
    assert tested.clustered_holm < 0.05
    assert tested.verdict == "unclear"


def test_ways_are_compared_on_the_same_trials():
    """A printed trial that failed is not made up for by a later one."""
    grid = {"system": "SF", "settings": [{"L": 4}], "costs": [0.1]}
    scores = {"speaker": "a", "test_uar": [[0.1]], ORACLE_SCORES: [[0.5]]}
    records = [record_of({"kind": "grid", **grid}, seed, scores) for seed in (0, 1)]
    records += [printed_record("SF", seed, 0.5 + 0.1 * seed, "a") for seed in (1, 2, 3)]
    results = summarize_records(records)
    assert results.seeds == {0, 1}
    assert results.scores("emodb", "SF", PRINTED_WAY)["seed"].tolist() == [1]


def test_pairs_are_trials_that_both_have():
    first = summarize_records([printed_record("PSF", seed, 0.6, "a") for seed in (0, 1, 2)])
    second = summarize_records([printed_record("SVM", seed, 0.5, "a") for seed in (1, 2, 3)])
    both = first.printed_scores("emodb", "PSF"), second.printed_scores("emodb", "SVM")
    one = compare(*both)
    assert one.n_trials == 2
    assert one.clustered is None  # a single speaker
    assert compare(both[0], both[0][:0]) is None


def test_configurations_as_text():
    assert (
        _shown_configuration(printed_configuration("emodb", "PSF")) == "cos, L 80, λ 1.8, C 7.5e-05"
    )
    assert _shown_configuration(printed_configuration("des", "IW+LSPC")) == "sigma 3, λ 1"


def test_the_report_says_everything(finished):
    study, outcome, _ = finished
    assert outcome.failures == []
    document = study.document(outcome.records, [("command", "covshift")])
    validate_document(document)
    tables = {table["id"]: table for part in document["sections"] for table in part["tables"]}
    for corpus in ("emodb", "ravdess"):
        rows = tables[f"uar-{corpus}"]["rows"]
        assert [row["system"] for row in rows] == list(SYSTEMS)
        assert all(row[way]["text"] for row in rows for way in (ORACLE, FOLDS, PRINTED_WAY))
        assert len(tables[f"tests-{corpus}"]["rows"]) == 5
        assert len(tables[f"controls-{corpus}"]["rows"]) == 3
    assert "stand in" in tables["chosen-ravdess"]["caption"]
    assert [row["corpus"] for row in tables["corpora"]["rows"]] == ["emodb", "ravdess", "vam"]
    text = document_markdown(document)
    assert "| oracle (reads target labels) | source folds | printed |" in text.replace("---:", "")
    assert SMALL_PLAN.describe() in text
    table = study.table(outcome.records)
    assert [len(group) for group in table.groups] == [7, 7]
    assert all(len(row) == len(table.headings) for group in table.groups for row in group)


def test_what_the_oracle_touched_says_so(finished):
    """Every column and every list of trials that rests on target labels is marked."""
    study, outcome, _ = finished
    document = study.document(outcome.records, [])
    for section in document["sections"]:
        for table in section["tables"]:
            for column in table["columns"]:
                assert column["key"] != ORACLE or "reads target labels" in column["label"]
    for name, evidence in document["evidence"].items():
        assert name.endswith(f"|{ORACLE}") == ("reads target labels" in evidence["title"])


def test_a_report_of_half_a_run(finished):
    """Trials that failed leave gaps, not errors."""
    _, outcome, _ = finished
    kept = [
        record
        for record in outcome.records
        if record.trial.settings["kind"] != "grid" and record.trial.settings["system"] != "PSF"
    ]
    document = speech_document(summarize_records(kept), make_corpora(), SMALL_PLAN, [])
    validate_document(document)
    assert "no trials of PSF and its baseline to compare" in document["lead"]


def test_a_single_corpus_leaves_speakers_out(tmp_path):
    tables = {"ravdess": make_table(3, 1)}
    study = small_study(tmp_path, TINY_PLAN, tables, leave_out="speaker")
    outcome = run(study, tmp_path)
    assert outcome.failures == []
    document = study.document(outcome.records, [])
    rows = document["sections"][1]["tables"][0]["rows"]
    assert all(row[FOLDS]["text"] for row in rows)
    assert "the other speakers of the same corpus train" in document_markdown(document)


def test_other_features_are_another_run(finished, tmp_path):
    study, _, _ = finished
    tables = make_corpora()
    tables["emodb"].X[0] += 1.0
    other = small_study(tmp_path, tables=tables)
    assert not {task[0] for task in study.tasks} & {task[0] for task in other.tasks}


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_killed_between_trials(tmp_path):
    undisturbed, stopped = tmp_path / "undisturbed", tmp_path / "stopped"
    module = "tests.paper.speech.made_corpora"
    killed = subprocess.run(
        [sys.executable, "-W", "error", "-m", module, str(stopped), "20"],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(load_results(stopped / "trials.sqlite")) == 20
    texts = []
    for folder, n_resumed in ((stopped, 20), (undisturbed, 0)):
        outcome = run(small_study(folder, TINY_PLAN), folder)
        assert outcome.n_resumed == n_resumed
        write_records(outcome.records, folder / "trials.csv")
        texts.append((folder / "trials.csv").read_bytes())
    assert texts[0] == texts[1]
