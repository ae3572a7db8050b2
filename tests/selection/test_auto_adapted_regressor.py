"""`AutoAdaptedRegressor`: choice, predictions, limits, assessment, labels of target rows."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import make_scorer, mean_absolute_error, median_absolute_error, r2_score

from covshift import (
    AdaptedRegressor,
    AutoAdaptedRegressor,
    NothingToAdaptWarning,
    load,
    save,
    stack_domains,
)
from covshift.selection.expected_scores import AVERAGING, DISAGREEMENT, number_quantities
from covshift.selection.label_tasks import ROOM

FEW = [("standardize", Ridge()), ("coral", Ridge())]


def make_sites(n=80, seed=0):
    """Two source sites and a target whose sensors have another offset and gain."""
    rng = np.random.RandomState(seed)

    def site(offset, gain):
        X = rng.standard_normal((n, 3))
        return offset + gain * X, 100 + 20 * (X @ [1.0, 2.0, -1.0]) + rng.standard_normal(n)

    sites = {name: site(offset, 1.0) for name, offset in (("A", 0.0), ("B", 1.0))}
    X_new, y_new = site(4.0, 2.0)
    data = stack_domains(sites, target={"C": X_new})
    return data.X, data.y, data.sample_domain, X_new, y_new


@pytest.fixture(scope="module")
def sites():
    return make_sites()


@pytest.fixture(scope="module")
def model(sites):
    X, y, sample_domain, _, _ = sites
    return AutoAdaptedRegressor(candidates=FEW, random_state=0).fit(
        X, y, sample_domain=sample_domain
    )


def test_adapts_where_that_helps(model, sites):
    _, _, _, X_new, y_new = sites
    assert model.chosen_[0] == "standardize + Ridge"
    assert model.plain_.chosen_ == ["none + Ridge"]
    assert model.score(X_new, y_new) > 0.5 > model.plain_.score(X_new, y_new)


def test_prediction_is_the_weighted_mean_of_limited_members(model, sites):
    _, y, _, X_new, _ = sites
    known = y[~np.isnan(y)]
    low, high = known.min(), known.max()
    limits = low - ROOM * (high - low), high + ROOM * (high - low)
    assert_allclose(model.label_range_, limits)
    expected = np.zeros(len(X_new))
    for member in model.members_:
        found = known.mean() + known.std() * member.model.predict(X_new)
        expected += member.weight * np.clip(found, *limits)
    assert_allclose(model.predict(X_new), expected)
    assert sum(member.weight for member in model.members_) == pytest.approx(1)


def test_predictions_never_leave_the_range(model, sites):
    X_far = 1e6 * sites[3]
    low, high = model.label_range_
    predicted = model.predict(X_far)
    assert predicted.min() >= low
    assert predicted.max() <= high


def test_default_candidates_are_those_of_the_registry(sites):
    X, y, sample_domain, _, _ = sites
    model = AutoAdaptedRegressor(max_rows=50, random_state=0)
    model.fit(X, y, sample_domain=sample_domain)
    names = {row["candidate"] for row in model.leaderboard_}
    assert {"none + ridge", "none + kernel-ridge", "standardize + forest"} <= names
    assert not any(name.startswith("psf +") for name in names)  # it needs classes
    assert {"label shares", "source CV", "source domains"} <= set(model.leaderboard_[0])


def test_units_of_the_label_make_no_difference(model, sites):
    X, y, sample_domain, X_new, _ = sites
    other = AutoAdaptedRegressor(candidates=FEW, random_state=0)
    other.fit(X, 1e3 * y - 7, sample_domain=sample_domain)
    assert other.chosen_ == model.chosen_
    assert_allclose(other.predict(X_new), 1e3 * model.predict(X_new) - 7, rtol=1e-6)


def test_assessment(model):
    found = model.assessment_
    assert found.objective == "r2"
    assert found.action == "adapt"
    assert found.plain.low <= found.plain.value <= found.plain.high <= 1
    error = found.recommended_error
    assert 0 < error.low < error.value < error.high
    assert found.gain.value == pytest.approx(found.recommended.value - found.plain.value)
    assert [row["rehearsal"] for row in found.rehearsals] == [
        "source CV", "moved", "label shares", "source domains",
    ]  # fmt: skip
    assert model.decision_.startswith("Advice: adapt")


def test_no_risk_means_the_plain_model(sites):
    X, y, sample_domain, X_new, _ = sites
    model = AutoAdaptedRegressor(candidates=FEW, max_risk=0.0, random_state=0)
    model.fit(X, y, sample_domain=sample_domain)
    assert model.assessment_.action == "keep"
    assert model.assessment_.recommended_error == model.assessment_.plain_error
    assert_array_equal(model.predict(X_new), model.plain_.predict(X_new))


def test_errors_of_the_objective_mae_are_in_units_of_the_label(sites):
    X, y, sample_domain, _, _ = sites
    kinds = [AutoAdaptedRegressor(candidates=FEW, objective="mae", random_state=0) for _ in "ab"]
    one, other = (
        kind.fit(X, scale * y, sample_domain=sample_domain).assessment_
        for kind, scale in zip(kinds, (1.0, 10.0), strict=True)
    )
    assert one.plain == one.plain_error
    assert one.gain.value == pytest.approx(one.plain.value - one.recommended.value)
    for name in ("plain", "recommended", "gain"):
        assert_allclose(getattr(other, name), np.multiply(10, getattr(one, name)), rtol=1e-6)


@pytest.mark.parametrize(
    "objective",
    [
        "neg_median_absolute_error",
        make_scorer(median_absolute_error, greater_is_better=False),
        lambda true, predicted: -median_absolute_error(true, predicted),
    ],
    ids=["name", "scorer", "function"],
)
def test_scorers_are_one_objective_in_three_forms(sites, objective):
    X, y, sample_domain, X_new, y_new = sites
    model = AutoAdaptedRegressor(candidates=FEW, objective=objective, random_state=0)
    model.fit(X, y, sample_domain=sample_domain)
    scores = [row["source CV"] for row in model.leaderboard_]
    assert max(scores) < 0  # in units of the label, with a minus sign
    assert mean_absolute_error(y_new, model.predict(X_new)) < 30


def test_labels_of_target_rows_settle_it(sites):
    X, y, sample_domain, _, y_new = sites
    mask = sample_domain >= 0
    rows = np.flatnonzero(~mask)[:30]
    y = y.copy()
    y[rows], mask[rows] = y_new[:30], True
    model = AutoAdaptedRegressor(candidates=FEW, random_state=0)
    model.fit(X, y, sample_domain=sample_domain, label_mask=mask)
    found = model.assessment_
    assert found.n_labels == 30
    assert found.action == "adapt"
    assert found.gain.low > 0  # the plain model is far worse on these rows


def test_saved_model_predicts_the_same(model, sites, tmp_path):
    X_new = sites[3]
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert_array_equal(loaded.predict(X_new), model.predict(X_new))
    assert loaded.assessment_ == model.assessment_
    assert_array_equal(loaded.plain_.predict(X_new), model.plain_.predict(X_new))


def test_new_target_without_the_training_rows(sites):
    X, y, sample_domain, X_new, _ = sites
    model = AutoAdaptedRegressor(candidates=FEW[:1], vote=1, random_state=0)
    model.fit(X, y, sample_domain=sample_domain)
    assert model.chosen_ == ["standardize + Ridge"]
    moved = 3 * X_new - 10
    model.adapt_target(moved, domain="D")
    assert_allclose(model.predict(moved, sample_domain="D"), model.predict(X_new), rtol=1e-6)


def test_without_a_target_unadapted_models_are_averaged(sites):
    X, y, sample_domain, _, _ = sites
    source = sample_domain >= 0
    model = AutoAdaptedRegressor(candidates=FEW, random_state=0)
    with pytest.warns(NothingToAdaptWarning):
        model.fit(X[source], y[source])
    assert model.assessment_ is None
    assert model.chosen_ == ["none + Ridge"]


def test_equal_labels_are_predicted():
    X, y, sample_domain, X_new, _ = make_sites(30)
    model = AutoAdaptedRegressor(estimator=LinearRegression(), random_state=0)
    with pytest.warns(UserWarning, match="No candidate can be scored"):
        model.fit(X, np.full(len(y), 3.0), sample_domain=sample_domain)
    assert_allclose(model.predict(X_new), 3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "accuracy!"}, "objective must be one of 'r2', 'mae'"),
        ({"candidates": []}, r"\(None, Ridge\(\)\)"),
        ({"candidates": [("coral", "ridge")]}, "is not a regressor"),
        ({"vote": 0}, "vote"),
        ({"max_risk": 2.0}, "max_risk is a probability"),
        ({"keep_rows": "no"}, "keep_rows must be True or False, got 'no'"),
        ({"objective": "roc_auc"}, "objective='roc_auc' cannot score predicted numbers"),
        ({"objective": "accuracy"}, "objective='accuracy' cannot score predicted numbers"),
        ({"objective": lambda truth, predicted: np.nan}, "gave NaN for every candidate"),
    ],
)
def test_bad_parameters(sites, options, message):
    X, y, sample_domain, _, _ = sites
    model = AutoAdaptedRegressor(**{"candidates": FEW} | options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, sample_domain=sample_domain)


def test_labels_must_be_numbers(sites):
    X, _, sample_domain, _, _ = sites
    texts = np.where(sample_domain >= 0, "high", "")
    dates = np.datetime64("2024-01-01") + np.arange(len(X)).astype("timedelta64[D]")
    for labels, first in (
        (texts, "<U4 (first: 'high')"),
        (dates, "datetime64[D] (first: '2024-01-01')"),
        (dates - dates[0], "timedelta64[D] (first: '0 days')"),
    ):
        message = re.escape(f"y must hold numbers, got {first}. Convert the labels")
        for model in (AutoAdaptedRegressor(candidates=FEW), AdaptedRegressor("coral")):
            with pytest.raises(ValueError, match=message):
                model.fit(X, labels, sample_domain=sample_domain)


def test_labels_whose_squares_overflow_are_refused(sites):
    """They made every prediction NaN."""
    X, y, sample_domain, X_new, _ = sites
    model = AutoAdaptedRegressor(candidates=FEW, random_state=0)
    with pytest.raises(ValueError, match=r"y holds magnitudes up to .*e\+3\d\d; above 1e\+150"):
        model.fit(X, y * 1e299, sample_domain=sample_domain)
    model.fit(X, y * 1e145, sample_domain=sample_domain)
    assert np.isfinite(model.predict(X_new)).all()


def test_the_committee_is_all_candidates_that_may_be_ranked(sites):
    """How far they are from the plain model, in units of what it leaves: a naive twin."""
    X, y, sample_domain, _, _ = sites
    model = AutoAdaptedRegressor(candidates=FEW, max_rows=60, random_state=0)
    bench = model._prepare(X, y, sample_domain, None)[0]
    plain, other = 0, 1
    assert [one.adapts for one in bench.candidates] == [False, True, True]
    P = [one[:, 0] for one in bench.calibrated(bench.target)]
    squares = [np.mean((one - P[plain]) ** 2) for one in P]
    u = 1 - r2_score(bench.problem.truth, bench.probabilities_left_out()[plain][:, 0])
    for allowed, counted in (([True, True, True], squares), ([True, True, False], squares[:2])):
        found = number_quantities(bench, np.array([0.3, 0.7, 0.0]), plain, np.array(allowed))
        expected = (sum(counted) / len(counted)) ** 0.5 / u**0.5
        assert found["committee"] == pytest.approx(np.log1p(expected))
        vote = 0.3 * P[plain] + 0.7 * P[other]
        changed = np.mean((vote - P[plain]) ** 2)
        assert found[DISAGREEMENT] == pytest.approx(changed**0.5)
        assert found[AVERAGING] == pytest.approx(changed / 2)
