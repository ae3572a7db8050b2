"""A small cluster on this machine, for the tests that need one."""

import warnings
from contextlib import contextmanager

import pytest

pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@contextmanager
def local_cluster(n_workers=2, **options):
    """A client of single-threaded workers in processes of their own, on loopback alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dask's own start and end
        with (
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                worker_dashboard_address=None,
                silence_logs=50,
                **options,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
