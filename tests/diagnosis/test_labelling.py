"""Rows to label, and what their labels decide."""

import numpy as np
import pytest

from covshift.diagnosis.labelling import labels_needed, rows_to_label, weigh_labels


def rng():
    return np.random.RandomState(0)


def naive_next_row(predictions, chosen):
    """The row of largest worth, by the formula."""
    H, n = predictions.shape
    pairs = [(a, b) for a in range(H) for b in range(a + 1, H)]
    asked = {
        pair: sum(predictions[pair[0], i] != predictions[pair[1], i] for i in chosen)
        for pair in pairs
    }
    return [
        -1
        if i in chosen
        else sum((predictions[a, i] != predictions[b, i]) / (1 + asked[a, b]) for a, b in pairs)
        for i in range(n)
    ]


def test_each_row_is_the_most_telling_that_is_left():
    predictions = rng().randint(3, size=(4, 30))
    chosen = rows_to_label(predictions, 12, rng())
    for k, row in enumerate(chosen):
        worths = naive_next_row(predictions, list(chosen[:k]))
        assert worths[row] == pytest.approx(max(worths))
    assert len(set(chosen)) == 12


def test_rows_on_which_all_agree_are_never_asked_for():
    predictions = np.zeros((3, 50), dtype=int)
    predictions[1, :4] = 1
    assert sorted(rows_to_label(predictions, 20, rng())) == [0, 1, 2, 3]
    assert len(rows_to_label(np.zeros((3, 50), dtype=int), 20, rng())) == 0


def test_no_pair_is_forgotten():
    """Two of three differ on few rows; those are asked for all the same."""
    predictions = np.zeros((3, 200), dtype=int)
    predictions[1:] = 1  # both differ from the first everywhere
    predictions[2, :10] = 0  # and from each other on ten rows
    chosen = rows_to_label(predictions, 12, rng())
    assert (chosen < 10).sum() >= 4


def test_rows_that_have_labels_are_not_asked_for_again():
    predictions = rng().randint(2, size=(3, 40))
    first = rows_to_label(predictions, 8, rng())
    assert not set(first) & set(rows_to_label(predictions, 8, rng(), taken=first))


def test_labels_decide_by_rows_on_which_one_is_right():
    truth = rng().randint(2, size=300)
    predictions = np.stack([1 - truth, truth, np.zeros(300, dtype=int)])
    rows = np.arange(20)
    found = weigh_labels(predictions, rows, truth[:20])
    assert found.right[1] == 1
    assert found.right[0] == 0
    assert found.pvalues[1] < 0.001
    assert found.behind[0] < 0.001
    assert found.behind[2] < 0.05
    assert found.behind[1] == 1
    assert found.gains[1] == pytest.approx(1.0)


def test_the_gain_is_that_of_the_whole_target_though_rows_are_not_drawn_at_random():
    """Asked rows are those that differ: the mean over them would be far too large."""
    generator = rng()
    truth = generator.randint(2, size=2000)
    base = np.where(generator.uniform(size=2000) < 0.8, truth, 1 - truth)
    better = np.where(generator.uniform(size=2000) < 0.9, truth, 1 - truth)
    predictions = np.stack([base, better])
    gains, covered = [], []
    for seed in range(60):
        rows = rows_to_label(predictions, 40, np.random.RandomState(seed))
        found = weigh_labels(predictions, rows, truth[rows])
        gains.append(found.gains[1])
        covered.append(found.intervals[1][0] <= 0.1 <= found.intervals[1][1])
    true_gain = (better == truth).mean() - (base == truth).mean()
    assert np.mean(gains) == pytest.approx(true_gain, abs=0.02)
    assert np.mean(covered) >= 0.85


def test_labels_of_a_class_nobody_predicts_speak_for_nobody():
    predictions = rng().randint(2, size=(3, 50))
    found = weigh_labels(predictions, np.arange(10), np.full(10, -1))
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
        lost += weigh_labels(predictions, np.arange(n), truth).behind[0] > 0.05
    assert lost / 200 <= 0.2
