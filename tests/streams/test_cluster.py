"""Filters fitted by processes: equal to those in memory, whatever is lost on the way."""

import os
import signal
from collections import Counter
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from covshift import AutoAdaptedClassifier, DomainStandardScaler, PeriodicSparseFiltering
from covshift.streams.moments import first_moments
from covshift.streams.rows import PERSISTED_SHARE, DaskRows, deal_blocks
from covshift.studies.runner import run_experiment
from tests.shifted import make_problem
from tests.streams.cluster import local_cluster
from tests.studies.measuring import declaration, measure

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    # Sockets and processes that Dask leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
N_ROWS, N_FEATURES, N_BLOCKS = 16_000, 20, 8


@pytest.fixture(scope="module")
def client():
    with local_cluster(n_workers=2) as client:
        yield client


def make_block(block_info=None):
    """Rows of one block, from its own seed: no worker is sent any."""
    ((start, stop), _) = block_info[None]["array-location"]
    rng = np.random.default_rng(start)
    return rng.standard_normal((stop - start, N_FEATURES))


def made_rows():
    size = N_ROWS // N_BLOCKS
    return da.map_blocks(
        make_block, chunks=((size,) * N_BLOCKS, (N_FEATURES,)), dtype=np.float64,
        meta=np.empty((0, N_FEATURES)),
    )  # fmt: skip


def labels_of(X):
    return (X[:, 0] > 0).astype(int), np.where(np.arange(len(X)) % 4 == 0, -1, 0)


PSF = PeriodicSparseFiltering(12, max_iter=8, n_restarts=1, init_scale=0.3, random_state=0)


@pytest.fixture(scope="module")
def in_memory():
    X = made_rows().compute(scheduler="synchronous")
    y, sample_domain = labels_of(X)
    with pytest.warns(Warning, match="max_iter"):
        return X, y, sample_domain, clone(PSF).fit(X, y, sample_domain=sample_domain)


def test_a_cluster_fits_what_one_machine_does(client, in_memory):
    X, y, sample_domain, theirs = in_memory
    ours = clone(PSF).fit(made_rows(), y, sample_domain=sample_domain)
    assert abs(ours.loss_ - theirs.loss_) <= 1e-6 * abs(theirs.loss_)
    assert abs(ours.loss_curve_[0] - theirs.loss_curve_[0]) <= 1e-10 * abs(theirs.loss_curve_[0])
    Z = ours.transform(made_rows())
    np.testing.assert_allclose(Z[:100].compute(), theirs.transform(X[:100]), rtol=1e-4)


def test_a_worker_killed_in_the_middle_costs_a_recomputation(client, in_memory, monkeypatch):
    _, y, sample_domain, theirs = in_memory
    passes, sums = [], DaskRows.sums

    def kill_in_the_eighth_pass(self, *arguments, **options):
        passes.append(True)
        if len(passes) == 8:
            _, process = client.run(os.getpid).popitem()
            os.kill(process, signal.SIGKILL)
        return sums(self, *arguments, **options)

    monkeypatch.setattr(DaskRows, "sums", kill_in_the_eighth_pass)
    ours = clone(PSF).fit(made_rows(), y, sample_domain=sample_domain)
    assert len(passes) > 16
    assert abs(ours.loss_ - theirs.loss_) <= 1e-6 * abs(theirs.loss_)


def workers_of(client, blocks):
    """The first worker that has each of some delayed blocks."""
    distributed.wait(blocks)
    keepers = client.who_has(distributed.futures_of(blocks))
    return [keepers[block.key][0] for block in blocks]


def test_blocks_are_dealt_evenly_and_codes_lie_beside_them(client):
    client.wait_for_workers(2)  # one was killed
    stream = DaskRows(made_rows())
    owners = workers_of(client, stream._kept)
    assert owners == owners[:2] * (N_BLOCKS // 2)
    assert owners[0] != owners[1]
    assert workers_of(client, stream.split(np.arange(N_ROWS) % 2)) == owners


def test_shares_are_by_threads_and_count_the_memory_of_all_workers(monkeypatch):
    threads = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 3}
    workers = {name: {"nthreads": n, "memory_limit": 100_000} for name, n in threads.items()}

    def five_unless_asked(n_workers=5):
        names = list(workers)[: None if n_workers < 0 else n_workers]
        return {"workers": {name: workers[name] for name in names}}

    client = SimpleNamespace(scheduler_info=five_unless_asked)
    monkeypatch.setattr("covshift.streams.rows._current_client", lambda: client)
    X = made_rows()
    room = int(PERSISTED_SHARE * 100_000 * len(workers))
    assert Counter(deal_blocks(X[: room // X[0].nbytes], N_BLOCKS)) == threads
    assert deal_blocks(X[: room // X[0].nbytes + 1], N_BLOCKS) == []


def test_blocks_that_rest_on_what_workers_have_are_left_there(client):
    made = made_rows().persist()
    assert deal_blocks(made + 1, N_BLOCKS) == [None] * N_BLOCKS
    blocks = list(made.to_delayed(optimize_graph=False).ravel())
    stream = DaskRows(made)
    (counts, _) = stream.sums(first_moments, stream.split(np.zeros(N_ROWS, int)), 1)
    assert (counts == N_ROWS).all()
    assert workers_of(client, stream._kept) == workers_of(client, blocks)


def test_restarts_go_to_the_cluster(client, monkeypatch):
    """Starts that are too many to be evaluated together; the result is the same to the last bit."""
    monkeypatch.setattr("covshift.adapters._filter_minimization.BATCH_FILTERS", 8)
    X, y, sample_domain, _ = make_problem(n=60)
    psf = PeriodicSparseFiltering(4, n_restarts=6, max_iter=5, random_state=0)
    theirs = clone(psf).fit(X, y, sample_domain=sample_domain)
    with joblib.parallel_config("dask", client=client):
        ours = clone(psf).fit(X, y, sample_domain=sample_domain)
    np.testing.assert_array_equal(ours.restart_losses_, theirs.restart_losses_)
    np.testing.assert_array_equal(ours.components_, theirs.components_)


def test_candidates_go_to_the_cluster(client):
    X, y, sample_domain, X_new = make_problem(n=60)
    model = AutoAdaptedClassifier(
        candidates=[(None, LogisticRegression()), (DomainStandardScaler(), LogisticRegression())],
        vote=2, random_state=0,
    )  # fmt: skip
    theirs = clone(model).fit(X, y, sample_domain=sample_domain)
    with joblib.parallel_config("dask", client=client):
        ours = clone(model).fit(X, y, sample_domain=sample_domain)
    assert ours.chosen_ == theirs.chosen_
    np.testing.assert_array_equal(ours.predict_proba(X_new), theirs.predict_proba(X_new))


def test_trials_go_to_the_cluster(client, tmp_path):
    tasks = declaration(4)
    theirs = run_experiment(tasks, measure, tmp_path / "here.sqlite")
    with joblib.parallel_config("dask", client=client):
        ours = run_experiment(tasks, measure, tmp_path / "cluster.sqlite")
    assert [record.result for record in ours.records] == [
        record.result for record in theirs.records
    ]
