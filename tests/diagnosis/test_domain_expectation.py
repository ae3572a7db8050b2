"""Accuracy expected by source domains that played the target."""

import numpy as np
import pytest
from scipy.stats import t as student_t

from covshift.diagnosis.domain_expectation import (
    LEVEL,
    MAX_LOSS,
    MIN_SCENES,
    PRIOR_DOMAINS,
    PRIOR_ERROR,
    PlayedLogits,
    expect_by_domains,
    promise,
)
from covshift.diagnosis.expectation import refuse, refuse_contradicted, state


def draw_domain(seed, *, n=200, noise=1.0, trust=1.0):
    """Logits that are ``trust`` times those of the truth: calibrated after one rescaling."""
    rng = np.random.RandomState(seed)
    logit = rng.normal(scale=2.0, size=n) + noise * rng.standard_normal()
    codes = (rng.uniform(size=n) < 1 / (1 + np.exp(-logit))).astype(int)
    return PlayedLogits(trust * np.column_stack([np.zeros(n), logit]), codes)


def true_scores(domain):
    predicted = domain.logits.argmax(axis=1)
    recalls = [np.mean(predicted[domain.codes == k] == k) for k in np.unique(domain.codes)]
    return np.mean(predicted == domain.codes), np.mean(recalls)


@pytest.mark.parametrize("trust", [1.0, 5.0])
def test_intervals_cover_where_domains_are_alike(trust):
    covered, n_given = [], 0
    for seed in range(40):
        *played, target = (draw_domain(10 * seed + i, trust=trust) for i in range(5))
        found = expect_by_domains(played, target.logits, np.nan)
        if found.refuted:  # too wide
            continue
        n_given += 1
        for (low, high), true in zip(
            (found.accuracy_interval, found.balanced_accuracy_interval),
            true_scores(target),
            strict=True,
        ):
            covered.append(low <= true <= high)
    assert n_given >= 35
    assert np.mean(covered) >= 0.85


def test_the_interval_equals_its_formula():
    played = [draw_domain(seed) for seed in range(4)]
    target = draw_domain(9)
    found = expect_by_domains(played, target.logits, np.nan)
    beyond_noise = 0.0
    for i in range(4):
        promised = promise(played[:i] + played[i + 1 :], played[i].logits)
        error = promised.accuracy - true_scores(played[i])[0]
        beyond_noise += max(0, error**2 - promised.variance)
    degrees = PRIOR_DOMAINS + 4
    promised = promise(played, target.logits)
    estimate = promised.accuracy
    prior = PRIOR_DOMAINS * PRIOR_ERROR * estimate * (1 - estimate) / 2  # two classes
    variance = (prior + beyond_noise) / degrees + promised.variance
    half = student_t.ppf(0.5 + LEVEL / 2, degrees) * variance**0.5
    assert found.accuracy == pytest.approx(estimate)
    assert found.accuracy_interval == pytest.approx((estimate - half, min(estimate + half, 1)))


def test_no_number_where_own_rows_tell_far_more_than_the_other_domains():
    played = [draw_domain(seed) for seed in range(4)]
    reached = np.mean([true_scores(one)[1] for one in played])
    logits = draw_domain(9).logits
    near = expect_by_domains(played, logits, reached + MAX_LOSS - 0.01)
    far = expect_by_domains(played, logits, reached + MAX_LOSS + 0.01)
    assert not near.refuted
    assert far.reasons == ["not carried over"]
    assert far.evidence["own_balanced_accuracy"] == reached + MAX_LOSS + 0.01
    given = state("weights", (0.5, 0.05), (0.5, 0.05), {})
    assert refuse_contradicted(far, [given])[1].reasons == ["domains say otherwise"]


def test_domains_that_break_the_promise_take_the_number_away():
    played = [draw_domain(seed) for seed in range(4)]
    played[1] = played[1]._replace(codes=1 - played[1].codes)
    found = expect_by_domains(played, draw_domain(9).logits, np.nan)
    assert found.refuted
    assert found.reasons == ["too wide"]
    assert found.evidence["worst_error"] > 0.3


def test_two_domains_are_too_few_and_no_logits_give_no_number():
    played = [draw_domain(seed) for seed in range(MIN_SCENES)]
    assert expect_by_domains(played[1:], played[0].logits, 0.5).reasons == ["domains"]
    assert expect_by_domains(played, None, 0.5).refuted


def test_numbers_that_the_domains_speak_against_are_not_given():
    played = [draw_domain(seed) for seed in range(4)]
    by_domains = expect_by_domains(played, draw_domain(9).logits, np.nan)
    low, high = by_domains.balanced_accuracy_interval
    near = state("weights", (0.5, 0.05), (high + 0.01, 0.05), {})
    far = state("confidence", (0.5, 0.05), (low - 0.2, 0.05), {"auc_logits": 0.5})
    found = refuse_contradicted(by_domains, [near, far, refuse("weights", ["rows"], {})])
    assert found[:2] == [by_domains, near]
    assert found[2].reasons == ["domains say otherwise"]
    assert found[2].evidence == far.evidence
    assert found[3].reasons == ["rows"]


def test_where_domains_differ_too_much_for_a_number_no_other_is_given():
    played = [draw_domain(seed) for seed in range(4)]
    played[1] = played[1]._replace(codes=1 - played[1].codes)
    by_domains = expect_by_domains(played, draw_domain(9).logits, np.nan)
    given = state("weights", (0.5, 0.05), (0.5, 0.05), {})
    few = refuse("domains", ["domains"], {})
    assert refuse_contradicted(by_domains, [given])[1].reasons == ["domains say otherwise"]
    assert refuse_contradicted(few, [given])[1] == given
