"""The joint alignment classifier: its formula, its invariances, odd inputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    DomainStandardScaler,
    JointAlignmentClassifier,
    NothingToAdaptWarning,
    ULSIFWeights,
)
from covshift.predictors import joint_alignment_classifier as module
from covshift.registry import Size
from covshift.selection.candidates import default_candidates, make_model, model_name, named_model
from covshift.tables.adapting import check_choice
from tests.shifted import make_problem
from tests.twins import joint_alignment_twin as twin

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
SOURCE, TARGET = SAMPLE_DOMAIN >= 0, SAMPLE_DOMAIN < 0
WEIGHTS = np.random.RandomState(0).uniform(0.5, 2, len(X))


def fit(rows=X, y=Y, sample_domain=SAMPLE_DOMAIN, sample_weight=None, label_mask=None, **params):
    return JointAlignmentClassifier(**params).fit(
        rows, y, sample_domain=sample_domain, sample_weight=sample_weight, label_mask=label_mask
    )


def make_moved_classes(n=60, n_features=4, n_classes=3, seed=0):
    """Classes that are clusters, all of which move in the target."""
    rng = np.random.RandomState(seed)
    y = np.arange(2 * n) % n_classes
    rows = rng.randn(2 * n, n_features) + 3 * np.eye(n_classes, n_features)[y]
    sample_domain = np.repeat([0, -1], n)
    rows[sample_domain < 0] += 0.8
    return rows, y, sample_domain


# The formula


@pytest.mark.parametrize("graph_weight", [0.0, 1.0])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
def test_coefficients_are_those_of_the_formula(graph_weight, mu):
    model = fit(sample_weight=WEIGHTS, graph_weight=graph_weight, class_alignment=mu, n_neighbors=4)
    codes = np.where(SOURCE, Y, -1)
    alpha, shares, _, n_rounds = twin.fit(
        X, codes, TARGET, WEIGHTS, model.bandwidth_, 0.1, 10.0, mu, graph_weight, 4,
        10 if mu else 0,
    )  # fmt: skip
    assert model.n_rounds_ == n_rounds
    assert_allclose(model.class_shares_, shares)
    scores = shares + twin.kernel_matrix(X_NEW, X, model.bandwidth_) @ alpha
    assert_allclose(model.decision_function(X_NEW), scores, rtol=1e-8, atol=1e-10)


def test_the_formula_is_the_minimum():
    """The twin's own check: a step in any direction raises the objective."""
    codes = np.where(SOURCE, Y, -1)
    settings = {"eta": 0.1, "lam": 10.0, "gamma": 1.0}
    alpha, shares, M, _ = twin.fit(
        X, codes, TARGET, WEIGHTS, 1.5, mu=0.5, n_neighbors=4, max_rounds=2, **settings
    )
    K, L = twin.kernel_matrix(X, X, 1.5), twin.laplacian(X, 4, 1.5)

    def objective(coefficients):
        return twin.objective(coefficients, K, codes, WEIGHTS, M, L, shares=shares, **settings)

    lowest, rng = objective(alpha), np.random.RandomState(0)
    for _ in range(5):
        step = 1e-3 * rng.randn(*alpha.shape)
        assert objective(alpha + step) > lowest
        # Equal to the second order: the gradient is zero.
        slope = (objective(alpha + step) - objective(alpha - step)) / 2
        assert abs(slope) < 1e-6 * (objective(alpha + step) - lowest)


def test_without_alignment_and_graph_it_is_kernel_ridge():
    model = fit(alignment_weight=0, graph_weight=0, ridge=0.3, sample_weight=WEIGHTS)
    assert not model.uses_target_rows
    assert model.n_rounds_ == 0
    peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / model.bandwidth_**2)
    residuals = np.eye(3)[Y[SOURCE]] - model.class_shares_
    peer.fit(X[SOURCE], residuals, sample_weight=WEIGHTS[SOURCE])
    scores = peer.predict(X_NEW) + model.class_shares_
    assert_allclose(model.decision_function(X_NEW), scores, rtol=1e-8)
    alone = fit(X[SOURCE], Y[SOURCE], None, WEIGHTS[SOURCE], alignment_weight=0, graph_weight=0,
                ridge=0.3)  # fmt: skip
    assert_array_equal(alone.predict_proba(X_NEW), model.predict_proba(X_NEW))


def test_alignment_brings_mean_scores_together():
    def distance(model, rows):
        scores = model.decision_function(X[rows])
        return np.linalg.norm(scores[SOURCE[rows]].mean(0) - scores[TARGET[rows]].mean(0))

    every = np.ones(len(X), dtype=bool)
    plain, aligned = (
        fit(alignment_weight=weight, class_alignment=0, graph_weight=0) for weight in (0, 1e6)
    )
    assert distance(aligned, every) < 1e-3 * distance(plain, every)


def test_leave_one_out_scores_are_those_of_refits():
    """With the same pseudo-labels and class shares, and without the loss of one row."""
    codes = np.where(SOURCE, Y, -1)
    entries = module._merge_entries(X, TARGET, codes, WEIGHTS)
    order = np.lexsort(X.T[::-1])
    assert_array_equal(entries.rows, X[order])
    K = twin.kernel_matrix(entries.rows, entries.rows, 1.5)
    L = twin.laplacian(entries.rows, 4, 1.5)
    classes = np.where(entries.labeled, entries.codes, 1)
    parts = [
        np.sqrt(5.0) * module._mean_differences(entries.target, group, entries.weights, 3)
        for group in (None, classes)
    ]
    U = np.column_stack(parts)
    M = twin.alignment_matrix(entries.target, classes, entries.weights, 3, 0.5)
    assert_allclose(U @ U.T, 10 * M, atol=1e-12)

    def coefficients(weights):
        E = np.diag(np.where(entries.labeled, weights, 0.0))
        residuals = np.eye(3)[entries.codes] - 1 / 3
        return np.linalg.solve((E + L + U @ U.T) @ K + 0.1 * np.eye(len(K)), E @ residuals)

    loss = np.diag(np.where(entries.labeled, entries.weights, 0.0)) + L
    design = module._exact_design(K, loss, 0.1)
    residuals = np.where(entries.labeled[:, None], np.eye(3)[entries.codes] - 1 / 3, 0)
    aligned = module.align(design, design.fit(residuals * entries.weights[:, None]), U)
    assert_allclose(aligned.coefficients, coefficients(entries.weights), atol=1e-9)
    found = module._leverages(design, aligned, entries)
    labeled = np.flatnonzero(entries.labeled)
    for number, i in [*enumerate(labeled)][::5]:
        without = np.where(np.arange(len(K)) == i, 0, entries.weights)
        error = residuals[i] - K[i] @ coefficients(without)
        shortcut = (residuals[i] - K[i] @ aligned.coefficients) / (1 - found[number])
        assert_allclose(shortcut, error, rtol=1e-6, atol=1e-9)


def test_probabilities_are_the_most_likely_for_left_out_rows():
    rows, y, sample_domain = make_moved_classes()
    model = fit(rows, y, sample_domain, alignment_weight=0, graph_weight=0, bandwidth=2.0)
    source, n = rows[sample_domain >= 0], 60
    residuals = np.eye(3)[y[:n]] - model.class_shares_
    scores = np.empty((n, 3))
    for i in range(n):
        kept = np.arange(n) != i
        peer = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / 8).fit(source[kept], residuals[kept])
        scores[i] = peer.predict(source[[i]])[0] + model.class_shares_
    spread = np.sqrt(np.square(scores - scores.mean(axis=1, keepdims=True)).mean())

    def loss(slope):
        likelihood = log_softmax(slope * scores, axis=1)[np.arange(n), y[:n]].mean()
        return -likelihood + np.log(slope * spread) ** 2 / (2 * n)

    best = minimize_scalar(loss, bounds=(0.1, 50), method="bounded").x
    assert_allclose(model.slope_, best, rtol=1e-3)
    log_p = log_softmax(model.slope_ * model.decision_function(rows), axis=1)
    assert_allclose(model.predict_log_proba(rows), log_p)
    assert_allclose(model.predict_proba(rows), np.exp(log_p))


# Many rows


@pytest.mark.parametrize("graph_weight", [0.0, 1.0])
def test_all_rows_as_landmarks_are_the_exact_kernel(graph_weight):
    exact = fit(graph_weight=graph_weight, n_landmarks=None, sample_weight=WEIGHTS)
    low_rank = fit(graph_weight=graph_weight, n_landmarks=len(X), sample_weight=WEIGHTS)
    wanted = exact.decision_function(X_NEW)
    assert_allclose(low_rank.decision_function(X_NEW), wanted, atol=1e-7)
    assert_allclose(low_rank.slope_, exact.slope_, rtol=1e-6)
    assert low_rank.n_rounds_ == exact.n_rounds_


def test_few_landmarks_come_close():
    rows, y, sample_domain = make_moved_classes(300)
    exact, low_rank = (
        fit(rows, y, sample_domain, n_landmarks=n, random_state=0) for n in (None, 100)
    )
    assert low_rank.bases_.shape == (100, 4)
    assert (low_rank.predict(rows) == exact.predict(rows)).mean() > 0.97


def test_auto_is_exact_up_to_a_number_of_rows(monkeypatch):
    monkeypatch.setattr(module, "EXACT_ROWS", len(X))
    assert len(fit().bases_) == len(X)
    monkeypatch.setattr(module, "EXACT_ROWS", len(X) - 1)
    monkeypatch.setattr(module, "AUTO_LANDMARKS", 30)
    assert len(fit().bases_) == 30


# Invariances


@pytest.mark.parametrize("params", [{}, {"n_landmarks": 25, "random_state": 0}], ids=repr)
def test_order_of_rows(params):
    order = np.random.RandomState(1).permutation(len(X))
    ours = fit(sample_weight=WEIGHTS, **params)
    theirs = fit(X[order], Y[order], SAMPLE_DOMAIN[order], WEIGHTS[order], **params)
    assert_array_equal(ours.predict_proba(X_NEW), theirs.predict_proba(X_NEW))


def test_order_of_classes():
    ours, theirs = fit(), fit(y=2 - Y)
    assert_allclose(ours.predict_proba(X_NEW), theirs.predict_proba(X_NEW)[:, ::-1], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_all_features(unit):
    assert_allclose(
        fit(unit * X).predict_proba(unit * X_NEW), fit().predict_proba(X_NEW), rtol=1e-6
    )


@pytest.mark.parametrize("adapter", ["standardize", "standardize-domains", "ranks"])
def test_units_of_features_after_an_adapter(adapter):
    units, shifts = np.array([1e-3, 7.0, 1e4]), np.array([5.0, -2.0, 1e3])

    def said(a, b):
        model = AdaptedClassifier(adapter, JointAlignmentClassifier())
        model.fit(a * X + b, Y, sample_domain=SAMPLE_DOMAIN)
        return model.predict_proba(a * X_NEW + b)

    assert_allclose(said(units, shifts), said(1.0, 0.0), rtol=1e-5)


@pytest.mark.parametrize("params", [{}, {"n_landmarks": 25, "random_state": 0}], ids=repr)
def test_weighing_equals_repeating(params):
    """In the target, too; weight zero is leaving out."""
    times = np.random.RandomState(2).randint(0, 4, len(X))
    numbers = np.repeat(np.arange(len(X)), times)
    weighted = fit(sample_weight=times, **params)
    repeated = fit(X[numbers], Y[numbers], SAMPLE_DOMAIN[numbers], **params)
    assert_allclose(weighted.predict_proba(X_NEW), repeated.predict_proba(X_NEW), rtol=1e-9)
    assert weighted.bandwidth_ == repeated.bandwidth_


def test_rows_of_the_fit_are_scored_as_in_the_fit():
    """Out of sample, the kernel expansion has the values that the pseudo-labels came from."""
    model = fit()
    codes = np.where(SOURCE, Y, -1)
    alpha, shares, *_ = twin.fit(
        X, codes, TARGET, np.ones(len(X)), model.bandwidth_, 0.1, 10.0, 0.5, 1.0, 10, 10
    )
    inside = shares + twin.kernel_matrix(X, X, model.bandwidth_) @ alpha
    assert_allclose(model.decision_function(X), inside, rtol=1e-7, atol=1e-9)
    assert_array_equal(model.predict(X), inside.argmax(axis=1))


def test_numbers_of_domains_make_no_difference():
    pooled = fit(sample_domain=np.where(SOURCE, 0, -1))
    assert_array_equal(fit().predict_proba(X_NEW), pooled.predict_proba(X_NEW))


# Pseudo-labels, the graph, many features


def test_it_gains_where_classes_move():
    rows, y, sample_domain = make_moved_classes(150, seed=3)
    target = sample_domain < 0
    rows[target] += np.array([-1, 1, 0, 0])
    plain, aligned = (
        fit(rows, y, sample_domain, alignment_weight=weight, graph_weight=0).score(
            rows[target], y[target], sample_domain=-1
        )
        for weight in (0, 10)
    )
    assert aligned > plain + 0.02


def test_rounds_stop_when_pseudo_labels_repeat_or_at_the_limit():
    rows, y, sample_domain = make_moved_classes()
    settled = fit(rows, y, sample_domain, max_rounds=50)
    assert 1 <= settled.n_rounds_ < 50
    more = fit(rows, y, sample_domain, max_rounds=500)
    assert_array_equal(more.coefficients_, settled.coefficients_)
    for limit in (1, 2):
        assert fit(max_rounds=limit).n_rounds_ <= limit


def test_labels_of_target_rows_and_hidden_ones_of_the_source():
    mask = np.arange(len(X)) % 3 != 0
    model = fit(label_mask=mask, sample_weight=WEIGHTS, n_neighbors=4)
    alpha, shares, *_ = twin.fit(
        X, np.where(mask, Y, -1), TARGET, WEIGHTS, model.bandwidth_, 0.1, 10.0, 0.5, 1.0, 4, 10
    )
    scores = shares + twin.kernel_matrix(X_NEW, X, model.bandwidth_) @ alpha
    assert_allclose(model.decision_function(X_NEW), scores, rtol=1e-7, atol=1e-9)


def test_many_features_become_components_at_unit_length():
    rng = np.random.RandomState(0)
    rows = rng.randn(80, 60)
    model = fit(rows)
    assert model.unit_rows_
    assert model.components_.shape == (40, 60)
    assert_allclose(model.components_ @ model.components_.T, np.eye(40), atol=1e-10)
    assert_allclose(np.linalg.norm(model.bases_, axis=1), 1)
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0))
    assert_allclose(abs(model.components_ @ axes[:40].T).sum(axis=0), 1, atol=1e-6)
    few_rows = fit(rng.randn(80, 200))  # more features than rows
    assert_allclose(few_rows.components_ @ few_rows.components_.T, np.eye(40), atol=1e-10)
    assert fit(rows, n_components=None).components_ is None
    assert not fit(rows, unit_rows=False).unit_rows_
    assert not fit().unit_rows_


# Odd inputs


def test_one_target_row():
    rows = np.flatnonzero(SOURCE | (np.arange(len(X)) == np.flatnonzero(TARGET)[0]))
    model = fit(X[rows], Y[rows], SAMPLE_DOMAIN[rows])
    assert np.isfinite(model.predict_proba(X_NEW)).all()


def test_pseudo_labels_of_one_class():
    y = np.where(Y == 0, 0, 1)
    rows = X.copy()
    rows[TARGET] = X[SOURCE & (y == 1)][0] + 1e-3 * rows[TARGET]
    model = fit(rows, y)
    assert set(model.predict(rows[TARGET])) == {1}
    assert np.isfinite(model.predict_proba(X_NEW)).all()


def test_a_row_far_from_all_others_gets_the_class_shares():
    model = fit()
    far = np.full((1, 3), 1e6)
    assert_allclose(model.decision_function(far)[0], model.class_shares_)
    assert model.predict(far) == np.bincount(Y[SOURCE]).argmax()
    outlier = X.copy()
    outlier[0] = 1e6
    assert np.isfinite(fit(outlier).predict_proba(X_NEW)).all()


def test_all_rows_alike_and_constant_columns():
    for rows in (np.ones_like(X), np.ones((len(X), 60)), np.zeros((len(X), 200))):
        p = fit(rows).predict_proba(rows[:1])
        assert_allclose(p.sum(), 1)
    wide = np.column_stack([X, np.ones(len(X))])
    new = np.column_stack([X_NEW, np.ones(len(X_NEW))])
    assert_allclose(fit(wide).predict_proba(new), fit().predict_proba(X_NEW), rtol=1e-8)


def test_two_classes_and_text():
    labels = np.array(["no", "yes"])[(Y > 0).astype(int)]
    model = fit(y=labels)
    margins = model.decision_function(X_NEW)
    assert margins.shape == (len(X_NEW),)
    assert_array_equal(model.predict(X_NEW), np.where(margins > 0, "yes", "no"))


def test_a_class_without_weight_is_never_predicted():
    model = fit(sample_weight=np.where(SOURCE & (Y == 1), 0.0, 1.0))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert 1 not in model.predict(np.concatenate([X, X_NEW]))


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alignment_weight": -1}, "alignment_weight"),
        ({"class_alignment": 1.5}, "class_alignment"),
        ({"graph_weight": np.inf}, "graph_weight must be finite"),
        ({"ridge": 0}, "ridge"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"n_components": 0}, "n_components"),
        ({"unit_rows": "yes"}, "unit_rows must be one of 'auto', True, False"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"n_landmarks": "few"}, "n_landmarks must be one of 'auto'"),
        ({"sample_weight": np.where(SOURCE, 0, 1)}, "zero for every labeled row"),
        ({"sample_weight": np.where(SOURCE, 1, 0)}, "no target rows"),
        ({"y": np.zeros(len(X))}, "needs at least two"),
        ({"y": None}, "requires y"),
    ],
    ids=repr,
)
def test_refused(params, match):
    with pytest.raises(ValueError, match=match):
        fit(**params)


def test_nothing_to_align_to():
    with pytest.warns(NothingToAdaptWarning, match="source alone"):
        fit(sample_domain=None)
    assert fit(sample_domain=None, alignment_weight=0).n_rounds_ == 0  # the graph needs no target


# With adapters


def test_behind_an_adapter_it_gets_all_rows():
    model = AdaptedClassifier(DomainStandardScaler(), JointAlignmentClassifier())
    model.fit(X, Y, sample_domain=SAMPLE_DOMAIN, sample_weight=WEIGHTS)
    Z = DomainStandardScaler().fit_transform(X, sample_domain=SAMPLE_DOMAIN)
    alone = fit(Z, sample_weight=WEIGHTS)
    assert_array_equal(model.estimator_.coefficients_, alone.coefficients_)


def test_importance_weights_leave_the_weights_of_the_target():
    weights = ULSIFWeights(random_state=0)
    model = AdaptedClassifier(weights, JointAlignmentClassifier())
    model.fit(X, Y, sample_domain=SAMPLE_DOMAIN)
    importance = weights.fit(X, sample_domain=SAMPLE_DOMAIN).weights_
    spread = np.ones(len(X))
    spread[SOURCE] = importance / importance.mean()
    assert_array_equal(model.estimator_.coefficients_, fit(sample_weight=spread).coefficients_)


@pytest.mark.parametrize("name", ["kernel-ridge", "joint", "joint-no-graph"])
def test_models_by_name(name):
    assert model_name(make_model(name, 100, 5)) == name
    assert check_choice(f"standardize + {name}", None) == ("standardize", name)
    model = named_model("ranks", name, 100, 3).fit(X, Y, sample_domain=SAMPLE_DOMAIN)
    assert model.predict_proba(X_NEW).shape == (len(X_NEW), 3)


def test_a_candidate_of_the_automatic_choice():
    joint = JointAlignmentClassifier()
    auto = AutoAdaptedClassifier(
        candidates=[("standardize", joint), ("standardize", LogisticRegression())], random_state=0
    ).fit(X, Y, sample_domain=SAMPLE_DOMAIN)
    rows = {row["candidate"]: row for row in auto.leaderboard_}
    assert rows["standardize + JointAlignmentClassifier"]["disqualified"] is None


def test_it_is_among_the_default_candidates():
    names = {one.name for one in default_candidates(Size(100, 100, 5))}
    assert {"standardize + joint", "ranks + joint", "none + kernel-ridge"} <= names
