import math
import statistics
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import sem
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error, r2_score, recall_score

from covshift.measures.labeled_scores import (
    number_gain,
    paired_gain,
    score_numbers,
    score_predictions,
    unweighted_average_recall,
)
from covshift.measures.mmd import percentage_change
from covshift.measures.paired_tests import mean_and_standard_error
from tests.kernels.problems import FIXED

ROUNDING = 1e-12

LABELS = {
    "strings": ["anger", "fear", "joy"],
    "integers": [-1, 0, 7],
    "booleans": [False, True],
    "floats": [0.0, 1.0, 3.0],
}


def naive_uar(y_true, y_pred):
    """Mean over the true classes of hits / rows, counted one by one."""
    recalls = []
    for c in set(y_true):
        rows = hits = 0
        for truth, predicted in zip(y_true, y_pred, strict=True):
            if truth == c:
                rows += 1
                hits += predicted == c
        recalls.append(hits / rows)
    return sum(recalls) / len(recalls)


@st.composite
def predictions(draw):
    labels = st.sampled_from(draw(st.sampled_from(list(LABELS.values()))))
    pairs = draw(st.lists(st.tuples(labels, labels), min_size=1, max_size=20))
    return [truth for truth, _ in pairs], [predicted for _, predicted in pairs]


@FIXED
@given(predictions())
def test_uar_equals_the_naive_twin(labels):
    y_true, y_pred = labels
    assert unweighted_average_recall(y_true, y_pred) == pytest.approx(
        naive_uar(y_true, y_pred), abs=ROUNDING
    )


@FIXED
@given(predictions())
def test_uar_equals_scikit_learn_balanced_accuracy(labels):
    y_true, y_pred = labels
    with warnings.catch_warnings():
        # It warns of classes that are only predicted, which our rule names.
        warnings.simplefilter("ignore", UserWarning)
        expected = balanced_accuracy_score(y_true, y_pred)
    assert unweighted_average_recall(y_true, y_pred) == pytest.approx(expected, abs=ROUNDING)


@FIXED
@given(predictions(), st.randoms(use_true_random=False))
def test_uar_depends_on_neither_order_nor_names(labels, random):
    y_true, y_pred = labels
    order = random.sample(range(len(y_true)), len(y_true))
    names = {label: f"class {index}" for index, label in enumerate({*y_true, *y_pred})}
    renamed = unweighted_average_recall(
        [names[y_true[i]] for i in order], [names[y_pred[i]] for i in order]
    )
    assert renamed == pytest.approx(unweighted_average_recall(y_true, y_pred), abs=ROUNDING)


def test_uar_is_not_macro_recall_when_a_class_is_only_predicted():
    y_true, y_pred = ["a", "a", "b", "b"], ["a", "c", "b", "b"]
    assert unweighted_average_recall(y_true, y_pred) == 0.75
    assert recall_score(y_true, y_pred, average="macro", zero_division=0) == pytest.approx(0.5)


def test_uar_weighs_classes_not_rows():
    y_true = ["common"] * 99 + ["rare"]
    assert unweighted_average_recall(y_true, ["common"] * 100) == 0.5


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        ([0, 1], [0, 1, 1]),
        ([], []),
        ([0.0, np.nan], [0.0, 1.0]),
        ([0.0, 1.0], [0.0, np.nan]),
        (["a", "b"], [0, 1]),
        ([[0, 1], [1, 0]], [[0, 1], [1, 0]]),
    ],
    ids=["lengths", "empty", "NaN true", "NaN predicted", "types", "multilabel"],
)
def test_uar_refuses(y_true, y_pred):
    with pytest.raises((ValueError, TypeError)):
        unweighted_average_recall(y_true, y_pred)


ordinary = st.floats(-1e6, 1e6)


@FIXED
@given(st.lists(st.tuples(ordinary, ordinary), min_size=1, max_size=8))
def test_percentage_change_equals_its_formula_entry_by_entry(pairs):
    before, after = np.array(pairs).T
    assume((np.abs(before) > 1e-6).all())
    changes = percentage_change(before, after)
    for b, a, change in zip(before, after, changes, strict=True):
        assert change == pytest.approx((a / b - 1) * 100, rel=1e-9, abs=1e-6)
        assert percentage_change(b, a) == change


def test_percentage_change_of_numbers_and_arrays():
    assert percentage_change(0.342, 0.779) == pytest.approx(127.777777, rel=1e-6)
    assert isinstance(percentage_change(2, 3), float)
    # An unbiased MMD² below zero: more than all of the distance is gone.
    assert percentage_change(0.5, -0.0005) == pytest.approx(-100.1)
    assert percentage_change([[1.0], [2.0]], [2.0, 3.0]).tolist() == [[100, 200], [0, 50]]


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, [1.0, 0.0], [1.0, np.nan]])
def test_percentage_change_from_nothing_is_an_error(bad):
    with pytest.raises(ValueError, match="before"):
        percentage_change(bad, 1.0)


def test_percentage_change_to_nothing_known_is_an_error():
    with pytest.raises(ValueError, match="after"):
        percentage_change(1.0, [1.0, np.nan])


@FIXED
@given(st.lists(ordinary, min_size=2, max_size=30))
def test_mean_and_standard_error_equal_naive_sums_and_scipy(values):
    n = len(values)
    mean = sum(values) / n
    spread = sum((v - mean) ** 2 for v in values)
    scale = max(1.0, max(map(abs, values)))
    result = mean_and_standard_error(values)
    assert result[0] == pytest.approx(mean, abs=1e-12 * scale)
    assert result[1] == pytest.approx((spread / (n - 1) / n) ** 0.5, abs=1e-9 * scale)
    assert result[1] == pytest.approx(sem(values), rel=1e-12, abs=1e-15 * scale)


def test_one_value_has_a_mean_and_no_error():
    mean, error = mean_and_standard_error([0.7])
    assert mean == 0.7
    assert np.isnan(error)


@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [1.0, np.inf], [[1.0, 2.0], [3.0, 4.0]], "x"])
def test_mean_and_standard_error_refuses(bad):
    with pytest.raises((ValueError, TypeError)):
        mean_and_standard_error(bad)


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


def test_an_absolute_error_is_not_below_zero():
    found = score_numbers([0.0] * 9, [0.0] * 8 + [9.0])["mae"]
    assert found["value"] == 1.0
    assert found["low"] == 0.0


def test_where_scores_are_undefined():
    constant = score_numbers([2.5, 2.5, 2.5], [1.0, 2.0, 3.0])
    assert constant["r2"] == {"value": None, "low": None, "high": None}
    assert constant["mae"]["value"] == pytest.approx(2.5 / 3)
    single = score_numbers([2.0], [1.0])
    assert single["r2"]["value"] is None
    assert single["mae"] == {"value": 1.0, "low": None, "high": None}
    assert number_gain([2.0, 2.0], [1.0, 2.0], [2.0, 2.0], "r2")["value"] is None
    assert number_gain([2.0], [2.0], [1.0], "mae") == {"value": 1.0, "low": None, "high": None}
    rounded = 0.1 + np.array([1e9, 1e9, 1e9 + 1e-7])  # equal except for rounding
    assert score_numbers(rounded, np.zeros(3))["r2"]["value"] is None


def test_domains_of_numbers():
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


def test_a_gain_in_balanced_accuracy_is_the_mean_over_classes():
    truth = np.array([0] * 6 + [1] * 2)
    predicted, other = truth.copy(), truth.copy()
    other[:3] = 1  # half of one class is gained
    predicted[7] = 0  # half of the other is lost, and lost again below
    found = paired_gain(truth, predicted, other, "balanced_accuracy")
    assert found["value"] == pytest.approx((0.5 - 0.5) / 2)
    predicted[7] = 1
    found = paired_gain(truth, predicted, other, "balanced_accuracy")
    assert found["value"] == pytest.approx(0.25)


def test_the_interval_of_a_gain_follows_the_variance_of_each_class():
    """Two rows are enough for a variance; of a single one, the largest of a share is assumed."""
    truth, predicted, other = list("aabbbc"), list("aabbac"), list("aababc")
    gains = {"a": [0, 0], "b": [1, 0, -1], "c": [0]}
    variances = [statistics.variance(one) / len(one) for one in (gains["a"], gains["b"])] + [0.25]
    found = paired_gain(truth, predicted, other, "balanced_accuracy")
    assert found["value"] == 0
    half = 1.959964 * np.sqrt(sum(variances)) / 3
    assert found["high"] - found["value"] == pytest.approx(half, rel=1e-6)
    assert found["value"] - found["low"] == pytest.approx(half, rel=1e-6)
