"""Rows to label, and what their labels decide."""

import numpy as np
import pytest

from covshift.diagnosis.labelling import labels_needed, rows_to_label, weigh_labels


def rng():
    return np.random.RandomState(0)


def naive_chances(predictions):
    """u(x) of every row, by the formula."""
    H, n = predictions.shape
    chances = np.zeros(n)
    for a in range(H):
        for b in range(a + 1, H):
            differs = [predictions[a, i] != predictions[b, i] for i in range(n)]
            for i in range(n):
                chances[i] += differs[i] / np.mean(differs) if any(differs) else 0
    return chances


def test_rows_are_drawn_with_their_chances_and_weigh_as_much_less():
    predictions = rng().randint(3, size=(3, 12))
    chances = naive_chances(predictions)
    first = np.zeros(12)
    for seed in range(4000):
        rows, weights = rows_to_label(predictions, 2, np.random.RandomState(seed))
        first[rows[0]] += 1
        np.testing.assert_allclose(weights, 1 / chances[rows])
    np.testing.assert_allclose(first / 4000, chances / chances.sum(), atol=0.025)


def test_a_longer_list_begins_with_the_shorter():
    predictions = rng().randint(3, size=(4, 30))
    short, long = (rows_to_label(predictions, n, rng())[0] for n in (5, 12))
    np.testing.assert_array_equal(long[:5], short)
    assert len(set(long)) == 12


def test_rows_on_which_all_agree_are_never_asked_for():
    predictions = np.zeros((3, 50), dtype=int)
    predictions[1, :4] = 1
    assert sorted(rows_to_label(predictions, 20, rng())[0]) == [0, 1, 2, 3]
    assert len(rows_to_label(np.zeros((3, 50), dtype=int), 20, rng())[0]) == 0


def test_no_pair_is_forgotten():
    """Two of three differ on few rows; those are asked for all the same."""
    predictions = np.zeros((3, 200), dtype=int)
    predictions[1:] = 1  # both differ from the first everywhere
    predictions[2, :10] = 0  # and from each other on ten rows
    found = [
        (rows_to_label(predictions, 12, np.random.RandomState(seed))[0] < 10).sum()
        for seed in range(50)
    ]
    assert np.mean(found) > 3  # of rows at random it would be .6


def test_rows_that_have_labels_are_not_asked_for_again():
    predictions = rng().randint(2, size=(3, 40))
    first, _ = rows_to_label(predictions, 8, rng())
    assert not set(first) & set(rows_to_label(predictions, 8, rng(), taken=first)[0])


def test_labels_decide_by_rows_on_which_one_is_right():
    truth = rng().randint(2, size=300)
    predictions = np.stack([1 - truth, truth, np.zeros(300, dtype=int)])
    rows = np.arange(20)
    found = weigh_labels(predictions, rows, truth[:20], np.ones(20), rng())
    assert found.right[1] == 1
    assert found.right[0] == 0
    assert found.pvalues[1] < 0.005
    assert found.behind[0] < 0.005
    assert found.behind[2] < 0.05
    assert found.behind[1] == 1
    assert found.gains[1] == pytest.approx(1.0)


def test_the_gain_is_that_of_the_whole_target_though_rows_are_not_drawn_at_random():
    """Asked rows are those that differ: the mean over them would be far too large."""
    generator = rng()
    truth = generator.randint(2, size=2000)
    base = np.where(generator.uniform(size=2000) < 0.8, truth, 1 - truth)
    better = np.where(generator.uniform(size=2000) < 0.9, truth, 1 - truth)
    true_gain = (better == truth).mean() - (base == truth).mean()
    # A third, which is mostly wrong, draws rows to where the others are not at odds.
    predictions = np.stack([base, better, np.where(generator.uniform(size=2000) < 0.7, 0, truth)])
    gains, covered = [], []
    for seed in range(60):
        rows, weights = rows_to_label(predictions, 40, np.random.RandomState(seed))
        found = weigh_labels(predictions, rows, truth[rows], weights, rng())
        gains.append(found.gains[1])
        covered.append(found.intervals[1][0] <= true_gain <= found.intervals[1][1])
    assert np.mean(gains) == pytest.approx(true_gain, abs=0.02)
    assert np.mean(covered) >= 0.85


def test_labels_of_a_class_nobody_predicts_speak_for_nobody():
    predictions = rng().randint(2, size=(3, 50))
    found = weigh_labels(predictions, np.arange(10), np.full(10, -1), np.ones(10), rng())
    np.testing.assert_array_equal(found.right, 0)
    np.testing.assert_array_equal(found.pvalues, 1)


def test_twenty_labels_settle_between_two():
    assert 12 <= labels_needed() <= 25
    lost = 0
    for seed in range(200):
        generator = np.random.RandomState(seed)
        n = labels_needed()
        truth = np.zeros(n, dtype=int)
        one_is_right = generator.uniform(size=n) < 0.8
        predictions = np.stack([one_is_right * 1, 1 - one_is_right])  # the second is right in 80 %
        found = weigh_labels(predictions, np.arange(n), truth, np.ones(n), rng())
        lost += found.behind[0] > 0.05
    assert lost / 200 <= 0.2


def test_the_level_of_the_tests_with_uneven_weights():
    """Two that are right equally often, rows of weights from 1 to 10."""
    called = 0
    for seed in range(400):
        generator = np.random.RandomState(seed)
        predictions = np.stack([np.arange(25) % 2, 1 - np.arange(25) % 2])
        codes = generator.randint(2, size=25)
        weights = generator.uniform(1, 10, size=25)
        found = weigh_labels(predictions, np.arange(25), codes, weights, generator)
        called += found.pvalues[1] <= 0.05
    assert called / 400 <= 0.08
