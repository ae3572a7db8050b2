"""AdaptedClassifier and AdaptedRegressor."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    NothingToAdaptWarning,
    PeriodicSparseFiltering,
    SourceOnlySplit,
    SparseFiltering,
)
from tests.shifted import make_problem

X, y, SAMPLE_DOMAIN, X_NEW = make_problem()
NUMBERS = make_problem(kind="number").y
SOURCE = SAMPLE_DOMAIN >= 0
FILTERS = SparseFiltering(5, random_state=0, max_iter=10)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class GivenWeights(BaseEstimator):
    """A weight estimator: source row i weighs i + 1."""

    __metadata_request__fit = {"sample_domain": True}

    def fit(self, X, y=None, *, sample_domain=None):
        self.weights_ = np.arange(1.0, (sample_domain >= 0).sum() + 1)
        return self

    def score_weights(self, X):
        return np.ones(len(X))


class Spy(TransformerMixin, BaseEstimator):
    """A plain transformer that remembers the labels it was given."""

    def fit(self, X, y=None):
        self.y_ = y
        return self

    def transform(self, X):
        return X


def fit(model, labels=y, **params):
    return model.fit(X, labels, **{"sample_domain": SAMPLE_DOMAIN, **params})


def test_adapter_sees_all_rows_and_estimator_the_labeled_ones():
    model = fit(AdaptedClassifier(FILTERS, LogisticRegression()))
    filters = SparseFiltering(**FILTERS.get_params()).fit(X, sample_domain=SAMPLE_DOMAIN)
    Z = filters.transform(X, sample_domain=SAMPLE_DOMAIN)
    classifier = LogisticRegression().fit(Z[SOURCE], y[SOURCE])
    assert_array_equal(model.adapter_.components_, filters.components_)
    assert_allclose(model.estimator_.coef_, classifier.coef_)
    expected = classifier.predict_proba(filters.transform(X_NEW))
    assert_allclose(model.predict_proba(X_NEW), expected)
    assert_array_equal(model.predict(X_NEW), classifier.classes_[expected.argmax(axis=1)])
    assert_allclose(model.transform(X_NEW), filters.transform(X_NEW))
    assert model.score(X[SOURCE], y[SOURCE], sample_domain=SAMPLE_DOMAIN[SOURCE]) == np.mean(
        classifier.predict(Z[SOURCE]) == y[SOURCE]
    )


def test_label_mask_adds_and_removes_labeled_rows():
    known = np.arange(len(y)) % 3 == 0
    model = fit(AdaptedClassifier(None, LogisticRegression()), label_mask=known)
    assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X[known], y[known]).coef_)


def test_regressor_fits_the_adapter_without_labels():
    model = fit(AdaptedRegressor(PeriodicSparseFiltering(5, random_state=0, max_iter=9)), NUMBERS)
    assert len(model.adapter_.classes_) == 0
    filters = model.adapter_
    Z = filters.transform(X[SOURCE], sample_domain=SAMPLE_DOMAIN[SOURCE])
    expected = Ridge().fit(Z, NUMBERS[SOURCE])
    assert_allclose(model.predict(X_NEW), expected.predict(filters.transform(X_NEW)))
    assert model.score(X[SOURCE], NUMBERS[SOURCE], sample_domain=0) == pytest.approx(
        expected.score(filters.transform(X[SOURCE], sample_domain=0), NUMBERS[SOURCE])
    )


def test_importance_weights_reach_the_estimator_with_mean_one():
    weights = np.arange(1.0, SOURCE.sum() + 1)
    model = fit(AdaptedClassifier(GivenWeights(), LogisticRegression()))
    expected = LogisticRegression().fit(X[SOURCE], y[SOURCE], weights / weights.mean())
    assert_allclose(model.estimator_.coef_, expected.coef_)
    assert not hasattr(model, "transform")

    sample_weight = np.random.RandomState(0).uniform(size=len(X))
    weights = weights * sample_weight[SOURCE]
    expected = LogisticRegression().fit(X[SOURCE], y[SOURCE], weights / weights.mean())
    model.fit(X, y, sample_domain=SAMPLE_DOMAIN, sample_weight=sample_weight)
    assert_allclose(model.estimator_.coef_, expected.coef_)


def test_labeled_target_rows_weigh_one_beside_importance_weights():
    known = SOURCE | (np.arange(len(y)) % 2 == 0)
    weights = np.ones(len(y))
    weights[SOURCE] = np.arange(1.0, SOURCE.sum() + 1)
    weights = weights[known]
    expected = LogisticRegression().fit(X[known], y[known], weights / weights.mean())
    model = fit(AdaptedClassifier(GivenWeights(), LogisticRegression()), label_mask=known)
    assert_allclose(model.estimator_.coef_, expected.coef_)


def test_sample_weight_without_importance_weights_is_left_alone():
    sample_weight = np.random.RandomState(0).uniform(0, 9, size=len(X))
    model = fit(AdaptedClassifier(None, LogisticRegression()), sample_weight=sample_weight)
    expected = LogisticRegression().fit(X[SOURCE], y[SOURCE], sample_weight[SOURCE])
    assert_allclose(model.estimator_.coef_, expected.coef_)


def test_weights_reach_the_last_step_of_a_pipeline_that_asks_for_them():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
    model = fit(AdaptedClassifier(GivenWeights(), asking))
    scaled = StandardScaler().fit_transform(X[SOURCE])
    weights = np.arange(1.0, SOURCE.sum() + 1)
    expected = LogisticRegression().fit(scaled, y[SOURCE], weights / weights.mean())
    assert_allclose(model.estimator_[-1].coef_, expected.coef_)


@pytest.mark.parametrize(
    "deaf", [KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())]
)
def test_an_estimator_without_weights_is_a_clear_error(deaf):
    with pytest.raises(ValueError, match="takes no sample_weight"):
        fit(AdaptedClassifier(GivenWeights(), deaf))


def test_methods_are_those_of_the_estimator():
    assert hasattr(AdaptedClassifier(), "predict_proba")
    margin = AdaptedClassifier(None, LinearSVC())
    assert hasattr(margin, "decision_function")
    assert not hasattr(margin, "predict_proba")
    assert not hasattr(margin, "predict_log_proba")
    assert not hasattr(AdaptedClassifier(None, KNeighborsClassifier()), "decision_function")
    assert not hasattr(AdaptedClassifier(), "transform")
    model = fit(AdaptedClassifier(FILTERS, LogisticRegression()))
    assert_allclose(model.predict_log_proba(X_NEW), np.log(model.predict_proba(X_NEW)))
    assert fit(margin).decision_function(X_NEW).shape == (9, 3)


def test_a_plain_transformer_may_be_the_adapter():
    model = fit(AdaptedClassifier(PCA(2), LogisticRegression()))
    assert_allclose(model.adapter_.components_, PCA(2).fit(X).components_)


def test_pipelines_carry_the_domains_without_any_global_setting():
    """Greedy stacking: the second filter learns on the first one's representation."""
    stack = make_pipeline(
        StandardScaler(),
        SparseFiltering(6, random_state=0, max_iter=9),
        PeriodicSparseFiltering(8, random_state=1, max_iter=9),
    )
    model = fit(AdaptedClassifier(stack, LogisticRegression()))
    scaler = StandardScaler().fit(X)
    first = SparseFiltering(6, random_state=0, max_iter=9)
    where = {"sample_domain": SAMPLE_DOMAIN}
    Z = first.fit_transform(scaler.transform(X), **where)
    second = PeriodicSparseFiltering(8, random_state=1, max_iter=9).fit(Z, y, **where)
    expected = second.transform(first.transform(scaler.transform(X_NEW)))
    assert_allclose(model.transform(X_NEW), expected, rtol=1e-6)
    source_rows = second.transform(
        first.transform(scaler.transform(X_NEW), sample_domain=0), sample_domain=0
    )
    assert_allclose(model.transform(X_NEW, sample_domain=0), source_rows, rtol=1e-6)


def test_a_step_that_knows_no_domains_sees_no_labels():
    """It would take the placeholders of target rows for a class."""
    pipeline = make_pipeline(Spy(), PeriodicSparseFiltering(6, max_iter=5, random_state=0))
    model = fit(AdaptedClassifier(pipeline, LogisticRegression()))
    assert model.adapter_[0].y_ is None
    assert_array_equal(model.adapter_[1].classes_, [0, 1, 2])


def test_adapters_are_given_placeholders_not_labels():
    class Reader(Spy):
        __metadata_request__fit = {"sample_domain": True}

        def fit(self, X, y=None, *, sample_domain=None):
            return super().fit(X, y)

    model = fit(AdaptedClassifier(Reader(), LogisticRegression()))
    assert_array_equal(model.adapter_.y_, np.where(SOURCE, y, -1))


def test_a_pipeline_may_end_in_weights():
    model = fit(AdaptedClassifier(make_pipeline(StandardScaler(), GivenWeights())))
    weights = np.arange(1.0, SOURCE.sum() + 1)
    scaled = StandardScaler().fit(X).transform(X)
    expected = LogisticRegression(max_iter=1000).fit(
        scaled[SOURCE], y[SOURCE], weights / weights.mean()
    )
    assert_allclose(model.estimator_.coef_, expected.coef_)
    assert not hasattr(model, "transform")


def test_what_cannot_adapt_is_refused():
    with pytest.raises(TypeError, match="GaussianMixture is not an adapter"):
        fit(AdaptedClassifier(GaussianMixture(2)))  # it has weights_, of another kind
    with pytest.raises(TypeError, match="LogisticRegression is not an adapter"):
        fit(AdaptedClassifier(LogisticRegression(), FILTERS))
    with pytest.raises(TypeError, match="GivenWeights is not an adapter"):
        fit(AdaptedClassifier(make_pipeline(GivenWeights(), FILTERS)))


@pytest.mark.parametrize("combine", [make_pipeline, make_union])
def test_a_step_that_needs_labels_and_knows_no_domains_fails_with_advice(combine):
    """Target rows, all of one placeholder, would be the class that it separates best."""
    with pytest.raises(ValueError, match="y") as failure:
        fit(AdaptedClassifier(combine(SelectKBest(k=1), FILTERS)))
    assert "put it in the estimator" in failure.value.__notes__[0]


def test_estimators_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match="Ridge is of the wrong kind for AdaptedClassifier"):
        fit(AdaptedClassifier(None, Ridge()))
    with pytest.raises(TypeError, match="LogisticRegression is of the wrong kind"):
        fit(AdaptedRegressor(None, LogisticRegression()), NUMBERS)


def test_a_pipeline_of_nothing_passes_rows_through():
    model = fit(AdaptedClassifier(Pipeline([("nothing", "passthrough")]), LogisticRegression()))
    assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X[SOURCE], y[SOURCE]).coef_)


def test_pipelines_in_pipelines_and_passthrough():
    inner = make_pipeline(StandardScaler(), SparseFiltering(4, max_iter=5, random_state=0))
    nested = make_pipeline(inner, "passthrough")
    ours = fit(AdaptedClassifier(nested)).adapt_target(2 * X, "other")
    theirs = fit(AdaptedClassifier(inner)).adapt_target(2 * X, "other")
    for where in (None, "other", 0):
        assert_array_equal(
            ours.predict_proba(X_NEW, sample_domain=where),
            theirs.predict_proba(X_NEW, sample_domain=where),
        )


def test_a_union_of_filters_gets_the_domains():
    union = make_union(
        SparseFiltering(3, max_iter=5, random_state=0),
        PeriodicSparseFiltering(6, max_iter=5, random_state=0),
    )
    model = fit(AdaptedClassifier(union))
    assert_array_equal(model.adapter_.transformer_list[1][1].classes_, [0, 1, 2])
    alone = SparseFiltering(3, max_iter=5, random_state=0).fit(X, sample_domain=SAMPLE_DOMAIN)
    assert_allclose(model.transform(X_NEW)[:, :3], alone.transform(X_NEW))
    assert_allclose(
        model.transform(X_NEW, sample_domain=0)[:, :3], alone.transform(X_NEW, sample_domain=0)
    )


def test_a_few_labeled_target_rows_are_normalized_with_their_whole_domain():
    known = SOURCE.copy()
    known[np.flatnonzero(~SOURCE)[:2]] = True
    adapter = SparseFiltering(5, max_iter=5, random_state=0, normalization="batch")
    batch = fit(AdaptedClassifier(adapter, LogisticRegression()), label_mask=known)
    adapter = SparseFiltering(5, max_iter=5, random_state=0, normalization="domain")
    stored = fit(AdaptedClassifier(adapter, LogisticRegression()), label_mask=known)
    assert_allclose(batch.estimator_.coef_, stored.estimator_.coef_, rtol=1e-6)


def test_several_target_domains_have_their_own_norms():
    adapter = SparseFiltering(5, random_state=0, max_iter=9, pooling="domain")
    model = fit(AdaptedClassifier(adapter, LogisticRegression()))
    per_domain = [model.transform(X_NEW, sample_domain=domain) for domain in (-1, -2, 0, 1)]
    for i, ours in enumerate(per_domain):
        for theirs in per_domain[i + 1 :]:
            assert not np.allclose(ours, theirs)


@pytest.mark.parametrize(
    "adapter",
    [FILTERS, make_pipeline(StandardScaler(), FILTERS, PeriodicSparseFiltering(4, max_iter=5))],
)
def test_adapt_target(adapter):
    model = fit(AdaptedClassifier(adapter, LogisticRegression()))
    rows = 2 * X[:30] - 1
    before = model.predict_proba(rows)
    assert model.adapt_target(rows, "new clinic") is model
    named = model.predict_proba(rows, sample_domain="new clinic")
    assert not np.allclose(named, before)
    assert_array_equal(model.predict_proba(rows), before)
    number = next(iter(model.domain_names_))
    assert_array_equal(model.predict_proba(rows, sample_domain=np.full(30, number)), named)
    model.adapt_target(rows)
    assert_allclose(model.predict_proba(rows), named)


def test_adapt_target_says_refit_where_it_cannot():
    model = fit(AdaptedClassifier(PCA(2), LogisticRegression()))
    with pytest.raises(ValueError, match="refit"):
        model.adapt_target(X)
    with pytest.raises(ValueError, match="refit"):
        fit(AdaptedClassifier(GivenWeights(), LogisticRegression())).adapt_target(X)
    assert not hasattr(AdaptedClassifier(), "adapt_target")
    with pytest.raises(NotFittedError):
        AdaptedClassifier(FILTERS).adapt_target(X)


def test_a_failed_adapt_target_changes_nothing():
    joint = SparseFiltering(4, random_state=0, max_iter=5, normalization="joint")
    model = fit(AdaptedClassifier(make_pipeline(FILTERS, joint), LogisticRegression()))
    before = model.predict_proba(X_NEW)
    for domain in (None, "elsewhere"):
        with pytest.raises(ValueError, match="refit"):
            model.adapt_target(3 * X, domain)
    assert_array_equal(model.predict_proba(X_NEW), before)
    assert model.domain_names_ == {}


def test_new_targets_do_not_take_each_others_place():
    model = fit(AdaptedClassifier(FILTERS, LogisticRegression()))
    model.adapt_target(2 * X, -7)
    seventh = model.predict_proba(X_NEW, sample_domain=-7)
    model.adapt_target(5 * X + 1, "eighth")
    with pytest.raises(ValueError, match="-8 is the target named 'eighth'"):
        model.adapt_target(X, -8)
    assert model.domain_names_ == {-8: "eighth"}
    assert_array_equal(model.predict_proba(X_NEW, sample_domain=-7), seventh)


def test_no_sample_domain_is_a_warning():
    with pytest.warns(NothingToAdaptWarning, match="stack_domains"):
        AdaptedClassifier(FILTERS).fit(X, y)


def test_no_sample_domain_is_fine_where_nothing_would_adapt(recwarn):
    AdaptedClassifier().fit(X, y)
    AdaptedRegressor().fit(X, NUMBERS)
    assert not recwarn.list


def test_a_split_without_target_is_an_error():
    with pytest.raises(ValueError, match="no target rows"):
        fit(AdaptedClassifier(FILTERS), sample_domain=np.zeros(len(X), dtype=int))
    fit(AdaptedClassifier(), sample_domain=np.zeros(len(X), dtype=int))


@pytest.mark.parametrize(
    ("labels", "placeholder"),
    [(y, -1), (y - 1, -2), (np.array(["a", "b", "c"])[y], ""), (y.astype(np.uint8), -1)],
)
def test_scoring_rows_without_labels_is_an_error(labels, placeholder):
    model = fit(AdaptedClassifier(), labels)
    some = np.append(labels[:8], placeholder)
    with pytest.raises(ValueError, match="SourceOnlySplit"):
        model.score(X_NEW, some)
    assert 0 <= model.score(X_NEW[:8], labels[:8]) <= 1


def test_scoring_looks_at_target_rows_where_domains_are_given():
    labels = np.array([-1, 1, 3])[y]
    fold = labels[SOURCE] != -1  # a training fold without class -1
    model = AdaptedClassifier().fit(X[SOURCE][fold], labels[SOURCE][fold])
    model.score(X[SOURCE], labels[SOURCE], sample_domain=SAMPLE_DOMAIN[SOURCE])
    stacked = np.where(SOURCE, labels, -2)
    with pytest.raises(ValueError, match="y holds -2"):
        model.score(X, stacked, sample_domain=SAMPLE_DOMAIN)


def test_scoring_a_regressor_of_whole_numbers_on_placeholders_is_an_error():
    counts = np.round(NUMBERS + 5).astype(int)
    model = fit(AdaptedRegressor(None, LinearRegression()), counts)
    with pytest.raises(ValueError, match="SourceOnlySplit"):
        model.score(X, np.where(SOURCE, counts, -1), sample_domain=SAMPLE_DOMAIN)
    assert model.score(X, counts, sample_domain=SAMPLE_DOMAIN) <= 1


def test_scoring_a_regressor_on_rows_without_labels_is_an_error():
    model = fit(AdaptedRegressor(None, LinearRegression()), NUMBERS)
    with pytest.raises(ValueError, match="NaN"):
        model.score(X_NEW, np.append(NUMBERS[:8], np.nan))


@pytest.mark.parametrize("model", [AdaptedClassifier, AdaptedRegressor])
@pytest.mark.parametrize(
    "as_type",
    [
        lambda y: y.astype(float),
        lambda y: y.astype(object),
        lambda y: pd.Series(y).astype("Int64"),
        lambda y: y.tolist(),
        lambda y: pd.Series(y.astype(object)),
    ],
    ids=["float", "object", "Int64", "list", "series"],
)
def test_a_search_chooses_the_same_for_labels_of_any_type(model, as_type):
    labels = np.where(SOURCE, X[:, 0] > np.median(X[SOURCE, 0]), -1)  # whole numbers
    estimator = DecisionTreeClassifier() if model is AdaptedClassifier else DecisionTreeRegressor()
    grid = {"estimator__min_samples_leaf": [30, 1]}
    with sklearn.config_context(enable_metadata_routing=True):
        searches = [
            GridSearchCV(model(StandardScaler(), estimator), grid, cv=SourceOnlySplit(3)).fit(
                X, one, sample_domain=SAMPLE_DOMAIN
            )
            for one in (labels, as_type(labels))
        ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert_array_equal(scores[0], scores[1])
    assert scores[0][1] > scores[0][0]  # not the first setting


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"estimator": True}, "estimator must be an estimator with `fit`, got True"),
        ({"estimator": "x"}, "got 'x'"),
        ({"estimator": LogisticRegression}, r"LogisticRegression\(\), not the class itself"),
        ({"adapter": 3}, "adapter must be an estimator with `fit`, got 3"),
        ({"adapter": StandardScaler}, r"adapter must be an instance, such as StandardScaler\(\)"),
    ],
)
@pytest.mark.parametrize("model", [AdaptedClassifier, AdaptedRegressor])
def test_parts_that_are_not_estimators(model, parts, match):
    """scikit-learn would say that they have no tags."""
    with pytest.raises(TypeError, match=match):
        model(**parts).fit(X, y, sample_domain=SAMPLE_DOMAIN)
