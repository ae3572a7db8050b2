"""
Rows that are never in memory at once
=====================================

A Dask array is a plan: its blocks are made, or read from Parquet or Zarr, when they are needed and
forgotten afterward. Filters are fitted to it in passes over the blocks. Memory between passes
is that of the filters, so that the table may be of any size, and lie on a cluster.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from covshift import PeriodicSparseFiltering
from covshift.datasets import make_periodic_shift

BLOCKS, ROWS = 8, 5_000


def draw(number):
    """Source and target rows of one block; in earnest a file is read here."""
    return make_periodic_shift(n_source=ROWS // 2, n_target=ROWS // 2, random_state=number)


def make_block(block_info=None):
    """Rows of one block, made again whenever they are asked for."""
    data = draw(block_info[None]["chunk-location"][0])
    return np.concatenate([data.X_source, data.X_target]).astype(np.float32)


X = da.map_blocks(make_block, chunks=((ROWS,) * BLOCKS, (2,)), dtype=np.float32)
print(X)

# %%
# Labels and domains are one entry per row and stay in memory.

labels = [draw(number).y_source for number in range(BLOCKS)]
# Target rows have none: what stands in their place is never read.
y = np.concatenate([np.concatenate([one, one]) for one in labels])
sample_domain = np.tile(np.repeat([0, -1], ROWS // 2), BLOCKS)

psf = PeriodicSparseFiltering(8, n_restarts=1, max_iter=30, tol=1e-2, random_state=0)
in_blocks = psf.fit(X, y, sample_domain=sample_domain)
curve = in_blocks.loss_curve_
Z = in_blocks.transform(X)
print(f"transformed, and not computed yet: {Z}")
print(f"one block of it: {Z.blocks[3].compute().shape}")

# %%
# The same rows in memory give the same path. Sums are only added up in another order.

in_memory = psf.fit(X.compute(), y, sample_domain=sample_domain)
gaps = np.abs(curve - in_memory.loss_curve_) / np.abs(in_memory.loss_curve_)
print(f"largest relative difference of the losses: {gaps.max():.0e}")

figure, axes = plt.subplots(figsize=(6.5, 3.6))
axes.plot(in_memory.loss_curve_ / len(y), lw=5, alpha=0.4, label="in memory")
axes.plot(curve / len(y), "k", lw=1, label="in blocks")
axes.set(xlabel="iteration", ylabel="loss per row")
axes.legend()
plt.show()
