"""Duties of every weight estimator, by any method."""

import copy
import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from covshift import (
    AdaptedClassifier,
    NothingToAdaptWarning,
    ULSIFWeights,
    UnreliableWeightsWarning,
)
from covshift.measures import effective_sample_size
from tests.estimators import with_injected_split
from tests.shifted import make_problem
from tests.twins.weight_twins import one_dimension, stack
from tests.weights.estimators import WEIGHTS

every_estimator = pytest.mark.parametrize("estimator", WEIGHTS, ids=repr)
X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
BANDWIDTHS = {"sigmas", "bandwidth"}
WITH_BANDWIDTH = [model for model in WEIGHTS if BANDWIDTHS & set(model.get_params())]
N_SOURCE = int((SAMPLE_DOMAIN >= 0).sum())


def fit(estimator, rows=X, y=None, **params):
    return clone(estimator).fit(rows, y, **{"sample_domain": SAMPLE_DOMAIN, **params})


def refuses(estimator, rows, match, **params):
    """The fit fails with a message that matches, and leaves nothing on the estimator."""
    estimator = clone(estimator)
    before = set(vars(estimator))
    with pytest.raises((ValueError, TypeError), match=match):
        estimator.fit(rows, **params)
    assert set(vars(estimator)) == before


def assert_sane(model, rows=X):
    for weights in (model.weights_, model.score_weights(rows)):
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.any()


@pytest.mark.filterwarnings("ignore::covshift.NothingToAdaptWarning")
@parametrize_with_checks(WEIGHTS)
def test_sklearn_checks_plain(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings(
    "ignore::covshift.NothingToAdaptWarning", "ignore::covshift.UnreliableWeightsWarning"
)
@parametrize_with_checks([with_injected_split(estimator) for estimator in WEIGHTS])
def test_sklearn_checks_adapting(estimator, check):
    check(estimator)


@every_estimator
def test_what_is_stored(estimator):
    model = fit(estimator)
    assert_sane(model)
    assert model.weights_.shape == (N_SOURCE,)
    assert model.mean_weight_ == pytest.approx(model.weights_.mean())
    assert model.share_zero_ == np.mean(model.weights_ == 0)
    assert model.effective_sample_size_ == pytest.approx(effective_sample_size(model.weights_))
    assert_array_equal(model.domains_, [-2, -1, 0, 1])
    assert not hasattr(model, "transform")


@every_estimator
def test_weights_are_in_the_order_of_the_source_rows(estimator):
    """Source rows first or between target rows: each keeps its weight."""
    source = SAMPLE_DOMAIN >= 0
    order = np.r_[np.flatnonzero(source), np.flatnonzero(~source)]
    sorted_fit = fit(estimator, X[order], sample_domain=SAMPLE_DOMAIN[order])
    assert_allclose(fit(estimator).weights_, sorted_fit.weights_, rtol=1e-6, atol=1e-9)


@every_estimator
def test_domains_are_pooled_by_role(estimator):
    roles = np.where(SAMPLE_DOMAIN >= 0, 0, -1)
    assert_array_equal(fit(estimator).weights_, fit(estimator, sample_domain=roles).weights_)


@every_estimator
def test_labels_are_never_read(estimator):
    ours = fit(estimator, y=Y)
    objects = np.array([None, "none", np.nan, object()] * (len(Y) // 4), dtype=object)
    known = np.ones(len(Y), dtype=bool)
    for other, mask in [(Y[::-1], known), (np.full(len(Y), np.nan), None), (objects, known)]:
        theirs = fit(estimator, y=other, label_mask=mask)
        assert_array_equal(theirs.weights_, ours.weights_)
        assert_array_equal(theirs.score_weights(X_NEW), ours.score_weights(X_NEW))


@every_estimator
def test_the_split_changes_something(estimator):
    swapped = np.where(SAMPLE_DOMAIN >= 0, -1, 0)
    ours, theirs = fit(estimator), fit(estimator, sample_domain=swapped)
    assert not np.allclose(ours.score_weights(X_NEW), theirs.score_weights(X_NEW))


@every_estimator
def test_same_seed_same_result(estimator):
    ours, theirs = fit(estimator), fit(estimator)
    assert_array_equal(ours.weights_, theirs.weights_)
    again = pickle.loads(pickle.dumps(ours))
    assert_array_equal(ours.score_weights(X_NEW), again.score_weights(X_NEW))


@every_estimator
def test_inputs_are_never_changed(estimator):
    arrays = copy.deepcopy((X, SAMPLE_DOMAIN, X_NEW))
    for array in arrays:
        array.flags.writeable = False
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    model = clone(estimator).fit(arrays[0], sample_domain=arrays[1])
    model.score_weights(arrays[2])
    for ours, theirs in zip(arrays, (X, SAMPLE_DOMAIN, X_NEW), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@every_estimator
def test_one_row_equals_that_row_of_the_whole(estimator):
    model = fit(estimator)
    whole = model.score_weights(X)
    alone = np.concatenate([model.score_weights(row[None]) for row in X])
    assert_allclose(alone, whole, rtol=1e-8, atol=1e-10)


@every_estimator
def test_float32_stays_float32(estimator):
    single, double = fit(estimator, X.astype(np.float32)), fit(estimator)
    assert single.weights_.dtype == np.float32
    assert single.score_weights(X_NEW.astype(np.float32)).dtype == np.float32
    assert double.weights_.dtype == np.float64
    assert_allclose(single.weights_, double.weights_, rtol=0.05, atol=0.05)


@every_estimator
def test_without_sample_domain_all_weights_are_one(estimator):
    with pytest.warns(NothingToAdaptWarning, match="all weights are one"):
        model = clone(estimator).fit(X)
    assert_array_equal(model.weights_, np.ones(len(X)))
    assert_array_equal(model.score_weights(X_NEW), np.ones(len(X_NEW)))
    assert (model.mean_weight_, model.share_zero_) == (1, 0)
    assert model.effective_sample_size_ == pytest.approx(len(X))
    assert model.score_weights(X_NEW.astype(np.float32)).dtype == np.float32


@every_estimator
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (np.abs, "no target rows"),
        (lambda domain: -np.abs(domain) - 1, "no source rows"),
        (lambda domain: domain[:-1], "one integer per row"),
        (lambda domain: domain + 0.5, "must hold integers"),
        (lambda domain: domain.astype(str), "must hold integers"),
        (lambda domain: domain >= 0, "must hold integers"),
    ],
)
def test_bad_sample_domain(estimator, change, match):
    refuses(estimator, X, match, sample_domain=change(SAMPLE_DOMAIN))


@every_estimator
def test_bad_rows(estimator):
    model = fit(estimator)
    for value, match in [(np.nan, "NaN"), (np.inf, "infinity"), (1e150, "Scale the features")]:
        for row in (np.argmax(SAMPLE_DOMAIN >= 0), np.argmax(SAMPLE_DOMAIN < 0)):
            bad = X.copy()
            bad[row, 0] = value
            refuses(estimator, bad, match, sample_domain=SAMPLE_DOMAIN)
        with pytest.raises(ValueError, match=match):
            model.score_weights(bad)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.score_weights(X[:, :2])
    with pytest.raises(NotFittedError):
        clone(estimator).score_weights(X)
    refuses(estimator, X, "must be boolean", sample_domain=SAMPLE_DOMAIN, label_mask=SAMPLE_DOMAIN)


@every_estimator
def test_a_failed_fit_leaves_the_earlier_one(estimator):
    model = fit(estimator)
    before = model.score_weights(X_NEW)
    with pytest.raises(ValueError, match="no target rows"):
        model.fit(X[:, :2], sample_domain=np.abs(SAMPLE_DOMAIN))
    assert_array_equal(model.score_weights(X_NEW), before)


@every_estimator
@pytest.mark.parametrize("scale", [1e6, 1e-6, 1e-150])
def test_the_unit_of_the_features_does_not_matter(estimator, scale):
    assert_allclose(
        fit(estimator, scale * X).weights_, fit(estimator).weights_, rtol=1e-3, atol=1e-4
    )


@every_estimator
def test_an_offset_does_not_matter(estimator):
    assert_allclose(fit(estimator, X + 1e6).weights_, fit(estimator).weights_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("estimator", WITH_BANDWIDTH, ids=repr)
def test_kernels_that_underflow_fall_back_with_a_warning(estimator):
    (name,) = BANDWIDTHS & set(estimator.get_params())
    narrow = clone(estimator).set_params(**{name: 0.5})
    with pytest.warns(UnreliableWeightsWarning, match="underflow"):
        model = fit(narrow, 1e6 * X)
    assert_sane(model, 1e6 * X)
    assert np.std(model.weights_) > 0


@every_estimator
@pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning")
def test_few_rows_and_constant_columns(estimator):
    assert_sane(fit(estimator, np.c_[X, np.ones(len(X))]), np.c_[X, np.ones(len(X))])
    constant = np.ones_like(X)
    assert_allclose(fit(estimator, constant).weights_, 1, atol=0.05)
    for n_source, n_target in [(30, 1), (1, 30), (1, 1), (30, 2), (2, 30)]:
        domain = np.repeat([0, -1], [n_source, n_target])
        assert_sane(fit(estimator, X[: len(domain)], sample_domain=domain))


@every_estimator
@pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning")
def test_domains_far_apart(estimator):
    """No weights are right, but they are never silent zeros or NaN."""
    assert_sane(fit(estimator, np.where(SAMPLE_DOMAIN[:, None] >= 0, X, X + 1e4)))


@every_estimator
def test_few_effective_rows_are_warned_about(estimator):
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(2000, 1)), rng.normal(3.5, 0.1, size=(100, 1))
    rows, sample_domain = stack(source, target)
    with pytest.warns(UnreliableWeightsWarning, match="effective rows of 2000"):
        model = clone(estimator).fit(rows, sample_domain=sample_domain)
    assert model.effective_sample_size_ < 100


@every_estimator
def test_in_an_adapted_classifier(estimator):
    """The model is linear and the truth is not: weights move the line to the target."""
    source, target, _ = one_dimension(n=400)
    rows, sample_domain = stack(source, target)
    y = (np.abs(rows.ravel()) > 1).astype(int)
    model = AdaptedClassifier(clone(estimator), LogisticRegression())
    model.fit(rows, y, sample_domain=sample_domain)
    weights = clone(estimator).fit(rows, sample_domain=sample_domain).weights_
    expected = LogisticRegression().fit(source, y[:400], weights / weights.mean())
    assert_allclose(model.estimator_.coef_, expected.coef_)
    plain = AdaptedClassifier(None, LogisticRegression()).fit(rows, y, sample_domain=sample_domain)
    assert model.score(target, y[400:]) > plain.score(target, y[400:])

    scaled = make_pipeline(StandardScaler(), clone(estimator))
    AdaptedClassifier(scaled, LogisticRegression()).fit(rows, y, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="refit"):
        model.adapt_target(target)


@every_estimator
def test_routing_asks_for_the_domains(estimator):
    with sklearn.config_context(enable_metadata_routing=True):
        requests = estimator.get_metadata_routing().fit.requests
    assert requests == {"sample_domain": True, "label_mask": True}


def test_weights_that_are_all_zero_are_worth_no_row():
    class NoWeights(ULSIFWeights):
        def _estimate(self, source, target):
            super()._estimate(source, target)
            return np.zeros(len(source))

    X, _, sample_domain, _ = make_problem()
    with pytest.warns(UnreliableWeightsWarning, match="all weights are zero"):
        weights = NoWeights(random_state=0).fit(X, sample_domain=sample_domain)
    assert weights.effective_sample_size_ == 0
    assert weights.share_zero_ == 1
