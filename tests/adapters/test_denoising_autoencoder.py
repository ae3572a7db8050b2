import itertools
import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from covshift import DenoisingAutoencoder
from covshift.adapters import denoising_autoencoder as training
from covshift.adapters.denoising_autoencoder import SGD, Adam, fit_stacked
from covshift.kernels import compiled
from tests.kernels.conftest import COMPILED
from tests.shifted import make_problem
from tests.twins import autoencoder_twin, naive

LEARNED = (
    "components_",
    "intercept_",
    "decoder_components_",
    "decoder_intercept_",
    "loss_curve_",
    "validation_curve_",
)
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def quick(n_components=2, **parameters):
    """An auto-encoder that is trained for a moment only."""
    defaults = {"max_epochs": 7, "batch_size": 8, "random_state": 0}
    return DenoisingAutoencoder(n_components, **{**defaults, **parameters})


def rows(n=30, m=3, seed=0, dtype=np.float64):
    rng = np.random.RandomState(seed)
    return (rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))).astype(dtype)


def near_a_curve(seed, n=500, noise=0.2):
    """Noisy rows near a curve in 20-D; others; and where those others lie on the curve.

    Every feature rises or falls once along the curve, each at another place.
    """
    rng = np.random.default_rng(seed)
    slope = rng.uniform(1, 4, 20) * rng.choice([-1, 1], 20)
    place = rng.uniform(-1, 1, 20)
    clean = np.tanh(slope * (rng.uniform(-1.5, 1.5, (2 * n, 1)) - place))
    noisy = clean + noise * rng.standard_normal(clean.shape)
    return noisy[:n], noisy[n:], clean[n:]


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_denoises_new_points_near_a_curve_better_than_pca(rank, seed):
    fitted, noisy, clean = near_a_curve(seed)
    dae = DenoisingAutoencoder(
        rank, learning_rate=0.01, max_epochs=400, random_state=seed + 100
    ).fit(fitted)
    pca = PCA(rank).fit(fitted)
    ours = np.mean((dae.reconstruct(noisy) - clean) ** 2)
    theirs = np.mean((pca.inverse_transform(pca.transform(noisy)) - clean) ** 2)
    assert ours < 0.9 * theirs


def test_the_defaults_learn_what_pca_finds():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1000, 5)) @ rng.standard_normal((5, 20))
    X += 0.1 * rng.standard_normal(X.shape)
    dae = DenoisingAutoencoder(max_epochs=200, random_state=0).fit(X)
    assert np.mean((dae.reconstruct(X) - X) ** 2) < 0.05 * X.var(axis=0).mean()


@unfinished
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"tied": True, "solver": "sgd"},
        {"activation": "tanh", "decoder": "linear", "noise": "masking"},
        {"early_stopping": True, "patience": 2, "max_epochs": 60},
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stacked_equals_alone(parameters, dtype):
    """Seeds, rates, noise, starts, scalings and rows may differ, and stops come when they come."""
    stacked = [
        quick(learning_rate=0.01, **parameters),
        quick(random_state=1, learning_rate=0.1, **parameters),
        quick(random_state=2, noise_level=0.4, init="normal", **parameters),
        quick(random_state=3, scaling=None, **parameters),
    ]
    X = [rows(seed=k % 2, dtype=dtype) for k in range(4)]
    alone = [clone(estimator).fit(Xk) for estimator, Xk in zip(stacked, X, strict=True)]
    fit_stacked(stacked, X)
    for ours, theirs in zip(stacked, alone, strict=True):
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.components_.dtype == dtype
        for name in LEARNED:
            if getattr(theirs, name) is not None:
                rtol = 1e-12 if dtype == np.float64 else 1e-5
                assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=rtol, atol=rtol)
    if "early_stopping" in parameters:
        assert len({estimator.n_iter_ for estimator in stacked}) > 1


def test_what_is_stacked_must_fit_together():
    stacked = [quick(), quick(tied=True)]
    with pytest.raises(ValueError, match="rows of one shape"):
        fit_stacked(stacked, [rows(), rows()])
    with pytest.raises(ValueError, match="rows of one shape"):
        fit_stacked([quick(), quick()], [rows(), rows(n=29)])
    assert not any(hasattr(estimator, "n_features_in_") for estimator in stacked)


@unfinished
@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_training_equals_a_plain_loop(solver):
    """One batch per epoch and no noise: what remains is gradient descent on all rows."""
    X = rows(n=20)
    parameters = {"noise_level": 0.0, "batch_size": 99, "solver": solver, "momentum": 0.0}
    start = quick(max_epochs=0, **parameters).fit(X)
    fitted = quick(max_epochs=1, learning_rate=0.3, **parameters).fit(X)
    scaled = start._scale(X)
    Z = start.transform(X)
    X_hat = 1 / (1 + np.exp(-Z @ start.decoder_components_.T - start.decoder_intercept_))
    assert fitted.loss_curve_ == pytest.approx([np.mean((X_hat - scaled) ** 2)])
    errors = 2 * (X_hat - scaled) * X_hat * (1 - X_hat) / X.size
    gradient = ((errors @ start.decoder_components_) * Z * (1 - Z)).T @ scaled
    # Adam's first step is the sign of the gradient.
    step = gradient if solver == "sgd" else gradient / (np.abs(gradient) + 1e-8)
    assert_allclose(fitted.components_, start.components_ - 0.3 * step, rtol=1e-9)


@unfinished
def test_a_longer_fit_goes_through_the_shorter_one():
    X = rows()
    short = quick(max_epochs=3).fit(X)
    long = quick(max_epochs=40).fit(X)
    assert_allclose(long.loss_curve_[:3], short.loss_curve_, rtol=1e-14)


@unfinished
@pytest.mark.parametrize("room", [1, 40, 90])
@pytest.mark.parametrize("noise", ["gaussian", "masking"])
def test_blocks_change_nothing(monkeypatch, room, noise):
    """Epochs are prepared several at once, or in parts: that is a matter of speed alone."""
    X = rows()
    parameters = {"early_stopping": True, "noise": noise, "max_epochs": 6}
    expected = quick(**parameters).fit(X)
    monkeypatch.setattr(training, "BLOCK_ENTRIES", room)
    ours = quick(**parameters).fit(X)
    for name in LEARNED:
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    ("room", "expected"),
    [(2**16, [(10, True)] * 3), (10, [(10, True)] * 3), (9, [(8, False), (2, True)] * 3)],
)
def test_each_epoch_has_every_row_once(monkeypatch, room, expected):
    monkeypatch.setattr(training, "BLOCK_ENTRIES", room)
    samples = np.arange(10.0)[None, :]
    networks = [
        quick(batch_size=4, max_epochs=3, noise_level=level, random_state=seed)
        for seed, level in enumerate([0.0, 1.0])
    ]
    streams = [training.Streams(one.random_state) for one in networks]
    epochs = [*training.noisy_epochs(networks, [samples, -samples], streams)]
    for noisy, clean, _ in epochs:
        assert_array_equal(noisy[0, :1], clean[0])
        assert (noisy[1, :1] != clean[1]).all()
        assert_array_equal(noisy[:, -1], 1)
    assert [(clean.shape[2], ends) for _, clean, ends in epochs] == expected
    ends = np.flatnonzero([ends for *_, ends in epochs]) + 1
    orders = [
        np.concatenate([clean for _, clean, _ in epochs[start:stop]], axis=2)[:, 0]
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert len(orders) == 3
    for order in orders:
        assert_array_equal(np.sort(order[0]), np.arange(10))
        assert (order[0] != -order[1]).any()
    assert (orders[0] != orders[1]).any()


@pytest.mark.parametrize(("noise", "level"), [("gaussian", 0.3), ("masking", 0.3)])
def test_noise_is_as_strong_as_asked_for(noise, level):
    clean = np.full((4, 5000), 2.0)
    noisy = training.with_noise(clean, np.random.default_rng(0), noise, level)
    if noise == "gaussian":
        assert (noisy - clean).std() == pytest.approx(level, rel=0.02)
        assert (noisy - clean).mean() == pytest.approx(0, abs=0.01)
    else:
        assert set(np.unique(noisy)) == {0.0, 2.0}
        assert (noisy == 0).mean() == pytest.approx(level, rel=0.05)


@unfinished
def test_early_stopping_keeps_the_best_epoch():
    X = rows(n=60, m=6)
    parameters = {"early_stopping": True, "learning_rate": 0.05, "max_epochs": 300, "patience": 5}
    fitted = quick(**parameters).fit(X)
    assert fitted.n_iter_ == len(fitted.validation_curve_) == len(fitted.loss_curve_) < 300
    assert fitted.kept_epoch_ == np.argmin(fitted.validation_curve_) + 1 == fitted.n_iter_ - 5
    # The same training, ended by hand at that epoch, has these parameters.
    again = quick(**{**parameters, "max_epochs": fitted.kept_epoch_}).fit(X)
    for name in LEARNED[:4]:
        assert_allclose(getattr(fitted, name), getattr(again, name), rtol=1e-12)


def test_no_rows_are_held_out_unless_asked_for():
    fitted = quick().fit(rows())
    assert fitted.validation_curve_ is None
    assert fitted.kept_epoch_ == fitted.n_iter_ == 7


def test_a_warning_says_that_the_error_still_falls():
    X = rows(n=200)
    brief = quick(max_epochs=50, batch_size=50, learning_rate=0.01)
    with pytest.warns(ConvergenceWarning, match=r"still falling after max_epochs=50\. Raise"):
        clone(brief).fit(X)
    with pytest.warns(ConvergenceWarning, match="max_epochs=3"):
        quick(max_epochs=3, early_stopping=True).fit(X)
    stuck = clone(brief).set_params(learning_rate=1e-9)
    with pytest.warns(ConvergenceWarning, match="error of 1 of 2 auto-encoders"):
        fit_stacked([brief, stuck], [X, X])


def test_no_warning_where_the_error_has_settled():
    quick(max_epochs=300, learning_rate=0.01).fit(rows(n=200))
    quick(max_epochs=300, learning_rate=0.05, early_stopping=True, patience=10).fit(rows(n=200))
    quick(max_epochs=0, early_stopping=True).fit(rows())


@unfinished
def test_reproducible_by_seed():
    X = rows()
    first, second, other = (quick(random_state=seed).fit(X) for seed in (0, 0, 1))
    for name in LEARNED[:5]:
        assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.components_ != other.components_).all()
    state = np.random.RandomState(0)
    assert (quick(random_state=state).fit(X).components_ != quick(random_state=state).fit(X)
            .components_).any()  # fmt: skip


@unfinished
@pytest.mark.parametrize("decoder", ["sigmoid", "tanh", "linear"])
def test_units_of_the_features_change_nothing(decoder):
    X, X_new = rows(), rows(seed=1)
    units = 10.0 ** np.array([-30, 0, 40])
    ours = quick(decoder=decoder).fit(X)
    theirs = quick(decoder=decoder).fit(X * units + 3 * units)
    assert_allclose(theirs.transform(X_new * units + 3 * units), ours.transform(X_new), rtol=1e-8)
    expected = ours.reconstruct(X_new) * units + 3 * units
    assert_allclose(theirs.reconstruct(X_new * units + 3 * units), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("activation", "decoder", "low", "high"),
    [("sigmoid", None, 0, 1), ("tanh", None, -1, 1), ("sigmoid", "tanh", -1, 1),
     ("tanh", "sigmoid", 0, 1), ("sigmoid", "linear", 0, 1), ("tanh", "linear", -1, 1)],
)  # fmt: skip
def test_fitted_rows_fill_the_range_of_the_decoder(activation, decoder, low, high):
    X = rows()
    X[:, 2] = 7.0
    fitted = quick(activation=activation, decoder=decoder).fit(X)
    scaled = fitted._scale(X)
    assert_allclose(scaled[:, :2].min(axis=0), low, atol=1e-15)
    assert_allclose(scaled[:, :2].max(axis=0), high, atol=1e-15)
    assert_array_equal(scaled[:, 2], (low + high) / 2)
    assert fitted.data_range_[2] == 1
    assert fitted._scale(10 * X)[:, :2].max() > high  # not clipped


def test_scaling_can_be_left_out():
    X = rows()
    fitted = quick(scaling=None, decoder="linear", max_epochs=0).fit(X)
    Z = 1 / (1 + np.exp(-(X @ fitted.components_.T + fitted.intercept_)))
    assert_allclose(fitted.transform(X), Z)
    expected = Z @ fitted.decoder_components_.T + fitted.decoder_intercept_
    assert_allclose(fitted.reconstruct(X), expected)


@unfinished
@pytest.mark.parametrize("tied", [False, True])
def test_attributes(tied):
    X, _, sample_domain, X_new = make_problem()
    fitted = quick(tied=tied).fit(X, sample_domain=sample_domain)
    assert fitted.components_.shape == (2, 3)
    assert fitted.decoder_components_.shape == (3, 2)
    assert np.array_equal(fitted.decoder_components_, fitted.components_.T) == tied
    assert_array_equal(fitted.domains_, [-2, -1, 0, 1])
    assert_allclose(fitted.inverse_transform(fitted.transform(X_new)), fitted.reconstruct(X_new))
    assert list(fitted.get_feature_names_out()) == [
        "denoisingautoencoder0",
        "denoisingautoencoder1",
    ]
    assert DenoisingAutoencoder(max_epochs=1).fit(X).components_.shape == (3, 3)
    with pytest.raises(ValueError, match="refit"):
        fitted.adapt_target(X_new)


@unfinished
def test_reconstruction_of_frames():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows(), columns=list("abc"))
    fitted = quick().set_output(transform="pandas").fit(X)
    assert fitted.reconstruct(X).shape == (30, 3)
    assert_allclose(fitted.inverse_transform(fitted.transform(X)), fitted.reconstruct(X))


@unfinished
def test_single_precision_is_kept():
    X = rows(dtype=np.float32)
    fitted = quick().fit(X)
    assert fitted.components_.dtype == fitted.data_center_.dtype == np.float32
    assert fitted.reconstruct(X).dtype == np.float32
    assert_allclose(fitted.transform(X), quick().fit(X).transform(X.astype(float)), rtol=1e-4)


@unfinished
@pytest.mark.parametrize("X", [rows(n=1), rows(n=1, m=1), rows(m=1), np.full((9, 2), 4.0)],
                         ids=["one row", "one number", "one feature", "constant"])  # fmt: skip
@pytest.mark.parametrize("noise", ["gaussian", "masking"])
def test_smallest_inputs(X, noise):
    fitted = quick(noise=noise).fit(X)
    assert np.isfinite(fitted.transform(X)).all()
    assert np.isfinite(fitted.reconstruct(X)).all()
    assert np.isfinite(fitted.loss_curve_).all()


def test_one_row_cannot_be_held_out():
    with pytest.raises(ValueError, match="at least two"):
        quick(early_stopping=True).fit(rows(n=1))
    quick(early_stopping=True, validation_fraction=0.9, max_epochs=0).fit(rows(n=2))


@pytest.mark.parametrize("batch_size", [1, 7, 30, 1000])
def test_any_batch_size(batch_size):
    assert np.isfinite(quick(batch_size=batch_size).fit(rows()).loss_curve_).all()


def test_divergence_names_the_learning_rate():
    diverging = quick(solver="sgd", learning_rate=1e4, decoder="linear", max_epochs=200)
    with pytest.raises(ValueError, match=r"Lower learning_rate=10000\.0"):
        diverging.fit(rows())
    assert not hasattr(diverging, "n_features_in_")


@unfinished
def test_what_happens_to_a_network_after_its_stop_does_not_matter():
    stops = quick(
        solver="sgd", learning_rate=30.0, decoder="linear", early_stopping=True, patience=2,
        max_epochs=200,
    )  # fmt: skip
    goes_on = clone(stops).set_params(learning_rate=0.001)
    alone = clone(stops).fit(rows())
    fit_stacked([stops, goes_on], [rows(), rows()])
    assert stops.n_iter_ == alone.n_iter_ < 10 < goes_on.n_iter_
    assert_allclose(stops.components_, alone.components_, rtol=1e-12)


def test_sparse_rows_and_missing_values_are_refused():
    with pytest.raises(TypeError, match="dense data is required"):
        quick().fit(sparse.csr_array(np.eye(3)))
    with pytest.raises(ValueError, match="NaN"):
        quick().fit([[1.0, np.nan]])


def test_codes_of_wrong_shape():
    with pytest.raises(ValueError, match="Z has 3 columns, expected 2 codes"):
        quick().fit(rows()).inverse_transform(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("parameter", "value", "match"),
    [
        ("n_components", 0, "n_components"),
        ("n_components", True, "n_components"),
        ("activation", "linear", "'sigmoid', 'tanh'"),
        ("decoder", "relu", "None, 'sigmoid', 'tanh', 'linear'"),
        ("tied", "yes", "tied"),
        ("noise", None, "'gaussian', 'masking'"),
        ("noise_level", -0.1, "noise_level"),
        ("noise_level", np.nan, "noise_level"),
        ("noise_level", np.inf, "noise_level"),
        ("solver", "lbfgs", "'adam', 'sgd'"),
        ("learning_rate", 0, "learning_rate"),
        ("learning_rate", np.inf, "learning_rate"),
        ("learning_rate", True, "learning_rate"),
        ("momentum", 1.0, "momentum"),
        ("batch_size", 0, "batch_size"),
        ("batch_size", "auto", "batch_size"),
        ("max_epochs", -1, "max_epochs"),
        ("max_epochs", 1.5, "max_epochs"),
        ("early_stopping", 1, "early_stopping"),
        ("validation_fraction", 1.0, "validation_fraction"),
        ("patience", 0, "patience"),
        ("scaling", "standard", "'minmax', None"),
        ("init", np.ones((2, 3)), "'glorot', 'normal'"),
        ("random_state", "seed", "seed"),
        ("verbose", -1, "verbose"),
    ],
)
def test_parameters(parameter, value, match):
    estimator = quick().set_params(**{parameter: value})
    with pytest.raises((ValueError, TypeError), match=re.escape(match)):
        estimator.fit(rows())
    assert vars(estimator).keys() == vars(quick()).keys()


def test_all_entries_cannot_be_masked():
    with pytest.raises(ValueError, match="noise_level"):
        quick(noise="masking", noise_level=1.0).fit(rows())


@unfinished
def test_progress(capsys, monkeypatch):
    monkeypatch.setattr(training, "BLOCK_ENTRIES", 1)
    quick().fit(rows())
    assert capsys.readouterr().out == ""
    quick(verbose=1).fit(rows())
    (line,) = capsys.readouterr().out.splitlines()
    pattern = r"\[DenoisingAutoencoder\] epoch {} of {}  loss 0\.\d+{}  {}"
    ended = r"ended after \d+\.\d s"
    assert re.fullmatch(pattern.format(7, 7, "", ended), line)
    monkeypatch.setattr(training, "LINE_SECONDS", 0)
    quick(verbose=1).fit(rows())
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(pattern.format(1, 7, "", r"about \d+ s left"), lines[0])
    assert len(lines) == 7
    fit_stacked([quick(verbose=1), quick()], [rows(), rows()])
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(pattern.format(7, 7, r" \(mean of 2\)", ended), lines[-1])
    stops = quick(verbose=1, early_stopping=True, patience=1, max_epochs=999, learning_rate=0.5)
    stops.fit(rows())
    last = capsys.readouterr().out.splitlines()[-1]
    assert stops.n_iter_ < 999
    assert re.fullmatch(pattern.format(stops.n_iter_, 999, "", ended), last)


def test_an_interrupted_fit_leaves_the_earlier_one(monkeypatch):
    X = rows()
    unfitted, fitted = quick(), quick().fit(X)
    before = fitted.transform(X)
    calls, step = [], training.Networks.gradient

    def interrupt(*args):
        calls.append(args)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(training.Networks, "gradient", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit_stacked([unfitted, fitted], [X[:, :2], X[:, :2]])
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(unfitted)
    assert vars(unfitted).keys() == vars(quick()).keys()
    assert_array_equal(fitted.transform(X), before)


# --- Networks, solvers ---

every_kind = pytest.mark.parametrize(
    ("activation", "decoder", "tied"),
    list(itertools.product(["sigmoid", "tanh"], ["sigmoid", "tanh", "linear"], [False, True])),
)
RATES = np.array([0.001, 0.1, 1.0])
SHAPES = [(3, 4, 2, 7), (1, 1, 1, 1), (2, 1, 3, 5), (2, 5, 1, 2)]  # K, m, L, n


def stacked_problem(shape=SHAPES[0], *, tied, dtype=np.float64):
    n_networks, m, L, n = shape
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((n_networks, (1 if tied else 2) * m * L + m + L))
    noisy, clean = rng.standard_normal((2, n_networks, m, n))
    return theta.astype(dtype), noisy.astype(dtype), clean.astype(dtype)


def denoising_loss(theta, noisy, clean, *, n_components, activation, decoder, tied):
    networks = training.Networks(theta, clean.shape[1], n_components, activation, decoder)
    assert networks.tied == tied
    gradient, residuals = networks.gradient(training.append_ones(noisy), clean)
    return np.square(residuals).mean(axis=(1, 2)), gradient


@every_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_loss_and_gradient_equal_those_of_the_naive_twin(activation, decoder, tied, shape):
    theta, noisy, clean = stacked_problem(shape, tied=tied)
    losses, gradient = denoising_loss(
        theta, noisy, clean, n_components=shape[2], activation=activation, decoder=decoder,
        tied=tied,
    )  # fmt: skip
    for k in range(len(theta)):

        def twin(row, k=k):
            return autoencoder_twin.denoising_loss(
                row[0], noisy[k].T, clean[k].T, shape[2], activation, decoder, tied
            )

        assert losses[k] == pytest.approx(twin(theta[[k]]), rel=1e-12)
        expected = naive.complex_step_gradient(twin, theta[[k]])[0]
        assert_allclose(gradient[k], expected, rtol=1e-9, atol=1e-12)


@every_kind
def test_gradient_equals_the_central_difference(activation, decoder, tied):
    theta, noisy, clean = stacked_problem(tied=tied)
    kind = {"n_components": 2, "activation": activation, "decoder": decoder, "tied": tied}
    _, gradient = denoising_loss(theta, noisy, clean, **kind)
    direction = np.cos(np.arange(1.0, theta.size + 1)).reshape(theta.shape)
    after, _ = denoising_loss(theta + 1e-5 * direction, noisy, clean, **kind)
    before, _ = denoising_loss(theta - 1e-5 * direction, noisy, clean, **kind)
    assert_allclose((gradient * direction).sum(axis=1), (after - before) / 2e-5, rtol=1e-6)


@every_kind
def test_a_network_does_not_depend_on_those_beside_it(activation, decoder, tied):
    theta, noisy, clean = stacked_problem((5, 3, 2, 50), tied=tied)
    kind = {"n_components": 2, "activation": activation, "decoder": decoder, "tied": tied}
    losses, gradient = denoising_loss(theta, noisy, clean, **kind)
    for k in range(len(theta)):
        one = slice(k, k + 1)
        loss, alone = denoising_loss(theta[one], noisy[one], clean[one], **kind)
        assert_allclose(loss[0], losses[k], rtol=1e-14)
        assert_allclose(alone[0], gradient[k], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("tied", [False, True])
def test_networks_keep_single_precision(tied):
    kind = {"n_components": 2, "activation": "sigmoid", "decoder": "sigmoid", "tied": tied}
    losses, gradient = denoising_loss(*stacked_problem(tied=tied, dtype=np.float32), **kind)
    assert losses.dtype == gradient.dtype == np.float32
    exact = denoising_loss(*stacked_problem(tied=tied), **kind)
    assert_allclose(losses, exact[0], rtol=1e-5)
    assert_allclose(gradient, exact[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_networks_are_views_of_one_array(tied):
    """So that a solver that changes theta changes the weights."""
    theta, noisy, _ = stacked_problem(tied=tied)
    networks = training.Networks(theta, 4, 2, "tanh", "linear")
    theta[:] = np.random.default_rng(1).standard_normal(theta.shape)
    _, output = networks.reconstruct(training.append_ones(noisy))
    W, b, V, c = map(np.array, autoencoder_twin.unpack(theta[1], 4, 2, tied))
    expected = V @ np.tanh(W @ noisy[1] + b[:, None]) + c[:, None]
    assert_allclose(output[1], expected, rtol=1e-12)


@pytest.mark.parametrize("n", [1, training.FEW_ENTRIES, training.FEW_ENTRIES + 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_ways_to_the_sigmoid_are_accurate(n, dtype):
    H = np.linspace(-1000, 100, 3 * n, dtype=dtype).reshape(3, n)
    # Far below zero it is the exponential, to the last digit.
    expected = [[1 / (1 + math.exp(-h)) if h > -50 else math.exp(h) for h in row]
                for row in H.tolist()]  # fmt: skip
    assert_allclose(
        training._squash(H.copy(), "sigmoid"),
        expected,
        rtol=10 * np.finfo(dtype).eps,
        atol=2 * np.finfo(dtype).tiny,
    )


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_saturated_units_do_not_overflow(name):
    theta, noisy, clean = stacked_problem(tied=False)
    losses, gradient = denoising_loss(
        1e5 * theta, noisy, clean, n_components=2, activation=name, decoder=name, tied=False
    )
    assert np.isfinite(losses).all()
    assert np.isfinite(gradient).all()


def gradients(shape, n_steps=30):
    """Of very different sizes, some zero."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-8, 4, (n_steps, *shape))
    return rng.standard_normal((n_steps, *shape)) * sizes * (rng.random((n_steps, *shape)) > 0.2)


def naive_adam(theta, steps, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = v = 0.0
    for t, g in enumerate(steps, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        theta -= rate * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + epsilon)
    return theta


def naive_sgd(theta, steps, rate, momentum):
    u = 0.0
    for g in steps:
        u = momentum * u + g
        theta -= rate * u
    return theta


def run(make, dtype=np.float64):
    start = np.random.default_rng(1).standard_normal((3, 4)).astype(dtype)
    steps = gradients(start.shape).astype(dtype)
    theta = start.copy()
    solver = make(theta)
    for gradient in steps:
        before = gradient.copy()
        solver.step(theta, gradient)
        assert_array_equal(gradient, before)
    return start, steps, theta


def test_adam_equals_the_loop():
    start, steps, theta = run(lambda theta: Adam(theta, RATES))
    for k, p in np.ndindex(start.shape):
        expected = naive_adam(start[k, p], steps[:, k, p], RATES[k])
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_equals_the_loop(momentum):
    start, steps, theta = run(lambda theta: SGD(theta, RATES, momentum=momentum))
    for k, p in np.ndindex(start.shape):
        expected = naive_sgd(start[k, p], steps[:, k, p], RATES[k], momentum)
        assert theta[k, p] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("make", [Adam, SGD])
def test_solvers_keep_single_precision(make):
    _, _, theta = run(lambda theta: make(theta, RATES), np.float32)
    _, _, exact = run(lambda theta: make(theta, RATES))
    assert theta.dtype == np.float32
    assert_allclose(theta, exact, rtol=1e-3)


@pytest.mark.parametrize("make", [Adam, lambda theta, rate: SGD(theta, rate, momentum=0.5)])
def test_finds_the_minimum_of_a_quadratic(make):
    theta = np.ones((2, 3))
    target = np.array([[1.0, -2.0, 3.0], [0.0, 0.5, -0.5]])
    solver = make(theta, np.array([0.05, 0.02]))
    for _ in range(2000):
        solver.step(theta, theta - target)
    assert_allclose(theta, target, atol=1e-6)


# --- Compiled steps ---

needs_compiled = pytest.mark.skipif(COMPILED is None, reason="no compiled kernels here")


def both_ways(make, X, monkeypatch):
    """The same auto-encoder by NumPy and by compiled steps."""
    fitted = []
    for library in (None, COMPILED):
        monkeypatch.setattr(compiled, "library", lambda library=library: library)
        fitted.append(make().fit(X))
    return fitted


@needs_compiled
@unfinished
@every_kind
@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize(("n", "m", "L"), [(30, 3, 2), (1, 1, 1), (23, 2, 5)])
def test_compiled_steps_are_those_of_numpy(activation, decoder, tied, solver, n, m, L, monkeypatch):
    def make():
        return quick(
            L, activation=activation, decoder=decoder, tied=tied, solver=solver,
            learning_rate=0.02, init="normal",
        )  # fmt: skip

    theirs, ours = both_ways(make, rows(n, m), monkeypatch)
    for name in LEARNED[:5]:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)


@needs_compiled
@unfinished
@pytest.mark.parametrize("tied", [False, True])
def test_compiled_steps_in_single_precision(tied, monkeypatch):
    X = rows(dtype=np.float32)
    theirs, ours = both_ways(lambda: quick(tied=tied), X, monkeypatch)
    assert ours.components_.dtype == np.float32
    for name in LEARNED[:5]:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-4, atol=1e-5)


@needs_compiled
@unfinished
def test_compiled_steps_with_early_stopping_and_in_parts(monkeypatch):
    def make():
        return quick(early_stopping=True, patience=2, max_epochs=60, learning_rate=0.05)

    theirs, ours = both_ways(make, rows(), monkeypatch)
    monkeypatch.setattr(training, "BLOCK_ENTRIES", 30)  # parts of epochs
    in_parts = make().fit(rows())
    assert theirs.n_iter_ == ours.n_iter_ == in_parts.n_iter_ < 60
    for name in LEARNED:
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)
        assert_allclose(getattr(in_parts, name), getattr(ours, name), rtol=1e-12, atol=1e-12)


@needs_compiled
@unfinished
def test_compiled_steps_take_saturated_units_and_find_divergence(monkeypatch):
    X = 1e3 * rows()
    for activation in ("sigmoid", "tanh"):

        def make(activation=activation):
            return quick(activation=activation, scaling=None, init="normal")

        theirs, ours = both_ways(make, X, monkeypatch)
        assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=1e-12)
    monkeypatch.setattr(compiled, "library", lambda: COMPILED)
    diverging = quick(solver="sgd", learning_rate=1e4, decoder="linear", max_epochs=200)
    with pytest.raises(ValueError, match=r"Lower learning_rate=10000\.0"):
        diverging.fit(rows())
