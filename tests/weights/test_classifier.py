"""Odds of a classifier as weights: the right way up, corrected for sizes, cross-fitted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from covshift import ClassifierWeights
from tests.twins.weight_twins import several_dimensions, stack


def test_against_a_naive_twin():
    """Row by row, from the classifier of the fold that does not hold the row."""
    source, target, _ = several_dimensions(3, n=60)
    target = target[:40]
    X, sample_domain = stack(source, target)
    is_target = (sample_domain < 0).astype(int)
    seed = np.random.RandomState(5).randint(2**31 - 1)
    expected, everywhere = np.empty(100), []
    for train, test in StratifiedKFold(4, shuffle=True, random_state=seed).split(X, is_target):
        classifier = LogisticRegression().fit(X[train], is_target[train])
        for i in test:
            p_source, p_target = classifier.predict_proba(X[i : i + 1])[0]
            expected[i] = p_target / p_source * 60 / 40
        everywhere.append(classifier.predict_proba(X)[:, 1])
    model = ClassifierWeights(LogisticRegression(), cv=4, random_state=5)
    model.fit(X, sample_domain=sample_domain)
    assert_allclose(model.weights_, expected[:60], rtol=1e-10)
    p = np.mean(everywhere, axis=0)
    assert_allclose(model.score_weights(X), p / (1 - p) * 60 / 40, rtol=1e-10)


@pytest.mark.parametrize(("n_source", "n_target"), [(1500, 300), (300, 1500)])
def test_sizes_of_the_samples_do_not_matter(n_source, n_target):
    source, target, ratio = several_dimensions(2)
    X, sample_domain = stack(source[:n_source], target[:n_target])
    model = ClassifierWeights(random_state=0).fit(X, sample_domain=sample_domain)
    assert abs(model.mean_weight_ - ratio[:n_source].mean()) < 0.15
    assert spearmanr(model.weights_, ratio[:n_source]).statistic > 0.95


@pytest.mark.parametrize(
    "classifier",
    [
        GaussianNB(),
        LinearSVC(),
        RandomForestClassifier(10, min_samples_leaf=5, random_state=0),
    ],
    ids=repr,
)
def test_other_classifiers_are_calibrated(classifier):
    source, target, ratio = several_dimensions(2, n=600)
    X, sample_domain = stack(source, target)
    model = ClassifierWeights(classifier, random_state=0).fit(X, sample_domain=sample_domain)
    assert spearmanr(model.weights_, ratio).statistic > 0.7  # a forest's are noisy
    assert abs(model.mean_weight_ - 1) < 0.15
    assert not hasattr(classifier, "classes_")  # the caller's stays unfitted


def test_a_classifier_is_calibrated_on_as_many_folds_as_the_smaller_role_has_rows():
    rows = np.random.default_rng(0).standard_normal((23, 2))
    model = ClassifierWeights(DecisionTreeClassifier(random_state=0), random_state=0)
    model.fit(rows, sample_domain=np.repeat([0, -1], [20, 3]))
    assert [one.cv for one in model.classifiers_] == [2, 2, 2]  # two of the three are left
    assert np.isfinite(model.weights_).all()


def test_cross_fitting_keeps_a_memorising_classifier_honest():
    source, target, ratio = several_dimensions(2, n=600)
    X, sample_domain = stack(source, target)
    tree = DecisionTreeClassifier(random_state=0)
    assert not tree.fit(X, sample_domain < 0).predict_proba(source)[:, 1].any()
    model = ClassifierWeights(tree, random_state=0).fit(X, sample_domain=sample_domain)
    assert spearmanr(model.weights_, ratio).statistic > 0.1
    assert abs(model.mean_weight_ - 1) < 0.15


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"cv": 1}, "cv"),
        ({"cv": 2.5}, "cv"),
        ({"classifier": "svm"}, "must be a classifier or None"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_bad_parameters(params, match):
    X, sample_domain = stack(*several_dimensions(2, n=20)[:2])
    with pytest.raises((ValueError, TypeError), match=match):
        ClassifierWeights(**params).fit(X, sample_domain=sample_domain)


def test_two_folds_are_enough():
    X, sample_domain = stack(*several_dimensions(2, n=20)[:2])
    assert len(ClassifierWeights(cv=2).fit(X, sample_domain=sample_domain).classifiers_) == 2
    with pytest.raises(ValueError, match="cv"):
        ClassifierWeights(cv=1).fit(X, sample_domain=sample_domain)
