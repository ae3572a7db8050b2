"""Timing and memory of functions, side by side in one run."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def median_seconds(functions, repetitions=20):
    """Median time of each function; they take turns, so that noise meets all alike."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()  # warm up
    for _ in range(repetitions):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def added_megabytes(setup, statement):
    """Peak memory that ``statement`` adds to what ``setup`` holds, in a process of its own.

    Read off Linux's /proc: the peak is reset right before the statement.
    """
    code = f"""
def megabytes(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024

{setup}
open("/proc/self/clear_refs", "w").write("5")
before = megabytes("VmRSS")
{statement}
print(megabytes("VmHWM") - before)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(shown.stdout)


def report(rows):
    """Print measured value and goal of each row, and write them where --out says.

    ``rows`` are (what, measured, relation, goal), the relation ">=" or "<=".
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="JSON file to write")
    out = parser.parse_args().out
    for what, measured, relation, goal in rows:
        met = measured >= goal if relation == ">=" else measured <= goal
        print(f"{what:70s} {measured:9.2f}  goal {relation} {goal:g}  {'met' if met else 'MISSED'}")
    if out is not None:
        keys = ("what", "measured", "relation", "goal")
        out.write_text(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=1))
