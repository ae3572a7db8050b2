import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covshift.paper.synthetic.families import (
    FAMILIES,
    FAMILY_NAMES,
    best_threshold,
    family_accuracy,
)
from covshift.paper.synthetic.systems import DATA_SETS
from covshift.paper.synthetic.trials import draw_trial


def test_every_data_set_has_a_family():
    assert set(FAMILIES) == set(FAMILY_NAMES) == set(DATA_SETS)


@pytest.mark.parametrize("data_set", DATA_SETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_family_recovers_its_own_labels(data_set, seed):
    data = draw_trial(data_set, seed).data
    y = data.y_source.astype(bool)
    predict = FAMILIES[data_set](data.X_source, y)
    assert np.mean(predict(data.X_source) == y) >= 0.99


@pytest.mark.parametrize(("data_set", "floor"), [("radial", 0.98), ("diagonal", 0.98)])
def test_families_carry_over_to_the_target(data_set, floor):
    assert np.mean([family_accuracy(data_set, draw_trial(data_set, s).data) for s in range(5)]) >= (
        floor
    )


def test_one_sine_is_right_on_one_twin_and_wrong_on_the_other():
    accuracies = {
        variant: [family_accuracy("periodic", draw_trial("periodic", s, variant).data)
                  for s in range(2)]
        for variant in ("reconstructed", "printed")
    }  # fmt: skip
    assert np.mean(accuracies["reconstructed"]) >= 0.98
    assert np.mean(accuracies["printed"]) <= 0.02


def test_the_cone_takes_rows_on_the_axes():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [2.0, 1.0], [1.0, 2.0]])
    y = np.array([True, False, False, True, False])
    np.testing.assert_array_equal(FAMILIES["radial"](X, y)(X), y)


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=20))
def test_best_threshold_against_all_of_them(rows):
    """Few values, so that most are tied; often of one class only."""
    values, y = (np.array(column) for column in zip(*rows, strict=True))
    values = values.astype(float)

    def accuracy(threshold):
        return np.mean((values > threshold) == y)

    best = max(accuracy(threshold) for threshold in [-np.inf, *values])
    assert accuracy(best_threshold(values, y)) == best


def test_threshold_lies_halfway():
    values, y = np.array([3.0, 0.0, 1.0, 5.0]), np.array([True, False, False, True])
    assert best_threshold(values, y) == 2.0
    assert best_threshold(values, np.ones(4, bool)) == -np.inf
    assert best_threshold(values, np.zeros(4, bool)) == 5.0
