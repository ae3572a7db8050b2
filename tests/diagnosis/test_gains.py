"""Gains over no adaptation: the formula, its intervals, and no advantage of luck."""

import numpy as np
import pytest

from covshift.diagnosis.gains import PlayedScene, measure_gains

HYPOTHESIS_OF = np.array([0, 0, 1, 1, 1])


def scene(rights, seed, n=100, shares=(0.7, 0.3)):
    """Candidates that are right with these chances, whatever the class."""
    rng = np.random.RandomState(seed)
    codes = rng.choice(2, n, p=shares)
    right = rng.uniform(size=(len(rights), n)) < np.array(rights)[:, None]
    return PlayedScene(codes, np.where(right, codes, 1 - codes))


def gains_of(scenes, hypothesis_of=HYPOTHESIS_OF, n=2, target=None):
    """Gains; by default the target changes as the first scene does."""
    target = scenes[0].predicted if target is None else target
    return measure_gains(scenes, hypothesis_of, n, target, np.random.RandomState(0))


def naive_balanced_accuracy(codes, right):
    of_class = {k: [r for c, r in zip(codes, right, strict=True) if c == k] for k in set(codes)}
    return np.mean([np.mean(rights) for rights in of_class.values()])


def test_scores_are_those_of_the_variant_that_is_best_elsewhere():
    scenes = [scene([0.6, 0.5, 0.7, 0.9, 0.8], seed) for seed in range(3)]
    found = gains_of(scenes)
    naive = np.array(
        [[naive_balanced_accuracy(one.codes, right) for right in one.right] for one in scenes]
    )
    for s in range(3):
        elsewhere = np.delete(naive, s, axis=0).mean(axis=0)
        for h in (0, 1):
            members = np.flatnonzero(h == HYPOTHESIS_OF)
            best = members[elsewhere[members].argmax()]
            assert found.by_scene[s, h] == pytest.approx(naive[s, best], abs=1e-12)
    np.testing.assert_allclose(found.gains, found.scores - found.scores[0])
    assert found.variants[1] == 3


def test_many_variants_that_guess_have_no_advantage():
    """The best of forty by chance would be .1 ahead of one."""
    hypothesis_of = np.repeat([0, 1], [1, 40])
    ahead = [
        gains_of([scene([0.5] * 41, 10 * seed + s) for s in range(3)], hypothesis_of).gains[1]
        for seed in range(30)
    ]
    assert np.mean(ahead) == pytest.approx(0, abs=0.02)


def test_a_real_gain_is_sure_and_refutes_the_others():
    found = gains_of([scene([0.5, 0.5, 0.5, 0.9, 0.5], seed) for seed in range(4)])
    assert found.gains[1] == pytest.approx(0.4, abs=0.07)
    low, high = found.intervals[1]
    assert low > 0.25
    assert high < 0.55
    assert found.pvalues[1] < 0.05
    assert found.behind[0] < 0.05


def test_domains_that_disagree_leave_a_wide_interval():
    """Rows are many, domains three: the gain in one of them says little about the next."""
    scenes = [scene([0.5, 0.5, r, r, r], seed, n=2000) for seed, r in enumerate((0.5, 0.5, 0.9))]
    found = gains_of(scenes)
    low, high = found.intervals[1]
    assert low < 0.01
    assert high > 0.25
    assert found.pvalues[1] > 0.05


def test_equal_hypotheses_are_seldom_called_different():
    found = [
        gains_of([scene([0.7] * 5, 100 * seed + s) for s in range(4)]).pvalues[1]
        for seed in range(60)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.12  # 5 % nominal, few scenes


def test_a_hypothesis_that_cannot_be_fitted_is_left_out():
    scenes = [scene([0.6, 0.5, 0.7, 0.9, 0.8], seed) for seed in range(2)]
    for one in scenes:
        one.predicted[2:] = -1
    found = gains_of(scenes)
    assert np.isnan(found.gains[1])
    assert np.isnan(found.intervals[1]).all()
    assert found.pvalues[1] == 1
    assert found.variants[1] == -1
    assert found.gains[0] == 0


def test_a_variant_that_fails_in_one_scene_serves_in_none():
    scenes = [scene([0.6, 0.5, 0.7, 0.9, 0.8], seed) for seed in range(2)]
    scenes[0].predicted[3] = -1
    assert gains_of(scenes).variants[1] == 4


def test_one_scene():
    found = gains_of([scene([0.5, 0.5, 0.9, 0.5, 0.5], 0)])
    assert found.gains[1] > 0.2


def test_the_prediction_equals_its_formula():
    scenes = [scene([0.6, 0.3, 0.5, 0.9, 0.5], seed) for seed in range(4)]
    target = scene([0.5] * 5, 9, n=300).predicted
    found = gains_of(scenes, target=target)
    gains = [row[1] - row[0] for row in found.by_scene.tolist()]
    mean = sum(gains) / 4
    first, second = found.variants
    differs = [
        sum(a != b for a, b in zip(one.predicted[0], one.predicted[3], strict=True)) / 100
        for one in scenes
    ]  # 0 and 3 are best in all scenes
    rate = mean / (sum(differs) / 4)
    errors = [gain - rate * share for gain, share in zip(gains, differs, strict=True)]
    variance = (2 * 0.1**2 + sum(one**2 for one in errors)) / (2 + 3)
    half = 2.015048 * (variance * 5 / 4) ** 0.5  # Student's t, .95, 5 degrees
    on_target = sum(a != b for a, b in zip(target[first], target[second], strict=True)) / 300
    ratio = on_target / (sum(differs) / 4)
    assert found.changed[1] == pytest.approx(sum(differs) / 4)
    assert found.changed_target[1] == pytest.approx(on_target)
    assert found.predicted[1] == pytest.approx(ratio * mean)
    expected = [ratio * (mean - half), ratio * (mean + half)]
    assert found.predicted_intervals[1] == pytest.approx(expected, abs=1e-6)
    assert found.predicted[0] == 0
    assert found.predicted_intervals[0] == pytest.approx([0, 0])


def test_what_changes_nothing_on_the_target_gains_nothing_there():
    scenes = [scene([0.5, 0.5, 0.5, 0.9, 0.5], seed) for seed in range(4)]
    same = np.zeros((5, 50), dtype=int)
    found = gains_of(scenes, target=same)
    assert found.gains[1] > 0.3
    assert found.predicted[1] == 0
    silent = same.copy()
    silent[3] = -1
    assert np.isnan(gains_of(scenes, target=silent).predicted[1])


def test_the_prediction_covers_one_more_scene():
    covered = []
    for seed in range(200):
        rng = np.random.RandomState(seed)
        rights = 0.7 + 0.1 * rng.standard_normal((5, 1)).clip(-2, 2)
        *played, target = (
            scene([0.5, 0.5, *([r] * 3)], 10 * seed + s, n=400) for s, r in enumerate(rights[:, 0])
        )
        low, high = gains_of(played, target=target.predicted).predicted_intervals[1]
        gain = target.scores[2] - target.scores[0]
        covered.append(low <= gain <= high)
    assert 0.8 < np.mean(covered) < 0.98
