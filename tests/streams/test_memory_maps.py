"""Filters fitted to memory maps: the same as in memory, without copies, for any layout."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.streams import is_streamed
from tests.shifted import make_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Four iterations: from there on the solver makes much of the last bits, which the order of the
# rows alone changes as well.
FILTERS = [
    SparseFiltering(4, max_iter=4, random_state=0),
    SparseFiltering(4, max_iter=4, pooling="domain", min_domain_size=5, random_state=0),
    SparseFiltering(4, max_iter=4, normalization="joint", norm_epsilon=1e-3, random_state=0),
    PeriodicSparseFiltering(6, max_iter=4, n_restarts=3, random_state=0),
    PeriodicSparseFiltering(6, max_iter=4, n_restarts=2, loss="blockwise", random_state=0),
    PeriodicSparseFiltering(6, max_iter=4, n_restarts=1, activation="abs", random_state=0),
]
every_filter = pytest.mark.parametrize("filter_", FILTERS, ids=repr)


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """A function that maps an array from a file; maps of any size are streamed."""
    monkeypatch.setattr("covshift.streams.rows.SMALL_BYTES", 0)

    def save(X, name="rows.npy"):
        np.save(tmp_path / name, X)
        return np.load(tmp_path / name, mmap_mode="r")

    return save


def assert_same_fit(ours, theirs, rtol):
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=rtol)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e3 * rtol, atol=rtol)
    np.testing.assert_allclose(ours.feature_norms_, theirs.feature_norms_, rtol=1e3 * rtol)
    np.testing.assert_array_equal(ours.norm_counts_, theirs.norm_counts_)
    assert ours.norm_units_ == theirs.norm_units_
    assert ours.n_features_in_ == theirs.n_features_in_


@every_filter
def test_a_map_is_fitted_as_an_array_is(filter_, mapped):
    X, y, sample_domain, X_new = make_problem(n=60)
    theirs = clone(filter_).fit(X, y, sample_domain=sample_domain)
    ours = clone(filter_).fit(mapped(X), y, sample_domain=sample_domain)
    assert_same_fit(ours, theirs, rtol=1e-10)
    Z = ours.transform(mapped(X, "again.npy"), sample_domain=sample_domain)
    np.testing.assert_allclose(Z, theirs.transform(X, sample_domain=sample_domain), rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X_new), theirs.transform(X_new), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool])
def test_other_types(dtype, mapped):
    X, _, sample_domain, _ = make_problem(n=60)
    X = np.abs(10 * X).astype(dtype) if dtype is not bool else X > 0
    filter_ = SparseFiltering(4, max_iter=2, random_state=0)
    theirs = clone(filter_).fit(X, sample_domain=sample_domain)
    ours = clone(filter_).fit(mapped(X), sample_domain=sample_domain)
    assert ours.components_.dtype == theirs.components_.dtype
    assert_same_fit(ours, theirs, rtol=1e-6 if dtype == np.float32 else 1e-10)
    np.testing.assert_allclose(ours.transform(mapped(X)), theirs.transform(X), rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_final_loss_is_that_in_memory(dtype, mapped):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 12)).astype(dtype)
    y, sample_domain = X[:, 0] > 0, np.where(np.arange(len(X)) % 4 == 0, -1, 0)
    filter_ = PeriodicSparseFiltering(10, max_iter=10, n_restarts=1, init_scale=0.3, random_state=0)
    theirs = clone(filter_).fit(X, y, sample_domain=sample_domain)
    ours = clone(filter_).fit(mapped(X), y, sample_domain=sample_domain)
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-6)


def test_the_number_of_threads_changes_no_bit(mapped, monkeypatch):
    monkeypatch.setattr("covshift.adapters._filter_minimization.MIN_THREADED_SIZE", 0)
    X, y, sample_domain, _ = make_problem(n=60)
    fits = [
        PeriodicSparseFiltering(6, max_iter=4, n_restarts=1, random_state=0, n_jobs=n_jobs).fit(
            mapped(X), y, sample_domain=sample_domain
        )
        for n_jobs in (1, 2, 3)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.components_, fits[0].components_)


def test_large_arrays_in_memory_are_not_copied_either(monkeypatch):
    """Activations that would not be kept: the same sums, of an array."""
    X, y, sample_domain, _ = make_problem(n=60)
    filter_ = PeriodicSparseFiltering(6, max_iter=4, n_restarts=2, random_state=0)
    theirs = clone(filter_).fit(X, y, sample_domain=sample_domain)
    monkeypatch.setattr("covshift.kernels.row_blocks.KEPT_BYTES", 0)
    ours = clone(filter_).fit(X, y, sample_domain=sample_domain)
    assert_same_fit(ours, theirs, rtol=1e-10)


def test_small_maps_are_read_like_arrays(tmp_path):
    """joblib maps arrays for its workers: that must not change a result."""
    np.save(tmp_path / "rows.npy", np.ones((10, 2)))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert not is_streamed(X)
    large = np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.float32, (2**20, 65))
    assert is_streamed(large)  # a file with holes: it takes no room
    assert is_streamed(np.asarray(large))
    assert is_streamed(large[5:])
    assert not is_streamed(np.ones((10, 2)))


def test_new_targets_from_a_map(mapped):
    X, _, sample_domain, X_new = make_problem(n=60)
    filter_ = SparseFiltering(4, max_iter=5, random_state=0).fit(X, sample_domain=sample_domain)
    theirs = clone(filter_).fit(X, sample_domain=sample_domain)
    rows = X[sample_domain == -2]
    filter_.adapt_target(mapped(rows), domain="site")
    theirs.adapt_target(rows, domain="site")
    Z = filter_.transform(X_new, sample_domain="site")
    np.testing.assert_allclose(Z, theirs.transform(X_new, sample_domain="site"), rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X: X[:, 0], "2-dimensional"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X[:, :0], "0 feature"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 200, np.nan, X), "NaN"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 200, -np.inf, X), "infinity"),
        (lambda X: 1e150 * X, "overflow float64"),
        (lambda X: X.astype("S4"), "numbers"),
    ],
)
def test_bad_rows(change, match, mapped):
    X, _, sample_domain, _ = make_problem(n=60)
    X = change(X)
    mapped_X = mapped(X) if X.size else X.view(np.memmap)
    with pytest.raises(ValueError, match=match):
        SparseFiltering(random_state=0).fit(mapped_X, sample_domain=sample_domain[: len(X)])


def test_what_needs_all_rows_is_refused(mapped):
    X, _, sample_domain, _ = make_problem(n=60)
    with pytest.raises(ValueError, match="early_stopping"):
        SparseFiltering(early_stopping="ks").fit(mapped(X), sample_domain=sample_domain)
    batch = SparseFiltering(normalization="batch", max_iter=2, random_state=0)
    batch.fit(mapped(X), sample_domain=sample_domain)
    with pytest.raises(ValueError, match="normalization='batch'"):
        batch.transform(mapped(X))
    filter_ = SparseFiltering(max_iter=2, random_state=0).fit(X, sample_domain=sample_domain)
    with pytest.raises(ValueError, match="expecting 3"):
        filter_.transform(mapped(X[:, :2]))
    with pytest.raises(ValueError, match="one integer per row"):
        filter_.transform(mapped(X), sample_domain=sample_domain[1:])


def test_memory_stays_far_below_the_size_of_the_table(tmp_path):
    """In a process of its own: 288 MB of rows are fitted in less than 100 MB."""
    code = f"""
import threading, time
import numpy as np
from covshift import SparseFiltering
import warnings
warnings.simplefilter("ignore")

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

path = {str(tmp_path / "rows.npy")!r}
X = np.lib.format.open_memmap(path, "w+", np.float32, (1_000_000, 72))
rng = np.random.default_rng(0)
for start in range(0, len(X), 50_000):
    X[start : start + 50_000] = rng.standard_normal((50_000, 72), dtype=np.float32)
del X
X = np.load(path, mmap_mode="r")
domain = np.where(np.arange(len(X)) % 3 == 0, -1, 0)
before, peaks = anonymous(), []
def watch():
    while True:
        peaks.append(anonymous())
        time.sleep(0.01)
threading.Thread(target=watch, daemon=True).start()
SparseFiltering(4, max_iter=1, random_state=0).fit(X, sample_domain=domain)
print((max(peaks) - before) / 1024)
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(shown.stdout) < 100
