"""Class proportions of target domains in `AdaptedClassifier`: estimated, kept, looked up."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from covshift import AdaptedClassifier, DomainStandardScaler, NothingToAdaptWarning, load, save
from covshift.kernels.probabilities import fit_scaling
from covshift.predictors.class_proportions import SHARE_PRIOR
from covshift.predictors.held_out_rows import N_FOLDS

NAMES = np.array(["no", "yes"])
MODEL = AdaptedClassifier(None, LogisticRegression(), class_shares="estimated")


def draw(share, n, seed, shift=0.0):
    """Rows of two normal classes, of which the second has this share."""
    rng = np.random.RandomState(seed)
    codes = (rng.uniform(size=n) < share).astype(int)
    return rng.standard_normal((n, 2)) + 1.2 * codes[:, None] + shift, codes


def make_two_targets(shift=0.0):
    """Return rows, labels, domains: a source with equal classes, targets with .1 and .8."""
    parts = [draw(0.5, 600, 0), draw(0.1, 300, 1, shift), draw(0.8, 300, 2, shift)]
    X = np.concatenate([rows for rows, _ in parts])
    codes = np.concatenate([codes for _, codes in parts])
    return X, NAMES[codes], np.repeat([0, -1, -2], [600, 300, 300])


X, Y, DOMAIN = make_two_targets()


@pytest.fixture(scope="module")
def fitted():
    return clone(MODEL).fit(X, Y, sample_domain=DOMAIN)


def test_each_target_domain_has_its_own_proportions(fitted):
    shares = {name: ratios * 0.5 for name, ratios in fitted._share_ratios.items()}
    # The prior keeps them between the truth and the source's .5.
    assert 0.1 < shares["-1"][1] < 0.3
    assert 0.6 < shares["-2"][1] < 0.8
    assert_allclose(fitted.class_shares_, shares["target"], atol=0.01)
    plain = clone(MODEL).set_params(class_shares="source").fit(X, Y, sample_domain=DOMAIN)
    for domain in (-1, -2):
        rows = domain == DOMAIN
        scores = [
            one.score(X[rows], Y[rows], sample_domain=DOMAIN[rows]) for one in (fitted, plain)
        ]
        assert scores[0] > scores[1] + 0.02


def test_probabilities_are_those_of_the_formula(fitted):
    """The slow twin: scores, slope and offsets, expectation and maximization, one row at a time."""
    source = DOMAIN >= 0
    fold_of = dealt_folds(Y[source])
    logits = np.empty((source.sum(), 2))
    for fold in range(N_FOLDS):
        model = LogisticRegression().fit(X[source][fold_of != fold], Y[source][fold_of != fold])
        logits[fold_of == fold] = model.predict_log_proba(X[source][fold_of == fold])
    slope, offsets = fit_scaling(logits, (Y[source] == "yes").astype(int), np.ones(source.sum()))
    final = LogisticRegression().fit(X[source], Y[source])
    calibrated = []
    for row in final.predict_log_proba(X):
        weights = np.exp(slope * row + offsets)
        calibrated.append(weights / weights.sum())
    calibrated = np.array(calibrated)
    shares = np.array([np.mean(Y[source] == name) for name in NAMES])
    for domain in (-1, -2):
        rows = domain == DOMAIN
        ratios = naive_shares(calibrated[rows], shares, SHARE_PRIOR) / shares
        expected = np.array([p * ratios / (p * ratios).sum() for p in calibrated[rows]])
        found = fitted.predict_proba(X[rows], sample_domain=domain)
        assert_allclose(found, expected, atol=1e-6)
    assert_allclose(fitted.predict_proba(X[source], sample_domain=0), calibrated[source], atol=1e-9)


def naive_shares(P, shares, prior):
    """Expectation and maximization, one row at a time."""
    estimate = shares
    for _ in range(200):
        expected = [p * estimate / shares / (p * estimate / shares).sum() for p in P]
        estimate = (np.mean(expected, axis=0) + prior * shares) / (1 + prior)
    return estimate


def dealt_folds(labels):
    """Folds by class: rows in a shuffled order, class after class, dealt in turn."""
    shuffled = np.random.RandomState(0).permutation(len(labels))
    order = [row for name in NAMES for row in shuffled if labels[row] == name]
    folds = np.empty(len(labels), dtype=int)
    for place, row in enumerate(order):
        folds[row] = place % N_FOLDS
    return folds


def test_predict_is_the_most_probable_class(fitted):
    for sample_domain in (None, DOMAIN, -2):
        P = fitted.predict_proba(X, sample_domain=sample_domain)
        predicted = fitted.predict(X, sample_domain=sample_domain)
        assert_array_equal(predicted, NAMES[P.argmax(axis=1)])
        logs = fitted.predict_log_proba(X, sample_domain=sample_domain)
        assert_allclose(np.exp(logs), P)


def test_a_new_domain_gets_proportions_of_its_own(fitted):
    model = clone(MODEL).fit(X, Y, sample_domain=DOMAIN)
    before = model.predict_proba(X, sample_domain=-1)
    rows, codes = draw(0.95, 300, 3)
    model.adapt_target(rows, domain="clinic")
    assert model._share_ratios["-3"][1] > 1.5
    assert_array_equal(model.predict_proba(X, sample_domain=-1), before)
    own = model.score(rows, NAMES[codes], sample_domain="clinic")
    assert own > fitted.score(rows, NAMES[codes]) + 0.05
    model.adapt_target(rows)
    assert_array_equal(model._share_ratios["target"], model._share_ratios["-3"])


def test_the_adapter_learns_a_new_domain_before_its_proportions():
    X, y, domain = make_two_targets(shift=5.0)
    model = clone(MODEL).set_params(adapter=DomainStandardScaler(pooling="domain"))
    model.fit(X, y, sample_domain=domain)
    rows, _ = draw(0.5, 300, 3, shift=-9.0)
    model.adapt_target(rows, domain=-7)
    assert_allclose(model.adapter_.transform(rows, sample_domain=-7).mean(axis=0), 0, atol=1e-9)
    assert model._share_ratios["-7"][1] == pytest.approx(1, abs=0.2)


def test_a_domain_of_few_rows_has_the_proportions_of_all():
    kept = np.flatnonzero((DOMAIN != -2) | (np.cumsum(DOMAIN == -2) <= 29))
    model = clone(MODEL).fit(X[kept], Y[kept], sample_domain=DOMAIN[kept])
    assert set(model._share_ratios) == {"target", "-1"}


def test_a_model_without_probabilities_gets_some():
    model = clone(MODEL).set_params(estimator=LinearSVC(random_state=0))
    model.fit(X, Y, sample_domain=DOMAIN)
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    assert not hasattr(model, "decision_function")  # it would disagree with predict
    assert hasattr(clone(model).set_params(class_shares="source"), "decision_function")


def test_labels_of_the_target_are_not_read(fitted):
    other = np.where(DOMAIN < 0, NAMES[(Y == "no").astype(int)], Y)
    again = clone(MODEL).fit(X, other, sample_domain=DOMAIN)
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_known_target_labels_and_weights(fitted):
    rng = np.random.RandomState(0)
    mask = (DOMAIN >= 0) | (rng.uniform(size=len(Y)) < 0.1)
    model = clone(MODEL).fit(X, Y, sample_domain=DOMAIN, label_mask=mask)
    assert (model.predict_proba(X) != fitted.predict_proba(X)).any()
    weights = np.where(Y == "yes", 3.0, 1.0)
    weighted = clone(MODEL).fit(X, Y, sample_domain=DOMAIN, sample_weight=weights)
    assert weighted._source_shares[1] == pytest.approx(0.75, abs=0.02)


def test_without_a_target_the_proportions_are_those_of_the_source():
    source = DOMAIN >= 0
    with pytest.warns(NothingToAdaptWarning):
        model = clone(MODEL).fit(X[source], Y[source])
    assert_array_equal(model.class_shares_, model._source_shares)
    model.adapt_target(X[DOMAIN == -1], domain=-1)
    assert model._share_ratios["-1"][1] < 0.7


def test_saved_models_predict_the_same(fitted, tmp_path):
    save(fitted, tmp_path / "model.skops")
    read = load(tmp_path / "model.skops")
    for sample_domain in (None, DOMAIN):
        assert_array_equal(
            read.predict_proba(X, sample_domain=sample_domain),
            fitted.predict_proba(X, sample_domain=sample_domain),
        )
    read.adapt_target(X[DOMAIN == -2])
    assert read.class_shares_[1] > 0.6


def test_models_of_earlier_versions_keep_the_proportions_of_the_source():
    model = AdaptedClassifier().fit(X, Y, sample_domain=DOMAIN)
    state = dict(model.__getstate__())
    del state["class_shares"]
    older = AdaptedClassifier.__new__(AdaptedClassifier)
    older.__setstate__(state)
    assert older.class_shares == "source"
    assert_array_equal(older.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("changes", "rows", "match"),
    [
        ({"class_shares": "target"}, slice(None), "'source', 'estimated'"),
        ({"objective": "balanced_accuracy"}, slice(None), 'use class_shares="source"'),
        ({}, DOMAIN >= 0, "no target rows"),
        ({}, (Y == "no") | (DOMAIN < 0) | (np.cumsum(Y == "yes") == 1), "two labeled source rows"),
    ],
)
def test_what_is_refused(changes, rows, match):
    with pytest.raises(ValueError, match=match):
        clone(MODEL).set_params(**changes).fit(X[rows], Y[rows], sample_domain=DOMAIN[rows])


def test_rows_in_blocks_are_refused():
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="rows in memory"):
        clone(MODEL).fit(da.from_array(X), Y, sample_domain=DOMAIN)


def test_rows_in_blocks_are_predicted(fitted):
    da = pytest.importorskip("dask.array")
    P = fitted.predict_proba(da.from_array(X, chunks=(500, 2)), sample_domain=-1)
    assert_allclose(P.compute(), fitted.predict_proba(X, sample_domain=-1))


def test_onnx_refuses_what_it_cannot_say(fitted, tmp_path):
    pytest.importorskip("onnx")
    from covshift.interop.onnx import to_onnx

    with pytest.raises(NotImplementedError, match="class proportions"):
        to_onnx(fitted, tmp_path / "model.onnx")
