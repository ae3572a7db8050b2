"""Inside scikit-learn's and SKADA's machinery, with frames and without."""

import subprocess
import sys
from decimal import Decimal
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from covshift import (
    AdaptedClassifier,
    PeriodicSparseFiltering,
    SourceOnlySplit,
    SparseFiltering,
    stack_domains,
)
from tests.estimators import ADAPTERS, ESTIMATORS
from tests.shifted import make_problem

X, y, SAMPLE_DOMAIN, X_NEW = make_problem()
COLUMNS = ["age", "height", "weight"]
FRAMES = {
    "pandas": lambda rows: pd.DataFrame(rows, columns=COLUMNS),
    "polars": lambda rows: pl.DataFrame(rows, schema=COLUMNS),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("fitted_on", FRAMES)
@pytest.mark.parametrize("used_on", FRAMES)
def test_fit_on_one_kind_of_frame_and_predict_on_another(estimator, fitted_on, used_on):
    labels = make_problem(kind="number").y if is_regressor(estimator) else y
    model = clone(estimator).fit(FRAMES[fitted_on](X), labels, sample_domain=SAMPLE_DOMAIN)
    plain = clone(estimator).fit(X, labels, sample_domain=SAMPLE_DOMAIN)
    method = "predict" if hasattr(model, "predict") else "transform"
    assert_array_equal(model.feature_names_in_, COLUMNS)
    ours = getattr(model, method)(FRAMES[used_on](X_NEW))
    assert_allclose(ours, getattr(plain, method)(X_NEW), rtol=1e-6)
    renamed = FRAMES[used_on](X_NEW)
    renamed.columns = ["age", "height", "wait"]
    with pytest.raises(ValueError, match="feature names"):
        getattr(model, method)(renamed)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=repr)
@pytest.mark.parametrize("kind", FRAMES)
def test_set_output(adapter, kind):
    adapter = clone(adapter).set_output(transform=kind)
    frame = adapter.fit_transform(FRAMES[kind](X), y, sample_domain=SAMPLE_DOMAIN)
    assert type(frame).__module__.startswith(kind)
    assert list(frame.columns) == list(adapter.get_feature_names_out())
    assert frame.columns[0] == f"{type(adapter).__name__.lower()}0"
    model = AdaptedClassifier(adapter).fit(X, y, sample_domain=SAMPLE_DOMAIN)
    assert type(model.transform(X_NEW)).__module__.startswith(kind)


def test_search_over_an_adapted_classifier(routing):
    model = AdaptedClassifier(SparseFiltering(random_state=0, max_iter=20), LogisticRegression())
    grid = {"adapter__n_components": [2, 6], "estimator__C": [0.1, 10.0]}
    search = GridSearchCV(model, grid, cv=SourceOnlySplit(3), error_score="raise")
    search.fit(X, y, sample_domain=SAMPLE_DOMAIN)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    # The computation of the search for its first candidate and first fold.
    train, test = next(iter(SourceOnlySplit(3).split(X, y, sample_domain=SAMPLE_DOMAIN)))
    first = clone(model).set_params(**search.cv_results_["params"][0])
    first.fit(X[train], y[train], sample_domain=SAMPLE_DOMAIN[train])
    expected = first.score(X[test], y[test], sample_domain=SAMPLE_DOMAIN[test])
    assert search.cv_results_["split0_test_score"][0] == expected


@pytest.mark.xfail(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="scikit-learn does not route to the scores of a pipeline (docs/guide/scikit-learn.md)",
    strict=True,
)
def test_search_through_a_pipeline_transforms_source_rows_as_source_rows(routing):
    pipeline = make_pipeline(
        StandardScaler(),
        PeriodicSparseFiltering(random_state=0, n_restarts=2, max_iter=20),
        AdaptedClassifier(None, LogisticRegression()),
    )
    grid = {"periodicsparsefiltering__n_components": [6, 9]}
    search = GridSearchCV(pipeline, grid, cv=SourceOnlySplit(3), error_score="raise")
    search.fit(X, y, sample_domain=SAMPLE_DOMAIN)
    train, test = next(iter(SourceOnlySplit(3).split(X, y, sample_domain=SAMPLE_DOMAIN)))
    scaler = StandardScaler().fit(X[train])
    filters = clone(pipeline[1]).set_params(n_components=6)
    Z = filters.fit_transform(
        scaler.transform(X[train]), y[train], sample_domain=SAMPLE_DOMAIN[train]
    )
    known = SAMPLE_DOMAIN[train] >= 0
    classifier = LogisticRegression().fit(Z[known], y[train][known])
    tested = filters.transform(scaler.transform(X[test]), sample_domain=SAMPLE_DOMAIN[test])
    assert search.cv_results_["split0_test_score"][0] == classifier.score(tested, y[test])


@pytest.mark.parametrize(
    "convert",
    [
        lambda labels: labels.astype(object),
        lambda labels: labels.astype(float),
        lambda labels: labels.astype(str),
        lambda labels: np.array([Decimal(int(label)) for label in labels]),
        lambda labels: pd.Series(labels).astype("Int64"),
        lambda labels: pd.Series(labels).astype("category"),
    ],
    ids=["objects", "floats", "texts", "decimals", "Int64", "category"],
)
def test_the_type_of_the_labels_does_not_change_a_search(convert, routing):
    """Objects gave NaN for every score, and the first setting was chosen."""
    grid = {"estimator__C": [1e-4, 1.0]}
    model = AdaptedClassifier("coral", LogisticRegression())
    scores = [
        GridSearchCV(model, grid, cv=SourceOnlySplit(3))
        .fit(X, labels, sample_domain=SAMPLE_DOMAIN)
        .cv_results_["mean_test_score"]
        for labels in (y, convert(y))
    ]
    assert scores[0][1] > scores[0][0]
    assert_array_equal(scores[1], scores[0])


def test_search_without_the_splitter_is_an_error_not_a_number(routing):
    stacked_y = np.where(SAMPLE_DOMAIN >= 0, y, -1)
    search = GridSearchCV(AdaptedClassifier(), {"estimator": [LogisticRegression()]}, cv=3,
                          error_score="raise")  # fmt: skip
    with pytest.raises(ValueError, match="SourceOnlySplit"):
        search.fit(X, stacked_y, sample_domain=SAMPLE_DOMAIN)


def test_search_without_routing_says_what_to_do():
    search = GridSearchCV(AdaptedClassifier(), {}, cv=SourceOnlySplit(3))
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        search.fit(X, y, sample_domain=SAMPLE_DOMAIN)


def test_leave_one_domain_out(routing):
    result = cross_validate(
        AdaptedClassifier(),
        X,
        y,
        params={"sample_domain": SAMPLE_DOMAIN},
        cv=SourceOnlySplit(LeaveOneGroupOut()),
        error_score="raise",
    )
    assert len(result["test_score"]) == 2


def test_filters_stack_in_a_plain_pipeline(routing):
    """Greedy stacking, as in Ngiam's code: each layer learns on the one before."""
    pipeline = Pipeline(
        [
            ("first", SparseFiltering(6, random_state=0, max_iter=9)),
            ("second", SparseFiltering(4, random_state=1, max_iter=9)),
        ]
    )
    Z = pipeline.fit_transform(X, y, sample_domain=SAMPLE_DOMAIN)
    first = SparseFiltering(6, random_state=0, max_iter=9)
    second = SparseFiltering(4, random_state=1, max_iter=9)
    where = {"sample_domain": SAMPLE_DOMAIN}
    assert_allclose(Z, second.fit_transform(first.fit_transform(X, **where), **where))
    assert_allclose(pipeline.transform(X, **where), Z)
    assert_allclose(pipeline.transform(X), second.transform(first.transform(X)))


def test_stacked_frames_go_straight_in():
    source = {"a": (FRAMES["pandas"](X[:30]), y[:30]), "b": (FRAMES["pandas"](X[30:50]), y[30:50])}
    stacked = stack_domains(source, target={"c": FRAMES["pandas"](X[50:])})
    model = AdaptedClassifier(SparseFiltering(random_state=0, max_iter=9))
    model.fit(stacked.X, stacked.y, sample_domain=stacked.sample_domain)
    assert set(model.predict(FRAMES["pandas"](X_NEW))) <= {0, 1, 2}


@pytest.mark.skipif(find_spec("skada") is None, reason="needs skada")
def test_inside_skada():
    """In a process of its own: importing SKADA changes a global setting of scikit-learn."""
    code = """
import warnings
import numpy as np
from skada import make_da_pipeline
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from covshift import PeriodicSparseFiltering, SourceOnlySplit, SparseFiltering
from tests.shifted import make_problem

warnings.simplefilter("ignore")
X, y, sample_domain, X_new = make_problem()
y = np.where(sample_domain >= 0, y, -1)
for filters in (SparseFiltering, PeriodicSparseFiltering):
    pipeline = make_da_pipeline(
        StandardScaler(), filters(n_components=6, random_state=0, max_iter=20), LogisticRegression()
    )
    pipeline.fit(X, y.copy(), sample_domain=sample_domain)
    fitted = pipeline[1].base_estimator_
    scaled = pipeline[0].base_estimator_.transform(X)
    alone = filters(n_components=6, random_state=0, max_iter=20)
    alone.fit(scaled, y, sample_domain=sample_domain)
    np.testing.assert_array_equal(fitted.components_, alone.components_)
    target = np.full(len(X_new), -1)
    assert set(pipeline.predict(X_new, sample_domain=target)) <= {0, 1, 2}
    source = sample_domain >= 0
    score = pipeline.score(X[source], y[source], sample_domain=sample_domain[source])
    assert score > 0.4, score
    step = filters.__name__.lower()
    search = GridSearchCV(
        pipeline, {f"{step}__n_components": [3, 6]}, cv=SourceOnlySplit(3), error_score="raise"
    )
    search.fit(X, y.copy(), sample_domain=sample_domain)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
