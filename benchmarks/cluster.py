"""Filters fitted by a cluster on this machine: two workers beside one, memory, a lost worker.

python benchmarks/cluster.py [--out results.json]

Workers are processes of one thread each, on loopback. Rows are made by the workers, block by block.
The environment variable ROWS sets their number. Where other programs use the cores, two workers
wait for them and the wall clock says little: the time that the busiest worker and the client spend
computing, about what a fit takes on idle cores, is compared as well. The floor of all this is what
two plain processes take that do the work of a pass on half of the blocks each, without Dask: cores
share memory and clock.
"""

import multiprocessing
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded, here and in the workers

import signal
import statistics
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from measuring import report

from covshift import PeriodicSparseFiltering
from covshift.kernels.activations_and_norms import half_angle_is_cheaper
from covshift.kernels.filter_streams import ActivationRule, first_sums
from covshift.streams.rows import DaskRows

ROWS = int(os.environ.get("ROWS", 1_280_000))
FEATURES, FILTERS, BLOCKS, ITERATIONS = 72, 110, 32, 5
ROUNDS = 3


def make_block(block_info=None):
    """Rows of one block, from its own seed."""
    ((start, stop), _) = block_info[None]["array-location"]
    rng = np.random.default_rng(start)
    return rng.standard_normal((stop - start, FEATURES))


def rows():
    """The table, as a graph: no row exists yet."""
    size = ROWS // BLOCKS
    return da.map_blocks(
        make_block, chunks=((size,) * BLOCKS, (FEATURES,)), dtype=np.float64,
        meta=np.empty((0, FEATURES)),
    )  # fmt: skip


def fit():
    """One fit; seconds a pass, not counting the first two, which make the blocks."""
    times, sums = [], DaskRows.sums

    def timed(self, *arguments, **options):
        start = time.perf_counter()
        result = sums(self, *arguments, **options)
        times.append(time.perf_counter() - start)
        return result

    y = np.arange(ROWS // BLOCKS * BLOCKS) % 2
    domain = np.where(np.arange(len(y)) % 3 == 0, -1, 0)
    DaskRows.sums = timed
    try:
        model = PeriodicSparseFiltering(
            FILTERS, max_iter=ITERATIONS, tol=0, n_restarts=1, init_scale=FEATURES**-0.5,
            random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows(), y, sample_domain=domain)
    finally:
        DaskRows.sums = sums
    return model, times


def pass_over(numbers, ready, done):
    """First pass over some of the blocks, ROUNDS times, each when the others are ready, too."""
    size = ROWS // BLOCKS
    blocks = [np.random.default_rng(n).standard_normal((size, FEATURES)) for n in numbers]
    codes = np.arange(size) % 3
    W = np.random.default_rng(0).standard_normal((1, FILTERS, FEATURES)) * FEATURES**-0.5
    rule = ActivationRule("sin", 1e-8, half_angle_is_cheaper(W.dtype))
    for _ in range(ROUNDS):
        ready.wait()
        for block in blocks:
            first_sums(block, codes, W, rule, 2, 1)
        done.wait()


def plain_seconds(n_processes):
    """Median time of a pass by plain processes that share the blocks."""
    context, times = multiprocessing.get_context("spawn"), []
    ready, done = (context.Barrier(n_processes + 1) for _ in range(2))
    processes = [
        context.Process(
            target=pass_over, args=(range(first, BLOCKS, n_processes), ready, done), daemon=True
        )
        for first in range(n_processes)
    ]
    for process in processes:
        process.start()
    for _ in range(ROUNDS):
        ready.wait()
        start = time.perf_counter()
        done.wait()
        times.append(time.perf_counter() - start)
    for process in processes:
        process.join()
    return statistics.median(times)


def seconds_used():
    """Time that this process has spent computing."""
    return time.process_time()


def computing_seconds(client, work):
    """Result of some work, and the computing time of the busiest worker and of this process."""
    before, own = client.run(seconds_used), time.process_time()
    result = work()
    after = client.run(seconds_used)
    busiest = max(after[worker] - before[worker] for worker in after)
    return result, busiest + time.process_time() - own


def peak_megabytes():
    """Largest memory that this worker's process has had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def cluster(n_workers):
    """Client of single-threaded workers."""
    return Client(
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
            worker_dashboard_address=None, silence_logs=50, memory_limit="4GB",
        )
    )  # fmt: skip


def main():
    """Measure in turns, so that what else the machine does meets both alike."""
    found = []
    plain = {n: plain_seconds(n) for n in (1, 2, 1, 2)}
    print(f"floor, a pass by plain processes: {plain[2] / plain[1]:.2f} ({plain[2]:.2f} seconds by "
          f"two, {plain[1]:.2f} by one)")  # fmt: skip
    clients = {n: cluster(n) for n in (1, 2)}
    passes = {1: [], 2: []}
    totals, computing = {1: [], 2: []}, {1: [], 2: []}
    for client in clients.values():  # imports, and half-angle timing
        client.as_current()
        client.run(lambda: __import__("covshift"))
    idle = clients[2].run(peak_megabytes)
    for _ in range(ROUNDS):
        for n, client in clients.items():
            with client.as_current():
                start = time.perf_counter()
                (model, times), seconds = computing_seconds(client, fit)
                totals[n].append(time.perf_counter() - start)
                computing[n].append(seconds)
                passes[n].append(statistics.median(times[3:-1]))
    shown = {n: [round(value, 2) for value in values] for n, values in totals.items()}
    print(f"seconds of a fit: one worker {shown[1]}, two workers {shown[2]}")
    ratio = statistics.median(totals[2]) / statistics.median(totals[1])
    found.append((f"{ROWS:,} rows: fit on two workers, of that on one", ratio, "<=", 0.65))
    shown = {n: [round(value, 2) for value in values] for n, values in computing.items()}
    print(f"computing, busiest worker and client: {shown[1]}, {shown[2]}; load {os.getloadavg()}")
    ratio = statistics.median(computing[2]) / statistics.median(computing[1])
    found.append(
        ("computing time of the busiest worker and the client, likewise", ratio, "<=", 0.65)
    )
    ratio = statistics.median(passes[2]) / statistics.median(passes[1])
    found.append(("a pass on two workers, of that on one", ratio, "<=", 0.65))
    table = ROWS * FEATURES * 8 / 2**20
    peaks = clients[2].run(peak_megabytes)
    most = max(peaks[worker] - idle[worker] for worker in peaks)
    print(f"table {table:.0f} MB; added to each worker: "
          f"{[round(peaks[worker] - idle[worker]) for worker in peaks]} MB")  # fmt: skip
    found.append(("memory added to a worker, of the table's size", most / table, "<=", 0.9))

    sums, calls = DaskRows.sums, []

    def kill_in_the_eighth_pass(self, *arguments, **options):
        calls.append(True)
        if len(calls) == 8:
            _, process = clients[2].run(os.getpid).popitem()
            os.kill(process, signal.SIGKILL)
        return sums(self, *arguments, **options)

    with clients[2].as_current():
        DaskRows.sums = kill_in_the_eighth_pass
        again, _ = fit()
        DaskRows.sums = sums
    gap = abs(again.loss_ - model.loss_) / abs(model.loss_)
    found.append(("a worker killed: relative gap of losses, in 1e-6", gap / 1e-6, "<=", 1))
    for client in clients.values():
        client.shutdown()
    report(found)


if __name__ == "__main__":
    main()
