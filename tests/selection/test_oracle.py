import ast
from pathlib import Path

import numpy as np

import covshift.selection
from covshift.selection.leaderboard import Leaderboard
from covshift.selection.oracle import choose_by_oracle, oracle_scores
from tests.selection.made_problems import make_bench, make_moved, plain, standardised


def test_the_oracle_picks_by_target_labels_and_says_so():
    problem, target_codes = make_moved()
    bench = make_bench([plain(), standardised()], problem)
    choice = choose_by_oracle(bench, target_codes)
    assert choice.weights.tolist() == [0, 1]
    assert choice.score_kind == "oracle"
    assert choice.decision == "Oracle, by target labels: standardise + LR."
    row = Leaderboard.of(choice.table, choice.combined, choice.weights)[0]
    assert row["oracle"] == oracle_scores(bench, target_codes)[1] > 0.85
    turned = choose_by_oracle(bench, 1 - target_codes)
    assert turned.combined[1] == 1 - choice.combined[1]


def test_nothing_else_of_the_package_imports_the_oracle():
    root = Path(covshift.selection.__file__).parents[1]
    for path in root.rglob("*.py"):
        if path.name == "oracle.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "covshift.selection.oracle", path


def test_labels_are_numbers_of_classes():
    problem, target_codes = make_moved()
    scores = oracle_scores(make_bench([standardised()], problem), target_codes.tolist())
    assert scores.shape == (1,)
    assert np.isfinite(scores).all()
