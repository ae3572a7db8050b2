"""Rows of both roles by fits that saw none of them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import ULSIFWeights
from covshift.diagnosis.left_out import predict_left_out
from covshift.selection.candidates import Candidate
from tests.diagnosis.degenerate import DEGENERATE
from tests.diagnosis.test_movement import normal_problem
from tests.selection.made_problems import Broken, Spy, make_bench, plain, standardised


def test_no_fit_has_seen_the_rows_that_it_predicts():
    notes = []
    bench = make_bench([Candidate("spy", "LR", Spy(notes), LogisticRegression())])
    problem = bench.problem
    found = predict_left_out(bench, 0)
    fits = [one for one in notes if one[0] == "fit"]
    transforms = [one for one in notes if one[0] == "transform"]
    assert len(fits) == 3
    for (_, labels, domain), fitted, new in zip(
        fits, transforms[::2], transforms[1::2], strict=True
    ):
        assert (labels[domain < 0] == -1).all()
        assert (labels[domain >= 0] >= 0).all()
        fitted_rows = {row.tobytes() for row in fitted[1]}
        assert not any(row.tobytes() in fitted_rows for row in new[1])
        assert len(fitted[1]) + len(new[1]) == 240
    assert sum(len(Z) for Z, _ in found.representations) == len(problem.X_source)
    assert sum(len(Z) for _, Z in found.representations) == len(problem.X_target)
    assert found.source_logits.shape == found.target_logits.shape == (120, 2)
    assert np.mean(found.source_logits.argmax(axis=1) == problem.codes) > 0.8


def test_standardised_rows_left_out_look_alike():
    found = predict_left_out(make_bench([standardised()]), 0)
    source, target = np.concatenate(found.representations[0]), found.representations[0][1]
    assert abs(target.mean()) > 1e-6  # means of 0 are those of rows that were seen
    assert np.abs(target.mean(axis=0) - source.mean(axis=0)).max() < 0.6


def test_adapters_that_weigh_and_models_without_adapter():
    problem = normal_problem(0.4, n=90)
    weigher = Candidate("uLSIF", "LR", ULSIFWeights(random_state=0), LogisticRegression())
    bench = make_bench([plain(), weigher], problem)
    first, second = (predict_left_out(bench, number) for number in range(2))
    np.testing.assert_array_equal(first.representations[0][0], second.representations[0][0])
    assert not np.array_equal(first.target_logits, second.target_logits)


def test_what_cannot_be_fitted_gives_nothing():
    assert predict_left_out(make_bench([plain(Broken())]), 0) is None
    assert predict_left_out(make_bench([plain()], normal_problem(n=2)), 0) is None


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_rows(name):
    bench = make_bench([plain(), standardised()], DEGENERATE[name])
    for number in range(2):
        found = predict_left_out(bench, number)
        if found is not None:
            assert np.isfinite(found.source_logits).all()
