"""Scores of predictions against slow twins of their formulas."""

import math

import numpy as np
import pytest

from covshift.measures.prediction_scores import score_predictions

Z = 1.959963984540054


def wilson(k, n):
    """The two roots of (p - k / n)^2 = z^2 p (1 - p) / n."""
    a, b, c = 1 + Z**2 / n, -(2 * k / n + Z**2 / n), (k / n) ** 2
    root = math.sqrt(b**2 - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def balanced(truth, predicted):
    recalls, below, above = [], 0.0, 0.0
    names = sorted(set(truth))
    for name in names:
        hits = [p == t for t, p in zip(truth, predicted, strict=True) if t == name]
        recalls.append(sum(hits) / len(hits))
        low, high = wilson(sum(hits), len(hits))
        below += (recalls[-1] - low) ** 2
        above += (high - recalls[-1]) ** 2
    value = sum(recalls) / len(names)
    return value, value - math.sqrt(below) / len(names), value + math.sqrt(above) / len(names)


@pytest.mark.parametrize("seed", range(5))
def test_against_the_formulas(seed):
    rng = np.random.RandomState(seed)
    truth = rng.choice(["a", "b", "c"], size=50, p=[0.7, 0.2, 0.1])
    predicted = np.where(rng.rand(50) < 0.6, truth, rng.choice(["a", "b", "c", "d"], size=50))
    scores = score_predictions(truth, predicted)
    n_right = int((truth == predicted).sum())
    assert scores["accuracy"]["value"] == n_right / 50
    found = scores["accuracy"]["low"], scores["accuracy"]["high"]
    assert found == pytest.approx(wilson(n_right, 50))
    assert tuple(scores["balanced_accuracy"].values()) == pytest.approx(balanced(truth, predicted))
    for one in scores["classes"]:
        rows = truth == one["name"]
        assert one["n_rows"] == rows.sum()
        assert one["n_predicted"] == (predicted == one["name"]).sum()
        expected = wilson(int((predicted[rows] == one["name"]).sum()), int(rows.sum()))
        assert (one["recall"]["low"], one["recall"]["high"]) == pytest.approx(expected)


def test_domains():
    truth, predicted = np.array([1, 0] * 20), np.array([1, 0] * 15 + [1, 1] * 5)
    domain = np.repeat(["A", "B", "C", "D"], 10)
    scores = score_predictions(truth, predicted, domain)
    assert [one["accuracy"]["value"] for one in scores["domains"]] == [1, 1, 1, 0.5]
    mean = scores["mean_over_domains"]
    assert mean["value"] == 0.875
    assert mean["low"] < 0.875 < mean["high"] <= 1
    few = score_predictions(truth[:30], predicted[:30], domain[:30])
    assert "mean_over_domains" not in few
    # One domain is the whole.
    (one,) = score_predictions(truth, predicted, np.full(40, "A"))["domains"]
    assert one["accuracy"] == scores["accuracy"]


def test_certainty_is_not_claimed_from_few_rows():
    scores = score_predictions(["a", "b"], ["a", "b"])
    assert scores["accuracy"]["value"] == 1
    assert scores["accuracy"]["low"] < 0.4
    assert scores["balanced_accuracy"]["low"] < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "rate"), [(20, 0.9), (100, 0.8), (400, 0.95)])
def test_intervals_cover(n_rows, rate):
    rng = np.random.RandomState(0)
    covered = {"accuracy": 0, "balanced_accuracy": 0}
    for _ in range(1000):
        truth = np.repeat([0, 1], n_rows // 2)
        predicted = np.where(rng.rand(n_rows) < rate, truth, 1 - truth)
        scores = score_predictions(truth, predicted)
        for name in covered:
            covered[name] += scores[name]["low"] <= rate <= scores[name]["high"]
    assert all(0.93 <= count / 1000 <= 0.99 for count in covered.values()), covered


@pytest.mark.parametrize(("truth", "predicted"), [([], []), ([1, 2], [1]), ([[1]], [[1]])])
def test_what_cannot_be_scored(truth, predicted):
    with pytest.raises(ValueError, match="as many predictions as labels"):
        score_predictions(truth, predicted)
