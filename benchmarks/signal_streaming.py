"""Filters and predictions over a recording larger than memory: seconds and peak memory.

    python benchmarks/signal_streaming.py FOLDER [--gigabytes 5]

Writes a made-up recording of that size (int16) to FOLDER, learns `SegmentSparseFiltering` and a
model from two short recordings, learns filters from the memory map of the long one, and predicts
every window of it by ``covshift predict``, in processes of their own. Prints seconds and the peak
resident memory of each (Linux), then removes the recording. Below .27 GB the map would be loaded as
a whole.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RATE, WINDOW, CHUNK = 12_000, 1200, 1 << 24
# Not getrusage: its peak begins with that of the process that started this one.
PEAK = """
from pathlib import Path
status = Path("/proc/self/status").read_text().split()
print("peak:", int(status[status.index("VmHWM:") + 1]) // 1024, "MB", flush=True)
"""
LEARN = """
import sys, numpy as np
from covshift import SegmentSparseFiltering
samples = np.load(sys.argv[1], mmap_mode="r")
n = len(samples) // {window}
# Segments alone are read: the windows are a view of the map.
windows = samples[: n * {window}].reshape(n, -1)
filters = SegmentSparseFiltering(random_state=0, tol=1e-3).fit(windows)
print(filters.n_segments_, "segments of", n, "windows")
"""
RUN = """
import sys
from covshift.cli import build_app
build_app()(sys.argv[1:], standalone_mode=False)
"""


def make_signal(n, resonance, rng):
    """Bursts at a resonance, in noise, as int16."""
    since = np.arange(n) % 113
    clean = np.exp(-since / 20) * np.sin(resonance * since)
    return (1000 * (clean + rng.normal(0, 0.3, n))).astype(np.int16)


def write_long(path, n_bytes, rng):
    """Write a recording of many bursts, piece by piece."""
    n = n_bytes // 2
    block = make_signal(CHUNK, 0.9, rng)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<i2", "fortran_order": False, "shape": (n,)}
        )
        for first in range(0, n, CHUNK):
            file.write(np.roll(block, int(rng.integers(CHUNK)))[: n - first].tobytes())


def run(code, *arguments):
    """Run a program in a process of its own; print what it prints, and how long it took."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code + PEAK, *map(str, arguments)], check=True)
    print(f"{time.perf_counter() - start:.0f} s", flush=True)


def main():
    """Write, learn, predict, remove."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    options = parser.parse_args()
    folder, rng = options.folder, np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for load in (0, 1):
        for name, resonance in (("inner", 0.9), ("outer", 1.5)):
            np.save(folder / f"{name}{load}.npy", make_signal(60 * WINDOW, resonance, rng))
    rows = [f"{name}{load}.npy,{name},{load}" for load in (0, 1) for name in ("inner", "outer")]
    (folder / "train.csv").write_text("\n".join(["file,fault,load", *rows]))
    (folder / "long.csv").write_text("file,load\nlong.npy,1\n")
    long, model = folder / "long.npy", folder / "model.skops"
    try:
        write_long(long, int(options.gigabytes * 1e9), rng)
        print(f"{long.stat().st_size / 1e9:.2f} GB", flush=True)
        run(LEARN.format(window=WINDOW), long)
        run(
            RUN, "adapt", "--signals", folder / "train.csv", "--label", "fault", "--domain", "load",
            "--rate", RATE, "--window", WINDOW, "--target-domain", "1", "--adapter", "ranks", "-q",
            "--out", model,
        )  # fmt: skip
        run(RUN, "predict", model, folder / "long.csv", "--out", folder / "windows.parquet", "-q")
    finally:
        long.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
