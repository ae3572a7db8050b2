"""Scores of unlabelled rows against naive twins, and their variances against a bootstrap."""

import numpy as np
import pytest

from covshift.kernels.unlabelled_accuracy import _label_noise, confident_scores, weighted_scores
from tests import naive


def draw(n, n_classes, seed=0, skill=0.7):
    """Classes, predictions and probabilities that are right: the class is drawn by them."""
    rng = np.random.RandomState(seed)
    P = rng.dirichlet(np.full(n_classes, 1 - skill), size=n)
    codes = np.array([rng.choice(n_classes, p=p) for p in P])
    return codes, P.argmax(axis=1), P


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
