"""Prediction sets and intervals: formulas against loops, coverage, promises, bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    AutoAdaptedRegressor,
    load,
    save,
    stack_domains,
)
from covshift.predictors.held_out_rows import (
    MAX_KEPT,
    HeldOutRows,
    NoHeldOutRowsError,
    draw_held_out_rows,
)
from covshift.predictors.prediction_sets import (
    CLASS_PROPORTIONS,
    DENSITY_RATIOS,
    EITHER,
    EXCHANGEABLE,
    MARGIN,
    UNWEIGHTED,
    Evidence,
    Promise,
    Rule,
    Weighting,
    class_sets,
    conformal_thresholds,
    decide_coverage,
    judge_shift,
    without_gaps,
)

ALPHA = 0.1


def naive_threshold(scores, weights, new_weight, alpha):
    """The quantile of the weighted scores and of a point mass at infinity, as a loop."""
    atoms = sorted(zip([*scores, np.inf], [*weights, new_weight], strict=True))
    total, mass = sum(weight for _, weight in atoms), 0.0
    for score, weight in atoms:
        mass += weight / total
        if mass >= 1 - alpha - 1e-12:
            return score
    raise AssertionError


def naive_sets(scores, codes, class_weights, P, alpha):
    """Sets under label shift, class by class and row by row."""
    found = np.zeros(P.shape, dtype=bool)
    weights = [class_weights[code] for code in codes]
    for row in range(len(P)):
        for k in range(P.shape[1]):
            found[row, k] = 1 - P[row, k] <= naive_threshold(
                scores, weights, class_weights[k], alpha
            )
    return found


def draw_classes(rng, n, shift=0.0):
    """Rows of a known rule P(y = 1 | x), and their classes."""
    X = rng.normal(shift, 1.0, size=(n, 1))
    p = 1 / (1 + np.exp(-2 * X[:, 0]))
    return X, (rng.uniform(size=n) < p).astype(int), np.column_stack([1 - p, p])


def fitted(rng, n=300, shift=0.0, **settings):
    X, y, _ = draw_classes(rng, n)
    X_target, _, _ = draw_classes(rng, n, shift)
    rows, labels, domain = stack_domains(X, y, X_target)
    model = AdaptedClassifier(keep_rows=True, **settings)
    return model.fit(rows, labels, sample_domain=domain), X_target


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("n", [1, 9, 40])
def test_thresholds_are_those_of_a_loop(alpha, n):
    rng = np.random.default_rng(n)
    scores = rng.integers(0, 8, size=n) / 8  # with ties
    weights, new = rng.exponential(size=n), rng.exponential(size=20) * 3
    expected = [naive_threshold(scores, weights, one, alpha) for one in new]
    assert_allclose(conformal_thresholds(scores, weights, new, alpha), expected)


def test_the_quantile_without_weights_is_the_one_of_split_conformal():
    scores = np.arange(1.0, 20.0)  # 19 rows: the 18th of 20 places
    found = conformal_thresholds(scores, np.ones(19), np.ones(1), ALPHA)
    assert_array_equal(found, [18.0])
    assert conformal_thresholds(scores[:8], np.ones(8), np.ones(1), ALPHA) == np.inf


def test_a_row_with_most_of_the_mass_gets_every_class():
    found = conformal_thresholds(np.array([0.1, 0.2]), np.ones(2), np.array([1e6]), ALPHA)
    assert_array_equal(found, [np.inf])


def test_sets_by_class_proportions_are_those_of_loops():
    rng = np.random.default_rng(0)
    codes, P = rng.integers(0, 3, size=60), rng.dirichlet(np.ones(3), size=25)
    scores, of_class = rng.uniform(size=60), np.array([0.2, 1.0, 3.0])
    weighting = Weighting(of_class[codes], by_class=of_class)
    rule = Rule(Promise(True, EITHER, "", 1.0), [weighting], ALPHA)
    expected = naive_sets(scores, codes, of_class, P, ALPHA)
    assert 0 < expected.mean() < 1
    assert_array_equal(class_sets(scores, rule, P, P), expected)


def test_sets_are_the_union_over_the_weightings():
    rng = np.random.default_rng(0)
    scores, P = rng.uniform(size=80), rng.dirichlet(np.ones(3), size=25)
    X = rng.normal(size=(25, 1))
    parts = [
        Weighting(np.ones(80)),
        Weighting(scores**2, ratios=lambda Z: np.exp(Z[:, 0])),
        Weighting(np.ones(80), by_class=np.array([0.1, 1.0, 5.0])),
    ]
    promise = Promise(True, EITHER, "", 1.0)
    alone = [class_sets(scores, Rule(promise, [one], ALPHA), X, P) for one in parts]
    for row, one in enumerate(P):
        new = np.exp(X[row, 0])
        q = naive_threshold(scores, scores**2, new, ALPHA)
        assert_array_equal(alone[1][row], 1 - one <= q)
    united = class_sets(scores, Rule(promise, parts, ALPHA), X, P)
    assert_array_equal(united, alone[0] | alone[1] | alone[2])


EVIDENCE = Evidence(
    200, 100, 0.001, 0.0, 0.95, {UNWEIGHTED: 200.0, CLASS_PROPORTIONS: 150.0, DENSITY_RATIOS: 80.0}
)


@pytest.mark.parametrize(
    ("changes", "method", "words"),
    [
        ({}, EITHER, "class proportions alone"),
        ({"pvalue": 0.06}, EXCHANGEABLE, "cannot be distinguished"),
        ({"pvalue": 0.06, "inside": 0.1}, EXCHANGEABLE, "cannot be distinguished"),
        ({"n_target": 19}, UNWEIGHTED, "compare with the source: 19; at least 20"),
        ({"n_held": 49}, UNWEIGHTED, "49 held-out rows are too few"),
        ({"inside": 0.89}, UNWEIGHTED, "11 % of the target rows lie where the source has none"),
        ({"repeated": 0.5, "pvalue": 0.06}, UNWEIGHTED, "50 % of the target rows are rows that"),
        ({"repeated": 0.49, "pvalue": 0.06}, EXCHANGEABLE, "cannot be distinguished"),
        ({"confidence_drop": 0.06}, UNWEIGHTED, "less confident"),
        (
            {"effective": {**EVIDENCE.effective, DENSITY_RATIOS: 49.0}},
            UNWEIGHTED,
            "they count as 49 rows",
        ),
        (
            {"effective": {UNWEIGHTED: 200.0, DENSITY_RATIOS: 80.0}},
            DENSITY_RATIOS,
            "in the same way",
        ),
    ],
)
def test_what_is_promised_by_which_evidence(changes, method, words):
    promise, names = decide_coverage(EVIDENCE._replace(**changes), ALPHA)
    assert promise.method == method
    assert promise.promised == (method != UNWEIGHTED)
    assert words in promise.reason
    if method in (UNWEIGHTED, EXCHANGEABLE):
        assert names == [UNWEIGHTED]


def covered_by_known_ratios(n_draws, n, shift):
    """Share of covered rows in each draw, with the true density ratio of two Gaussians."""
    rng = np.random.default_rng(0)

    def ratio(X):
        return np.exp(shift * X[:, 0] - shift**2 / 2)

    covered, unweighted = [], []
    for _ in range(n_draws):
        X, y, P = draw_classes(rng, n)
        X_new, y_new, P_new = draw_classes(rng, 1, shift)
        # A wrong model, which is what makes weights necessary.
        P, P_new = (np.column_stack([1 - q, q]) for q in (P[:, 1] ** 3, P_new[:, 1] ** 3))
        scores = 1 - P[np.arange(n), y]
        own = 1 - P_new[0, y_new[0]]
        q = conformal_thresholds(scores, ratio(X), ratio(X_new), ALPHA)
        covered.append(own <= q[0])
        unweighted.append(own <= conformal_thresholds(scores, np.ones(n), np.ones(1), ALPHA)[0])
    return np.mean(covered), np.mean(unweighted)


def test_coverage_with_known_density_ratios():
    n_draws = 3000
    covered, unweighted = covered_by_known_ratios(n_draws, n=200, shift=1.0)
    error = np.sqrt(ALPHA * (1 - ALPHA) / n_draws)
    # Scores without ties: coverage is at least 1 - alpha, and at most by the largest weight more.
    assert covered > 1 - ALPHA - error
    assert covered < 1 - ALPHA + 0.03
    assert abs(unweighted - (1 - ALPHA)) > 3 * error


def test_coverage_with_known_class_proportions():
    rng, n_draws, n = np.random.default_rng(1), 3000, 200
    of_class, hits = np.array([0.4, 1.6]), 0
    for _ in range(n_draws):
        y = rng.integers(0, 2, size=n)
        y_new = int(rng.uniform() < 0.8)
        p = 1 / (1 + np.exp(-rng.normal(2.0 * y - 1, 1.0)))
        p_new = 1 / (1 + np.exp(-rng.normal(2.0 * y_new - 1, 1.0)))
        scores = np.where(y == 1, 1 - p, p)
        q = conformal_thresholds(scores, of_class[y], of_class, ALPHA)
        hits += (1 - p_new if y_new else p_new) <= q[y_new]
    error = np.sqrt(ALPHA * (1 - ALPHA) / n_draws)
    assert 1 - ALPHA - error < hits / n_draws < 1 - ALPHA + 0.03


def test_rows_like_the_source_are_exchangeable():
    rng = np.random.default_rng(0)
    model, _ = fitted(rng)
    X_new, y_new, _ = draw_classes(rng, 2000)
    sets = model.predict_set(X_new, ALPHA)
    assert sets.promised
    assert sets.method == EXCHANGEABLE
    assert sets.effective_sample_size == 300
    assert sets.included.shape == (2000, 2)
    assert sets.included.dtype == bool
    assert abs(sets.included[np.arange(2000), y_new].mean() - 0.9) < 0.04


def test_copies_of_a_few_target_rows_get_no_promise():
    rng = np.random.default_rng(0)
    X, y, _ = draw_classes(rng, 300)
    rows, labels, domain = stack_domains(X, y, X + 0.1)
    model = AdaptedClassifier(keep_rows=True).fit(rows, labels, sample_domain=domain)
    some = draw_classes(rng, 25)[0]
    sets = model.predict_set(np.repeat(some[:5], 40, axis=0), ALPHA)
    assert not sets.promised
    assert "Only 5 of the target rows differ from each other; at least 20" in sets.reason
    assert "differ from each other" not in model.predict_set(np.repeat(some, 8, axis=0)).reason


def test_the_rows_that_a_model_learned_from_get_no_promise():
    rng = np.random.default_rng(0)
    X, y, _ = draw_classes(rng, 300)
    rows, labels, domain = stack_domains(X, y, X + 0.1)
    model = AdaptedClassifier(keep_rows=True).fit(rows, labels, sample_domain=domain)
    sets = model.predict_set(X[:100], ALPHA)
    assert not sets.promised
    assert "100 % of the target rows are rows that the model learned from" in sets.reason


def test_covariate_shift_is_covered_by_density_ratios():
    rng = np.random.default_rng(0)
    model, _ = fitted(rng, shift=0.5)
    X_new, y_new, _ = draw_classes(rng, 2000, 0.5)
    sets = model.predict_set(X_new, ALPHA)
    assert sets.promised
    assert sets.method == EITHER
    assert sets.effective_sample_size < 300
    assert 0.87 < sets.included[np.arange(2000), y_new].mean() < 0.97


def test_a_detected_shift_leaves_a_margin():
    rng = np.random.default_rng(0)
    model, X_target = fitted(rng, shift=0.5)
    held, P = model.held_out_, model._set_probabilities(X_target, None)
    moved = judge_shift(held, X_target, ALPHA, P)
    assert moved.promise.method == EITHER
    assert moved.alpha == pytest.approx(MARGIN * ALPHA)
    X_same, _, _ = draw_classes(rng, 300)
    same = judge_shift(held, X_same, ALPHA, model._set_probabilities(X_same, None))
    assert same.promise.method == EXCHANGEABLE
    assert same.alpha == ALPHA
    far = judge_shift(held, X_target + 50, ALPHA, P)
    assert far.promise.method == UNWEIGHTED
    assert far.alpha == ALPHA


def test_class_proportions_explain_a_label_shift():
    rng = np.random.default_rng(0)

    def draw(n, share):
        y = (rng.uniform(size=n) < share).astype(int)
        return rng.normal(size=(n, 2)) + [[2.0, 0.0]] * (y[:, None] * np.ones(2)), y

    X, y = draw(400, 0.5)
    X_target, _ = draw(400, 0.85)
    rows, labels, domain = stack_domains(X, y, X_target)
    model = AdaptedClassifier(keep_rows=True).fit(rows, labels, sample_domain=domain)
    X_new, y_new = draw(2000, 0.85)
    sets = model.predict_set(X_new, ALPHA, X_target=X_target)
    assert sets.promised
    assert sets.method == EITHER
    assert 0.87 < sets.included[np.arange(2000), y_new].mean() < 0.97


def test_far_rows_get_no_promise():
    model, _ = fitted(np.random.default_rng(0))
    sets = model.predict_set(np.full((100, 1), 50.0) + np.arange(100)[:, None])
    assert not sets.promised
    assert sets.method == UNWEIGHTED
    assert "lie where the source has none" in sets.reason


def test_few_target_rows_get_no_promise_unless_others_speak_for_them():
    model, X_target = fitted(np.random.default_rng(0))
    alone = model.predict_set(X_target[:3])
    assert not alone.promised
    assert "Too few target rows to compare with the source: 3; at least" in alone.reason
    assert model.predict_set(X_target[:3], X_target=X_target).promised


def test_few_held_out_rows_get_no_promise():
    model, X_target = fitted(np.random.default_rng(0), n=60)
    found = model.predict_set(X_target, 0.01)
    assert not found.promised
    assert "60 held-out rows are too few" in found.reason


def test_an_estimator_without_probabilities_predicts_sets():
    model, X_target = fitted(np.random.default_rng(0), estimator=LinearSVC())
    assert model.predict_set(X_target).included.any()


def test_held_out_scores_come_from_fits_without_the_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 2, size=60)
    rows, labels, domain = stack_domains(X, y, X)

    class Memory(LogisticRegression):
        """Knows the rows that it was fitted to."""

        def fit(self, X, y):
            self.known_ = set(X[:, 0].tolist())
            return super().fit(X, y)

        def predict_proba(self, X):
            known = np.array([one in self.known_ for one in X[:, 0].tolist()])
            return np.column_stack([1 - 0.8 * known, 0.8 * known])

    model = AdaptedClassifier(estimator=Memory(), keep_rows=True)
    held = model.fit(rows, labels, sample_domain=domain).held_out_
    assert_array_equal(held.X, X)
    assert_array_equal(model.classes_[held.y], y)
    assert len(np.unique(held.scores.round(6), axis=0)) == 1  # no row was known
    assert len(np.unique(model.predict_proba(X).round(6), axis=0)) == 1  # all rows are


def test_at_most_1000_rows_are_kept_of_all_strata():
    strata = np.repeat([0, 1, 2], [5000, 3000, 10])
    kept = draw_held_out_rows(strata)
    assert len(kept) == MAX_KEPT == len(set(kept.tolist()))
    assert np.bincount(strata[kept]).min() >= 1
    assert_array_equal(draw_held_out_rows(strata[:7]), np.arange(7))


def test_labels_of_target_rows_are_not_read():
    rng = np.random.default_rng(0)
    X, y, _ = draw_classes(rng, 100)
    rows, labels, domain = stack_domains(X, y, X[:50])
    first = AdaptedClassifier(keep_rows=True).fit(rows, labels, sample_domain=domain)
    labels = labels.copy()
    labels[domain < 0] = 7
    second = AdaptedClassifier(keep_rows=True).fit(rows, labels, sample_domain=domain)
    assert_array_equal(first.held_out_.scores, second.held_out_.scores)


def test_a_model_without_rows_says_so():
    X, y, _ = draw_classes(np.random.default_rng(0), 60)
    rows, labels, domain = stack_domains(X, y, X)
    model = AdaptedClassifier().fit(rows, labels, sample_domain=domain)
    assert model.held_out_ is None
    with pytest.raises(NoHeldOutRowsError, match="keeps no held-out rows"):
        model.predict_set(X)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, float("nan"), "0.1"])
def test_alpha_is_a_share(alpha):
    model, X_target = fitted(np.random.default_rng(0), n=60)
    with pytest.raises((TypeError, ValueError), match="alpha"):
        model.predict_set(X_target, alpha)


def test_sparse_rows_are_not_kept():
    from scipy import sparse

    X, y, _ = draw_classes(np.random.default_rng(0), 60)
    rows, labels, domain = stack_domains(X, y, X)
    with pytest.raises(ValueError, match="keep_rows=True keeps rows of a dense array"):
        AdaptedClassifier(keep_rows=True).fit(sparse.csr_array(rows), labels, sample_domain=domain)


def test_missing_values_are_compared_by_medians():
    A = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    filled, other = without_gaps(A, np.array([[np.nan, 5.0]]))
    assert_array_equal(filled, [[1, 0], [3, 0], [2, 0]])
    assert_array_equal(other, [[2, 5]])


def test_a_saved_model_predicts_the_same_sets(tmp_path):
    model, X_target = fitted(np.random.default_rng(0), n=80)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    ours, theirs = model.predict_set(X_target), loaded.predict_set(X_target)
    assert_array_equal(ours.included, theirs.included)
    assert ours[1:] == theirs[1:]


# Intervals ----------------------------------------------------------------------------------------


def draw_numbers(rng, n, shift=0.0):
    X = rng.normal(shift, 1.0, size=(n, 2))
    return X, X[:, 0] + rng.normal(size=n) * 0.3


def test_intervals_are_residuals_around_predictions():
    rng = np.random.default_rng(0)
    X, y = draw_numbers(rng, 300)
    X_new, y_new = draw_numbers(rng, 1000)
    rows, labels, domain = stack_domains(X, y, X_new[:200])
    model = AdaptedRegressor(estimator=LinearRegression(), keep_rows=True)
    model.fit(rows, labels, sample_domain=domain)
    found = model.predict_interval(X_new, ALPHA)
    assert found.promised
    assert found.method == EXCHANGEABLE
    held = model.held_out_
    width = naive_threshold(np.abs(held.y - held.scores), np.ones(300), 1.0, ALPHA)
    assert_allclose(found.high - model.predict(X_new), width)
    assert_allclose((found.low + found.high) / 2, model.predict(X_new))
    assert abs(np.mean((found.low <= y_new) & (y_new <= found.high)) - 0.9) < 0.04


def test_intervals_under_covariate_shift():
    rng = np.random.default_rng(0)
    X, y = draw_numbers(rng, 300)
    X_new, y_new = draw_numbers(rng, 500, 0.4)
    rows, labels, domain = stack_domains(X, y, X_new)
    model = AdaptedRegressor(keep_rows=True).fit(rows, labels, sample_domain=domain)
    found = model.predict_interval(X_new)
    assert found.promised
    assert found.method == DENSITY_RATIOS
    assert np.mean((found.low <= y_new) & (y_new <= found.high)) > 0.84


def test_judging_numbers_reads_no_class():
    rng = np.random.default_rng(0)
    held = HeldOutRows(rng.normal(size=(99, 1)), rng.normal(size=99), np.zeros(99), np.zeros(99))
    assert judge_shift(held, rng.normal(size=(99, 1)), ALPHA).promise.promised


def test_an_automatic_choice_predicts_intervals_in_units_of_the_label(tmp_path):
    rng = np.random.default_rng(0)
    X, y = draw_numbers(rng, 200)
    X_new, y_new = draw_numbers(rng, 400, 0.2)
    rows, labels, domain = stack_domains(X, 1000 + 50 * y, X_new)
    candidates = [("standardize", LinearRegression()), (None, LinearRegression())]
    model = AutoAdaptedRegressor(candidates=candidates, random_state=0)
    model.fit(rows, labels, sample_domain=domain)
    held = model.held_out_
    assert_allclose(np.sort(held.y), np.sort(1000 + 50 * y))
    assert np.corrcoef(held.scores, held.y)[0, 1] > 0.9
    found = model.predict_interval(X_new, ALPHA)
    assert_allclose((found.low + found.high) / 2, model.predict(X_new))
    truth = 1000 + 50 * y_new
    assert abs(np.mean((found.low <= truth) & (truth <= found.high)) - 0.9) < 0.06
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops").predict_interval(X_new, ALPHA)
    assert_array_equal(again.low, found.low)
    assert model.plain_.predict_interval(X_new).promised == found.promised


def test_an_automatic_choice_without_rows_says_so():
    rng = np.random.default_rng(0)
    X, y = draw_numbers(rng, 80)
    rows, labels, domain = stack_domains(X, y, X)
    model = AutoAdaptedRegressor(
        candidates=[(None, LinearRegression())], keep_rows=False, random_state=0
    ).fit(rows, labels, sample_domain=domain)
    assert model.held_out_ is None
    with pytest.raises(NoHeldOutRowsError):
        model.predict_interval(X)
