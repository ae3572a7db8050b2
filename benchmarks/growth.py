"""How an evaluation of the filters grows with rows, features, filters and restarts.

python benchmarks/growth.py [--out results.json]

Time and memory at four sizes of each, one BLAS thread, beside the cost model of the docs
(`docs/engine.md`): seconds = 4 n m L K / rate + n L K / touch + calls, twice that where activations
are not kept, with the rate of matrix
products measured at m = L = 72 and the other two constants from two evaluations.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import numpy as np
from measuring import added_megabytes, median_seconds, report

from covshift.kernels.filter_losses import filter_losses
from covshift.kernels.row_blocks import KEPT_BYTES, cut_into_blocks

BASE = {"n": 4000, "m": 72, "L": 72, "K": 1}
SIZES = {
    "n": (1000, 4000, 16_000, 64_000),
    "m": (18, 72, 288, 1152),
    "L": (18, 72, 288, 1152),
    "K": (1, 4, 16, 64),
}
MEMORY = """
import numpy as np
from covshift.kernels.filter_losses import filter_losses
X = np.random.default_rng(0).standard_normal(({n}, {m}))
W = np.random.default_rng(1).standard_normal(({K}, {L}, {m}))
def evaluate():
    filter_losses(
        X, np.full({n}, -1), np.zeros(({K}, 0, {L}), bool), np.zeros(({K}, 0)), loss="joint",
        activation="sin", epsilon=1e-8, norm_epsilon=0.0, alpha=np.zeros({K}),
    )(W, np.arange({K}))
"""


def evaluation(n, m, L, K):
    """One evaluation of K problems, and its two products alone."""
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((n, m)), rng.standard_normal((K, L, m)) / np.sqrt(m)
    evaluate = filter_losses(
        X, np.full(n, -1), np.zeros((K, 0, L), bool), np.zeros((K, 0)), loss="joint",
        activation="sin", epsilon=1e-8, norm_epsilon=0.0, alpha=np.zeros(K),
    )  # fmt: skip
    flat = W.reshape(K * L, m)
    H, G = np.empty((n, K * L)), np.empty((K * L, m))
    return {
        "ours": lambda: evaluate(W, np.arange(K)),
        "floor": lambda: (np.matmul(X, flat.T, out=H), np.matmul(H.T, X, out=G)),
    }


def n_blocks(n, m, L, K):
    """Blocks of rows, each of which costs about sixty calls of NumPy."""
    rows = cut_into_blocks(np.empty((n, m)), np.zeros(n, dtype=int), K, L, passes=1)
    return sum(len(lane.blocks) for lane in rows.lanes)


def model(constants, n, m, L, K):
    """Seconds by the cost model."""
    rate, touch, call = constants
    again = 1 if 16 * n * L * K <= KEPT_BYTES else 2  # activations computed in every pass
    return again * (4 * n * m * L * K / rate + n * L * K / touch) + call * n_blocks(n, m, L, K)


def megabytes(n, m, L, K):
    """Megabytes by the cost model: activations and slopes, or the blocks of work alone."""
    kept = 2 * 8 * n * L * K
    largest_block = 8 * K * L * -(-n // n_blocks(n, m, L, K))
    return ((kept if kept <= KEPT_BYTES else 0) + 4 * largest_block + 3 * 8 * K * L * m) / 2**20


base = median_seconds(evaluation(**BASE))
tiny = median_seconds(evaluation(200, 2, 2, 1))["ours"]
rate = 4 * BASE["n"] * BASE["m"] * BASE["L"] / base["floor"]
touch = BASE["n"] * BASE["L"] / (base["ours"] - base["floor"] - tiny * n_blocks(**BASE))
constants = (rate, touch, tiny)
print(f"{rate / 1e9:.1f} Gflop/s, {1e9 / touch:.1f} ns an activation, {1e6 * tiny:.0f} us a block")
rows = []
for name, sizes in SIZES.items():
    for size in sizes:
        shape = {**BASE, name: size}
        seconds = median_seconds(evaluation(**shape), repetitions=20 if size < 1000 else 7)
        added = added_megabytes(MEMORY.format(**shape), "evaluate()")
        print(
            f"{name} = {size:6d}  {1000 * seconds['ours']:8.1f} ms  "
            f"{seconds['ours'] / seconds['floor']:5.2f} times the floor  "
            f"model {1000 * model(constants, **shape):8.1f} ms  "
            f"{added:6.1f} MB  model {megabytes(**shape):6.1f} MB",
            flush=True,
        )
        ratio = seconds["ours"] / model(constants, **shape)
        rows.append((f"{name} = {size}: time over the model's", ratio, "<=", 1.5))
        rows.append((f"{name} = {size}: MB over the model's", added - megabytes(**shape), "<=", 20))
print()
report(rows)
