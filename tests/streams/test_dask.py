"""Filters fitted to Dask arrays, without a cluster: Dask's threads pass over the blocks."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.kernels.filter_losses import filter_losses
from covshift.kernels.filter_streams import streamed_losses
from covshift.streams.rows import open_rows
from tests.shifted import make_problem

da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FILTERS = [
    SparseFiltering(4, max_iter=4, random_state=0),
    PeriodicSparseFiltering(6, max_iter=4, n_restarts=3, random_state=0),
    PeriodicSparseFiltering(
        6, max_iter=4, n_restarts=1, loss="blockwise", pooling="domain", random_state=0
    ),
]
CHUNKS = {
    "even": (60, 60, 60, 60),
    "one block": (240,),
    "blocks of one row": (1,) * 20 + (220,),
    "empty blocks": (0, 100, 0, 140, 0),
}


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("filter_", FILTERS, ids=repr)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_a_dask_array_is_fitted_as_an_array_is(filter_, chunks):
    X, y, sample_domain, _ = make_problem(n=60)
    theirs = clone(filter_).fit(X, y, sample_domain=sample_domain)
    blocks = da.from_array(X, chunks=(chunks, -1))
    ours = clone(filter_).fit(blocks, y, sample_domain=sample_domain)
    same(ours.loss_, theirs.loss_)
    same(ours.components_, theirs.components_)
    same(ours.feature_norms_, theirs.feature_norms_)
    Z = ours.transform(blocks, sample_domain=sample_domain)
    assert isinstance(Z, da.Array)
    assert Z.chunks == (tuple(filter(None, chunks)), (ours.n_components,))
    assert Z.dtype == X.dtype
    same(Z.compute(), theirs.transform(X, sample_domain=sample_domain))
    same(ours.transform(blocks).compute(), theirs.transform(X))


def test_labels_and_domains_may_be_dask_arrays_too():
    X, y, sample_domain, _ = make_problem(n=60)
    psf = PeriodicSparseFiltering(6, max_iter=4, n_restarts=1, random_state=0)
    theirs = clone(psf).fit(X, y, sample_domain=sample_domain)
    arrays = [da.from_array(array, chunks=70) for array in (X, y, sample_domain)]
    ours = clone(psf).fit(arrays[0], arrays[1], sample_domain=arrays[2])
    same(ours.components_, theirs.components_)
    Z = ours.transform(arrays[0], sample_domain=arrays[2])
    same(Z.compute(), theirs.transform(X, sample_domain=sample_domain))


@pytest.mark.parametrize("activation", ["abs", "sin"])
def test_loss_and_gradient_at_the_same_filters(activation):
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((5000, 7)), rng.standard_normal((2, 9, 7))
    codes, groups = rng.integers(-1, 2, 5000), rng.random((2, 2, 9)) < 0.5
    rewards, settings = np.ones((2, 2)), {
        "loss": "joint", "activation": activation, "epsilon": 1e-8, "norm_epsilon": 0.0,
        "alpha": np.array([0.0, 0.1]),
    }  # fmt: skip
    expected = filter_losses(X, codes, groups, rewards, **settings)(W, np.arange(2))
    stream = open_rows(SparseFiltering(), da.from_array(X, chunks=(999, -1)), reset=True)
    split = stream.split(np.where(codes < 0, 2, codes))

    def sums(function, *arguments):
        return stream.sums(function, split, *arguments)

    losses = streamed_losses(
        sums, stream.shape, False, groups, rewards, dtype=stream.dtype, **settings
    )
    for ours, theirs in zip(losses(W, np.arange(2)), expected, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-10 * np.abs(theirs).max()


def test_sparse_blocks():
    X, y, sample_domain, _ = make_problem(n=60)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    blocks = da.from_array(X, chunks=(50, -1)).map_blocks(sparse.csr_array)
    psf = PeriodicSparseFiltering(6, max_iter=4, n_restarts=1, random_state=0)
    ours = clone(psf).fit(blocks, y, sample_domain=sample_domain)
    theirs = clone(psf).fit(X, y, sample_domain=sample_domain)
    same(ours.components_, theirs.components_)
    same(ours.transform(blocks).compute(), theirs.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16])
def test_other_types(dtype):
    X, _, sample_domain, _ = make_problem(n=60)
    X = (10 * X).astype(dtype)
    filter_ = SparseFiltering(4, max_iter=1, random_state=0)
    theirs = clone(filter_).fit(X, sample_domain=sample_domain)
    ours = clone(filter_).fit(da.from_array(X, chunks=(50, -1)), sample_domain=sample_domain)
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-6)
    Z = ours.transform(da.from_array(X, chunks=(50, -1)))
    assert Z.dtype == Z.compute().dtype == theirs.transform(X).dtype


def test_nothing_is_computed_before_it_is_asked_for():
    X, _, sample_domain, _ = make_problem(n=60)
    filter_ = SparseFiltering(4, max_iter=2, random_state=0).fit(X, sample_domain=sample_domain)

    def refuse(block):
        raise AssertionError("computed")

    lazy = da.from_array(X, chunks=(50, -1)).map_blocks(refuse, dtype=X.dtype, meta=X[:0])
    Z = filter_.transform(lazy)
    assert Z.shape == (240, 4)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X: X[X[:, 0] > 0], "compute_chunk_sizes"),
        (lambda X: X.rechunk((60, 2)), r"rechunk\(\{1: -1\}\)"),
        (lambda X: X[:, 0], "2-dimensional"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: da.where(da.arange(240)[:, None] == 200, np.nan, X), "NaN"),
        (lambda X: da.where(da.arange(240)[:, None] == 200, np.inf, X), "infinity"),
        (lambda X: 1e150 * X, "overflow float64"),
        (lambda X: X.astype("S4"), "numbers"),
    ],
)
def test_bad_rows(change, match):
    X, _, sample_domain, _ = make_problem(n=60)
    X = change(da.from_array(X, chunks=(60, -1)))
    filter_ = SparseFiltering(random_state=0)
    with pytest.raises(ValueError, match=match):
        filter_.fit(X, sample_domain=sample_domain)
    assert not hasattr(filter_, "n_features_in_")


def test_a_frame_is_told_how_to_become_an_array():
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pandas.DataFrame(np.eye(4)), npartitions=2)
    with pytest.raises(TypeError, match="to_dask_array"):
        SparseFiltering().fit(frame)


def test_labels_of_another_length():
    X, y, sample_domain, _ = make_problem(n=60)
    blocks = da.from_array(X, chunks=(60, -1))
    with pytest.raises(ValueError, match="one label per row"):
        PeriodicSparseFiltering().fit(blocks, y[1:], sample_domain=sample_domain)
    with pytest.raises(ValueError, match="one integer per row"):
        PeriodicSparseFiltering().fit(blocks, y, sample_domain=sample_domain[1:])


def test_missing_values_in_one_block_are_found_when_it_is_computed():
    X, _, sample_domain, _ = make_problem(n=60)
    filter_ = SparseFiltering(4, max_iter=2, random_state=0).fit(X, sample_domain=sample_domain)
    X[200, 1] = np.nan
    Z = filter_.transform(da.from_array(X, chunks=(60, -1)))
    with pytest.raises(ValueError, match="NaN"):
        Z.compute()


def test_importing_covshift_does_not_import_dask():
    code = "import sys, covshift; print([name for name in sys.modules if 'dask' in name])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
