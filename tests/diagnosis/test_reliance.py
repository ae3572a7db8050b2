"""Whether predictions for the target hinge on single source domains."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.diagnosis.reliance import measure_agreement
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import Problem
from tests.selection.made_problems import Broken, make_bench

STANDARDISED = Candidate("standardise", "LR", DomainStandardScaler(), LogisticRegression())
PLAIN = Candidate("nothing", "LR", None, LogisticRegression())


def sites_of(names, n=60, seed=0):
    """Sites far apart, each with the classes in this order along the only feature."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    rows = [
        (10 * s + 4 * (y if straight else 1 - y) + rng.standard_normal(n))[:, None]
        for s, straight in enumerate(names)
    ]
    target = (10 * len(names) + 4 * y + rng.standard_normal(n))[:, None]
    codes, domain = np.tile(y, len(names)), np.repeat(np.arange(len(names)), n)
    return Problem(np.concatenate(rows), codes, domain, target, np.full(n, -1), 2)


def bench_of(problem, candidate):
    return Bench([candidate], problem, balanced_accuracy)


def test_it_equals_fits_without_each_domain():
    problem = sites_of([True, False, True, True])
    found = measure_agreement(bench_of(problem, STANDARDISED), 0)

    def predict(kept):
        X = np.concatenate([problem.X_source[kept], problem.X_target])
        y = np.concatenate([problem.codes[kept], np.zeros(60, dtype=int)])
        domain = np.concatenate([problem.source_domain[kept], problem.target_domain])
        model = AdaptedClassifier(DomainStandardScaler(), clone(LogisticRegression()))
        model.fit(X, y, sample_domain=domain)
        return model.predict(problem.X_target, sample_domain=problem.target_domain)

    whole = predict(np.full(240, True))
    kappas = []
    for d in range(4):
        left = predict(problem.source_domain != d)
        by_chance = sum(np.mean(left == k) * np.mean(whole == k) for k in (0, 1))
        kappas.append((np.mean(left == whole) - by_chance) / (1 - by_chance))
    assert found == pytest.approx(np.mean(kappas), abs=1e-12)


def test_a_pattern_that_all_domains_show_stays_and_one_of_two_opinions_does_not():
    firm = measure_agreement(bench_of(sites_of([True] * 4), STANDARDISED), 0)
    torn = measure_agreement(bench_of(sites_of([True, False]), STANDARDISED), 0)
    assert firm > 0.95
    assert torn < 0.5


def test_predictions_of_one_class_agree():
    constant = Candidate(
        "nothing", "constant", None, DummyClassifier(strategy="constant", constant=1)
    )
    assert measure_agreement(bench_of(sites_of([True] * 3), constant), 0) == 1


def test_one_domain_cannot_be_left_out():
    assert np.isnan(measure_agreement(bench_of(sites_of([True]), PLAIN), 0))


def test_a_candidate_that_fails_has_none():
    bench = make_bench([Candidate("broken", "LR", Broken(), LogisticRegression())])
    assert np.isnan(measure_agreement(bench, 0))
