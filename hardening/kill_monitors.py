"""Append batches to one history from several processes, kill these at random, and count lines.

python hardening/kill_monitors.py [--batches 1000] [--processes 4] [--kills 100] [--seed 0]

Each process writes its share of the batches, and half of the next one's: these are written twice
at the same time. A process is killed with SIGKILL at random moments and started again from its
first batch, as somebody would who does not know how far it came. In the end every batch must be in
the history once, and every line whole.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from covshift.tables.monitoring_history import append_history, batch_key, read_history

PAUSE = 0.02  # seconds, at most, between kills


def write_share(path: Path, first: int, last: int) -> None:
    """Write batches one by one, of different lengths, as ``covshift monitor`` would."""
    for number in range(first, last):
        name = f"batch {number}"
        line = {
            "kind": "batch", "key": batch_key(name), "name": name, "digest": str(number),
            "rows": 10, "moved": False, "what_moved": [],
            "features": ["x" * (number % 97)] * (number % 53),
        }  # fmt: skip
        append_history(path, [line])


def start(path: Path, share: int, options: argparse.Namespace) -> int:
    """Start the process of a share; return its number."""
    size = -(-options.batches // options.processes)
    first = share * size
    last = min(first + size + size // 2, options.batches)
    child = os.fork()
    if child == 0:
        try:
            write_share(path, first, last)
        except BaseException as error:
            print(f"process of share {share}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def run(options: argparse.Namespace, path: Path) -> int:
    """Write the history with kills; return the number of processes that were killed at work."""
    rng = random.Random(options.seed)
    running = {start(path, share, options): share for share in range(options.processes)}
    n_killed = 0
    while running:
        time.sleep(PAUSE * rng.random())
        if n_killed < options.kills:
            victim = rng.choice(list(running))
            os.kill(victim, signal.SIGKILL)
        else:
            victim = next(iter(running))
        _, status = os.waitpid(victim, 0)
        share = running.pop(victim)
        if os.WIFSIGNALED(status):
            n_killed += 1
            running[start(path, share, options)] = share
        elif os.WEXITSTATUS(status):
            raise SystemExit("A process failed.")
    return n_killed


def check(path: Path, n_batches: int) -> list[str]:
    """Return what is wrong with a history; nothing, if all is well."""
    names = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            names.append(json.loads(text)["name"])
        except ValueError:
            return ["A line is torn."]
    wanted = {f"batch {number}" for number in range(n_batches)}
    problems = []
    if lost := wanted - set(names):
        problems.append(f"{len(lost)} batches are lost.")
    if len(names) > len(set(names)):
        problems.append(f"{len(names) - len(set(names))} lines are doubled.")
    if read_history(path).notes:
        problems += read_history(path).notes
    return problems


def main() -> None:
    """Run, check, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        begin = time.perf_counter()
        n_killed = run(options, path)
        problems = check(path, options.batches)
        seconds = time.perf_counter() - begin
    print(
        f"{options.batches} batches by {options.processes} processes, {n_killed} kills, "
        f"{seconds:.0f} s: {' '.join(problems) or 'no line lost, torn or doubled.'}"
    )
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
