"""The one way to fit a candidate and to predict with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC

from covshift import AdaptedClassifier, CorrelationAlignment
from covshift.domains import check_fit_domains
from covshift.predictors.fit_and_predict import class_logits, fit_candidate, predict_candidate
from tests.shifted import make_problem

PROBLEM = make_problem(n=30)


def fit(adapter, estimator, weight=None):
    domains = check_fit_domains(PROBLEM.sample_domain, None, len(PROBLEM.X))
    labels = PROBLEM.y[domains.label_mask]
    return fit_candidate(adapter, estimator, PROBLEM.X, labels, domains, sample_weight=weight)


def test_a_candidate_predicts_as_the_classifier_of_its_parts():
    parts = CorrelationAlignment(), LogisticRegression()
    whole = AdaptedClassifier(*parts).fit(PROBLEM.X, PROBLEM.y, sample_domain=PROBLEM.sample_domain)
    target = np.full(len(PROBLEM.X_new), -1)
    assert_array_equal(
        predict_candidate(fit(*parts), "predict_proba", PROBLEM.X_new, target),
        whole.predict_proba(PROBLEM.X_new, sample_domain=target),
    )


def test_logits_give_back_probabilities():
    fitted = fit(None, LogisticRegression())
    logits = class_logits(fitted, PROBLEM.X_new, 3)
    assert_allclose(softmax(logits, axis=1), fitted.estimator.predict_proba(PROBLEM.X_new))


@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier(), SVC()])
def test_logits_of_a_class_never_seen_are_the_smallest(estimator):
    fitted = fit(None, estimator)
    logits = class_logits(fitted, PROBLEM.X_new, np.array([-1, 0, 1, 2]))
    assert_array_equal(logits[:, 1:].argmax(axis=1), fitted.estimator.predict(PROBLEM.X_new))
    assert (logits[:, 0] <= logits.min(axis=1)).all()


def test_weights_reach_the_estimator():
    weight = np.where(PROBLEM.y == 0, 100.0, 1.0)
    heavy, even = fit(None, LogisticRegression(), weight), fit(None, LogisticRegression())
    share = [np.mean(one.estimator.predict(PROBLEM.X) == 0) for one in (heavy, even)]
    assert share[0] > share[1]
