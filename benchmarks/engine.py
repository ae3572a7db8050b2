"""The filters' engine, side by side with plain NumPy, PyPI's sparse-filtering and the floor.

python benchmarks/engine.py [--out results.json]

Environment variables: SECTIONS picks some of it, e.g. SECTIONS="restarts grid"; COVSHIFT_KERNELS is
"numpy" or "compiled"; CLOCK=processor counts processor time, for a machine that is not idle (both
threads of the grid count, so that its ratio is that of one core); GRID="110" keeps some numbers of
filters of the grid.

The floor of an evaluation are its two matrix products alone, on arrays that exist already. The
problem is an even mix of two classes and unlabeled rows for the periodic filters, and has no
labels for sparse filtering. BLAS has one thread, but where two are said.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "2"  # before NumPy is loaded: SciPy has a BLAS of its own

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from baselines import plain_fit, plain_loss, released_loss
from measuring import median_seconds, report
from threadpoolctl import threadpool_limits

from covshift import PeriodicSparseFiltering, fit_many, stack_domains
from covshift.datasets import make_periodic_shift
from covshift.kernels.filter_losses import filter_losses
from covshift.solvers.threads import share_parts

warnings.filterwarnings("ignore", category=UserWarning)
CLOCK = time.process_time if os.environ.get("CLOCK") == "processor" else time.perf_counter
median_seconds = partial(median_seconds, clock=CLOCK)
# Ten of each are for unlabeled rows.
GRID_FILTERS = [int(one) for one in os.environ.get("GRID", "30 60 90 110 130").split()]
# OpenBLAS's threads look for work for some 30 ms after a product, each on a core of its own.
WAITING = 0.2
GRID_REWARDS = (0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8)


def make_rows(n, m, dtype=np.float64, labels=True):
    """Rows, and their classes: two, and -1 for a third of the rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, n) if labels else np.full(n, -1)
    return rng.standard_normal((n, m)).astype(dtype), codes


def even_groups(L, unlabeled=0):
    """Filters split evenly between two classes."""
    groups = np.zeros((2, L), dtype=bool)
    half = (L - unlabeled) // 2
    groups[0, :half] = groups[1, half : 2 * half] = True
    return groups


def upstream(groups, label_reward, dtype):
    """The table that `plain_loss` takes."""
    table = np.ones((3, groups.shape[1]), dtype)
    table[:2] -= label_reward * groups
    return table


def evaluation(n, m, L, activation, dtype, run=map):
    """Functions of nothing: the floor, our evaluation and one in plain NumPy, at the same W."""
    X, codes = make_rows(n, m, dtype, labels=activation != "abs")
    W = (2 / np.sqrt(m) * np.random.default_rng(1).standard_normal((L, m))).astype(dtype)
    groups = even_groups(L)
    H, G = np.empty((n, L), dtype), np.empty((L, m), dtype)
    table = upstream(groups, 1.0, dtype)
    evaluate = filter_losses(
        X, codes, groups[None], np.ones((1, 2)), loss="joint", activation=activation,
        epsilon=1e-8, norm_epsilon=0.0, alpha=np.zeros(1), run=run,
    )  # fmt: skip
    ours, plain = evaluate(W[None], np.arange(1)), plain_loss(W, X, codes, table, activation)
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    assert abs(ours[0][0] - plain[0]) <= tolerance * abs(plain[0])
    assert np.abs(ours[1][0] - plain[1]).max() <= tolerance * np.abs(plain[1]).max()
    return {
        "floor": lambda: (np.matmul(X, W.T, out=H), np.matmul(H.T, X, out=G)),
        "ours": lambda: evaluate(W[None], np.arange(1)),
        "plain": lambda: plain_loss(W, X, codes, table, activation),
    }


def one_thread():
    """Times the floor, for each activation and precision."""
    asked = {
        ("sin", np.float64): (1.8, 1.5), ("abs", np.float64): (1.5, 1.2),
        ("sin", np.float32): (2.8, 2.0), ("abs", np.float32): (2.1, 1.6),
    }  # fmt: skip
    for (activation, dtype), bounds in asked.items():
        functions = evaluation(7000, 72, 110, activation, dtype)
        # Not in turn with the other two: its arrays would drive theirs out of the cache.
        plain = median_seconds({"plain": functions.pop("plain")})["plain"]
        seconds = median_seconds(functions)
        name = f"L 110, m 72, n 7,000, {activation}, {dtype.__name__}"
        print(f"{name}: plain NumPy {plain / seconds['floor']:.2f} times the floor")
        yield f"{name}: times the floor", seconds["ours"] / seconds["floor"], "<=", *bounds
    for activation in ("sin", "abs"):
        functions = evaluation(20_000, 784, 256, activation, np.float64)
        del functions["plain"]
        seconds = median_seconds(functions)
        ratio = seconds["ours"] / seconds["floor"]
        yield f"L 256, m 784, n 20,000, {activation}: times the floor", ratio, "<=", 1.25, 1.1


def two_threads():
    """Times the floor of two BLAS threads, with two of our own and BLAS at one."""
    with ThreadPoolExecutor(1) as pool:
        for activation, bounds in (("sin", (2.9, 1.8)), ("abs", (2.5, 1.7))):
            run = partial(share_parts, pool, 1)
            functions = evaluation(7000, 72, 110, activation, np.float64, run)
            with threadpool_limits(2):
                floors = [median_seconds({"floor": functions["floor"]})["floor"]]
            time.sleep(WAITING)
            ours = median_seconds({"ours": functions["ours"]}, repetitions=100)["ours"]
            with threadpool_limits(2):
                floors.append(median_seconds({"floor": functions["floor"]})["floor"])
            ratio = ours / np.mean(floors)
            yield f"two threads, {activation}: times their floor", ratio, "<=", *bounds


def peers():
    """Time of one evaluation, against the authors' algorithm and PyPI's package."""
    X, codes = make_rows(7000, 72)
    W = np.random.default_rng(1).standard_normal((110, 72)) / 4
    groups, rewards = even_groups(110), np.ones(2)
    evaluate = filter_losses(
        X, codes, groups[None], rewards[None], loss="blockwise", activation="sin",
        epsilon=0.0, norm_epsilon=1e-8, alpha=np.zeros(1),
    )  # fmt: skip
    seconds = median_seconds(
        {
            "authors": lambda: released_loss(W, X, codes, groups, rewards),
            "ours": lambda: evaluate(W[None], np.arange(1)),
        }
    )
    ratio = seconds["authors"] / seconds["ours"]
    yield "one evaluation of the released loss: times faster than their algorithm", ratio, ">=", 3
    try:
        from sparse_filtering import SparseFiltering as Peer
    except ImportError:
        print("sparse-filtering is not installed: pip install sparse-filtering")
        return
    ours = evaluation(7000, 72, 110, "abs", np.float64)["ours"]
    n_evaluations = 3
    seconds = median_seconds(
        {"peer": lambda: Peer(110, maxfun=n_evaluations).fit(X), "ours": ours},
        repetitions=5,
    )
    ratio = seconds["peer"] / n_evaluations / seconds["ours"]
    yield "one evaluation of sparse filtering: times faster than sparse-filtering", ratio, ">=", 3


def fits():
    """Whole fits against SciPy with plain NumPy."""
    X, codes = make_rows(7000, 72)
    groups = even_groups(110)
    y, domain = codes, np.where(codes < 0, -1, 0)
    ours = PeriodicSparseFiltering(110, n_restarts=1, max_iter=200, tol=0, random_state=0)
    W0 = np.random.RandomState(0).standard_normal((110, 72))
    seconds = median_seconds(
        {
            "ours": lambda: ours.fit(X, y, sample_domain=domain),
            "plain": lambda: plain_fit(W0, X, codes, upstream(groups, 1.0, float), tol=0),
        },
        repetitions=3,
    )
    ratio = seconds["plain"] / seconds["ours"]
    yield "fit of 200 iterations: times faster than SciPy and NumPy", ratio, ">=", 4, 6


def restarts():
    """100 starts of two filters on 750 rows."""
    data = make_periodic_shift(random_state=0)
    X, y, domain = stack_domains(data.X_source, data.y_source, data.X_target)
    codes = np.where(domain >= 0, np.asarray(y, dtype=int), -1)
    ours = PeriodicSparseFiltering(2, n_restarts=100, random_state=0)
    rng = np.random.RandomState(0)
    starts = [rng.standard_normal((2, 2)) for _ in range(100)]
    table = upstream(np.eye(2, dtype=bool), 1.0, float)
    seconds = median_seconds(
        {
            "ours": lambda: ours.fit(X, y, sample_domain=domain),
            "plain": lambda: [plain_fit(W0, X, codes, table) for W0 in starts],
        }
    )
    ratio = seconds["plain"] / seconds["ours"]
    yield "100 restarts, L 2, 750 rows: times faster than 100 fits", ratio, ">=", 7, 15


def grid():
    """170 settings, all of ours on two cores against a sample, one by one, in plain NumPy.

    The baseline of both precisions is plain NumPy in float64.
    """
    double = None
    for dtype, bounds in ((np.float64, (7, 12)), (np.float32, (10, 20))):
        X, codes = make_rows(7000, 72, dtype)
        domain = np.where(codes < 0, -1, 0)
        settings = [
            PeriodicSparseFiltering(
                L, activation=activation, label_reward=reward, n_unlabelled_components=10,
                n_restarts=1, max_iter=50, tol=0, random_state=0,
            )
            for L in GRID_FILTERS for activation in ("sin", "cos") for reward in GRID_REWARDS
        ]  # fmt: skip
        sample = settings[8 :: len(GRID_REWARDS)]  # each number of filters and activation once
        # Half of the sample before and half after: what else the machine does meets both.
        plain = plain_seconds(sample[::2], X, codes)
        start = CLOCK()
        fit_many(settings, X, codes, sample_domain=domain, n_jobs=2)
        ours = CLOCK() - start
        plain = (plain + plain_seconds(sample[1::2], X, codes)) * len(settings) / len(sample)
        double = plain if double is None else double
        name = f"grid of {len(settings)} settings, {dtype.__name__}"
        print(f"{name}: {ours:.1f} s; plain {plain:.0f} s, from {len(sample)} fits")
        print(f"  times faster than plain in {dtype.__name__}: {plain / ours:.2f}")
        yield f"{name}, two cores: times faster than plain one by one", double / ours, ">=", *bounds


def plain_seconds(settings, X, codes):
    """Time of fitting these settings one after the other."""
    start = CLOCK()
    for setting in settings:
        L = setting.n_components
        W0 = np.random.RandomState(0).standard_normal((L, X.shape[1])).astype(X.dtype)
        table = upstream(even_groups(L, 10), setting.label_reward, X.dtype)
        plain_fit(W0, X, codes, table, setting.activation, max_iter=50, tol=0)
    return CLOCK() - start


rows = []
only = os.environ.get("SECTIONS", "").split()
for section in (two_threads, one_thread, peers, fits, restarts, grid):
    if only and section.__name__ not in only:
        continue
    with threadpool_limits(1):
        for row in section():
            rows.append(row)
            print(*row, flush=True)
print()
report(rows)
