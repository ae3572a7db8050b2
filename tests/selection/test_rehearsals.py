"""Rehearsals and expected gains, against naive twins."""

import json
from importlib.resources import files

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift.selection.bench import Bench
from covshift.selection.choice import choose_plain
from covshift.selection.gains import (
    QUANTITIES,
    coefficients,
    expected_gains,
    gain_features,
    separation,
)
from covshift.selection.metrics import METRICS
from covshift.selection.problem import Problem
from covshift.selection.rehearsals import (
    KINDS,
    decide,
    mean_probability,
    predicted_score,
    pseudo_targets,
    rehearse,
)
from covshift.selection.score_table import score_table
from tests.selection.made_problems import Broken, make_bench, plain, standardized

OBJECTIVES = list(METRICS)


def make_groups(n=60, n_domains=3, n_classes=3, seed=0):
    """Source domains that differ by an offset, and a target with another one."""
    rng = np.random.RandomState(seed)
    domain = np.repeat(np.arange(n_domains), n)
    codes = rng.choice(n_classes, len(domain), p=[0.6, 0.3, 0.1][:n_classes])
    X = rng.standard_normal((len(domain), 3)) + codes[:, None] + domain[:, None]
    target = rng.choice(n_classes, n)
    T = rng.standard_normal((n, 3)) + target[:, None] + 0.5
    return Problem(X, codes, domain, T, np.full(n, -1), n_classes)


def bench_of(problem, objective, candidates=None):
    candidates = candidates or [plain(), standardized()]
    return Bench(candidates, problem, METRICS[objective], seed=1)


def naive_credit(P, codes, shares, objective):
    """Mean probability of the true class; balanced: for equal shares, by class."""
    by_class = {}
    for row, code in zip(P, codes, strict=True):
        if objective == "balanced_accuracy":
            row = [p / share for p, share in zip(row, shares, strict=True)]
        by_class.setdefault(code, []).append(row[code] / sum(row))
    if objective == "balanced_accuracy":
        return np.mean([np.mean(values) for values in by_class.values()])
    return np.mean([value for values in by_class.values() for value in values])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_means_over_scenes_of_the_naive_credit(kind, objective):
    bench = bench_of(make_groups(), objective)
    shares = np.bincount(bench.problem.codes) / len(bench.problem.codes)
    found = rehearse(bench, kind)
    if kind == "source CV":
        scenes = [(bench.probabilities_left_out(), bench.problem.codes)]
    else:
        played = dict(pseudo_targets(bench, kind))
        outputs = bench.run({name: one.scene for name, one in played.items()})
        scenes = [(bench.calibrated(outputs[name]), one.codes) for name, one in played.items()]
    assert len(scenes) == {"source CV": 1, "moved": 2, "class shares": 2, "source domains": 3}[kind]
    for number in range(2):
        values = [naive_credit(P[number], codes, shares, objective) for P, codes in scenes]
        assert found[number] == pytest.approx(np.mean(values), abs=1e-12)


def test_a_users_metric_is_taken_of_predicted_classes():
    problem = make_groups()
    bench = Bench([plain()], problem, lambda codes, predicted: float(np.sum(predicted == 0)))
    P = bench.probabilities_left_out()[0]
    assert mean_probability(bench)(P, problem.codes) == np.sum(P.argmax(axis=1) == 0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predicted_scores_are_the_metric_of_decided_classes(objective):
    bench = bench_of(make_groups(), objective)
    P = bench.probabilities_left_out()[0]
    score = predicted_score(bench)(P, bench.problem.codes)
    assert score == METRICS[objective](bench.problem.codes, decide(bench, P))


def naive_features(bench, table, plain_number):
    """Differences to the plain model, one candidate and quantity at a time."""
    shares = np.bincount(bench.problem.codes) / len(bench.problem.codes)
    P = bench.calibrated(bench.target)
    predicted = [decide(bench, one) for one in P]
    committee = decide(bench, sum(P) / len(P))
    plains = [i for i, one in enumerate(bench.candidates) if not one.adapts]
    rows = []
    for i, codes in enumerate(predicted):
        row = [table.scores[kind][i] if kind in table.scores else 0.0 for kind in KINDS]
        row.append(np.mean([a == b for a, b in zip(codes, committee, strict=True)]))
        others = [np.mean(codes == predicted[j]) for j in plains if j != i]
        row.append(np.mean(others) if others else np.nan)
        moved = [abs(np.mean(codes == k) - share) for k, share in enumerate(shares)]
        row.append(sum(moved) / 2)
        rows.append([*row, row[1] * separation(bench), row[6] * separation(bench)])
    return np.nan_to_num(np.array(rows) - rows[plain_number])  # what is not known is no difference


def test_without_another_plain_model_agreement_says_nothing():
    bench = make_bench([plain(), standardized()])
    table = score_table(bench, KINDS)
    features = gain_features(bench, table.scores, table.allowed, 0)
    assert features[1, QUANTITIES.index("plain models")] == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_domains", [1, 3])
def test_expected_gains_are_those_of_the_formula(objective, n_domains):
    candidates = [plain(), plain(LogisticRegression(C=0.01)), standardized()]
    bench = bench_of(make_groups(n_domains=n_domains), objective, candidates)
    table = score_table(bench, KINDS)
    number = choose_plain(bench, table)
    features = gain_features(bench, table.scores, table.allowed, number)
    np.testing.assert_allclose(features, naive_features(bench, table, number), atol=1e-12)
    gains = expected_gains(bench, table.scores, table.allowed, number)
    beta = [coefficients()[objective][name] for name in QUANTITIES]
    np.testing.assert_allclose(gains, features @ beta, atol=1e-12)
    assert gains[number] == 0


def test_a_failed_candidate_has_no_expected_gain_and_disturbs_no_other():
    alone = make_bench([plain(), standardized()])
    both = make_bench([plain(), standardized(), plain(Broken())])
    gains = []
    for bench in (alone, both):
        table = score_table(bench, KINDS)
        gains.append(expected_gains(bench, table.scores, table.allowed, 0))
    assert np.isnan(gains[1][2])
    np.testing.assert_allclose(gains[1][:2], gains[0])


def test_separation_is_near_zero_where_rows_overlap():
    rng = np.random.RandomState(0)
    X, T = rng.standard_normal((2, 200, 2))
    codes = np.arange(200) % 2
    for move, low, high in ((0.0, 0.0, 0.01), (1.0, 0.0, 0.3), (9.0, 0.99, 1.0)):
        problem = Problem(X, codes, np.zeros(200, int), T + move, np.full(200, -1), 2)
        assert low <= separation(make_bench([plain()], problem)) <= high
    few = Problem(X[:5], codes[:5], np.zeros(5, int), T[:5], np.full(5, -1), 2)
    assert separation(make_bench([plain()], few)) == 0


def test_coefficients_name_every_quantity_and_the_command_that_wrote_them():
    for objective in OBJECTIVES:
        assert tuple(coefficients()[objective]) == QUANTITIES
    text = files("covshift.selection").joinpath("coefficients.json").read_text()
    assert json.loads(text)["command"].startswith("python benchmarks/calibrate.py")
