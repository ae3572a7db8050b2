"""Numbers where the assumption holds, none where it is refuted."""

import json

import numpy as np
import pytest

from covshift.diagnosis.expectation import choose_expectation, estimate_accuracy
from covshift.diagnosis.left_out import predict_left_out
from covshift.diagnosis.weighting import measure_weighting
from tests.diagnosis.degenerate import DEGENERATE
from tests.diagnosis.test_movement import normal_problem
from tests.selection.made_problems import make_bench, make_moved, plain, standardised


def expectations(candidate, problem, seed=0, **options):
    bench = make_bench([candidate], problem, seed=seed)
    left_out = predict_left_out(bench, 0)
    found = estimate_accuracy(
        problem,
        left_out.source_logits,
        left_out.target_logits,
        measure_weighting(bench),
        representations=left_out.representations,
        **options,
    )
    return {one.method: one for one in found}


def shifted(seed, move=0.0):
    """Rows of two classes that overlap; P(y | x) is the same in both roles."""
    rng = np.random.RandomState(seed)
    problem = normal_problem(seed=seed, n=300)
    X, T = rng.standard_normal((2, 300, 4))
    T[:, 1] += move

    def labels(rows):
        return (rng.uniform(size=len(rows)) < 1 / (1 + np.exp(-2 * rows[:, 0]))).astype(int)

    return problem._replace(X_source=X, X_target=T, codes=labels(X)), labels(T)


def accuracy_of(candidate, problem, target_codes):
    predicted = make_bench([candidate], problem).target[0].codes
    recalls = [np.mean(predicted[target_codes == k] == k) for k in range(2)]
    return np.mean(predicted == target_codes), np.mean(recalls)


@pytest.mark.parametrize("move", [0.0, 0.4])
def test_intervals_cover_where_the_assumption_holds(move):
    covered, widths = [], []
    for seed in range(12):
        problem, target_codes = shifted(seed, move)
        truths = accuracy_of(plain(), problem, target_codes)
        for one in expectations(plain(), problem, seed).values():
            if one.refuted:
                assert np.isnan([one.accuracy, one.balanced_accuracy]).all()
                continue
            for truth, (low, high) in zip(
                truths, (one.accuracy_interval, one.balanced_accuracy_interval), strict=True
            ):
                covered.append(low <= truth <= high)
                widths.append(high - low)
    assert len(covered) >= 24  # of 48: given at least in half of the cases
    assert np.mean(covered) >= 0.85
    assert np.mean(widths) <= 0.2


def test_no_number_for_rows_elsewhere():
    problem, _ = make_moved()
    found = expectations(plain(), problem)
    assert {"overlap", "left over"} <= set(found["weights"].reasons)
    assert "representation differs" in found["confidence"].reasons
    assert choose_expectation(list(found.values())) is None


def test_standardising_brings_the_number_back():
    problem, target_codes = make_moved(n=240)
    found = expectations(standardised(), problem)
    assert found["weights"].refuted  # of rows as they are
    confidence = found["confidence"]
    assert not confidence.refuted
    truth, balanced = accuracy_of(standardised(), problem, target_codes)
    assert confidence.accuracy_interval[0] <= truth <= confidence.accuracy_interval[1]
    low, high = confidence.balanced_accuracy_interval
    assert low <= balanced <= high
    assert choose_expectation(list(found.values())) is confidence


def test_class_shares_refute_what_standardising_makes_of_them():
    """Standardising moves the classes; the logits give it away though the rows can be weighed."""
    problem = normal_problem(shares=(0.1, 0.9), n=400)
    found = expectations(standardised(), problem)
    assert "predictions differ" in found["weights"].reasons
    assert found["confidence"].refuted


def test_wide_intervals_are_not_stated():
    problem, _ = shifted(0)
    few = problem._replace(
        X_source=problem.X_source[:30],
        codes=problem.codes[:30],
        source_domain=problem.source_domain[:30],
        X_target=problem.X_target[:30],
        target_domain=problem.target_domain[:30],
    )
    for one in expectations(plain(), few).values():
        assert one.refuted
        assert np.isnan(one.accuracy)


def test_the_order_of_choice():
    problem, _ = shifted(1)
    found = list(expectations(plain(), problem, seed=1).values())
    by_weights, by_confidence = (one._replace(refuted=False) for one in found)
    assert choose_expectation([by_weights, by_confidence]) is by_confidence
    refuted = by_confidence._replace(refuted=True)
    assert choose_expectation([by_weights, refuted]) is by_weights


def test_the_same_seed_gives_the_same_numbers():
    problem, _ = shifted(2)
    first, second = (expectations(plain(), problem, seed=5) for _ in range(2))
    assert [one.to_dict() for one in first.values()] == [one.to_dict() for one in second.values()]


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_records(name):
    problem = DEGENERATE[name]
    rng = np.random.RandomState(0)
    logits = rng.standard_normal((len(problem.codes), problem.n_classes))
    target_logits = rng.standard_normal((len(problem.X_target), problem.n_classes))
    bench = make_bench([plain()], problem)
    for representations in ((), [(problem.X_source, problem.X_target)] * 3):
        found = estimate_accuracy(
            problem,
            logits,
            target_logits,
            measure_weighting(bench),
            representations=representations,
        )
        for one in found:
            json.dumps(one.to_dict(), allow_nan=False)
            assert one.refuted == bool(one.reasons)


@pytest.mark.parametrize("constant", [0.0, 50.0])
def test_constant_logits(constant):
    problem, _ = shifted(3)
    logits = np.full((300, 2), constant)
    found = estimate_accuracy(
        problem, logits, logits, measure_weighting(make_bench([plain()], problem))
    )
    for one in found:
        if not one.refuted:
            assert one.accuracy == pytest.approx(np.mean(problem.codes == 0), abs=0.05)


def test_logits_that_separate_the_classes():
    problem = normal_problem(apart=30.0)
    found = expectations(plain(), problem)
    for one in found.values():
        if not one.refuted:
            assert one.accuracy > 0.99
            assert 0.9 < one.accuracy_interval[0] < one.accuracy_interval[1] <= 1
