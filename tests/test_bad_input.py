"""Bad input: a clear error, or the behavior stated here; never a half-fitted model."""

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from covshift import AdaptedClassifier, PeriodicSparseFiltering, SparseFiltering
from tests.estimators import (
    ESTIMATORS,
    FILTERS,
    fitted,
    needs_target,
    problem_for,
    reads_labels,
)
from tests.shifted import make_problem

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
NOT_FINITE = [
    pytest.param(estimator, value, match, id=f"{estimator!r}-{value}")
    for estimator in ESTIMATORS
    for value, match in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"))
    if not (np.isnan(value) and get_tags(estimator).input_tags.allow_nan)  # which pass through
]
every_filter = pytest.mark.parametrize("estimator", FILTERS, ids=repr)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::covshift.NothingToAdaptWarning",
    "ignore::covshift.selection.NoRankedCandidateWarning",
)


def refuses(estimator, X, y, match, **params):
    """The fit fails with a message that matches, and leaves nothing on the estimator."""
    estimator = clone(estimator)
    before = set(vars(estimator))
    with pytest.raises((ValueError, TypeError), match=match):
        estimator.fit(X, y, **params)
    assert set(vars(estimator)) == before


def accepts(estimator, X, y, **params):
    """The fit goes through and everything that follows is finite."""
    model = clone(estimator).fit(X, y, **params)
    for name in ("transform", "predict", "predict_proba"):
        if hasattr(model, name):
            assert np.isfinite(getattr(model, name)(X)).all()


@pytest.mark.parametrize(("estimator", "value", "match"), NOT_FINITE)
@pytest.mark.parametrize("row_of", ["source", "target"])
def test_nan_and_infinity(estimator, value, match, row_of):
    X, y, sample_domain, X_new = problem_for(estimator)
    row = np.flatnonzero(sample_domain >= 0 if row_of == "source" else sample_domain < 0)[0]
    X, X_new = X.copy(), X_new.copy()
    X[row, 0] = X_new[0, 0] = value
    if estimator.get_params().get("adapter", True) is not None or row_of == "source":
        refuses(estimator, X, y, match, sample_domain=sample_domain)
    model = fitted(estimator)
    method = model.predict if hasattr(model, "predict") else model.transform
    with pytest.raises(ValueError, match=match):
        method(X_new)


@every_estimator
def test_empty(estimator):
    refuses(estimator, np.empty((0, 3)), [], "0 sample")
    refuses(estimator, np.empty((5, 0)), [0, 1, 0, 1, 0], "0 feature")
    refuses(estimator, np.arange(5.0), [0, 1, 0, 1, 0], "[Rr]eshape")


@every_filter
def test_one_row(estimator):
    """A single row has constant norms: every feature is the same."""
    Z = clone(estimator).fit([[1.0, 2.0]], [0]).transform([[1.0, 2.0]])
    np.testing.assert_allclose(Z, 1 / np.sqrt(Z.shape[1]))


@every_estimator
def test_one_column(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    accepts(estimator, X[:, :1], y, sample_domain=sample_domain)


@every_estimator
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_columns(estimator, value):
    X, y, sample_domain, _ = problem_for(estimator)
    X[:, 1] = value
    accepts(estimator, X, y, sample_domain=sample_domain)
    accepts(estimator, np.full_like(X, value), y, sample_domain=sample_domain)


@every_estimator
def test_zero_rows_and_duplicates(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    X[::3] = 0.0
    X[1::3] = X[1]
    accepts(estimator, X, y, sample_domain=sample_domain)


@every_filter
def test_zero_rows_without_any_epsilon(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    X[::3] = 0.0
    accepts(clone(estimator).set_params(epsilon=0.0), X, y, sample_domain=sample_domain)


@every_estimator
def test_integers_and_booleans_are_numbers(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    accepts(estimator, np.round(3 * X).astype(int), y, sample_domain=sample_domain)
    accepts(estimator, X > 0, y, sample_domain=sample_domain)


@every_estimator
def test_object_columns(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    accepts(estimator, X.astype(object), y, sample_domain=sample_domain)
    words = X.astype(object)
    words[:, 0] = "word"
    refuses(estimator, words, y, "could not convert string to float", sample_domain=sample_domain)


@every_filter
def test_huge_magnitudes(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    refuses(estimator, 1e150 * X, y, "overflow float64", sample_domain=sample_domain)
    large = (1e15 * X).astype(np.float32)
    refuses(estimator, large, y, "overflow float32", sample_domain=sample_domain)
    accepts(estimator, 1e15 * X, y, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="Scale the features"):
        fitted(estimator).transform(1e150 * X)


@every_estimator
def test_tiny_magnitudes(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    accepts(estimator, 1e-300 * X, y, sample_domain=sample_domain)


@pytest.mark.parametrize(
    "estimator", [one for one in ESTIMATORS if not is_regressor(one)], ids=repr
)
def test_rare_absent_and_single_classes(estimator):
    X, _, sample_domain, _ = problem_for(estimator)
    source = np.flatnonzero(sample_domain >= 0)
    y = np.zeros(len(X), dtype=int)
    y[source[::2]] = 1
    y[source[0]] = 2  # one row
    y[sample_domain < 0] = 3  # only in the target, where it is not read
    model = clone(estimator).fit(X, y, sample_domain=sample_domain)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    single = np.zeros(len(X), dtype=int)
    if hasattr(estimator, "predict"):
        refuses(estimator, X, single, "class", sample_domain=sample_domain)
    else:
        accepts(estimator, X, single, sample_domain=sample_domain)


@every_estimator
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda domain: domain[:-1], "one integer per row"),
        (lambda domain: domain[:, None], "one integer per row"),
        (lambda domain: domain + 0.5, "must hold integers"),
        (lambda domain: np.where(domain == 0, np.nan, domain), "must hold integers"),
        (lambda domain: domain.astype(str), "must hold integers"),
        (lambda domain: domain >= 0, "must hold integers"),
        (lambda domain: -np.abs(domain) - 1, "no source rows"),
    ],
)
def test_sample_domain(estimator, change, match):
    X, y, sample_domain, _ = problem_for(estimator)
    refuses(estimator, X, y, match, sample_domain=change(sample_domain))


@every_estimator
def test_no_target_rows_where_some_are_needed(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    if getattr(estimator, "adapter", None) is None and not needs_target(estimator):
        accepts(estimator, X, y, sample_domain=np.abs(sample_domain))
    else:
        refuses(estimator, X, y, "no target rows", sample_domain=np.abs(sample_domain))


@every_estimator
def test_label_mask(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    mask = sample_domain >= 0
    refuses(estimator, X, y, "one boolean per row", sample_domain=sample_domain,
            label_mask=mask[1:])  # fmt: skip
    refuses(estimator, X, y, "must be boolean", sample_domain=sample_domain,
            label_mask=mask.astype(int))  # fmt: skip
    if reads_labels(estimator):
        refuses(estimator, X, y, "No label is known", sample_domain=sample_domain,
                label_mask=np.zeros_like(mask))  # fmt: skip


@pytest.mark.parametrize("estimator", [one for one in ESTIMATORS if reads_labels(one)], ids=repr)
def test_labels_of_wrong_length(estimator):
    X, y, sample_domain, _ = problem_for(estimator)
    refuses(estimator, X, y[1:], "one label per row", sample_domain=sample_domain)


@every_estimator
def test_features_that_differ_between_fit_and_predict(estimator):
    *_, X_new = problem_for(estimator)
    model = fitted(estimator)
    method = model.predict if hasattr(model, "predict") else model.transform
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        method(X_new[:, :2])
    with pytest.raises(ValueError, match="one integer per row"):
        method(X_new, sample_domain=[-1, -1])


@every_filter
@pytest.mark.parametrize(
    ("parameter", "value", "match"),
    [
        ("n_components", 0, "n_components"),
        ("n_components", 2.0, "n_components"),
        ("n_components", True, "n_components"),
        ("activation", "tanh", "'abs', 'sin', 'cos'"),
        ("normalization", "rows", "'domain', 'joint', 'batch'"),
        ("pooling", "speaker", "'role', 'domain'"),
        ("early_stopping", "mmd", "None, 'ks'"),
        ("early_stopping", True, "None, 'ks'"),
        ("init", "uniform", "'normal' or an array"),
        ("init", None, "'normal' or an array"),
        ("init", np.ones((2, 7)), r"shape \(2, 7\)"),
        ("init", np.full((12, 3), np.nan), "finite|shape"),
        ("init_scale", -1.0, "init_scale"),
        ("init_scale", np.inf, "init_scale"),
        ("init_scale", "large", "'auto'"),
        ("init", [[1.0, 2.0]], r"init has filters of shape \(1, 2\)"),
        ("epsilon", -1e-8, "epsilon"),
        ("epsilon", np.nan, "epsilon"),
        ("norm_epsilon", "small", "norm_epsilon"),
        ("alpha", -1, "alpha"),
        ("max_iter", -1, "max_iter"),
        ("max_iter", 1.5, "max_iter"),
        ("tol", -1, "tol"),
        ("n_restarts", 0, "n_restarts"),
        ("stopping_window", 0, "stopping_window"),
        ("min_domain_size", 0, "min_domain_size"),
        ("verbose", None, "verbose"),
        ("random_state", "seed", "seed"),
        ("random_state", 1.5, "1.5"),
    ],
)
def test_parameters_of_filters(estimator, parameter, value, match):
    X, y, sample_domain, _ = problem_for(estimator)
    estimator = clone(estimator).set_params(**{parameter: value})
    refuses(estimator, X, y, match, sample_domain=sample_domain)


@pytest.mark.parametrize(
    ("parameter", "value", "match"),
    [
        ("loss", "hinge", "'joint', 'blockwise'"),
        ("label_reward", [1.0, 2.0], "one per class, 3 here"),
        ("label_reward", [1.0], "one per class, 3 here"),
        ("label_reward", [[1.0, 2.0, 3.0]], "one per class, 3 here"),
        ("label_reward", np.nan, "finite"),
        ("label_reward", [1.0, np.nan, 1.0], "finite"),
        ("label_reward", "high", "'auto'"),
        ("n_unlabelled_components", -1, "n_unlabelled_components"),
        ("n_unlabelled_components", 99, "n_components"),
        ("feature_groups", np.ones((2, 12)), r"shape \(3, n_components\)"),
        ("feature_groups", np.ones(12), r"shape \(3, n_components\)"),
        ("feature_groups", np.full((3, 12), 0.5), "0/1 mask"),
        ("feature_groups", np.ones((3, 11)), "must agree"),
    ],
)
def test_parameters_of_periodic_filters(parameter, value, match):
    X, y, sample_domain, _ = make_problem()
    estimator = PeriodicSparseFiltering(n_components=12, random_state=0, **{parameter: value})
    refuses(estimator, X, y, match, sample_domain=sample_domain)


def test_groups_need_labels_and_say_themselves_what_is_unlabeled():
    X, y, sample_domain, _ = make_problem()
    groups = np.eye(3, 5)
    refuses(PeriodicSparseFiltering(feature_groups=groups), X, None, "needs labels")
    both = PeriodicSparseFiltering(feature_groups=groups, n_unlabelled_components=2)
    refuses(both, X, y, "feature_groups or n_unlabelled_components", sample_domain=sample_domain)


def test_continuous_labels_are_no_classes():
    X, y, sample_domain, _ = make_problem(kind="number")
    for estimator in (PeriodicSparseFiltering(), AdaptedClassifier()):
        refuses(estimator, X, y, "Unknown label type", sample_domain=sample_domain)


def test_labels_said_to_be_known_must_be():
    X, y, sample_domain, _ = make_problem()
    y = y.astype(float)
    y[np.flatnonzero(sample_domain >= 0)[0]] = np.nan
    for estimator in (PeriodicSparseFiltering(), AdaptedClassifier()):
        refuses(estimator, X, y, "NaN", sample_domain=sample_domain)
        refuses(
            estimator, X, np.where(np.isnan(y), None, y), "NaN|None", sample_domain=sample_domain
        )


def test_filters_too_large_for_the_rows():
    X, _, sample_domain, _ = make_problem()
    large = SparseFiltering(init_scale=1e200, random_state=0)
    refuses(large, X, None, "not finite in float64", sample_domain=sample_domain)


def test_zero_iterations_are_allowed(recwarn):
    X, _, sample_domain, _ = make_problem()
    SparseFiltering(max_iter=0, random_state=0).fit(X, sample_domain=sample_domain)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


def test_an_interrupted_fit_leaves_the_earlier_one(monkeypatch):
    X, y, sample_domain, X_new = make_problem()
    psf = PeriodicSparseFiltering(random_state=0, n_restarts=1).fit(
        X, y, sample_domain=sample_domain
    )
    before = psf.transform(X_new)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("covshift.adapters._filter_minimization.minimize_lbfgs", interrupt)
    with pytest.raises(KeyboardInterrupt):
        psf.fit(X[:, :2], y, sample_domain=sample_domain)
    np.testing.assert_array_equal(psf.transform(X_new), before)
