"""Weight estimators inside SKADA's pipelines.

Importing SKADA changes a global setting of scikit-learn, so each test has a process of its own: a
copy of one that has imported SKADA.
"""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, NothingToAdaptWarning, SparseFiltering, ULSIFWeights
from covshift.interop.skada import ReweightAdapter
from tests.processes import ForkedPrograms
from tests.shifted import make_problem
from tests.weights.estimators import WEIGHTS

SETUP = """
import copy, pickle, warnings
import numpy as np
import sklearn
import skada
from skada import make_da_pipeline
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from covshift import AdaptedClassifier, ClassifierWeights, LSPClassifier, ULSIFWeights
from covshift import SourceOnlySplit
from covshift.interop.skada import ReweightAdapter
from tests.shifted import make_problem

X, y, sample_domain, X_new = make_problem()
source = sample_domain >= 0
y = np.where(source, y, -1)
target = np.full(len(X_new), -1)
where = {"sample_domain": sample_domain}

def pipeline(weights, estimator=None, *first):
    estimator = LogisticRegression() if estimator is None else estimator
    last = estimator.set_fit_request(sample_weight=True)
    return make_da_pipeline(*first, ReweightAdapter(weights), last)
"""


@pytest.fixture(scope="module")
def run():
    if find_spec("skada") is None:
        pytest.skip("needs skada")
    programs = ForkedPrograms(SETUP, ["-W", "error"])
    yield programs.run
    programs.close()


def test_same_coefficients_as_our_weights_by_hand(run):
    run("""
for weights in (ULSIFWeights(random_state=0), ClassifierWeights(random_state=0)):
    model = pipeline(weights).fit(X, y.copy(), **where)
    w = clone(weights).fit(X, **where).weights_
    by_hand = LogisticRegression().fit(X[source], y[source], sample_weight=w / w.mean())
    fitted = model[-1].base_estimator_
    np.testing.assert_allclose(fitted.coef_, by_hand.coef_, rtol=1e-12)
    np.testing.assert_array_equal(fitted.classes_, [0, 1, 2])
    ours = AdaptedClassifier(weights, LogisticRegression()).fit(X, y, **where)
    np.testing.assert_allclose(fitted.coef_, ours.estimator_.coef_, rtol=1e-12)
    predicted = model.predict(X_new, sample_domain=target)
    np.testing.assert_array_equal(predicted, by_hand.predict(X_new))
    unweighted = LogisticRegression().fit(X[source], y[source])
    assert np.abs(unweighted.coef_ - fitted.coef_).max() > 0.01
""")


def test_behind_a_scaler_and_before_our_own_classifier(run):
    run("""
weights = ULSIFWeights(random_state=0)
model = pipeline(weights, LSPClassifier(random_state=0), StandardScaler())
model.fit(X, y.copy(), **where)
scaled = StandardScaler().fit(X)
ours = AdaptedClassifier(weights, LSPClassifier(random_state=0))
ours.fit(scaled.transform(X), y, **where)
np.testing.assert_allclose(
    model.predict_proba(X_new, sample_domain=target),
    ours.predict_proba(scaled.transform(X_new)),
    rtol=1e-9,
)
""")


def test_clone_parameters_and_pickle(run):
    run("""
model = pipeline(ULSIFWeights(n_bases=7, random_state=0))
assert model.get_params()["reweightadapter__weights__n_bases"] == 7
copied = clone(model).set_params(reweightadapter__weights__n_bases=3)
assert model.get_params()["reweightadapter__weights__n_bases"] == 7
for one, n_bases in ((model, 7), (copied, 3)):
    one.fit(X, y.copy(), **where)
    assert one[0].base_estimator_.estimator_.bases_.shape == (n_bases, 3)
again = pickle.loads(pickle.dumps(model))
np.testing.assert_array_equal(
    again.predict(X_new, sample_domain=target), model.predict(X_new, sample_domain=target)
)
""")


def test_grid_search_over_the_weights(run):
    run("""
grid = {"reweightadapter__weights__n_bases": [2, 30], "logisticregression__C": [0.1, 10.0]}
search = GridSearchCV(
    pipeline(ULSIFWeights(random_state=0)), grid, cv=SourceOnlySplit(3), error_score="raise"
)
search.fit(X, y.copy(), **where)
scores = search.cv_results_["mean_test_score"]
assert np.isfinite(scores).all() and len(np.unique(scores)) > 1
assert set(search.best_estimator_.predict(X_new, sample_domain=target)) <= {0, 1, 2}

# What the search computed for its first candidate and first fold, spelled out.
train, test = next(iter(SourceOnlySplit(3).split(X, y, **where)))
first = clone(search.estimator).set_params(**search.cv_results_["params"][0])
first.fit(X[train], y[train], sample_domain=sample_domain[train])
by_hand = np.mean(first.predict(X[test], sample_domain=target[:1].repeat(len(test))) == y[test])
np.testing.assert_allclose(search.cv_results_["split0_test_score"][0], by_hand)
""")


def test_no_setting_is_changed_beyond_what_skada_changes(run):
    run("""
before = sklearn.get_config(), np.geterr(), list(warnings.filters)
labels, rows = y.copy(), X.copy()
pipeline(ULSIFWeights(random_state=0)).fit(X, y, **where).predict(X_new, sample_domain=target)
assert before == (sklearn.get_config(), np.geterr(), list(warnings.filters))
np.testing.assert_array_equal(X, rows)
np.testing.assert_array_equal(y, labels)
""")


def test_neither_skada_nor_its_setting_comes_with_the_import():
    code = """
import sys, sklearn
before = sklearn.get_config()
import covshift
assert "covshift.interop.skada" not in sys.modules
import covshift.interop.skada
assert "skada" not in sys.modules
assert sklearn.get_config() == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("weights", WEIGHTS, ids=repr)
def test_what_is_handed_on(weights):
    X, _, sample_domain, X_new = make_problem(dtype=np.float32)
    adapter = ReweightAdapter(weights)
    rows, metadata = adapter.fit_transform(X, sample_domain=sample_domain)
    assert rows is X
    assert set(metadata) == {"sample_weight"}
    ours = metadata["sample_weight"]
    assert ours.dtype == np.float32
    assert_array_equal(ours[sample_domain < 0], 0)
    alone = weights.fit(X, sample_domain=sample_domain).weights_
    assert_allclose(ours[sample_domain >= 0], alone / alone.mean(), rtol=1e-6)
    assert adapter.transform(X_new, sample_domain=np.full(len(X_new), -1)) is X_new
    assert adapter.transform(X_new) is X_new


def test_without_domains_all_weights_are_one():
    X, *_ = make_problem()
    with pytest.warns(NothingToAdaptWarning):
        _, metadata = ReweightAdapter(ULSIFWeights()).fit_transform(X)
    assert_array_equal(metadata["sample_weight"], 1)


def test_bad_input():
    X, _, sample_domain, X_new = make_problem()
    with pytest.raises(TypeError, match="as they are"):
        ReweightAdapter(SparseFiltering()).fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="no target rows"):
        ReweightAdapter(ULSIFWeights()).fit(X, sample_domain=np.abs(sample_domain))
    with pytest.raises(NotFittedError):
        ReweightAdapter(ULSIFWeights()).transform(X)
    adapter = ReweightAdapter(ULSIFWeights()).fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="X has 2 features"):
        adapter.transform(X_new[:, :2])
    with pytest.raises(ValueError, match="one integer per row"):
        adapter.transform(X_new, sample_domain=[-1])


class NoWeights(ULSIFWeights):
    """Finds no source row like the target."""

    def _evaluate(self, X):
        return np.zeros(len(X))


@pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning")
def test_weights_that_are_all_zero_are_a_clear_error():
    X, y, sample_domain, _ = make_problem()
    with pytest.raises(ValueError, match="All weights are zero"):
        ReweightAdapter(NoWeights()).fit_transform(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="All weights are zero"):
        AdaptedClassifier(NoWeights(), LogisticRegression()).fit(X, y, sample_domain=sample_domain)
