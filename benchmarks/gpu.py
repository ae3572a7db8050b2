"""Filters on a GPU: one evaluation beside its products, the grid, restarts, losses, growth.

python benchmarks/gpu.py [--out results.json]

Needs torch and a CUDA device. The environment variable SECTIONS picks some of it, e.g.
SECTIONS="evaluation grid". Times of evaluations are medians between CUDA events, after warming
up; times of fits are medians by the clock, from rows on the device to fitted filters. Products
are those of single precision, without TF32.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is loaded

import statistics
import time
import warnings

import array_api_compat.torch as xp
import numpy as np
import sklearn
import torch
from measuring import report

from covshift import PeriodicSparseFiltering, fit_many, stack_domains
from covshift.datasets import make_periodic_shift
from covshift.kernels.device_filters import DeviceProblems, device_losses, eager_passes
from covshift.kernels.filter_losses import filter_losses
from covshift.kernels.fused_filters import fused_passes

warnings.filterwarnings("ignore", category=UserWarning)
GRID_FILTERS = (30, 60, 90, 110, 130)  # ten of each are for unlabeled rows
GRID_REWARDS = (0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8)
HOW = {"epsilon": 1e-8, "norm_epsilon": 0.0}


def median_milliseconds(function, repetitions=15):
    """Median time between two events on the device."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repetitions):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def median_clock_seconds(function, repetitions=5):
    """Median time by the clock, until the device is done."""
    times = []
    for _ in range(repetitions + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])  # the first warms up


def make_problems(n, m, L, K=1, dtype=torch.float32):
    """Filters, and problems of two classes with a third of the rows unlabeled."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((n, m), generator=generator, device="cuda", dtype=dtype)
    W = torch.randn((K, L, m), generator=generator, device="cuda", dtype=dtype) * 2 / m**0.5
    codes = torch.randint(0, 3, (n,), generator=generator, device="cuda")
    groups = torch.zeros((K, 2, L), dtype=torch.bool, device="cuda")
    groups[:, 0, : L // 2] = groups[:, 1, L // 2 :] = True
    ones = torch.ones((K, 2), device="cuda", dtype=dtype)
    there = torch.ones((K, L), dtype=torch.bool, device="cuda")
    zeros = torch.zeros(K, device="cuda", dtype=dtype)
    return W, DeviceProblems(X, codes, groups, ones, there, alpha=zeros, phase=zeros)


def products(W, X):
    """The two products of an evaluation alone, on arrays that exist already."""
    flat = W.reshape(-1, W.shape[-1])
    H = torch.empty((flat.shape[0], X.shape[0]), device="cuda", dtype=X.dtype)
    G = torch.empty_like(flat)
    torch.matmul(flat, X.T, out=H)

    def run():
        torch.matmul(flat, X.T, out=H)
        torch.matmul(H, X, out=G)

    return run


def ways(activation):
    """The two ways in which an evaluation is done."""
    return {
        "fused": fused_passes(activation, **HOW, xp=xp),
        "eager": eager_passes("joint", activation, **HOW, xp=xp),
    }


def compiled():
    """Print what torch.compile makes of the eager way, beside its two products."""
    W, problems = make_problems(1_000_000, 512, 512)
    for activation in ("sin", "abs"):
        passes = torch.compile(ways(activation)["eager"])
        ours = median_milliseconds(lambda passes=passes: passes(W, problems))
        floor = median_milliseconds(products(W, problems.X))
        print(f"{activation}, torch.compile: {ours:.2f} ms, {ours / floor:.2f} times its products")
    return ()


def evaluation():
    """One evaluation beside its two products."""
    W, problems = make_problems(1_000_000, 512, 512)
    floor = median_milliseconds(products(W, problems.X))
    flops = 4 * 512 * 512 * 1e6
    print(f"products alone: {floor:.2f} ms, {flops / floor / 1e9:.1f} Tflop/s")
    for activation in ("sin", "abs"):
        for name, passes in ways(activation).items():
            ours = median_milliseconds(lambda passes=passes: passes(W, problems))
            again = median_milliseconds(products(W, problems.X))
            print(f"{activation}, {name}: {ours:.2f} ms; products {floor:.2f} and {again:.2f} ms")
            what = f"L 512, m 512, n 1,000,000, {activation}, {name}: times its products"
            yield what, ours / (0.5 * (floor + again)), "<=", 1.9, 1.5


def grid():
    """170 settings of 50 iterations in one call."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 2, 5000)
    X = torch.tensor(rng.standard_normal((5000, 72)), dtype=torch.float32, device="cuda")
    domain = np.where(codes < 0, -1, 0)
    settings = [
        PeriodicSparseFiltering(
            L, activation=activation, label_reward=reward, n_unlabelled_components=10,
            n_restarts=1, max_iter=50, tol=0, random_state=0,
        )
        for L in GRID_FILTERS for activation in ("sin", "cos") for reward in GRID_REWARDS
    ]  # fmt: skip
    seconds = median_clock_seconds(lambda: fit_many(settings, X, codes, sample_domain=domain))
    yield "grid of 170 settings x 50 iterations, n 5,000, m 72: seconds", seconds, "<=", 1


def restarts():
    """10,000 starts of two filters on 750 rows."""
    data = make_periodic_shift(random_state=0)
    X, y, domain = stack_domains(data.X_source, data.y_source, data.X_target)
    X = torch.tensor(X, dtype=torch.float32, device="cuda")
    model = PeriodicSparseFiltering(2, n_restarts=10_000, max_iter=100, random_state=0)
    seconds = median_clock_seconds(lambda: model.fit(X, y, sample_domain=domain))
    print(f"smallest loss {model.loss_:.6g}")
    yield "10,000 restarts x 100 iterations, L 2, 750 rows: seconds", seconds, "<=", 2


def losses():
    """Losses and gradients beside those of the processor, and of double precision."""
    for n, m, L in ((5000, 72, 110), (50_000, 128, 128)):
        for activation in ("sin", "cos", "abs"):
            W, problems = make_problems(n, m, L, K=2)
            arrays = [part.cpu().numpy() for part in problems]
            X, codes, groups, reward, _, alpha, _ = arrays
            codes = np.where(codes == 2, -1, codes)
            expected = {}
            for dtype in (np.float32, np.float64):
                evaluate = filter_losses(
                    X.astype(dtype), codes, groups, reward, loss="joint", activation=activation,
                    alpha=alpha, **HOW,
                )  # fmt: skip
                expected[dtype] = evaluate(W.cpu().numpy().astype(dtype), np.arange(2))
            for name, passes in ways(activation).items():
                value, gradient = device_losses(problems, passes, xp)(W, torch.arange(2))
                value, gradient = value.cpu().numpy(), gradient.cpu().numpy()
                for dtype, (loss, slope) in expected.items():
                    off = np.abs(value / loss - 1).max()
                    error = np.linalg.norm(gradient - slope) / np.linalg.norm(slope)
                    kind = f"{activation}, {name}, n {n:,}, processor in {dtype.__name__}"
                    print(f"{kind}: loss off by {off:.1e}, gradient by {error:.1e}")
                    yield f"{kind}: loss off, parts in 10,000", 1e4 * off, "<=", 1


def growth():
    """Print time and memory at four sizes of each of n, m, L and K."""
    base = {"n": 100_000, "m": 256, "L": 256, "K": 1}
    sizes = {
        "n": (25_000, 100_000, 400_000, 1_600_000),
        "m": (64, 256, 1024, 4096),
        "L": (64, 256, 1024, 2048),
        "K": (1, 4, 16, 64),
    }
    for name, values in sizes.items():
        for value in values:
            print(f"{name} = {value:,}: {growth_line(**{**base, name: value})}", flush=True)
    fits()
    return ()


def fits():
    """Print the time of an iteration where rows are few, which is the solver's, and many."""
    for n, m, L in ((256, 2, 2), (256, 64, 64), (1_000_000, 512, 512)):
        X = torch.randn((n, m), device="cuda")
        model = PeriodicSparseFiltering(
            L, n_restarts=1, max_iter=20, tol=0, init_scale=m**-0.5, random_state=0
        )
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        seconds = median_clock_seconds(lambda model=model, X=X: model.fit(X), repetitions=3)
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        each = 1e3 * seconds / model.n_iter_
        print(f"fit, n {n:,}, m {m}, L {L}: {each:.2f} ms an iteration, {peak:.0f} MB", flush=True)


def growth_line(n, m, L, K):
    """Products, and each way: milliseconds, picoseconds beside per activation, megabytes added."""
    W, problems = make_problems(n, m, L, K)
    floor = median_milliseconds(products(W, problems.X))
    line = f"products {floor:.3f} ms, {4e-9 * n * m * L * K / floor:.1f} Tflop/s"
    for way, passes in ways("sin").items():
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        passes(W, problems)
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        ours = median_milliseconds(lambda passes=passes: passes(W, problems))
        beside = 1e9 * (ours - floor) / (n * L * K)
        line += f"; {way} {ours:.3f} ms, {ours / floor:.2f}, {beside:.1f} ps, {peak:.0f} MB"
    return line


print(torch.cuda.get_device_name(), "torch", torch.__version__)
rows = []
only = os.environ.get("SECTIONS", "").split()
for section in (evaluation, compiled, grid, restarts, losses, growth):
    if only and section.__name__ not in only:
        continue
    with sklearn.config_context(array_api_dispatch=True):
        for row in section():
            rows.append(row)
            print(*row, flush=True)
    torch.cuda.empty_cache()
print()
report(rows)
