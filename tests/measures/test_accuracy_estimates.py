"""Estimates of accuracy on unlabeled rows against naive twins, on edge cases and in the limit."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from covshift.measures import (
    accuracy_under_class_shares,
    average_thresholded_confidence,
    calibrated_confidence,
    difference_of_confidences,
    importance_weighted_calibration,
    transported_confidence,
)
from tests.twins import naive

SCORES = ["max_confidence", "negative_entropy"]
METRICS = ["accuracy", "balanced_accuracy"]


def draw(n, n_classes, seed=0, skill=0.7):
    """Classes, predictions and probabilities that are right: the class is drawn by them."""
    rng = np.random.RandomState(seed)
    P = rng.dirichlet(np.full(n_classes, 1 - skill), size=n)
    codes = np.array([rng.choice(n_classes, p=p) for p in P])
    return codes, P.argmax(axis=1), P


def draw_both(n_classes, seed, n=60, n_target=45):
    """Source probabilities and classes, and target probabilities of another skill."""
    codes, _, P = draw(n, n_classes, seed=2 * seed)
    _, _, P_target = draw(n_target, n_classes, seed=2 * seed + 1, skill=0.4)
    return P, codes, P_target


def round_to_tenths(P):
    """Probabilities in tenths, as of a small forest: scores are tied."""
    tenths = np.floor(10 * P).astype(int)
    tenths[np.arange(len(P)), P.argmax(axis=1)] += 10 - tenths.sum(axis=1)
    return tenths / 10


# Average thresholded confidence


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_thresholded_confidence_equals_the_naive_twin(score, n_classes, seed):
    P, codes, P_target = draw_both(n_classes, seed)
    found = average_thresholded_confidence(P, codes, P_target, score=score)
    assert found == naive.thresholded_confidence(P, codes, P_target, score)
    tied, tied_target = round_to_tenths(P), round_to_tenths(P_target)
    found = average_thresholded_confidence(tied, codes, tied_target, score=score)
    assert found == naive.thresholded_confidence(tied, codes, tied_target, score)
    predicted = np.roll(codes, 1)
    found = average_thresholded_confidence(
        P, codes, P_target, score=score, predicted_source=predicted
    )
    assert found == naive.thresholded_confidence(P, codes, P_target, score, predicted)


@pytest.mark.parametrize("score", SCORES)
def test_thresholded_confidence_of_the_source_is_its_accuracy(score):
    codes, predicted, P = draw(200, 4)
    found = average_thresholded_confidence(P, codes, P, score=score)
    assert found == pytest.approx(np.mean(codes == predicted), abs=1e-12)


def test_thresholded_confidence_where_all_source_rows_are_right_or_wrong():
    P = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
    right = P.argmax(axis=1)
    target = [[0.6, 0.4], [0.45, 0.55], [1.0, 0.0], [0.2, 0.8]]
    # Less confident than any source row: not known to be right.
    assert average_thresholded_confidence(P, right, target) == 0.75
    assert average_thresholded_confidence(P, 1 - right, target) == 0


def test_thresholded_confidence_of_tied_scores_takes_the_closest_threshold():
    P = [[1.0, 0.0]] * 8 + [[0.6, 0.4]] * 2
    wrong_once, wrong_six_times = [1] + [0] * 9, [1] * 6 + [0] * 4
    target = [[1.0, 0.0], [0.6, 0.4], [0.5, 0.5], [0.7, 0.3]]
    assert average_thresholded_confidence(P, wrong_once, target) == 0.75  # 0 rows below .6
    # 6 errors: 2 rows are below 1, 10 below infinity; the lower one of two as close.
    assert average_thresholded_confidence(P, wrong_six_times, target) == 0.25


def test_entropy_does_not_depend_on_the_order_of_the_classes():
    p = [0.05, 0.15, 0.8]  # sums of its entropy differ by rounding
    orders = np.array(list(itertools.permutations(p)))
    codes = orders.argmax(axis=1)
    codes[:3] = orders[:3].argmin(axis=1)  # three errors: rounding would put rows below
    for one in orders:
        found = average_thresholded_confidence(orders, codes, [one], score="negative_entropy")
        assert found == 1


# Difference of confidences


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_difference_of_confidences_equals_the_naive_twin(n_classes, seed):
    P, codes, P_target = draw_both(n_classes, seed)
    found = difference_of_confidences(P, codes, P_target)
    expected = naive.difference_of_confidences(P, codes, P_target)
    assert found == pytest.approx(expected, rel=1e-12)
    predicted, target_predicted = np.roll(codes, 1), P_target.argmin(axis=1)
    for metric, expected in zip(
        METRICS,
        naive.confident_recalls(codes, P, predicted, P_target, target_predicted),
        strict=True,
    ):
        found = difference_of_confidences(
            P,
            codes,
            P_target,
            metric=metric,
            predicted_source=predicted,
            predicted_target=target_predicted,
        )
        assert found == pytest.approx(expected, rel=1e-12)


def test_difference_of_confidences_of_the_source_is_its_score():
    codes, predicted, P = draw(200, 4)
    assert difference_of_confidences(P, codes, P) == pytest.approx(np.mean(codes == predicted))
    recalls = [np.mean(predicted[codes == k] == k) for k in range(4)]
    found = difference_of_confidences(P, codes, P, metric="balanced_accuracy")
    assert found == pytest.approx(np.mean(recalls))


def test_difference_of_confidences_is_clipped():
    unsure, sure = np.tile([0.55, 0.45], (20, 1)), np.tile([1.0, 0.0], (20, 1))
    right, wrong = np.zeros(20, dtype=int), np.ones(20, dtype=int)
    for metric in METRICS:
        assert difference_of_confidences(unsure, right, sure, metric=metric) == 1
        assert difference_of_confidences(sure, wrong, unsure, metric=metric) == 0


# Calibrated confidence


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_calibrated_confidence_equals_the_naive_twin(n_classes, seed):
    _, predicted, P = draw(50, n_classes, seed=seed)
    for given in (None, P.argmin(axis=1)):
        expected = naive.expected_confusion_scores(P, predicted if given is None else given)
        for metric, value in zip(METRICS, expected, strict=True):
            found = calibrated_confidence(P, metric=metric, predicted_target=given)
            assert found == pytest.approx(value, rel=1e-12)


def test_calibrated_confidence_is_the_score_where_classes_are_drawn_by_the_probabilities():
    codes, predicted, P = draw(20_000, 3, skill=0.5)
    # Four standard errors.
    assert calibrated_confidence(P) == pytest.approx(np.mean(codes == predicted), abs=0.014)
    recalls = [np.mean(predicted[codes == k] == k) for k in range(3)]
    found = calibrated_confidence(P, metric="balanced_accuracy")
    assert found == pytest.approx(np.mean(recalls), abs=0.014)


def test_balanced_accuracy_leaves_out_classes_that_are_not_expected():
    P = np.array([[0.8, 0.15, 0.05], [0.7, 0.2, 0.1], [0.3, 0.65, 0.05]])  # .2 rows of class 2
    expected = (1.5 / 1.8 + 0.65 / 1.0) / 2
    assert calibrated_confidence(P, metric="balanced_accuracy") == pytest.approx(expected)
    # No class has an expected row: the most expected one.
    assert calibrated_confidence(P[:1], metric="balanced_accuracy") == 1
    twin = naive.expected_confusion_scores(P[:1], [0])
    assert calibrated_confidence(P[:1]) == twin[0] == 0.8
    assert twin[1] == 1


# Importance-weighted calibration


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_weighted_calibration_equals_the_naive_twin(n_classes, seed):
    P, codes, P_target = draw_both(n_classes, seed, n=40, n_target=20)
    P, P_target = 0.9 * P + 0.1 / n_classes, 0.9 * P_target + 0.1 / n_classes
    weights = np.random.RandomState(seed).exponential(size=40)
    Q = naive.weighted_calibration(P, codes, weights, P_target)
    for given in (None, P_target.argmin(axis=1)):
        predicted = P_target.argmax(axis=1) if given is None else given
        expected = naive.expected_confusion_scores(Q, predicted)
        for metric, value in zip(METRICS, expected, strict=True):
            found = importance_weighted_calibration(
                P, codes, P_target, weights, metric=metric, predicted_target=given
            )
            assert found == pytest.approx(value, abs=2e-4)


def test_calibration_repairs_confidence_that_is_too_high():
    codes, predicted, P = draw(5000, 3, skill=0.3)
    sharpened = P**3 / (P**3).sum(axis=1, keepdims=True)
    truth = np.mean(codes == predicted)
    assert calibrated_confidence(sharpened) > truth + 0.1
    found = importance_weighted_calibration(sharpened, codes, sharpened, np.ones(5000))
    assert found == pytest.approx(truth, abs=0.02)


def test_weights_choose_the_rows_that_calibrate():
    """Half of the source is right as often as it says, half is guessed: the target is like it."""
    rng = np.random.RandomState(0)
    P = np.tile([0.8, 0.2], (4000, 1))
    guessed = np.arange(4000) % 2 == 1
    codes = np.where(guessed, rng.rand(4000) < 0.5, rng.rand(4000) < 0.2).astype(int)
    target = np.tile([0.8, 0.2], (100, 1))
    for share, weights in [(0.5, guessed), (0.8, ~guessed), (0.65, np.ones(4000))]:
        found = importance_weighted_calibration(P, codes, target, weights.astype(float))
        assert found == pytest.approx(share, abs=0.03)


def test_scale_and_zeros_of_weights_and_probabilities():
    P, codes, P_target = draw_both(3, 0)
    P, P_target = round_to_tenths(P), round_to_tenths(P_target)  # zeros and ones among them
    weights = np.random.RandomState(0).exponential(size=60)
    weights[:10] = 0
    found = importance_weighted_calibration(P, codes, P_target, weights)
    assert 0 < found < 1
    for scale in (1e-300, 1e300):
        scaled = importance_weighted_calibration(P, codes, P_target, scale * weights)
        assert scaled == pytest.approx(found, rel=1e-9)


# Accuracy under class shares


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_class_shares_equal_the_naive_twin(n_classes, seed):
    codes, predicted, P = draw(120, n_classes, seed=2 * seed)
    _, _, P_target = draw(45, n_classes, seed=2 * seed + 1)
    shares = np.random.RandomState(seed).dirichlet(np.ones(n_classes))
    source_shares = np.bincount(codes, minlength=n_classes) / 120
    estimated = naive.most_likely_shares(P_target, source_shares)
    for given, used in [(shares, shares), (None, estimated)]:
        for other in (None, np.roll(codes, 1)):
            expected = naive.class_share_scores(
                codes, predicted if other is None else other, used, 45
            )
            for metric, value in zip(METRICS, expected, strict=True):
                found = accuracy_under_class_shares(
                    P, codes, P_target, class_shares=given, metric=metric, predicted_source=other
                )
                assert found == pytest.approx(value, abs=1e-5)


def test_source_shares_give_the_accuracy_on_the_source():
    codes, predicted, P = draw(300, 4)
    shares = np.bincount(codes, minlength=4) / 300
    found = accuracy_under_class_shares(P, codes, P, class_shares=shares)
    assert found == pytest.approx(np.mean(codes == predicted), rel=1e-12)


def test_a_target_with_other_class_shares():
    """Rows drawn by class: the accuracy on the target is found, that on the source is far off."""
    codes, predicted, P = draw(20_000, 2, skill=0.3)
    P_skewed = P * [0.9, 0.1]
    P_skewed /= P_skewed.sum(axis=1, keepdims=True)
    rng = np.random.RandomState(0)
    keep = rng.rand(20_000) < np.where(codes == 0, 0.9, 0.1)  # the source has nine of class 0 to 1
    source, target = keep & (np.arange(20_000) < 10_000), np.arange(20_000) >= 10_000
    predicted = P_skewed.argmax(axis=1)
    truth = np.mean(predicted[target] == codes[target])
    assert np.mean(predicted[source] == codes[source]) > truth + 0.15
    found = accuracy_under_class_shares(P_skewed[source], codes[source], P_skewed[target])
    assert found == pytest.approx(truth, abs=0.03)


def test_classes_without_source_rows():
    P = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.6, 0.1]])
    codes = [0, 1, 0]
    with pytest.raises(ValueError, match="Class 2 has a positive share but no source row"):
        accuracy_under_class_shares(P, codes, P, class_shares=[0.4, 0.4, 0.2])
    found = accuracy_under_class_shares(P, codes, P, class_shares=[0.4, 0.6, 0])
    assert found == pytest.approx(0.4 * 0.5 + 0.6)
    only = [[0.0, 0.0, 1.0]]  # no probability for any known class: the shares of the source
    assert accuracy_under_class_shares(P, codes, only) == pytest.approx(2 / 3)
    with_it = accuracy_under_class_shares(P, codes, [*P, *only])
    assert with_it == pytest.approx(accuracy_under_class_shares(P, codes, P))


# Transported confidence


@pytest.mark.parametrize(("n", "n_classes"), [(1, 2), (2, 2), (6, 2), (6, 3), (7, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_transport_equals_the_naive_twin(n, n_classes, seed):
    rng = np.random.RandomState(seed)
    P, codes = rng.dirichlet(np.ones(n_classes), size=n), rng.randint(n_classes, size=n)
    for target in (P, round_to_tenths(P)):
        found = transported_confidence(codes, target)
        assert found == pytest.approx(naive.transported_confidence(codes, target), abs=1e-7)
        repeated = transported_confidence(np.repeat(codes, 3), target)
        assert repeated == pytest.approx(found, abs=1e-7)


def test_transport_equals_an_assignment_of_labels():
    codes, _, P = draw(300, 5)
    rows, labels = linear_sum_assignment(1 - P[:, np.roll(codes, 1)])
    expected = P[rows, np.roll(codes, 1)[labels]].mean()
    assert transported_confidence(codes, P) == pytest.approx(expected, abs=1e-7)


def test_shares_need_not_be_whole_numbers_of_rows():
    # A third of two rows is of class 1: the second, with two thirds of its mass.
    found = transported_confidence([0, 0, 1], [[0.9, 0.1], [0.6, 0.4]])
    assert found == pytest.approx((0.9 + 0.6 / 3 + 0.4 * 2 / 3) / 2, abs=1e-7)


def test_transport_finds_a_class_that_is_predicted_too_often():
    P = np.tile([0.99, 0.01], (100, 1))
    codes = np.arange(100) % 2
    assert calibrated_confidence(P) == pytest.approx(0.99)
    assert transported_confidence(codes, P) == pytest.approx(0.5, abs=1e-7)
    one_hot = np.eye(2)[codes]
    assert transported_confidence(codes, one_hot) == pytest.approx(1, abs=1e-7)
    assert transported_confidence(np.zeros(9, dtype=int), 1 - np.eye(2)[[0]]) < 1e-7


def test_many_rows_are_drawn_by_the_seed():
    codes, _, P = draw(1500, 3)
    whole = transported_confidence(codes, P, max_rows=1500)
    drawn = transported_confidence(codes, P, max_rows=300)
    assert drawn == transported_confidence(codes, P, max_rows=300, random_state=0) != whole
    assert drawn != transported_confidence(codes, P, max_rows=300, random_state=1)
    assert drawn == pytest.approx(whole, abs=0.05)


# All of them

ESTIMATES = {
    "ATC": average_thresholded_confidence,
    "ATC, entropy": lambda P, y, P_target: average_thresholded_confidence(
        P, y, P_target, score="negative_entropy"
    ),
    "DoC": difference_of_confidences,
    "PAPE": lambda P, y, P_target: importance_weighted_calibration(P, y, P_target, np.ones(len(P))),
    "class shares": accuracy_under_class_shares,
    "COT": lambda P, y, P_target: transported_confidence(y, P_target),
    "CBPE": lambda P, y, P_target: calibrated_confidence(P_target),
}
WITH_SOURCE = [name for name in ESTIMATES if name not in ("COT", "CBPE")]


@pytest.mark.parametrize("name", ESTIMATES)
def test_the_accuracy_is_found_where_nothing_moved(name):
    codes, _, P = draw(2000, 3, seed=0)
    target, predicted, P_target = draw(2000, 3, seed=1)
    truth = np.mean(target == predicted)
    found = ESTIMATES[name](P, codes, P_target)
    assert isinstance(found, float)
    # Standard errors of both samples: about .012. Transport is biased to high costs by the
    # difference between the class shares of the two samples.
    assert found == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize("name", ESTIMATES)
def test_inputs_stay_as_they_are_and_single_precision_is_accepted(name):
    P, codes, P_target = draw_both(3, 0)
    expected = ESTIMATES[name](P, codes, P_target)
    for array in (P, codes, P_target):
        array.setflags(write=False)
    assert ESTIMATES[name](P, codes, P_target) == expected
    single = ESTIMATES[name](P.astype(np.float32), codes.astype(np.uint8), P_target.tolist())
    assert single == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", ESTIMATES)
def test_bad_probabilities_are_a_clear_error(name):
    P, codes, P_target = draw_both(3, 0)
    for bad, message in [
        (3 * P_target, r"rows of P_target must sum to 1: 45 of 45 do not \(row 0 sums to 3\)"),
        (np.where(P_target > 0.5, np.nan, P_target), "P_target contains NaN"),
        (P_target - [2, -1, -1], "P_target must hold probabilities: it has negative entries"),
        (P_target[:0], "minimum of 1 is required"),
        (np.ones((5, 1)), "P_target must have a column for each of two classes or more"),
    ]:
        with pytest.raises(ValueError, match=message):
            ESTIMATES[name](P, codes, bad)


@pytest.mark.parametrize("name", WITH_SOURCE)
def test_bad_source_rows_are_a_clear_error(name):
    P, codes, P_target = draw_both(3, 0)
    estimate = ESTIMATES[name]
    with pytest.raises(ValueError, match="P_source and P_target must have the same classes, got 2"):
        estimate(np.full((60, 2), 0.5), np.minimum(codes, 1), P_target)
    with pytest.raises(ValueError, match=r"y_source .* expected shape \(60,\), got shape \(59,\)"):
        estimate(P, codes[1:], P_target)
    with pytest.raises(ValueError, match="rows of P_source must sum to 1"):
        estimate(np.log(P + 1) + 1, codes, P_target)


@pytest.mark.parametrize("name", [*WITH_SOURCE, "COT"])
def test_bad_classes_are_a_clear_error(name):
    P, codes, P_target = draw_both(3, 0)
    for bad, message in [
        (codes + 1, "y_source must hold column numbers of the probabilities, 0 to 2, got 3"),
        (codes - 1, "0 to 2, got -1"),
        (np.array(["a", "b", "c"])[codes], "class numbers of type int, got <U1: for labels y"),
        (codes / 1, "class numbers of type int, got float64"),
        (codes[:, None], "one class number per row"),
        (codes[:0], "one class number per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            ESTIMATES[name](P, bad, P_target)


def test_bad_options_are_a_clear_error():
    P, codes, P_target = draw_both(3, 0)
    for estimate in (difference_of_confidences, accuracy_under_class_shares):
        with pytest.raises(ValueError, match=r"metric must be one of .*, got 'f1'"):
            estimate(P, codes, P_target, metric="f1")
    with pytest.raises(ValueError, match="metric must be one of"):
        calibrated_confidence(P_target, metric="f1")
    with pytest.raises(ValueError, match="metric must be one of"):
        importance_weighted_calibration(P, codes, P_target, np.ones(60), metric="f1")
    with pytest.raises(ValueError, match=r"score must be one of .*, got 'margin'"):
        average_thresholded_confidence(P, codes, P_target, score="margin")
    with pytest.raises(ValueError, match="predicted_target must hold one class number per row"):
        calibrated_confidence(P_target, predicted_target=[0])
    with pytest.raises(ValueError, match="weights must hold one number per row"):
        importance_weighted_calibration(P, codes, P_target, np.ones(45))
    for shares, message in [
        ([0.5, 0.5], "one number per class"),
        ([0.5, 0.7, -0.2], "must not be negative"),
        ([0.5, 0.7, 0.2], "must sum to 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            accuracy_under_class_shares(P, codes, P_target, class_shares=shares)
    for max_rows in (0, 2.5):
        with pytest.raises(ValueError, match="max_rows must be a positive integer"):
            transported_confidence(codes, P_target, max_rows=max_rows)


@pytest.mark.parametrize(("codes", "named"), [([0, 3, 1], 3), ([0, -1, 1], -1), ([-2, 5, 1], -2)])
def test_the_class_number_that_is_outside_is_named(codes, named):
    P = np.full((3, 3), 1 / 3)
    with pytest.raises(ValueError, match=f"0 to 2, got {named}\\."):
        difference_of_confidences(P, np.array(codes), P)
