"""Gains over no adaptation: the formula, its intervals, and no advantage of luck."""

import numpy as np
import pytest

from covshift.diagnosis.gains import PlayedScene, measure_gains

HYPOTHESIS_OF = np.array([0, 0, 1, 1, 1])


def scene(rights, seed, n=100, shares=(0.7, 0.3)):
    """Candidates that are right with these chances, whatever the class."""
    rng = np.random.RandomState(seed)
    codes = rng.choice(2, n, p=shares)
    return PlayedScene(
        codes, (rng.uniform(size=(len(rights), n)) < np.array(rights)[:, None]) * 1.0
    )


def gains_of(scenes, hypothesis_of=HYPOTHESIS_OF, n=2):
    return measure_gains(scenes, hypothesis_of, n, np.random.RandomState(0))


def naive_balanced_accuracy(codes, right):
    of_class = {k: [r for c, r in zip(codes, right, strict=True) if c == k] for k in set(codes)}
    return np.mean([np.mean(rights) for rights in of_class.values()])


def test_scores_are_those_of_the_variant_that_is_best_elsewhere():
    scenes = [scene([0.6, 0.5, 0.7, 0.9, 0.8], seed) for seed in range(3)]
    found = gains_of(scenes)
    naive = np.array(
        [[naive_balanced_accuracy(codes, one) for one in right] for codes, right in scenes]
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
        one.right[2:] = np.nan
    found = gains_of(scenes)
    assert np.isnan(found.gains[1])
    assert np.isnan(found.intervals[1]).all()
    assert found.pvalues[1] == 1
    assert found.variants[1] == -1
    assert found.gains[0] == 0


def test_a_variant_that_fails_in_one_scene_serves_in_none():
    scenes = [scene([0.6, 0.5, 0.7, 0.9, 0.8], seed) for seed in range(2)]
    scenes[0].right[3] = np.nan
    assert gains_of(scenes).variants[1] == 4


def test_one_scene():
    found = gains_of([scene([0.5, 0.5, 0.9, 0.5, 0.5], 0)])
    assert found.gains[1] > 0.2


def test_the_prediction_equals_its_formula():
    found = gains_of([scene([0.5, 0.5, 0.5, 0.9, 0.5], seed) for seed in range(4)])
    gains = [row[1] - row[0] for row in found.by_scene.tolist()]
    mean = sum(gains) / 4
    variance = (8 * 0.1**2 + sum((one - mean) ** 2 for one in gains)) / (8 + 3)
    half = 1.795885 * (variance * 5 / 4) ** 0.5  # Student's t, .95, 11 degrees
    assert found.predicted[1] == pytest.approx([mean - half, mean + half], abs=1e-6)
    assert found.predicted[0] == pytest.approx([-half_of_prior(4), half_of_prior(4)])


def half_of_prior(n_scenes):
    """Where all scenes agree, the prior alone."""
    return 1.795885 * (8 * 0.1**2 / (8 + n_scenes - 1) * (1 + 1 / n_scenes)) ** 0.5


def test_the_prediction_covers_one_more_scene():
    covered = []
    for seed in range(200):
        rng = np.random.RandomState(seed)
        rights = 0.7 + 0.1 * rng.standard_normal((5, 1)).clip(-2, 2)
        *played, target = (
            scene([0.5, 0.5, *([r] * 3)], 10 * seed + s, n=400) for s, r in enumerate(rights[:, 0])
        )
        low, high = gains_of(played).predicted[1]
        gain = target.scores[2] - target.scores[0]
        covered.append(low <= gain <= high)
    assert 0.8 < np.mean(covered) < 0.98
