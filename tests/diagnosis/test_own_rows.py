"""What source domains' own rows tell about them."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from covshift.diagnosis.own_rows import MIN_ROWS, score_own_rows
from covshift.selection.bench import Bench
from covshift.selection.candidates import NO_ADAPTATION, Candidate
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import Problem
from tests.selection.made_problems import Broken

PLAIN = Candidate(NO_ADAPTATION, "LR", None, LogisticRegression())


def sites_with_rules(signs, n=90, seed=0):
    """Sites in the same place, in each of which one sign of the first feature is class 1."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((len(signs) * n, 2))
    domain = np.repeat(np.arange(len(signs)), n)
    codes = (np.take(signs, domain) * X[:, 0] > 0).astype(int)
    return Problem(X, codes, domain, X[:n], np.full(n, -1), 2)


def bench_of(problem, candidates=(PLAIN,)):
    return Bench(list(candidates), problem, balanced_accuracy)


def test_own_rows_tell_what_those_of_other_rules_do_not():
    bench = bench_of(sites_with_rules([1, -1, 1, -1]))
    problem = bench.problem
    assert score_own_rows(bench) > 0.9
    (pooled,) = bench.outputs_left_out()
    assert balanced_accuracy(problem.codes, pooled.argmax(axis=1)) < 0.6


def test_it_is_near_a_cross_validation_within_each_domain():
    problem = sites_with_rules([1, -1, 1])
    noisy = np.random.RandomState(1).uniform(size=270) < 0.2
    problem = problem._replace(codes=np.where(noisy, 1 - problem.codes, problem.codes))
    naive = []
    for d in range(3):
        X, y = (
            problem.X_source[problem.source_domain == d],
            problem.codes[problem.source_domain == d],
        )
        naive.append(balanced_accuracy(y, cross_val_predict(LogisticRegression(), X, y, cv=3)))
    assert score_own_rows(bench_of(problem)) == pytest.approx(np.mean(naive), abs=0.03)


def test_the_better_model_on_average_counts_and_one_that_fails_does_not():
    constant = Candidate(NO_ADAPTATION, "constant", None, DummyClassifier())
    problem = sites_with_rules([1, -1])
    alone = score_own_rows(bench_of(problem))
    assert score_own_rows(bench_of(problem, [constant, PLAIN])) == alone
    broken = Candidate(NO_ADAPTATION, "broken", None, Broken())
    assert score_own_rows(bench_of(problem, [broken, PLAIN])) == alone
    assert np.isnan(score_own_rows(bench_of(problem, [broken])))


def test_domains_of_a_few_rows_or_one_class_say_nothing():
    assert np.isnan(score_own_rows(bench_of(sites_with_rules([1, 1], n=MIN_ROWS - 1))))
    problem = sites_with_rules([1, -1])
    one_class = problem._replace(codes=problem.source_domain)
    assert np.isnan(score_own_rows(bench_of(one_class)))
