import math
import statistics
import warnings
from itertools import islice

import numpy as np
import pytest

from covshift import SparseFiltering, stack_domains
from covshift.datasets import make_radial_shift
from covshift.experiments.demo import (
    ASSUMPTIONS,
    DATA_SETS,
    NO_ADAPTATION,
    PAPER,
    SYSTEMS,
    Trial,
    draw_trial,
    filter_grid,
    fit_system,
    run_trials,
    summarize,
    verdicts,
)


@pytest.fixture(scope="module")
def trials():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no ConvergenceWarning: max_iter is high enough
        return list(run_trials(2, seed=5))


def test_every_cell_has_every_trial_once(trials):
    assert [(t.data_set, t.seed, t.system) for t in trials] == [
        (data_set, seed, system) for data_set in DATA_SETS for seed in (5, 6) for system in SYSTEMS
    ]


def test_declarations_cover_every_cell():
    assert list(ASSUMPTIONS) == list(DATA_SETS)
    assert list(PAPER) == [(d, s) for d in DATA_SETS for s in SYSTEMS]


def test_results_come_one_by_one():
    assert next(run_trials()).seed == 0
    assert next(run_trials(10**6, seed=1)).system == NO_ADAPTATION


def test_same_seed_same_accuracy(trials):
    # The second trial of a run is the first of a run that starts one seed later.
    first = list(islice(run_trials(1, seed=6), len(SYSTEMS)))
    assert first == [t for t in trials if t.data_set == "radial" and t.seed == 6]


def test_trial_of_a_seed_has_the_data_of_that_seed():
    data, _ = draw_trial("radial", 4)
    for drawn, expected in zip(data, make_radial_shift(random_state=4), strict=True):
        np.testing.assert_array_equal(drawn, expected)


def test_start_does_not_repeat_the_draws_of_the_data():
    data, start = draw_trial("radial", 4)
    W = fit_system("SF", data, start).adapter_.components_
    first_draws = np.random.RandomState(4).standard_normal(W.shape)
    assert not np.allclose(W, first_draws)


def test_each_filter_wins_where_its_assumption_holds(trials):
    mean = {cell: estimate.mean for cell, estimate in summarize(trials).items()}
    assert mean["radial", "SF"] > 0.6 > mean["radial", NO_ADAPTATION]
    assert mean["periodic", "PSF"] > 0.9 > mean["periodic", NO_ADAPTATION]


def make_trials(**accuracies):
    """Trials of one data set from system -> accuracies."""
    return [
        Trial("radial", system.replace("_", " "), seed, accuracy)
        for system, values in accuracies.items()
        for seed, accuracy in enumerate(values)
    ]


def test_summary_against_the_naive_computation():
    values = [0.25, 0.5, 0.8, 0.7]
    estimate = summarize(make_trials(SF=values, PSF=[0.1]))["radial", "SF"]
    assert estimate.mean == pytest.approx(statistics.mean(values))
    assert estimate.standard_error == pytest.approx(statistics.stdev(values) / math.sqrt(4))


def test_single_trial_has_no_standard_error():
    assert summarize(make_trials(SF=[0.3])) == {("radial", "SF"): (0.3, None)}


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.6, 0.71, 0.8], "helps"),
        ([0.4, 0.51, 0.6], "harms"),
        ([0.4, 0.7, 0.8], "unclear"),
        ([0.5, 0.6, 0.7], "unclear"),  # no difference at all
        ([0.9], "unclear"),
    ],
)
def test_verdicts_compare_within_trials(values, verdict):
    # The baselines differ more from each other than from what they are compared with.
    trials = make_trials(no_adaptation=[0.5, 0.6, 0.7], SF=values)
    assert verdicts(trials) == {("radial", "SF"): verdict}


def test_filter_grid_holds_the_representation_of_target_rows():
    data = make_radial_shift(random_state=0)
    X, _, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    adapter = SparseFiltering(3, max_iter=0, random_state=0).fit(X, sample_domain=sample_domain)
    grid = filter_grid(adapter, data, n_points=7)
    assert grid.Z.shape == (7, 7, 3)
    point = [[grid.x1[2], grid.x2[5]]]
    np.testing.assert_allclose(grid.Z[5, 2], adapter.transform(point, sample_domain=-1)[0])
    rows = np.concatenate([data.X_source, data.X_test])
    for axis, ticks in enumerate((grid.x1, grid.x2)):
        assert ticks[0] < rows[:, axis].min()
        assert ticks[-1] > rows[:, axis].max()
        np.testing.assert_allclose(np.diff(ticks), ticks[1] - ticks[0])
