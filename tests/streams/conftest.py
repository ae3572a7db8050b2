"""Arrays whose rows come in blocks, for the tests of every estimator that takes them."""

import numpy as np
import pytest


@pytest.fixture(params=["map", "dask"])
def streamed(request, tmp_path, monkeypatch):
    """A function that turns an array into one whose rows come in blocks."""
    monkeypatch.setattr("covshift.streams.rows.SMALL_BYTES", 0)

    def turn(X):
        if request.param == "dask":
            return pytest.importorskip("dask.array").from_array(X, chunks=(70, -1))
        np.save(tmp_path / "rows.npy", X)
        return np.load(tmp_path / "rows.npy", mmap_mode="r")

    return turn
