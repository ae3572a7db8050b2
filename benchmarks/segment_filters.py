"""Learning filters of signal segments: covshift, PyPI's sparse-filtering and plain NumPy/SciPy.

python benchmarks/segment_filters.py [--out results.json]

100 filters of 100,000 whitened segments of 100 samples, in double precision with one thread. All
three take turns in one run and stop after the same number of evaluations of loss and gradient, as
nearly as their options allow; what is compared is the processor time of a whole fit. The losses
that they reach are printed: from other starts, they differ a little.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import time
import warnings

import numpy as np
from baselines import plain_fit
from measuring import report

from covshift import SegmentSparseFiltering, SparseFiltering
from covshift.adapters.segment_sparse_filtering import draw_segments, whitening_matrix
from covshift.kernels.filter_losses import filter_loss
from covshift.streams import ArrayRows

warnings.filterwarnings("ignore", category=UserWarning)
N_SEGMENTS, LENGTH, N_FILTERS = 100_000, 100, 100
EVALUATIONS = int(os.environ.get("EVALUATIONS", "12"))
REPETITIONS = int(os.environ.get("REPETITIONS", "3"))


def make_windows(n_windows=1000, length=1200):
    """Bursts at one of four resonances, several in a window, in noise."""
    rng, t = np.random.default_rng(0), np.arange(length)
    X = 0.3 * rng.standard_normal((n_windows, length))
    for row in X:
        frequency, period = rng.choice([0.4, 0.9, 1.5, 2.2]), rng.integers(80, 200)
        since = (t + rng.integers(period)) % period
        row += np.exp(-since / 20) * np.sin(frequency * since)
    return X


def loss_of(W, segments):
    """Mean loss of a segment: the same function for all."""
    no_groups = np.zeros((0, len(W)), dtype=bool)
    total, _ = filter_loss(
        W, segments, None, no_groups, np.zeros(0), activation="abs", epsilon=1e-8,
        norm_epsilon=0.0, alpha=0.0,
    )  # fmt: skip
    return total / len(segments)


def main():
    """Fit by all of them in turn, and report times and losses."""
    windows = make_windows()
    segments = draw_segments(ArrayRows(windows), LENGTH, 1, N_SEGMENTS, 0)
    white = (segments - segments.mean(axis=0)) @ whitening_matrix(segments)
    codes, table = np.zeros(N_SEGMENTS, dtype=int), np.ones((1, N_FILTERS))
    W0 = np.random.RandomState(0).standard_normal((N_FILTERS, LENGTH))
    found = {}

    def ours():
        model = SparseFiltering(N_FILTERS, max_iter=EVALUATIONS - 1, tol=0.0, random_state=0)
        found["covshift"] = model.fit(white).components_

    def whole():
        SegmentSparseFiltering(
            N_FILTERS, n_segments=N_SEGMENTS, max_iter=EVALUATIONS - 1, tol=0.0, random_state=0
        ).fit(windows)

    def single():
        model = SparseFiltering(N_FILTERS, max_iter=EVALUATIONS - 1, tol=0.0, random_state=0)
        found["covshift, float32"] = model.fit(white.astype(np.float32)).components_

    def plain():
        result = plain_fit(
            W0, white, codes, table, activation="abs", max_iter=EVALUATIONS - 1, tol=0.0
        )
        found["plain"] = result.x.reshape(W0.shape)

    def peer():
        from sparse_filtering import SparseFiltering as Peer

        np.random.seed(0)  # noqa: NPY002 the package draws from there
        found["PyPI"] = Peer(N_FILTERS, maxfun=EVALUATIONS).fit(white).w_

    functions = {"covshift": ours, "SegmentSparseFiltering": whole, "float32": single,
                 "plain": plain}  # fmt: skip
    try:
        import sparse_filtering  # noqa: F401

        functions["PyPI"] = peer
    except ImportError:
        print("sparse-filtering is not installed: pip install sparse-filtering")
    seconds = {name: [] for name in functions}
    for _ in range(REPETITIONS):
        for name, function in functions.items():
            start = time.process_time()
            function()
            seconds[name].append(time.process_time() - start)
            print(f"{name}: {seconds[name][-1]:.1f} s of processor time", flush=True)
    for name, W in found.items():
        print(f"loss of a segment, {name}: {loss_of(W.astype(np.float64), white):.3f}")
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    what = "100 filters, 100,000 segments of 100 samples:"
    rows = [
        (f"{what} {other} / {mine}, time", median[other] / median[mine], ">=", 2, 4)
        for mine in ("covshift", "SegmentSparseFiltering", "float32")
        for other in ("plain", "PyPI")
        if other in median
    ]
    report(rows)


if __name__ == "__main__":
    main()
