"""Expected scores of fitted models on new rows without labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    AutoAdaptedClassifier,
    estimate_performance,
    load,
    save,
    stack_domains,
)
from covshift.measures import calibrated_confidence, difference_of_confidences
from covshift.predictors.held_out_rows import NoHeldOutRowsError
from covshift.selection import performance_estimate
from covshift.selection.performance_estimate import (
    _domain_drop,
    _known_codes,
    performance_coefficients,
    predict_performance,
)

NAMES = np.array(["no", "yes"])


def draw(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(shift, 1.0, size=(n, 2))
    return X, NAMES[(rng.uniform(size=n) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)]


def fit(**settings):
    X, y = draw(200, 0)
    rows, labels, domain = stack_domains(X, y, draw(100, 1)[0])
    return AdaptedClassifier(**settings).fit(rows, labels, sample_domain=domain)


@pytest.fixture(scope="module")
def model():
    return fit(keep_rows=True)


def test_rows_like_the_source_score_as_on_the_source(model):
    X, y = draw(1000, 2)
    found = estimate_performance(model, X)
    held = model.held_out_
    assert found.reference == np.mean(held.scores.argmax(axis=1) == held.y)
    assert found.low <= found.value <= found.high
    assert found.low <= model.score(X, y) <= found.high
    assert abs(found.value - found.reference) < 0.05
    assert found.objective == "accuracy"
    assert found.n_labels == 0


def test_the_estimate_is_the_combination_unless_it_agrees_with_calibrated_confidence(model):
    X = draw(300, 3, shift=0.5)[0]
    found = estimate_performance(model, X, objective="balanced_accuracy")
    fitted = performance_coefficients()["balanced_accuracy"]
    value = scale = 0.0
    for name, beta in fitted["mean"].items():
        value += beta * found.quantities[name]
    for name, gamma in fitted["log scale"].items():
        scale += gamma * found.quantities[name]
    calibrated = found.estimates["calibrated confidence"]
    share = (value - calibrated) ** 2 / ((value - calibrated) ** 2 + fitted["agreement"] ** 2)
    value = share * value + (1 - share) * calibrated
    low, high = np.interp(
        [0.05, 0.95], fitted["probabilities"], value + np.exp(scale) * np.array(fitted["quantiles"])
    )
    assert found[:3] == pytest.approx((value, np.clip(low, 0, 1), np.clip(high, 0, 1)))
    assert predict_performance(found.quantities, fitted).value == pytest.approx(value)


def test_single_estimates_are_those_of_the_measures(model):
    X = draw(300, 3, shift=0.5)[0]
    found = estimate_performance(model, X)
    P, held = model._set_probabilities(X, None), model.held_out_
    predicted = np.searchsorted(NAMES, model.predict(X))
    assert found.estimates["calibrated confidence"] == pytest.approx(
        calibrated_confidence(P, predicted_target=predicted)
    )
    by_difference = difference_of_confidences(held.scores, held.y, P, predicted_target=predicted)
    assert found.estimates["confidence"] == pytest.approx(by_difference)
    assert found.quantities["confidence"] == pytest.approx(found.reference - by_difference)


def test_known_labels_narrow_the_interval(model):
    X, y = draw(400, 4)
    known = np.full(400, None, dtype=object)
    known[:100] = y[:100]
    before, after = estimate_performance(model, X), estimate_performance(model, X, y_known=known)
    assert after.n_labels == 100
    assert after.high - after.low < before.high - before.low
    wrong = known.copy()
    wrong[:100] = np.where(y[:100] == "no", "yes", "no")
    assert estimate_performance(model, X, y_known=wrong).value < after.value


def test_known_labels_are_read_where_they_are():
    rows, codes = _known_codes([None, "yes", float("nan"), "no", ""], NAMES, 5)
    assert rows.tolist() == [1, 3]
    assert codes.tolist() == [1, 0]
    rows, codes = _known_codes([1, None, 0.0], np.array([0, 1]), 3)
    assert (rows.tolist(), codes.tolist()) == ([0, 2], [1, 0])
    nullable = pd.array([1, pd.NA, 0], dtype="Int64")
    rows, codes = _known_codes(nullable, np.array([0, 1]), 3)
    assert (rows.tolist(), codes.tolist()) == ([0, 2], [1, 0])
    with pytest.raises(ValueError, match=r"'maybe' \(row 1\), which is not a class"):
        _known_codes([None, "maybe"], NAMES, 2)
    with pytest.raises(ValueError, match="one entry per row"):
        _known_codes([None], NAMES, 2)


def test_a_loaded_model_estimates_the_same(model, tmp_path):
    X = draw(60, 5)[0]
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    found, same = estimate_performance(loaded, X), estimate_performance(model, X)
    assert found[:-1] == same[:-1]
    np.testing.assert_array_equal(found.distribution.quantiles, same.distribution.quantiles)


def test_few_rows_are_estimated_too(model):
    found = estimate_performance(model, draw(3, 6)[0])
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_bad_input(model):
    with pytest.raises(NoHeldOutRowsError, match="keeps no held-out rows"):
        estimate_performance(fit(), draw(30, 7)[0])
    with pytest.raises(ValueError, match="objective must be one of"):
        estimate_performance(model, draw(30, 7)[0], objective="f1")
    with pytest.raises(TypeError, match="keep_rows must be True or False, got 'no'"):
        fit(keep_rows="no")


@pytest.mark.parametrize("other", [LogisticRegression(), AdaptedRegressor("coral")], ids=repr)
def test_other_models_are_refused(other):
    X = draw(30, 7)[0]
    if isinstance(other, LogisticRegression):
        other.fit(X, X[:, 0] > 0)
    else:
        other.fit(X, X[:, 0], sample_domain=np.repeat([0, -1], 15))
    with pytest.raises(
        TypeError, match=f"takes a fitted AdaptedClassifier.*{type(other).__name__}"
    ):
        estimate_performance(other, X)


def test_the_drop_on_source_domains_is_that_of_the_assessment():
    class Assessed:
        rehearsals = [
            {"rehearsal": "source CV", "plain": 0.8, "vote": 0.9},
            {"rehearsal": "source domains", "plain": 0.7, "vote": 0.6},
        ]

    assert _domain_drop(None, 3) == 0
    assert _domain_drop(Assessed, 1) == pytest.approx(0.1)
    assert _domain_drop(Assessed, 3) == pytest.approx(0.3)
    Assessed.rehearsals = Assessed.rehearsals[:1]
    assert _domain_drop(Assessed, 3) == 0


def test_an_automatic_choice_keeps_the_rows_of_its_scores(tmp_path):
    X, y = draw(120, 0)
    rows, labels, domain = stack_domains(X, y, draw(80, 1)[0])
    candidates = [("coral", LogisticRegression()), ("none", LogisticRegression())]
    model = AutoAdaptedClassifier(candidates=candidates, random_state=0)
    model.fit(rows, labels, sample_domain=domain)
    held = model.held_out_
    assert held.X.shape == (120, 2)
    assert np.allclose(held.scores.sum(axis=1), 1)
    new = draw(100, 2)[0]
    assert model.predict_set(new).included.shape == (100, 2)
    assert model.plain_.held_out_.scores.shape == (120, 2)
    assert 0 < estimate_performance(model, new).value < 1
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert (again.predict_set(new).included == model.predict_set(new).included).all()
    bare = AutoAdaptedClassifier(candidates=candidates, random_state=0, keep_rows=False)
    assert bare.fit(rows, labels, sample_domain=domain).held_out_ is None


def scored_rows(model, X):
    held = model.held_out_
    P = model.predict_proba(X)
    return performance_estimate.Scored(
        held, held.scores.argmax(axis=1), X, P, P.argmax(axis=1), "accuracy"
    )


def test_what_counts_where_rows_are_separate_is_in_proportion_to_the_auc(model):
    scored = scored_rows(model, draw(100, 3)[0])
    weights = np.ones(len(scored.held.X))
    found, _ = performance_estimate.performance_quantities(
        scored, (0.36, 0.0, weights)
    )  # (2 A - 1)² = .36
    for name in performance_estimate.SEPARATED:
        assert found[f"{name}, separated"] == pytest.approx(0.6 * found[name])
        assert found[name] != 0


def test_all_rows_are_compared_where_they_are_few(model, monkeypatch):
    seen = []
    compare = performance_estimate.compare_rows
    monkeypatch.setattr(
        performance_estimate, "compare_rows", lambda A, B: seen.append(B) or compare(A, B)
    )
    X = draw(50, 3)[0]
    performance_estimate.performance_quantities(scored_rows(model, X))
    np.testing.assert_array_equal(seen[0], X)


@pytest.mark.parametrize(("n_old", "n_new"), [(200, 9), (9, 200)])
def test_few_rows_are_taken_for_rows_that_did_not_move(n_old, n_new):
    separation, outside, weights = performance_estimate.compare_rows(
        draw(n_old, 0)[0], draw(n_new, 1, 50.0)[0]
    )
    assert (separation, outside) == (0.0, 0.0)
    assert weights.tolist() == [1.0] * n_old
