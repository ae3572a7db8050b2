"""R² and mean absolute error with intervals, beside naive twins and the bootstrap."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from covshift.measures.number_scores import number_gain, score_numbers


def draw(n, seed=0, noise=0.6):
    """Truth with spread 10, and predictions with errors of spread 10 * noise and mean 1."""
    rng = np.random.default_rng(seed)
    truth = 50 + 10 * rng.standard_normal(n)
    return truth, truth + 10 * noise * rng.standard_normal(n) + 1


def bootstrap(statistic, n, n_resamples=1000):
    """Quantiles of a statistic of resampled rows."""
    rng = np.random.default_rng(1)
    found = [statistic(rng.integers(n, size=n)) for _ in range(n_resamples)]
    return np.quantile(found, [0.025, 0.975])


def naive_r2(truth, predicted):
    return 1 - np.sum((truth - predicted) ** 2) / np.sum((truth - truth.mean()) ** 2)


def test_scores_are_those_of_sklearn():
    truth, predicted = draw(40)
    scores = score_numbers(truth, predicted)
    assert scores["r2"]["value"] == pytest.approx(r2_score(truth, predicted))
    assert scores["mae"]["value"] == pytest.approx(mean_absolute_error(truth, predicted))
    assert scores["bias"] == pytest.approx(np.mean(predicted - truth))
    assert scores["spread"] == pytest.approx(np.std(truth))


def test_intervals_are_about_those_of_the_bootstrap():
    truth, predicted = draw(400)
    other = truth + 9 * np.random.default_rng(2).standard_normal(400)
    scores = score_numbers(truth, predicted)
    twins = {
        "r2": lambda rows: naive_r2(truth[rows], predicted[rows]),
        "mae": lambda rows: np.abs(truth - predicted)[rows].mean(),
    }
    gains = {
        "r2": lambda rows: twins["r2"](rows) - naive_r2(truth[rows], other[rows]),
        "mae": lambda rows: np.abs(truth - other)[rows].mean() - twins["mae"](rows),
    }
    for name, twin in twins.items():
        ends = bootstrap(twin, 400)
        found = [scores[name]["low"], scores[name]["high"]]
        np.testing.assert_allclose(found, ends, atol=0.15 * (ends[1] - ends[0]))
    for name, twin in gains.items():
        gain, ends = number_gain(truth, predicted, other, name), bootstrap(twin, 400)
        assert gain["value"] == pytest.approx(twin(np.arange(400)))
        found = [gain["low"], gain["high"]]
        np.testing.assert_allclose(found, ends, atol=0.15 * (ends[1] - ends[0]))


def test_intervals_cover_about_as_often_as_they_say():
    population = 1 - 0.6**2 - 0.1**2  # R² of `draw`
    intervals = [score_numbers(*draw(100, seed))["r2"] for seed in range(300)]
    covered = np.mean([one["low"] <= population <= one["high"] for one in intervals])
    assert 0.90 < covered < 0.99  # binomial error .0126


def test_where_scores_are_undefined():
    constant = score_numbers([2.5, 2.5, 2.5], [1.0, 2.0, 3.0])
    assert constant["r2"] == {"value": None, "low": None, "high": None}
    assert constant["mae"]["value"] == pytest.approx(2.5 / 3)
    single = score_numbers([2.0], [1.0])
    assert single["r2"]["value"] is None
    assert single["mae"] == {"value": 1.0, "low": None, "high": None}
    assert number_gain([2.0, 2.0], [1.0, 2.0], [2.0, 2.0], "r2")["value"] is None
    assert number_gain([2.0], [2.0], [1.0], "mae") == {"value": 1.0, "low": None, "high": None}
    rounded = 0.1 + np.array([1e9, 1e9, 1e9 + 1e-7])  # equal but for rounding
    assert score_numbers(rounded, np.zeros(3))["r2"]["value"] is None


def test_domains():
    truth, predicted = draw(200)
    domain = np.repeat(["a", "b", "c", "d"], 50)
    scores = score_numbers(truth, predicted, domain)
    for one in scores["domains"]:
        rows = domain == one["name"]
        assert one["r2"]["value"] == pytest.approx(r2_score(truth[rows], predicted[rows]))
    mean = np.mean([one["mae"]["value"] for one in scores["domains"]])
    whole = scores["mean_over_domains"]
    assert whole["value"] == pytest.approx(mean)
    assert whole["low"] < mean < whole["high"]
    assert "mean_over_domains" not in score_numbers(truth, predicted, np.repeat(["a", "b"], 100))


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([1.0, 2.0], [1.0], "as many predictions as labels"),
        ([], [], "one at least"),
        ([1.0, np.nan], [1.0, 2.0], "finite"),
        ([1.0, 2.0], [np.inf, 2.0], "finite"),
    ],
)
def test_bad_input(truth, predicted, message):
    with pytest.raises(ValueError, match=message):
        score_numbers(truth, predicted)
