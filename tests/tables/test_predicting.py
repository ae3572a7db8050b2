"""Counts and votes of predictions, and which method of a model says them."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from numpy.testing import assert_array_equal

from covshift.predictors.prediction_sets import PredictionIntervals
from covshift.tables.predicting import _ClassSummary, _predict, _SetTally

CLASSES = np.array(["a", "b", "c"])
BATCH = pa.record_batch([pa.array([0, 1, 0, 1])], names=["x"])
P = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.5, 0.2, 0.3], [0.2, 0.7, 0.1]])
SHIFTED = CLASSES[[1, 2, 1, 2]]  # what `decide` says, where it is asked


def make_model(*, decides):
    model = SimpleNamespace(
        classes_=CLASSES,
        predict=lambda batch, sample_domain=None: CLASSES[P.argmax(axis=1)],
        predict_proba=lambda batch, sample_domain=None: P,
    )
    if decides:
        model.decide = lambda P: CLASSES[P.argmax(axis=1) + 1]
    return model


def test_intervals_without_an_end_are_counted_apart():
    tally = _SetTally(0.1)
    promise = {"promised": True, "method": "m", "reason": "r", "effective_sample_size": 9.04}
    for low, high in (([0.0, -np.inf, 1.0], [1.0, np.inf, 4.0]), ([-np.inf], [np.inf])):
        tally.add(PredictionIntervals(np.array(low), np.array(high), **promise))
    found = tally.to_dict()
    assert (found["infinite"], found["mean width"]) == (2, 2.0)
    assert found["effective sample size"] == 9.0
    none_finite = _SetTally(0.1)
    none_finite.add(PredictionIntervals(np.array([-np.inf]), np.array([0.0]), **promise))
    assert (none_finite.to_dict()["infinite"], none_finite.to_dict()["mean width"]) == (1, 0.0)


def test_classes_are_decided_from_the_probabilities_where_there_are_any():
    for decides, probabilities, expected in [
        (True, True, [1, 2, 1, 2]), (True, False, [0, 1, 0, 1]),
        (False, True, [0, 1, 0, 1]), (False, False, [0, 1, 0, 1]),
    ]:  # fmt: skip
        codes, shown = _predict(make_model(decides=decides), BATCH, None, probabilities)
        assert_array_equal(codes, expected)
        assert shown.shape == (4, 3 if probabilities else 0)


def test_counts_and_votes_by_group_add_up_over_batches():
    summary = _ClassSummary(make_model(decides=False), True)
    for groups in (["one", "one", "one", "two"], ["one", "two", "one", "two"]):
        summary.predict(BATCH, None, groups)
    assert summary.to_dict() == {"counts": {"a": 4, "b": 4}}
    one, two = summary.to_rows("site", ["p a", "p b", "p c"])
    assert (one["site"], one["rows"], one["prediction"], one["share"]) == ("one", 5, "a", 0.8)
    assert (two["site"], two["rows"], two["prediction"], two["share"]) == ("two", 3, "b", 1.0)
    assert_array_equal(np.round(two["p b"], 6), np.round((0.7 + 0.8 + 0.7) / 3, 6))
