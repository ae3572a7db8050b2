"""Kill a study with SIGKILL, resume it, and compare its tables with those of an undisturbed run.

python hardening/kill_and_resume.py [--kills 3] [--seed 0] [--trials 3] [--jobs 2]

``covshift reproduce synthetic`` runs twice with the same seed. One run is killed, with its worker
processes, at random moments after a result was stored, and started again each time. All tables
(``*.csv``) must then have the same bytes, and no other files may be left.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path


def command_line(out: Path, options: argparse.Namespace) -> list[str]:
    """Return the command of the study."""
    return [
        sys.executable, "-m", "covshift", "reproduce", "synthetic", "--out", str(out),
        "--trials", str(options.trials), "--seed", str(options.seed), "--jobs", str(options.jobs),
    ]  # fmt: skip


def count_stored(out: Path) -> int:
    """Return how many results a run has stored so far.

    A run locks its file until it ends. The file is read all the same, as if nothing wrote to it;
    in the middle of a change that may fail, and counts as none.
    """
    path = out / "trials.sqlite"
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as store:
            return int(store.execute("SELECT COUNT(*) FROM trials").fetchone()[0])
    except sqlite3.DatabaseError:
        return 0


def run_until(command: list[str], out: Path, n_stored: int) -> bool:
    """Run the command, kill it once ``n_stored`` results exist; return whether it ended first."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while process.poll() is None:
            if count_stored(out) >= n_stored:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return False
            time.sleep(0.05)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}.")
    return True


def read_tables(out: Path) -> dict[str, bytes]:
    """Return the tables of a run by name."""
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.csv"))}


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if the tables differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=3, help="draws; 3 are those of --quick")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        subprocess.run(command_line(whole, options), check=True, stdout=subprocess.DEVNULL)
        total = count_stored(whole)
        rng = random.Random(options.seed)
        moments = sorted(rng.sample(range(1, total), min(options.kills, total - 1)))
        kills = 0
        for moment in moments:
            ended = run_until(command_line(killed, options), killed, moment)
            if ended:
                break
            stored = count_stored(killed)
            kills += stored < total  # else only the tables were left to write
            print(f"Killed with {stored} of {total} results stored.", flush=True)
        run_until(command_line(killed, options), killed, sys.maxsize)
        tables = [read_tables(whole), read_tables(killed)]
        names = [sorted(os.listdir(one)) for one in (whole, killed)]
    differ = [name for name in tables[0] if tables[0][name] != tables[1].get(name)]
    print(
        f"{kills} kills with results missing, {total} results, {len(tables[0])} tables, "
        f"{len(differ)} of them differ."
    )
    for name in differ:
        print(f"{name} differs.")
    if names[0] != names[1]:
        print(f"Other files: {names[0]} and {names[1]}.")
    return int(bool(differ) or names[0] != names[1] or not kills or not tables[0])


if __name__ == "__main__":
    sys.exit(main())
