"""Timing and memory of functions, side by side in one run."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


def median_seconds(functions, repetitions=20, clock=time.perf_counter):
    """Median time of each function; they take turns, so that noise meets all alike.

    With ``time.process_time`` as clock what other programs do counts for less.
    """
    times = {name: [] for name in functions}
    for function in functions.values():
        function()  # warm up
    for _ in range(repetitions):
        for name, function in functions.items():
            start = clock()
            function()
            times[name].append(clock() - start)
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


class Row(NamedTuple):
    """One line of a report: what was measured, and what was asked for.

    ``required`` is the least that is asked for and ``goal`` what is hoped for; ``relation`` is
    ">=" or "<=".
    """

    what: str
    measured: float
    relation: str
    required: float
    goal: float | None = None

    def reaches(self, bound):
        """Whether the measured value is on the right side of a bound."""
        return self.measured >= bound if self.relation == ">=" else self.measured <= bound

    def __str__(self):
        line = f"{self.what:76s} {self.measured:9.2f}  {self.relation} {self.required:g}"
        line += f" (goal {self.goal:g})" if self.goal is not None else ""
        if not self.reaches(self.required):
            return f"{line}  MISSED"
        return f"{line}  {'goal' if self.goal is None or self.reaches(self.goal) else 'met'}"


def report(rows):
    """Print each row, and write them all where --out says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="JSON file to write")
    out = parser.parse_args().out
    rows = [Row(*row) for row in rows]
    for row in rows:
        print(row)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")
