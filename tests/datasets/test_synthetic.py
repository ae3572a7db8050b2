import math

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from covshift.datasets import (
    ShiftedData,
    make_diagonal_shift,
    make_periodic_shift,
    make_radial_shift,
    make_smooth_shift,
)

MAKERS = [make_radial_shift, make_periodic_shift, make_smooth_shift, make_diagonal_shift]
VARIANTS = ["reconstructed", "printed"]
SPREADS = ["std", "variance"]

LABELS = {
    make_radial_shift: lambda x1, x2, variant: abs(x1) > abs(x2),
    make_periodic_shift: lambda x1, x2, variant: (
        math.sin(x1 if variant == "reconstructed" else abs(x1)) > 0
    ),
    make_smooth_shift: lambda x1, x2, variant: 0.5 * (1 + math.tanh(x1 + min(0, x2))) > 0.5,
    make_diagonal_shift: lambda x1, x2, variant: abs(x2) > 1.5,
}

every_maker = pytest.mark.parametrize("make", MAKERS)
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_spread = pytest.mark.parametrize("spread", SPREADS)


def assert_same(one, other):
    for array, expected in zip(one, other, strict=True):
        np.testing.assert_array_equal(array, expected)


@every_maker
def test_default_sizes_and_types(make):
    data = make(random_state=0)
    assert isinstance(data, ShiftedData)
    assert data._fields == ("X_source", "y_source", "X_target", "X_test", "y_test")
    assert [len(array) for array in data] == [500, 500, 250, 500, 500]
    assert [array.dtype.kind for array in data] == ["f", "i", "f", "f", "i"]


@every_maker
@every_variant
@pytest.mark.parametrize(
    "sizes", [(1, 1, 0), (2, 1, 1), (7, 5, 3), (np.int64(4), 250, np.int32(9))]
)
def test_any_size(make, variant, sizes):
    n_source, n_target, n_test = sizes
    data = make(n_source, n_target, n_test, variant=variant, random_state=0)
    shapes = [(n_source, 2), (n_source,), (n_target, 2), (n_test, 2), (n_test,)]
    assert [array.shape for array in data] == shapes
    assert all(np.isfinite(array).all() for array in data)
    assert data.y_test.dtype == data.y_source.dtype == np.int64


@every_maker
@every_variant
@every_spread
def test_labels_follow_the_formula(make, variant, spread):
    data = make(300, 10, 300, variant=variant, spread=spread, random_state=1)
    for X, y in [(data.X_source, data.y_source), (data.X_test, data.y_test)]:
        assert y.tolist() == [int(LABELS[make](x1, x2, variant)) for x1, x2 in X]
        assert set(y.tolist()) == {0, 1}


@every_maker
def test_a_seed_decides_every_draw(make):
    first = make(random_state=3)
    assert_same(make(random_state=3), first)
    assert_same(make(random_state=np.random.RandomState(3)), first)
    assert not np.array_equal(make(random_state=4).X_source, first.X_source)
    state = np.random.RandomState(3)
    make(random_state=state)
    assert not np.array_equal(make(random_state=state).X_source, first.X_source)
    assert not np.array_equal(make().X_source, make().X_source)


@every_maker
def test_samples_share_no_row(make):
    data = make(random_state=0)
    rows = np.concatenate([data.X_source, data.X_target, data.X_test])
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize("make", [make_radial_shift, make_smooth_shift])
@every_spread
def test_the_two_variants_of_radial_and_of_smooth_are_the_same(make, spread):
    one, other = (make(variant=variant, spread=spread, random_state=5) for variant in VARIANTS)
    assert_same(one, other)


def test_the_variants_of_periodic_share_every_row_and_differ_left_of_zero():
    one, other = (make_periodic_shift(100_000, 9, 100_000, variant=variant, random_state=5)
                  for variant in VARIANTS)  # fmt: skip
    for name in ("X_source", "X_target", "X_test"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    # Opposite labels wherever x1 < 0: .08 % of the source, all but .08 % of the target.
    np.testing.assert_array_equal(one.y_source != other.y_source, one.X_source[:, 0] < 0)
    np.testing.assert_array_equal(one.y_test != other.y_test, one.X_test[:, 0] < 0)
    assert np.mean(one.y_source != other.y_source) == pytest.approx(0.0008, abs=0.0003)
    assert np.mean(one.y_test != other.y_test) == pytest.approx(0.9992, abs=0.0003)


def test_the_variants_of_diagonal_share_every_draw():
    one, other = (make_diagonal_shift(variant=variant, random_state=5) for variant in VARIANTS)
    np.testing.assert_array_equal(one.X_source, other.X_source)
    np.testing.assert_array_equal(one.y_source, other.y_source)
    for name in ("X_target", "X_test"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(a[:, 0], b[:, 0])
        np.testing.assert_allclose(a[:, 1] + a[:, 0], b[:, 1] - b[:, 0], atol=1e-12)


def assert_moments(X, mean, deviation):
    """Mean and standard deviation of each column, within five standard errors."""
    mean, deviation = np.array(mean), np.array(deviation)
    assert (np.abs(X.mean(axis=0) - mean) < 5 * deviation / np.sqrt(len(X))).all()
    assert (np.abs(X.std(axis=0) - deviation) < 5 * deviation / np.sqrt(2 * len(X))).all()


@every_spread
@pytest.mark.parametrize(
    ("make", "center", "printed"),
    [(make_radial_shift, 0.5, (0.2, 0.5)), (make_periodic_shift, 2 * np.pi, (2.0, 0.5))],
)
def test_moments_of_the_normal_samples(make, center, printed, spread):
    data = make(20_000, 20_000, 20_000, spread=spread, random_state=0)
    deviation = printed if spread == "std" else np.sqrt(printed)
    for X, side in [(data.X_source, 1), (data.X_target, -1), (data.X_test, -1)]:
        assert_moments(X, (side * center, 0.0), deviation)


@every_spread
def test_moments_of_smooth(spread):
    data = make_smooth_shift(20_000, 20_000, 20_000, spread=spread, random_state=0)
    # Two halves at a distance d of 4 and 3: the variance of x1 is 1 + d^2 / 4.
    second = 2.0 if spread == "std" else np.sqrt(2.0)
    assert_moments(data.X_source, (0.0, 3.0), (np.sqrt(1 + 4.0), second))
    for X in (data.X_target, data.X_test):
        assert_moments(X, (1.5, -1.0), (np.sqrt(1 + 2.25), 1.0))
    # Halves are mixed: neither half of the rows is one of the two components.
    assert np.abs(data.X_source[:10_000, 0].mean()) < 0.2


@every_spread
@every_variant
def test_moments_of_diagonal(variant, spread):
    data = make_diagonal_shift(
        20_000, 20_000, 20_000, variant=variant, spread=spread, random_state=0
    )
    noise = 0.2 if spread == "std" else np.sqrt(0.2)
    turned = -1 if variant == "reconstructed" else 1
    for X, side, slope in [(data.X_source, 1, 1), (data.X_target, -1, turned)]:
        assert 0 <= (side * X[:, 0]).min() < 0.01
        assert 2.99 < (side * X[:, 0]).max() <= 3
        residual = X[:, 1] - slope * X[:, 0]
        uniform = (side * 1.5, 3 / np.sqrt(12))
        assert_moments(np.column_stack([X[:, 0], residual]), *zip(uniform, (0, noise), strict=True))


def baseline(make, n_draws, **options):
    """Mean accuracy of a linear SVM trained on the source, on the test sample."""
    scores = []
    for seed in range(n_draws):
        data = make(random_state=seed, **options)
        model = LinearSVC(random_state=0).fit(data.X_source, data.y_source)
        scores.append(model.score(data.X_test, data.y_test))
    return np.mean(scores)


def test_the_printed_entries_of_radial_behave_as_standard_deviations():
    assert 0.30 < baseline(make_radial_shift, 30, spread="std") < 0.40  # paper: .342
    assert 0.44 < baseline(make_radial_shift, 30, spread="variance") < 0.55


def test_only_the_reconstructed_diagonal_has_the_baseline_of_the_paper():
    assert 0.80 < baseline(make_diagonal_shift, 20, variant="reconstructed") < 0.92  # .866
    assert 0.45 < baseline(make_diagonal_shift, 20, variant="printed") < 0.55


@every_maker
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"variant": "paper"}, ValueError, "variant must be.*'reconstructed', 'printed'.*'paper'"),
        ({"variant": None}, ValueError, "variant must be.*'reconstructed', 'printed'.*None"),
        ({"spread": "sd"}, ValueError, "spread must be.*'std', 'variance'.*'sd'"),
        ({"n_source": 0}, ValueError, "n_source == 0, must be >= 1"),
        ({"n_target": 0}, ValueError, "n_target == 0, must be >= 1"),
        ({"n_test": -1}, ValueError, "n_test == -1, must be >= 0"),
        ({"n_source": 10.0}, TypeError, "n_source must be an instance of"),
        ({"n_target": True}, TypeError, "n_target must be a whole number, got True"),
        ({"random_state": "seed"}, ValueError, "'seed' cannot be used to seed"),
    ],
)
def test_bad_arguments(make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options)
