"""Estimates of accuracy on unlabeled rows against naive twins, on edge cases and in the limit."""

import numpy as np
import pytest

from covshift.measures import (
    average_thresholded_confidence,
    difference_of_confidences,
)
from covshift.measures.performance_estimates import (
    _label_noise,
    confident_scores,
    weighted_scores,
)
from tests import naive

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
    p = np.array([0.1, 0.2, 0.7])
    orders = np.array([p[order] for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0])])
    codes = orders.argmax(axis=1)
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


# Scores with variances


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_scores_equal_the_naive_twins(n_classes):
    codes, predicted, P = draw(80, n_classes)
    _, target_predicted, P_target = draw(50, n_classes, seed=1)
    weights = np.random.RandomState(2).exponential(size=80)
    by_weights = weighted_scores(codes, predicted, weights, n_classes, 50)
    expected = naive.weighted_recalls(codes, predicted, weights, n_classes, 50)
    np.testing.assert_allclose(by_weights[::2], expected, rtol=1e-12)
    by_confidence = confident_scores(codes, P, predicted, P_target, target_predicted)
    expected = naive.confident_recalls(codes, P, predicted, P_target, target_predicted)
    np.testing.assert_allclose(by_confidence[::2], expected, rtol=1e-12)


def test_equal_weights_give_plain_scores_whatever_their_scale():
    codes, predicted, _ = draw(200, 3)
    plain = weighted_scores(codes, predicted, np.ones(200), 3, 100)
    assert plain.accuracy == pytest.approx(np.mean(codes == predicted))
    recalls = [np.mean(predicted[codes == k] == k) for k in range(3)]
    assert plain.balanced_accuracy == pytest.approx(np.mean(recalls))
    np.testing.assert_allclose(weighted_scores(codes, predicted, np.full(200, 7.0), 3, 100), plain)


def test_variances_are_those_of_a_bootstrap_over_the_source_rows():
    n, n_target = 400, 10**9  # without the noise of labels
    codes, predicted, P = draw(n, 3, skill=0.5)
    _, target_predicted, P_target = draw(300, 3, seed=1, skill=0.5)
    rng = np.random.RandomState(2)
    weights = rng.exponential(size=n)
    by_weights, by_confidence = [], []
    for _ in range(1500):
        rows = rng.randint(n, size=n)
        by_weights.append(
            both_scores(codes[rows], predicted[rows], weights[rows], n_target),
        )
        found = confident_scores(codes[rows], P[rows], predicted[rows], P_target, target_predicted)
        by_confidence.append(found[::2])
    found = weighted_scores(codes, predicted, weights, 3, n_target)
    np.testing.assert_allclose(found[1::2], np.var(by_weights, axis=0), rtol=0.2)
    found = confident_scores(codes, P, predicted, P_target, target_predicted)
    noise = _label_noise(found.accuracy, 300)
    assert found.variance - noise == pytest.approx(np.var(by_confidence, axis=0)[0], rel=0.2)


def both_scores(codes, predicted, weights, n_target):
    return weighted_scores(codes, predicted, weights, 3, n_target)[::2]


def test_the_truth_is_within_two_standard_errors_as_often_as_it_should():
    inside = []
    for seed in range(200):
        codes, predicted, P = draw(150, 3, seed=2 * seed, skill=0.5)
        target, target_predicted, P_target = draw(150, 3, seed=2 * seed + 1, skill=0.5)
        truth = np.mean(target == target_predicted)
        truth_balanced = np.mean([np.mean(target_predicted[target == k] == k) for k in range(3)])
        for found in (
            weighted_scores(codes, predicted, np.ones(150), 3, 150),
            confident_scores(codes, P, predicted, P_target, target_predicted),
        ):
            inside.append(abs(found.accuracy - truth) <= 1.96 * found.variance**0.5)
            error = abs(found.balanced_accuracy - truth_balanced)
            inside.append(error <= 1.96 * found.balanced_variance**0.5)
    coverage = np.mean(np.reshape(inside, (200, 4)), axis=0)
    assert (coverage >= 0.91).all()  # 95 % nominal, two standard errors and a half


def test_no_interval_is_a_point():
    codes = np.arange(60) % 3
    P = np.eye(3)[codes]
    for found in (
        weighted_scores(codes, codes, np.ones(60), 3, 40),
        confident_scores(codes, P, codes, P[:40], codes[:40]),
    ):
        assert found.accuracy == found.balanced_accuracy == 1
        assert found.variance >= 1 / 60**2
        assert found.balanced_variance > 1 / 60**2


def test_a_class_that_is_not_expected_does_not_count():
    codes = np.repeat([0, 1], 30)
    predicted = np.where(np.arange(60) % 3, codes, 1 - codes)
    weights = np.where(codes == 0, 1.0, 1e-6)
    found = weighted_scores(codes, predicted, weights, 3, 50)
    assert found.balanced_accuracy == pytest.approx(np.mean(predicted[:30] == 0))
