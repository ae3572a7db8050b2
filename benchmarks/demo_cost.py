"""Processor time of `covshift demo`, all of its processes together, with and without compiled code.

python benchmarks/demo_cost.py [--repetitions 3] [--jobs 2]

The two ways take turns. Linux only: workers that outlive their parent are waited for here.
"""

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile

PR_SET_CHILD_SUBREAPER = 36


def seconds_of(command, environment):
    """Processor time of a command and of all processes that it started."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    """Run the demo in both ways, in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seconds = {"numpy": [], "auto": []}
    for _ in range(options.repetitions):
        for kernels, found in seconds.items():
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "covshift", "demo", "--jobs", str(options.jobs)]
                environment = os.environ | {"COVSHIFT_KERNELS": kernels}
                found.append(seconds_of([*command, "--out", folder], environment))
                print(f"COVSHIFT_KERNELS={kernels}: {found[-1]:.1f} s", flush=True)
    for kernels, found in seconds.items():
        print(f"{kernels}: median {statistics.median(found):.1f} s, least {min(found):.1f} s")


if __name__ == "__main__":
    main()
