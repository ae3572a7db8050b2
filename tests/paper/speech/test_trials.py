"""Trials of the speech study: labels that may not be read, plans, digests."""

import ast
from pathlib import Path

import numpy as np
import pytest

from covshift.measures import unweighted_average_recall
from covshift.paper.grid_systems import (
    SYSTEMS,
    WITHOUT_COST,
    WITHOUT_TARGET,
    average_recalls,
    best_setting,
)
from covshift.paper.speech import protocol as speech_protocol
from covshift.paper.speech import study as speech_trials
from covshift.paper.speech.oracle import ORACLE_SCORES
from covshift.paper.speech.plans import PLANS, estimated_seconds
from covshift.paper.speech.printed import (
    COSTS,
    GRIDS,
    PRINTED,
    printed_configuration,
    printed_statement,
)
from covshift.paper.speech.protocol import draw_trial
from covshift.paper.speech.study import _run_on_tables, declare
from tests.paper.speech.made_corpora import SMALL_PLAN, make_corpora

SWAP = {"positive": "negative", "negative": "positive"}


@pytest.fixture(scope="module")
def tables():
    return make_corpora()


@pytest.fixture(scope="module")
def settings(tables):
    """The settings of one trial of every system and kind, on EMODB."""
    found = {}
    for (trial,) in declare(tables, SMALL_PLAN, "corpus", 0, "digest"):
        one = trial.settings
        if one["corpus"] == "emodb" and one.get("fold", 0) == 0:
            found[one["system"], one["kind"]] = one
    return found


def with_labels(tables, rows, labels):
    y = tables["emodb"].y.copy()
    y[rows] = labels
    return {**tables, "emodb": tables["emodb"]._replace(y=y)}


@pytest.mark.parametrize("kind", ["grid", "printed", "fold"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_labels_of_the_target_half_reach_the_oracle_only(tables, settings, system, kind):
    halves = draw_trial(tables, "emodb", "corpus", 1).halves
    y = tables["emodb"].y[halves.target]
    flipped = [SWAP[label] for label in y]
    shuffled = np.random.RandomState(0).permutation(y)
    result = _run_on_tables(tables, settings[system, kind], 1)
    oracle = result.pop(ORACLE_SCORES, None)
    assert (oracle is not None) == (kind == "grid")
    for labels in (flipped, shuffled, "positive"):
        changed = _run_on_tables(
            with_labels(tables, halves.target, labels), settings[system, kind], 1
        )
        scores = changed.pop(ORACLE_SCORES, None)
        assert changed == result
        if kind == "grid" and labels is flipped:
            np.testing.assert_allclose(np.add(scores, oracle), 1)


@pytest.mark.parametrize("kind", ["grid", "printed", "fold"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_flipped_test_labels_turn_the_score_round(tables, settings, system, kind):
    halves = draw_trial(tables, "emodb", "corpus", 1).halves
    flipped = [SWAP[label] for label in tables["emodb"].y[halves.test]]
    result = _run_on_tables(tables, settings[system, kind], 1)
    changed = _run_on_tables(with_labels(tables, halves.test, flipped), settings[system, kind], 1)
    for name in ("test_uar", "without_target_test_uar"):
        assert (name in result) == (name in changed)
        if name in result:
            np.testing.assert_allclose(np.add(result.pop(name), changed.pop(name)), 1)
    assert changed == result  # the same choices by the oracle and by the folds


def test_only_the_oracle_reads_labels_of_the_target_half():
    """No other module of the study indexes labels by a target half."""
    readers = []
    for path in sorted(Path(speech_protocol.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and "halves.target" in ast.unparse(node.slice):
                readers.append((path.stem, ast.unparse(node)))
    assert readers == [
        ("oracle", "table.y[halves.target]"),
        ("protocol", "table.X[halves.target]"),
    ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_results(tables, settings, system):
    n_costs = 1 if system in WITHOUT_COST else len(SMALL_PLAN.costs)
    shape = (len(SMALL_PLAN.grids[system]), n_costs)
    grid = _run_on_tables(tables, settings[system, "grid"], 0)
    assert np.shape(grid["test_uar"]) == np.shape(grid[ORACLE_SCORES]) == shape
    assert np.shape(_run_on_tables(tables, settings[system, "fold"], 0)["fold_uar"]) == shape
    printed = _run_on_tables(tables, settings[system, "printed"], 0)
    assert printed["speaker"] == grid["speaker"]  # the same trial
    assert ("without_target_test_uar" in printed) == (system in WITHOUT_TARGET)


def test_the_fold_is_not_the_tested_corpus(tables, settings):
    """Nothing of the tested corpus has part in the choice on the source."""
    rng = np.random.RandomState(0)
    other = {
        **tables,
        "emodb": tables["emodb"]._replace(X=rng.standard_normal((len(tables["emodb"].y), 72))),
    }
    for system in ("SVM", "PSF"):
        assert _run_on_tables(other, settings[system, "fold"], 0) == _run_on_tables(
            tables, settings[system, "fold"], 0
        )


def test_many_recalls_at_once():
    rng = np.random.RandomState(0)
    y = rng.choice(["a", "b", "c"], 40)
    predicted = rng.choice(["a", "b", "c", "d"], (3, 2, 40))
    expected = [[unweighted_average_recall(y, one) for one in several] for several in predicted]
    np.testing.assert_allclose(average_recalls(predicted, y), expected)
    assert best_setting([[0.1, 0.7], [0.7, 0.2]]) == (0, 1)


# Plans


def test_the_papers_grids():
    assert {system: len(grid) for system, grid in GRIDS.items()} == {
        "SVM": 1, "SF": 5, "PSF": 170, "LSPC": 30, "IW+LSPC": 30, "SSA": 3, "DAE": 54,
    }  # fmt: skip
    assert len(COSTS) == 20
    assert list(COSTS) == sorted(COSTS)
    assert (COSTS[0], COSTS[-1]) == (2.5e-5, 1.0)
    for corpus, configurations in PRINTED.items():
        for system, (setting, cost) in configurations.items():
            if (corpus, system) not in (("enterface", "LSPC"), ("enterface", "IW+LSPC")):
                assert setting in GRIDS[system]  # of the others, see the errata
            assert cost is None if system in WITHOUT_COST else cost in COSTS
    assert printed_configuration("ravdess", "PSF") == PRINTED["emodb"]["PSF"]
    assert printed_statement("SF", "des") == "no improvement over the baseline"
    assert printed_statement("SF", "ravdess") is None


def test_plans_are_parts_of_the_grids():
    for plan in PLANS.values():
        for system in SYSTEMS:
            assert all(setting in GRIDS[system] for setting in plan.grids[system])
        assert set(plan.costs) <= set(COSTS)
    default, full = PLANS["default"], PLANS["full"]
    assert "7 of 20 values of C" in default.describe()
    assert "34 of 170 settings of PSF" in default.describe()
    assert (full.grids, full.costs) == (GRIDS, COSTS)
    for plan in (default, full):
        assert (plan.n_trials, plan.n_test_trials) == (10, 100)
    assert (default.mini_batches, full.mini_batches) == (5000, 10_000)
    assert "5000 of 10000 mini-batches" in default.describe()


@pytest.mark.parametrize("leave_out", ["corpus", "speaker"])
def test_declaration(tables, leave_out):
    tasks = declare(tables, SMALL_PLAN, leave_out, 7, "digest")
    trials = [trial for (trial,) in tasks]
    assert len(set(trials)) == len(trials)
    assert {trial.settings["corpus"] for trial in trials} == {"emodb", "ravdess"}
    assert {trial.settings["data"] for trial in trials} == {"digest"}
    kinds = [trial.settings["kind"] for trial in trials]
    assert kinds.count("grid") == 2 * len(SYSTEMS) * 2
    assert kinds.count("printed") == 2 * len(SYSTEMS) * 4
    folds = [trial.settings for trial in trials if trial.settings["kind"] == "fold"]
    if leave_out == "corpus":
        assert len(folds) == 2 * len(SYSTEMS) * 3
        assert {one["tested_speaker"] for one in folds} == {None}
    else:
        drawn = {
            (corpus, draw_trial(tables, corpus, "speaker", seed).halves.speaker)
            for corpus in ("emodb", "ravdess")
            for seed in (7, 8)
        }
        assert {(one["corpus"], one["tested_speaker"]) for one in folds} == drawn
    for one in folds:
        if one["system"] == "DAE":
            assert all(setting["mini_batches"] == 20 for setting in one["settings"])
    assert declare(tables, SMALL_PLAN, leave_out, 7, "digest") == tasks
    seconds = estimated_seconds(tables, tasks, 1)
    assert 0 < estimated_seconds(tables, tasks, 2) < seconds
    full = declare(tables, PLANS["full"], leave_out, 7, "digest")
    assert estimated_seconds(tables, full, 1) > 10 * seconds


def test_kinds_are_all_known():
    assert set(speech_trials.KINDS) == {"grid", "printed", "fold"}
