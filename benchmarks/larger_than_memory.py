"""Filters fitted to a table on disk: memory, and time beside the fit in memory.

python benchmarks/larger_than_memory.py [--out results.json]

The table is made in a temporary folder (TMPDIR): ROWS x 72 of float32, 1.4 GB at the 5,000,000 rows
asked for. The environment variable ROWS makes it smaller. Anonymous memory, what a process
has of its own, is read off Linux's /proc; pages of the file that the system caches are not its own.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from measuring import median_seconds, report

from covshift import PeriodicSparseFiltering, SparseFiltering
from covshift.kernels.filter_losses import filter_losses
from covshift.kernels.filter_streams import streamed_losses
from covshift.streams import ArrayRows

ROWS = int(os.environ.get("ROWS", 5_000_000))
FEATURES, FILTERS, ITERATIONS = 72, 110, 10
FIT = """
import sys, threading, time, warnings
import covshift

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

before, peak = anonymous(), [0.0]
def watch():
    while True:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
warnings.simplefilter("ignore")
import numpy as np
name, path = sys.argv[1:]
X = np.load(path, mmap_mode="r")
y = (np.arange(len(X)) % 2).astype(np.int8)
domain = np.where(np.arange(len(X)) % 3 == 0, -1, 0).astype(np.int8)
options = {"n_components": FILTERS, "max_iter": ITERATIONS, "tol": 0, "random_state": 0,
           "n_restarts": 1, "init_scale": 72**-0.5}
start = time.perf_counter()
fitted = getattr(covshift, name)(**options).fit(X, y, sample_domain=domain)
print(peak[0] - before, time.perf_counter() - start, fitted.loss_)
""".replace("FILTERS", str(FILTERS)).replace("ITERATIONS", str(ITERATIONS))


def make_table(path):
    """Standard normal rows, written block by block."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, FEATURES))
    for start in range(0, ROWS, 250_000):
        rng = np.random.default_rng(start)
        rows = X[start : start + 250_000]
        rows[...] = rng.standard_normal(rows.shape, dtype=np.float32)
    X.flush()


def memory(path):
    """Peak of each filter's fit, in a process of its own, above that after the import."""
    for name in ("SparseFiltering", "PeriodicSparseFiltering"):
        shown = subprocess.run(
            [sys.executable, "-c", FIT, name, str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        megabytes, seconds, loss = map(float, shown.stdout.split())
        print(f"{name}: {ROWS:,} rows, {ITERATIONS} iterations in {seconds:.0f} s, loss {loss:.9g}")
        yield f"{name}, {ROWS:,} rows on disk: MB of memory", megabytes, "<=", 400


def speed(path):
    """One evaluation: rows on disk, read in passes, beside rows in memory, activations kept."""
    X = np.load(path, mmap_mode="r")
    in_memory = np.array(X[:250_000])  # activations and slopes take 220 of 256 MB
    on_disk = ArrayRows(X[: min(ROWS, 1_000_000)])
    W = (np.random.default_rng(1).standard_normal((1, FILTERS, FEATURES)) / 8).astype(np.float32)
    groups = np.arange(FILTERS) % 2 == np.arange(2)[:, None]
    for activation in ("abs", "sin"):
        labels = np.arange(on_disk.shape[0]) % 3
        settings = {
            "loss": "joint", "activation": activation, "epsilon": 1e-8, "norm_epsilon": 0.0,
            "alpha": np.zeros(1),
        }  # fmt: skip
        codes = np.where(labels[: len(in_memory)] == 2, -1, labels[: len(in_memory)])
        kept = filter_losses(in_memory, codes, groups[None], np.ones((1, 2)), **settings)

        def sums(function, *arguments, labels=labels):
            return on_disk.sums(function, labels, *arguments)

        streamed = streamed_losses(
            sums, on_disk.shape, False, groups[None], np.ones((1, 2)), dtype=np.float32, **settings
        )
        seconds = median_seconds(
            {
                "memory": lambda kept=kept: kept(W, np.arange(1)),
                "disk": lambda streamed=streamed: streamed(W, np.arange(1)),
            },
            repetitions=5,
            clock=time.process_time,
        )
        per_row = {"memory": seconds["memory"] / len(in_memory),
                   "disk": seconds["disk"] / on_disk.shape[0]}  # fmt: skip
        print(
            f"{activation}: us a row: "
            + ", ".join(f"{k} {1e6 * v:.2f}" for k, v in per_row.items())
        )
        ratio = per_row["memory"] / per_row["disk"]
        yield f"{activation}: speed per row on disk, of that in memory", ratio, ">=", 0.5


def growth(path):
    """One evaluation of rows in passes, beside the cost model of docs/larger-than-memory.md.

    seconds = products * 2 n m L / rate + activations * n L * touch; four products and two
    activations of every row with the sine, two and one with the soft absolute value. The rate is
    that of the products alone, the touch from one evaluation at the first size.
    """
    sizes = [(100_000, 72, 110), (400_000, 72, 110), (100_000, 72, 440), (50_000, 512, 256)]
    counts = {"sin": (4, 2), "abs": (2, 1)}
    constants: dict[str, tuple[float, float]] = {}
    for n, m, L in sizes:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, m), dtype=np.float32)
        W = (rng.standard_normal((1, L, m)) / np.sqrt(m)).astype(np.float32)
        rows = ArrayRows(X)
        codes = np.zeros(n, dtype=np.int8)
        few = X[:5000]
        H, G = np.empty((5000, L), np.float32), np.empty((L, m), np.float32)
        for activation, (products, activations) in counts.items():

            def sums(function, *arguments, rows=rows, codes=codes):
                return rows.sums(function, codes, *arguments)

            evaluate = streamed_losses(
                sums, rows.shape, False, np.zeros((1, 0, L), bool), np.zeros((1, 0)),
                dtype=np.float32, loss="joint", activation=activation, epsilon=1e-8,
                norm_epsilon=0.0, alpha=np.zeros(1),
            )  # fmt: skip
            seconds = median_seconds(
                {
                    "ours": lambda evaluate=evaluate, W=W: evaluate(W, np.arange(1)),
                    "floor": lambda few=few, W=W, H=H, G=G: (
                        np.matmul(few, W[0].T, out=H),
                        np.matmul(H.T, few, out=G),
                    ),
                },
                repetitions=5,
                clock=time.process_time,
            )
            rate = 4 * 5000 * m * L / seconds["floor"]
            if activation not in constants:
                rest = seconds["ours"] - products * 2 * n * m * L / rate
                constants[activation] = (rate, rest / (activations * n * L))
            rate, touch = constants[activation]
            model = products * 2 * n * m * L / rate + activations * n * L * touch
            print(
                f"{activation}: n {n:,}, m {m}, L {L}: {seconds['ours']:.3f} s, "
                f"model {model:.3f} s ({rate / 1e9:.0f} Gflop/s, {1e9 * touch:.2f} ns a touch)"
            )
            what = f"{activation}, n {n:,}, m {m}, L {L}: time over the model's"
            yield what, seconds["ours"] / model, "<=", 1.5


def losses(path):
    """Slices of the table: evaluated at the same filters by both engines, and fitted by both.

    In memory, too, a slice whose activations would not be kept is passed over in parts, so that
    the fits are the same to the last bit. (Of smaller slices they are not: the solver makes much
    of last bits, as it does when rows are permuted.)
    """
    X = np.load(path, mmap_mode="r")
    W = (np.random.default_rng(1).standard_normal((1, FILTERS, FEATURES)) / 8).astype(np.float32)
    in_memory, labels = np.array(X[:100_000]), np.arange(100_000) % 3
    groups, rewards = np.arange(FILTERS) % 2 == np.arange(2)[:, None], np.ones((1, 2))
    stream = ArrayRows(X[:100_000])

    def sums(function, *arguments):
        return stream.sums(function, labels, *arguments)

    for activation in ("abs", "sin"):
        settings = {
            "loss": "joint", "activation": activation, "epsilon": 1e-8, "norm_epsilon": 0.0,
            "alpha": np.zeros(1),
        }  # fmt: skip
        kept = filter_losses(
            in_memory, np.where(labels == 2, -1, labels), groups[None], rewards, **settings
        )
        streamed = streamed_losses(
            sums, stream.shape, False, groups[None], rewards, dtype=np.float32, **settings
        )
        (ours, _), (theirs, _) = streamed(W, np.arange(1)), kept(W, np.arange(1))
        gap = float(abs(ours[0] - theirs[0]) / abs(theirs[0]))
        yield f"{activation}: relative gap of losses at the same W, in 1e-6", gap / 1e-6, "<=", 1
    n_rows = min(ROWS, 1_000_000)
    domain, y = np.where(np.arange(n_rows) % 3 == 0, -1, 0), np.arange(n_rows) % 2
    for cls in (SparseFiltering, PeriodicSparseFiltering):
        fits = []
        for part in (X[:n_rows], np.array(X[:n_rows])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fits.append(
                    cls(FILTERS, max_iter=3, tol=0, n_restarts=1, init_scale=72**-0.5,
                        random_state=0).fit(part, y, sample_domain=domain).loss_
                )  # fmt: skip
        gap = abs(fits[0] - fits[1]) / abs(fits[1])
        what = f"{cls.__name__}, {n_rows:,} rows: relative gap of fitted losses, in 1e-6"
        yield what, gap / 1e-6, "<=", 1


rows = []
with tempfile.TemporaryDirectory() as folder:
    table = Path(folder, "rows.npy")
    start = time.perf_counter()
    make_table(table)
    print(f"made {table.stat().st_size / 1e9:.2f} GB in {time.perf_counter() - start:.0f} s")
    only = os.environ.get("SECTIONS", "").split()
    for section in (growth, speed, losses, memory):
        if not only or section.__name__ in only:
            for row in section(table):
                rows.append(row)
                print(*row, flush=True)
print()
report(rows)
