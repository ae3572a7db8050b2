"""`diagnose` where the label is a number."""

import numpy as np
import pytest

from covshift import AutoAdaptedRegressor, diagnose
from covshift.diagnosis.diagnosis import _recognize_task
from tests.selection.test_auto_adapted_regressor import make_sites


@pytest.fixture(scope="module")
def sites():
    return make_sites(60)


@pytest.fixture(scope="module")
def diagnosis(sites):
    X, y, sample_domain, _, _ = sites
    return diagnose(X, y, sample_domain=sample_domain, max_rows=50)


def test_advice_is_that_of_the_regressor(diagnosis, sites):
    X, y, sample_domain, _, _ = sites
    model = diagnosis.recommended
    assert isinstance(model, AutoAdaptedRegressor)
    model.fit(X, y, sample_domain=sample_domain)
    assert model.assessment_ == diagnosis.assessment
    assert diagnosis.task == "regression"
    assert diagnosis.objective == "r2"


def test_words_are_those_of_numbers(diagnosis):
    text = repr(diagnosis)
    assert "Expected R² (90 % interval), plain model" in text
    assert "mean absolute error, in units of the label" in text
    assert "class proportions" not in text


def test_labels_update_the_advice(diagnosis, sites):
    _, _, _, _, y_new = sites
    rows = diagnosis.rows_to_label(10)
    updated = diagnosis.update(rows, y_new[rows - 120])
    assert updated.assessment.n_labels == 10
    assert updated.assessment.plain != diagnosis.assessment.plain
    with pytest.raises(ValueError, match="finite"):
        diagnosis.update(rows[:1], [np.nan])
    with pytest.raises(ValueError, match="2 labels for 1 rows"):
        diagnosis.update(rows[:1], [1.0, 2.0])


def test_label_shift_is_named():
    """Only the frequency of large labels differs: the features follow the label in both roles."""
    rng = np.random.RandomState(0)
    y = rng.standard_normal(600)
    X = np.column_stack([y + 0.1 * rng.standard_normal(600) for _ in range(2)])
    high = rng.uniform(size=600) < np.where(y > 0, 0.8, 0.2)
    X_all = np.concatenate([X[~high], X[high]])
    sample_domain = np.where(np.arange(600) < (~high).sum(), 0, -1)
    labels = np.concatenate([y[~high], np.full(high.sum(), np.nan)])
    found = diagnose(X_all, labels, sample_domain=sample_domain, max_rows=400)
    assert found.movement.moved
    assert found.movement.target_shares[-1] > 2 * found.movement.source_shares[-1]
    assert "label shift" in repr(found)


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([0.5, 1.5, 2.25], "regression"),
        ([1.0, 2.0, 3.0], "classification"),  # whole numbers, as scikit-learn has it
        ([1, 2, 3], "classification"),
        (["a", "b", "a"], "classification"),
    ],
)
def test_task_is_recognized_by_known_labels(labels, task):
    sample_domain = np.array([0, 0, 0, -1])
    assert _recognize_task([*labels, labels[0]], sample_domain) == task
    assert _recognize_task([*labels, 0.123], sample_domain) == task  # the target's is not read


def test_task_can_be_said(sites):
    X, y, sample_domain, _, _ = sites
    whole = np.where(sample_domain >= 0, np.round(y), np.nan)
    found = diagnose(
        X, whole, sample_domain=sample_domain, max_rows=50, task="regression", objective="mae"
    )
    assert found.objective == "mae"
    with pytest.raises(ValueError, match="objective"):
        diagnose(X, y, sample_domain=sample_domain, task="regression", objective="accuracy")
    with pytest.raises(ValueError, match="task"):
        diagnose(X, y, sample_domain=sample_domain, task="ranking")
