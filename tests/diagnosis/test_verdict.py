"""From gains to a verdict, and scenes in the proportions of the problem."""

import numpy as np
import pytest

from covshift.diagnosis.evidence import _in_proportion
from covshift.diagnosis.gains import Gains
from covshift.diagnosis.verdict import LEVEL, REFUTED, WORTHWHILE, decide
from covshift.selection.problem import Problem, make_scene


def gains(values, pvalues, behind=None, spread=0.05, carried=1.0):
    values = np.array(values, dtype=float)
    H = len(values)
    return Gains(
        scores=0.5 + values,
        by_scene=np.tile(0.5 + values, (3, 1)),
        gains=values,
        intervals=np.column_stack([values - 0.02, values + 0.02]),
        changed=np.full(H, 0.5),
        changed_target=np.full(H, 0.5 * carried),
        predicted=carried * values,
        predicted_intervals=carried * np.column_stack([values - spread, values + spread]),
        pvalues=np.array(pvalues),
        behind=np.ones(H) if behind is None else np.array(behind),
        variants=np.arange(H),
    )


def test_a_sure_and_worthwhile_gain_is_followed():
    verdict = decide(gains([0, 0.1, 0.05], [1, 0.01, 0.5], [0.01, 1, 0.2]), "source domains")
    assert (verdict.kind, verdict.leading, verdict.followed) == ("adapt", 1, 1)
    assert verdict.surviving == [1, 2]
    assert not verdict.clearly


def test_to_be_behind_at_five_percent_does_not_refute():
    found = gains([0, 0.1, 0.05], [1, 0.01, 0.5], [REFUTED + 0.001, 1, REFUTED])
    assert decide(found, "source domains").surviving == [0, 1]


def test_a_gain_that_is_not_sure_leads_and_is_not_followed():
    verdict = decide(gains([0, 0.1, 0.05], [1, 2 * LEVEL, 0.5]), "source domains")
    assert (verdict.kind, verdict.leading, verdict.followed) == ("no adaptation", 1, 0)
    assert verdict.gain == pytest.approx(0.1)


def test_a_gain_that_is_sure_on_average_only_is_not_followed():
    verdict = decide(gains([0, 0.1], [1, 0.001], spread=0.11), "source domains")
    assert (verdict.kind, verdict.leading) == ("no adaptation", 1)
    assert verdict.gain_interval == pytest.approx((-0.01, 0.21))


def test_a_sure_gain_that_is_not_worthwhile_does_not_lead():
    verdict = decide(gains([0, WORTHWHILE / 2], [1, 0.001]), "source domains")
    assert (verdict.kind, verdict.leading, verdict.followed) == ("no adaptation", 0, 0)


def test_a_gain_of_which_the_target_sees_little_is_not_followed():
    verdict = decide(gains([0, 0.2], [1, 0.001], carried=0.05), "source domains")
    assert (verdict.kind, verdict.leading, verdict.followed) == ("no adaptation", 1, 0)
    assert verdict.gain == pytest.approx(0.01)


@pytest.mark.parametrize(("agreement", "kind"), [(0.9, "adapt"), (0.5, "no adaptation")])
def test_what_hinges_on_single_domains_is_not_followed(agreement, kind):
    asked = []

    def agreement_of(candidate):
        asked.append(candidate)
        return agreement

    verdict = decide(gains([0, 0.2], [1, 0.001]), "source domains", agreement_of)
    assert (verdict.kind, verdict.leading, verdict.agreement) == (kind, 1, agreement)
    assert verdict.hinges == (kind == "no adaptation")
    unsure = decide(gains([0, 0.2], [1, 0.5]), "source domains", agreement_of)
    assert not unsure.hinges  # not asked: it is not followed anyway
    assert asked == [1]


def test_scenes_keep_the_proportion_of_target_to_source_rows():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((90, 2))
    problem = Problem(
        X,
        np.arange(90) % 2,
        np.arange(90) // 30,
        rng.standard_normal((180, 2)),
        np.full(180, -1),
        2,
    )
    played = problem.source_domain == 2
    scene = make_scene(
        X[~played], problem.codes[~played], problem.source_domain[~played], X[played], -np.ones(30)
    )
    found = _in_proportion(scene, problem)
    assert np.sum(found.codes >= 0) == 60
    assert np.sum(found.codes < 0) == 120
    np.testing.assert_array_equal(found.X[found.codes < 0], np.repeat(X[played], 4, axis=0))
    np.testing.assert_array_equal(found.X_test, scene.X_test)


def test_scenes_are_never_thinned():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 2))
    problem = Problem(X, np.arange(40) % 2, np.zeros(40), X[:5], -np.ones(5), 2)
    scene = make_scene(X[:20], problem.codes[:20], np.zeros(20), X[20:], -np.ones(20))
    np.testing.assert_array_equal(_in_proportion(scene, problem).X, scene.X)
