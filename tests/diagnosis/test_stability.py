import numpy as np
import pytest

from covshift.diagnosis.stability import measure_stability
from covshift.selection.bench import Bench
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import Problem
from tests.diagnosis.degenerate import DEGENERATE


def stability_of(X, codes, domain, seed=0):
    nowhere = X[:2], np.full(2, -1)
    problem = Problem(X, codes, domain, *nowhere, int(codes.max()) + 1)
    return measure_stability(Bench([], problem, balanced_accuracy, seed=seed))


def domains_in_the_plane(seed, change=None, apart=0.6, n=300):
    """Three domains of normal rows, each elsewhere; ``change`` alters the rule in the first."""
    rng = np.random.RandomState(seed)
    domain = rng.randint(3, size=n)
    X = rng.standard_normal((n, 2)) + apart * rng.standard_normal((3, 2))[domain]
    logit = 3 * np.sin(X[:, 0]) + X[:, 1]
    if change is not None:
        logit = np.where(domain == 0, change(logit), logit)
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-logit))).astype(int), domain


def test_one_rule_for_all_is_seldom_refuted():
    found = [stability_of(*domains_in_the_plane(seed), seed) for seed in range(12)]
    assert all(one.tested for one in found)
    # Binomial(12, .05): more than 3 has a chance of .002.
    assert sum(one.refuted for one in found) <= 3


@pytest.mark.parametrize("change", [np.negative, lambda logit: logit + 3])
def test_another_rule_in_one_domain_is_found(change):
    found = [stability_of(*domains_in_the_plane(seed, change), seed) for seed in range(5)]
    assert sum(one.refuted for one in found) >= 4


def test_domains_apart_cannot_be_compared():
    found = stability_of(*domains_in_the_plane(0, np.negative, apart=40.0))
    assert (found.tested, found.obstacle, found.refuted) == (False, "no overlap", False)
    assert found.n_shared < 30


def test_one_domain_and_small_domains():
    X, codes, domain = domains_in_the_plane(0)
    assert stability_of(X, codes, 0 * domain).obstacle == "one domain"
    tiny = (np.arange(len(X)) < 5).astype(int)
    assert stability_of(X, codes, tiny).obstacle == "one domain"


def test_the_same_seed_gives_the_same_numbers():
    first, second = (stability_of(*domains_in_the_plane(0)) for _ in range(2))
    assert first == second
    assert first.to_dict()["pvalue"] == first.pvalue


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows_give_a_record(name):
    problem = DEGENERATE[name]
    found = measure_stability(Bench([], problem, balanced_accuracy))
    assert found.tested == (found.obstacle == "")
