"""uLSIF and RuLSIF against naive twins and densratio."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covshift import RuLSIFWeights, ULSIFWeights, UnreliableWeightsWarning
from covshift.kernels.gaussian_kernels import gaussian, squares_to_bases
from covshift.weights.ulsif import _leave_one_out_scores, fit_ulsif_coefficients
from tests.twins.weight_twins import (
    one_dimension,
    several_dimensions,
    stack,
    ulsif_coefficients,
    ulsif_leave_one_out,
)

RNG = np.random.default_rng(3)
SOURCE, TARGET = RNG.normal(size=(23, 2)), RNG.normal(0.5, 0.8, size=(17, 2))
BASES, SIGMA = TARGET[:6], 0.9
P_SOURCE = gaussian(squares_to_bases(SOURCE, BASES), SIGMA)
P_TARGET = gaussian(squares_to_bases(TARGET, BASES), SIGMA)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 3.0])
def test_coefficients(alpha, lam):
    expected = ulsif_coefficients(SOURCE, TARGET, BASES, SIGMA, lam, alpha)
    assert_allclose(fit_ulsif_coefficients(P_SOURCE, P_TARGET, lam, alpha), expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("clip", ["weights", "coefficients"])
@pytest.mark.parametrize("swap", [False, True])
def test_leave_one_out_equals_refitting(alpha, clip, swap):
    lambdas = np.array([1e-3, 0.1, 3.0])
    samples, designs = (SOURCE, TARGET), (P_SOURCE, P_TARGET)
    if swap:  # more target rows than source rows
        samples, designs = samples[::-1], designs[::-1]
    ours = _leave_one_out_scores(*designs, lambdas, alpha, clip_coefficients=clip == "coefficients")
    naive = [ulsif_leave_one_out(*samples, BASES, SIGMA, lam, alpha, clip) for lam in lambdas]
    assert_allclose(ours, naive, rtol=1e-9)


def test_far_from_the_origin_no_digits_are_lost():
    assert_allclose(squares_to_bases(SOURCE + 1e6, BASES + 1e6),
                    squares_to_bases(SOURCE, BASES), atol=1e-8)  # fmt: skip


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("problem", [one_dimension(n=200), several_dimensions(3, n=200)])
def test_densratio_on_the_same_bases(alpha, problem):
    from densratio import densratio
    from densratio.RuLSIF import set_compute_kernel_target

    set_compute_kernel_target("numpy")
    source, target, _ = problem
    np.random.seed(0)  # noqa: NPY002 (densratio draws its bases from it)
    # 200 bases of 200 rows: all of them, whichever way they are drawn
    theirs = densratio(
        target, source, "RuLSIF", 0.7, 0.1, alpha, kernel_num=200, verbose=False
    ).compute_density_ratio(source)
    X, sample_domain = stack(source, target)
    params = {"n_bases": 200, "sigmas": 0.7, "lambdas": 0.1, "clip": "coefficients"}
    ours = ULSIFWeights(**params) if alpha == 0 else RuLSIFWeights(alpha=alpha, **params)
    ours.fit(X, sample_domain=sample_domain)
    assert_allclose(ours.weights_, theirs, atol=1e-8)
    assert_array_equal(ours.coefficients_ >= 0, True)


def test_what_is_stored():
    source, target, _ = one_dimension(n=300)
    X, sample_domain = stack(source, target)
    ulsif = ULSIFWeights(
        n_bases=50,
        sigmas=ULSIFWeights.PAPER_SIGMAS,
        lambdas=ULSIFWeights.PAPER_LAMBDAS,
        random_state=0,
    ).fit(X, sample_domain=sample_domain)
    assert ulsif.score_table_.shape == (6, 9)
    row, column = np.unravel_index(ulsif.score_table_.argmin(), (6, 9))
    assert ulsif.bandwidth_ == ULSIFWeights.PAPER_SIGMAS[row]
    assert ulsif.regularization_ == ULSIFWeights.PAPER_LAMBDAS[column]
    assert ulsif.bases_.shape == (50, 1)
    assert set(ulsif.bases_.ravel()) <= set(target.ravel())
    args = source, target, ulsif.bases_, ulsif.bandwidth_, ulsif.regularization_
    assert_allclose(ulsif.coefficients_, ulsif_coefficients(*args), rtol=1e-6)
    assert_array_equal(ulsif.weights_, ulsif.score_weights(source))


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_relative_weights_are_bounded(alpha):
    """At a source row inside a dense cluster of the target the ratio itself has no bound."""
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(300, 1)), rng.normal(3, 0.02, size=(300, 1))
    X, sample_domain = stack(np.append(source, [[3.0]], axis=0), target)
    weights = {"n_bases": 50, "sigmas": 0.05, "lambdas": 1e-6, "random_state": 0}
    model = RuLSIFWeights(alpha=alpha, **weights)
    with pytest.warns(UnreliableWeightsWarning, match="effective rows of"):
        model.fit(X, sample_domain=sample_domain)
    assert 0.5 / alpha < model.weights_[-1] <= 1 / alpha
    assert model.score_weights(np.linspace(2, 4, 999)[:, None]).max() <= 1 / alpha


def test_relative_weights_with_alpha_zero_are_plain():
    X, sample_domain = stack(SOURCE, TARGET)
    plain = ULSIFWeights(random_state=0).fit(X, sample_domain=sample_domain)
    relative = RuLSIFWeights(alpha=0, random_state=0).fit(X, sample_domain=sample_domain)
    assert_array_equal(plain.weights_, relative.weights_)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"n_bases": 0}, "n_bases"),
        ({"n_bases": 2.5}, "n_bases"),
        ({"sigmas": []}, "sigmas must hold positive"),
        ({"sigmas": [1.0, -1.0]}, "sigmas must hold positive"),
        ({"sigmas": "median"}, "sigmas must hold positive"),
        ({"lambdas": 0.0}, "lambdas must hold positive"),
        ({"lambdas": None}, "lambdas must hold positive"),
        ({"clip": "both"}, "'weights', 'coefficients'"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_bad_parameters(params, match):
    X, sample_domain = stack(SOURCE, TARGET)
    with pytest.raises((ValueError, TypeError), match=match):
        RuLSIFWeights(**params).fit(X, sample_domain=sample_domain)


def test_the_grids_of_the_paper():
    assert ULSIFWeights.PAPER_LAMBDAS == (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
    assert ULSIFWeights.PAPER_SIGMAS == (0.1, 0.2, 0.5, 1, 2, 3)
