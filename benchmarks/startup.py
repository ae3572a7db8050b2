"""Processor seconds of ``covshift --help`` and ``covshift --version``, beside bare imports.

python benchmarks/startup.py [--out results.json]

The unit is ``python -c "import typer, rich"``, the libraries of the command line without a program.
User and system time of each process, the median of runs that take turns.
"""

import resource
import subprocess
import sys
from pathlib import Path

from measuring import median_seconds, report

BARE = "import typer, rich"
COMMANDS = (["--help"], ["--version"], ["diagnose", "--help"])
LIMIT = 1.5  # times the bare imports
REPETITIONS = 21


def processor_seconds():
    """User and system time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def runner(command):
    """Program that runs a command in a process of its own, without its output."""
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def main():
    """Run each command, and compare."""
    script = Path(sys.executable).with_name("covshift")
    functions = {BARE: runner([sys.executable, "-c", BARE])}
    for arguments in COMMANDS:
        functions[" ".join(["covshift", *arguments])] = runner([script, *arguments])
    seconds = median_seconds(functions, REPETITIONS, clock=processor_seconds)
    for name, value in seconds.items():
        print(f"{name:76s} {1e3 * value:9.0f} ms")
    # Help of a command is printed by Typer, which alone takes longer than the limit.
    report(
        (f"{name} / {BARE}", seconds[name] / seconds[BARE], "<=", LIMIT)
        for name in ("covshift --help", "covshift --version")
    )


if __name__ == "__main__":
    main()
