"""The domain contract, over every estimator.

An estimator that is added to `tests.estimators` is tested here without further work.
"""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_regressor

from tests.estimators import (
    ESTIMATORS,
    fitted,
    problem_for,
    reads_labels,
    treats_domains_alike,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
every_one_with_classes = pytest.mark.parametrize(
    "estimator", [one for one in ESTIMATORS if not is_regressor(one)], ids=repr
)
every_one_that_reads_labels = pytest.mark.parametrize(
    "estimator", [one for one in ESTIMATORS if reads_labels(one)], ids=repr
)


def outputs(model, X, **where):
    """Everything that a fitted estimator can say about rows."""
    methods = ("transform", "predict", "predict_proba", "decision_function")
    return {name: getattr(model, name)(X, **where) for name in methods if hasattr(model, name)}


def assert_same_outputs(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert_array_equal(ours[name], theirs[name], err_msg=name)


def _flipped(y, masked, rng):
    y = y.copy()
    y[masked] = y.max() - y[masked]
    return y


def _shuffled(y, masked, rng):
    y = y.copy()
    y[masked] = rng.permutation(y[masked])
    return y


def _unknown_class(y, masked, rng):
    return np.where(masked, 99, y)


def _nan(y, masked, rng):
    return np.where(masked, np.nan, y)


def _objects(y, masked, rng):
    y = y.astype(object)
    y[masked] = [None, "none", float("inf"), object()] * (masked.sum() // 4)
    return y


def _list(y, masked, rng):
    return [None if hidden else label for label, hidden in zip(y.tolist(), masked, strict=True)]


@every_estimator
@pytest.mark.parametrize("blank", [_flipped, _shuffled, _unknown_class, _nan, _objects, _list])
@pytest.mark.parametrize("masked_by", ["role", "label_mask"])
def test_labels_that_may_not_be_read_change_nothing(estimator, blank, masked_by):
    X, y, sample_domain, X_new = problem_for(estimator)
    params = {"sample_domain": sample_domain}
    known = sample_domain >= 0
    if masked_by == "label_mask":  # some source rows hidden, some target rows known
        known = np.arange(len(y)) % 4 != 0
        params["label_mask"] = known
    other_y = blank(y, ~known, np.random.RandomState(0))

    ours = fitted(estimator, masked_by)
    theirs = clone(estimator).fit(X, other_y, **params)
    assert_same_outputs(outputs(ours, X_new), outputs(theirs, X_new))
    for name, value in vars(ours).items():
        if isinstance(value, np.ndarray | float):
            assert_array_equal(getattr(theirs, name), value, err_msg=name)


@every_one_that_reads_labels
def test_known_labels_do_change_something(estimator):
    """Guards the test above: an estimator deaf to all labels would pass it."""
    X, y, sample_domain, X_new = problem_for(estimator)
    ours = outputs(fitted(estimator), X_new)
    theirs = outputs(clone(estimator).fit(X, y[::-1], sample_domain=sample_domain), X_new)
    name = "predict" if "predict" in ours else "transform"
    assert not np.array_equal(ours[name], theirs[name])


@every_estimator
def test_the_split_changes_something(estimator):
    X, y, _, X_new = problem_for(estimator)
    ours = outputs(fitted(estimator), X_new)
    swapped = np.where(np.arange(len(y)) % 2, 0, -1)
    theirs = outputs(clone(estimator).fit(X, y, sample_domain=swapped), X_new)
    changed = any(not np.array_equal(ours[name], theirs[name]) for name in ours)
    assert changed != treats_domains_alike(estimator)


@every_estimator
def test_inputs_are_never_changed(estimator):
    problem = problem_for(estimator)
    X, y, sample_domain, X_new = copy.deepcopy(problem)
    label_mask = sample_domain >= 0
    for array in (X, y, sample_domain, X_new, label_mask):
        array.flags.writeable = False
    model = clone(estimator).fit(X, y, sample_domain=sample_domain, label_mask=label_mask)
    outputs(model, X_new, sample_domain=sample_domain[: len(X_new)])
    for ours, theirs in zip((X, y, sample_domain, X_new), problem, strict=True):
        assert_array_equal(ours, theirs)


@every_estimator
def test_permuting_rows_of_a_call_permutes_its_result(estimator):
    X, _, sample_domain, _ = problem_for(estimator)
    model = fitted(estimator)
    order = np.random.RandomState(1).permutation(len(X))
    whole = outputs(model, X, sample_domain=sample_domain)
    permuted = outputs(model, X[order], sample_domain=sample_domain[order])
    for name, values in whole.items():
        np.testing.assert_allclose(permuted[name], values[order], rtol=1e-10, err_msg=name)


@every_estimator
def test_one_row_equals_that_row_of_the_whole(estimator):
    X, _, sample_domain, _ = problem_for(estimator)
    model = fitted(estimator)
    whole = outputs(model, X, sample_domain=sample_domain)
    for row in (0, 17, 42):
        one = slice(row, row + 1)
        alone = outputs(model, X[one], sample_domain=sample_domain[one])
        for name, values in whole.items():
            np.testing.assert_allclose(alone[name], values[one], rtol=1e-10, err_msg=name)


@every_estimator
def test_rows_without_domain_are_target_rows(estimator):
    *_, X_new = problem_for(estimator)
    model = fitted(estimator)
    unseen = np.full(len(X_new), -77)
    assert_same_outputs(outputs(model, X_new), outputs(model, X_new, sample_domain=unseen))
    assert_same_outputs(outputs(model, X_new), outputs(model, X_new, sample_domain=-77))


@every_estimator
@pytest.mark.filterwarnings("ignore::covshift.NothingToAdaptWarning")
def test_without_target_rows_are_source_rows(estimator):
    X, y, _, X_new = problem_for(estimator)
    model = clone(estimator).fit(X, y)
    assert_same_outputs(outputs(model, X_new), outputs(model, X_new, sample_domain=0))


@every_one_with_classes
def test_renaming_classes_renames_predictions(estimator):
    X, y, sample_domain, X_new = problem_for(estimator)
    ours = fitted(estimator)
    for names in (np.array(["a", "b", "c"]), np.array([-1, 1, 5]), np.array([-0.5, 0.5, 2.0])):
        renamed = names[y]
        if renamed.dtype.kind == "f":
            renamed = renamed.astype(str)
        theirs = clone(estimator).fit(X, renamed, sample_domain=sample_domain)
        ours_out, theirs_out = outputs(ours, X_new), outputs(theirs, X_new)
        if "predict" in ours_out:
            renamed_prediction = np.unique(renamed)[ours_out.pop("predict")]
            assert_array_equal(theirs_out.pop("predict"), renamed_prediction)
        assert_same_outputs(ours_out, theirs_out)


@every_one_with_classes
def test_booleans_are_classes(estimator):
    X, y, sample_domain, X_new = problem_for(estimator)
    model = clone(estimator).fit(X, y > 0, sample_domain=sample_domain)
    if hasattr(model, "predict"):
        assert model.predict(X_new).dtype == bool


@every_estimator
def test_same_seed_same_result(estimator):
    X, y, sample_domain, X_new = problem_for(estimator)
    ours, theirs = fitted(estimator), clone(estimator).fit(X, y, sample_domain=sample_domain)
    assert_same_outputs(outputs(ours, X_new), outputs(theirs, X_new))


@every_estimator
def test_pickle_and_clone(estimator):
    X, y, sample_domain, X_new = problem_for(estimator)
    model = fitted(estimator)
    again = pickle.loads(pickle.dumps(model))
    assert_same_outputs(outputs(model, X_new), outputs(again, X_new))
    refitted = clone(model).fit(X, y, sample_domain=sample_domain)
    assert_same_outputs(outputs(model, X_new), outputs(refitted, X_new))


@every_estimator
def test_float32_stays_float32(estimator):
    X, y, sample_domain, X_new = problem_for(estimator, dtype=np.float32)
    model = clone(estimator).fit(X, y, sample_domain=sample_domain)
    if hasattr(model, "transform"):
        assert model.transform(X_new).dtype == np.float32
        assert model.transform(X_new.astype(np.float64)).dtype == np.float64


@every_estimator
def test_a_failed_fit_leaves_nothing_behind(estimator):
    X, y, sample_domain, X_new = problem_for(estimator)
    unfitted = clone(estimator)
    with pytest.raises(ValueError, match="sample_domain"):
        unfitted.fit(X, y, sample_domain=sample_domain[1:])
    assert vars(unfitted).keys() == vars(clone(estimator)).keys()

    model = copy.deepcopy(fitted(estimator))
    before = outputs(model, X_new)
    with pytest.raises(ValueError, match="sample_domain"):
        model.fit(X[:, :2], y, sample_domain=sample_domain[1:])
    assert_same_outputs(outputs(model, X_new), before)


def test_import_changes_no_global_state():
    """In a process of its own, since this one has imported everything already."""
    code = """
import logging, os, random, sys, warnings
import joblib, numpy, scipy, sklearn, sklearn.pipeline, sklearn.linear_model

def state():
    return [
        sklearn.get_config(), numpy.geterr(), numpy.get_printoptions(), list(warnings.filters),
        logging.getLogger().level, list(logging.getLogger().handlers), dict(os.environ),
        random.getstate(), numpy.random.get_state()[1].tolist(), sys.getrecursionlimit(),
    ]

before, modules = state(), set(sys.modules)
import covshift, covshift.datasets
changed = [pair for pair in zip(before, state()) if pair[0] != pair[1]]
assert not changed, changed
extras = {
    "matplotlib", "rich", "typer", "pandas", "pyarrow", "polars", "torch", "jinja2", "skada",
    "skops", "onnx",
}
assert not extras & (set(sys.modules) - modules), extras & (set(sys.modules) - modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
