"""Commands on extreme files: sizes, bytes, and files that change; one table of what happens.

python hardening/extremes.py [--rows 10000000] [--columns 1000000] [--only NAME] [--out table.csv]

Every command runs in a process of its own with at most 6 GB of memory; processor time is without
the imports. A case passes if the command does what it promises: it works, or ends with one line on
standard error that names the fault, and leaves no output.
"""

import argparse
import csv
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from children import use_one_thread

use_one_thread()

import numpy as np  # noqa: E402

MEMORY = 6 << 30
LIMIT = 1800.0  # seconds
# Words of the refusals that are promised.
TOO_WIDE = "columns at most are read"
NOT_TEXT = "holds bytes that text files do not have"
CHANGED = "changed while it was read"
IN_USE = "is in use"


@dataclass
class Ended:
    """How a command ended, and what it took."""

    code: int
    output: str
    errors: str
    cpu: float
    megabytes: float


# The trial, words of the promised refusal ("": it works), and how it ended.
Cases = Iterator[tuple[str, str, "Ended"]]


def run(folder: Path, *arguments: str, disturb: Callable[[int], None] | None = None) -> Ended:
    """Run a command of covshift in a folder; ``disturb`` gets its number while it runs."""
    child = os.fork()
    if not child:
        _become_command(folder, arguments)
    timer = threading.Timer(LIMIT, os.kill, (child, signal.SIGKILL))
    timer.start()
    if disturb is not None:
        disturb(child)
    _, status, used = os.wait4(child, 0)
    timer.cancel()
    found = [(folder / name).read_text(errors="replace") for name in ("stdout", "stderr")]
    for name in ("stdout", "stderr"):
        (folder / name).unlink()
    cpu = used.ru_utime + used.ru_stime
    return Ended(os.waitstatus_to_exitcode(status), *found, cpu, used.ru_maxrss / 1024)


def _become_command(folder: Path, arguments: tuple[str, ...]) -> NoReturn:
    """Turn a copy of this process, which has the imports behind it, into a command."""
    code: Any = 99
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            with open(name, "w") as file:
                os.dup2(file.fileno(), number)
        from covshift.cli import main

        sys.argv = ["covshift", *arguments]
        main()
        code = 0
    except SystemExit as ending:
        code = ending.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def describe(ended: Ended, refusal: str = "") -> tuple[str, bool]:
    """Return what happened in words, and whether that is as promised.

    ``refusal``: words of the one line that is promised; empty: the command must work.
    """
    if ended.code in (0, 3):
        lines = [line for line in ended.output.splitlines() if line.strip()]
        return f"works: {lines[-1].strip()[:160]}" if lines else "works", not refusal
    lines = ended.errors.splitlines()
    good = ended.code in (1, 2) and len(lines) == 1 and bool(refusal) and refusal in lines[0]
    words = lines[-1] if lines else f"exit status {ended.code}"
    return f"{'refused' if good else 'FAILS'}: {words[:300]}", good


def write_small(folder: Path, n_rows: int = 200) -> None:
    """Write a training table, a new table, and a model."""
    rng = np.random.default_rng(0)
    for name, moved in (("train.csv", 0.0), ("new.csv", 1.0)):
        rows = rng.normal(moved, 1, (n_rows, 2)).round(3)
        labels = np.where(rows.sum(axis=1) > 2 * moved, "yes", "no")
        text = "".join(f"{a},{b},{c}\n" for (a, b), c in zip(rows, labels, strict=True))
        (folder / name).write_text(f"x1,x2,label\n{text}")
    ended = run(folder, "adapt", "train.csv", "new.csv", "--label", "label",
                "--adapter", "standardize", "--out", "model")  # fmt: skip
    assert ended.code == 0, ended.errors


def write_long(path: Path, n_rows: int) -> None:
    """Write a table of many rows."""
    rng = np.random.default_rng(1)
    block = "".join(f"{a},{b}\n" for a, b in rng.normal(1, 1, (100_000, 2)).round(3))
    with path.open("w") as file:
        file.write("x1,x2\n")
        for _ in range(n_rows // 100_000):
            file.write(block)


def count_predictions(folder: Path, ended: Ended, n_rows: int) -> None:
    """Add to what a command said how many predictions it has written."""
    if ended.code == 0:
        with (folder / "out.csv").open() as file:
            count = sum(1 for _ in file) - 1
        ended.output += f"\n{count:,} predictions for a file that had {n_rows:,} rows"


def many_columns(folder: Path, options: argparse.Namespace) -> Cases:
    """A table much wider than any that is meant."""
    n = options.columns
    names = ",".join(f"c{i}" for i in range(n))
    rng = np.random.default_rng(2)
    for name in ("wide-train.csv", "wide-new.csv"):
        with (folder / name).open("w") as file:
            file.write(f"label,{names}\n")
            for row in range(6):
                cells = ",".join(map(str, rng.integers(10, size=n).tolist()))
                file.write(f"{'yes' if row % 2 else 'no'},{cells}\n")
    what = f"{n:,} columns"
    arguments = ["wide-train.csv", "wide-new.csv", "--label", "label", "--adapter", "standardize"]
    yield f"{what}, `adapt`", TOO_WIDE, run(folder, "adapt", *arguments, "--out", "out.csv")
    ended = run(folder, "predict", "model", "wide-new.csv", "--out", "out.csv")
    yield f"{what}, `predict` with a model of two", TOO_WIDE, ended


def many_rows(folder: Path, options: argparse.Namespace) -> Cases:
    """A table much longer than memory is meant for."""
    write_long(folder / "long.csv", options.rows)
    what = f"{options.rows:,} rows"
    ended = run(folder, "predict", "model", "long.csv", "--out", "out.csv")
    count_predictions(folder, ended, options.rows)
    yield f"{what}, `predict`", "", ended
    ended = run(folder, "monitor", "model", "long.csv")
    # Of the notes, the one on what moved is kept: the others vary.
    said = [line for line in ended.output.splitlines() if "oved: " in line]
    ended.output = "\n".join(said) or ended.output
    yield f"{what}, `monitor`", "", ended


def nul_bytes(folder: Path, options: argparse.Namespace) -> Cases:
    """NUL bytes in a cell, in a name, and nothing else."""
    good = (folder / "new.csv").read_bytes()
    contents = {
        "no fault, to compare with": good,
        "NUL bytes in one cell": good.replace(b".", b"\0", 1),
        "NUL bytes in 50 cells": good.replace(b".", b"\0", 50),
        "NUL bytes in the names": good.replace(b"x1", b"x\0", 1),
        "only NUL bytes": b"\0" * 10_000,
        "a hole at the end, as after a loss of power": good + b"\0" * 4096,
    }
    for what, content in contents.items():
        (folder / "nul.csv").write_bytes(content)
        ended = run(folder, "predict", "model", "nul.csv", "--out", "out.csv")
        yield f"{what}, `predict`", NOT_TEXT if b"\0" in content else "", ended


def other_encodings(folder: Path, options: argparse.Namespace) -> Cases:
    """Text that is not UTF-8."""
    good = (folder / "new.csv").read_text().replace("label", "Größe")
    contents = {
        "Windows-1252": good.encode("cp1252"),
        "UTF-16": good.encode("utf-16"),
        "bytes of no encoding": good.encode().replace("ö".encode(), b"\x81\xff"),
        "UTF-8 and Windows-1252 in one file": good.encode() + "1,2,ü\n".encode("cp1252"),
        "UTF-8 cut in the middle of a character": good.encode() + b"1,2,\xc3",
    }
    for what, content in contents.items():
        (folder / "text.csv").write_bytes(content)
        ended = run(folder, "predict", "model", "text.csv", "--out", "out.csv")
        yield f"{what}, `predict`", "", ended
    (folder / os.fsdecode(b"na\xffme.csv")).write_bytes((folder / "new.csv").read_bytes())
    name = os.fsdecode(b"na\xffme.csv")
    ended = run(folder, "predict", "model", name, "--out", "out.csv")
    yield "a file name that is not UTF-8, `predict`", "", ended


def stop_in_second_reading(child: int, path: Path) -> bool:
    """Stop a process when it reads a file again, behind a quarter; False: it has ended before."""
    size, furthest = path.stat().st_size, 0
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        place = _place_in_file(child, path)
        furthest = max(furthest, place)
        if furthest > size / 2 and size / 4 < place < furthest * 0.9:
            os.kill(child, signal.SIGSTOP)
            return True
        time.sleep(0.0005)
    return False


def _place_in_file(process: int, path: Path) -> int:
    """Return how far a process has read a file; 0: it has not opened it."""
    folder = Path("/proc", str(process))
    try:
        for one in os.scandir(folder / "fd"):
            if os.readlink(one.path) == str(path):
                return int((folder / "fdinfo" / one.name).read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def changing_files(folder: Path, options: argparse.Namespace) -> Cases:
    """A file that another program appends to, cuts or replaces while it is read."""
    path, n_rows = folder / "changing.csv", max(options.rows // 2, 100_000)

    def append() -> None:
        with path.open("a") as file:
            file.write("1.0,2.0\n" * 1000)

    def cut() -> None:
        os.truncate(path, path.stat().st_size // 2)

    def replace() -> None:
        (folder / "other.csv").write_text("a,b\n1,2\n")
        (folder / "other.csv").rename(path)

    def garble() -> None:
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(b"\0\xff" * 5000)

    named = {"appended to": append, "cut to half": cut, "replaced": replace, "overwritten": garble}
    for what, disturb in named.items():
        write_long(path, n_rows)
        in_time = []

        def stop_and_disturb(child: int, disturb=disturb, in_time=in_time) -> None:
            in_time.append(stop_in_second_reading(child, path))
            disturb()
            if in_time[0]:
                os.kill(child, signal.SIGCONT)

        ended = run(
            folder, "predict", "model", "changing.csv", "--out", "out.csv", disturb=stop_and_disturb
        )
        count_predictions(folder, ended, n_rows)
        if not in_time[0]:
            ended.output += "\nthe command had ended before the change"
        promised = CHANGED if in_time[0] else ""
        yield f"a file that is {what} while it is read, `predict`", promised, ended


def two_processes(folder: Path, options: argparse.Namespace) -> Cases:
    """Two processes with one ``--out``."""
    study = ["reproduce", "synthetic", "--trials", "1", "--jobs", "1", "--out", "study"]
    first = subprocess.Popen(
        [sys.executable, "-m", "covshift", *study], cwd=folder, stdout=subprocess.DEVNULL
    )
    while not (folder / "study" / "trials.sqlite").exists() and first.poll() is None:
        time.sleep(0.05)
    time.sleep(1)
    yield "two studies on one `--out`, the second", IN_USE, run(folder, *study)
    first.kill()
    first.wait()
    yield "the same after the first was killed", "", run(folder, *study)
    adapt = ["adapt", "train.csv", "new.csv", "--label", "label", "--adapter", "standardize"]
    command = [sys.executable, "-m", "covshift", *adapt, "--out", "both"]
    others = [subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) for _ in range(2)]
    ended = run(folder, *adapt, "--out", "both")
    codes = [other.wait() for other in others]
    ended.output += f"\nthe others end with {codes}"
    ended.code = max(ended.code, *codes)
    yield "three `adapt` to one model file at once", "", ended
    yield "the model file after that, `show`", "", run(folder, "show", "both")


CASES = {
    "two-processes": two_processes,
    "changing-files": changing_files,
    "many-columns": many_columns,
    "many-rows": many_rows,
    "nul-bytes": nul_bytes,
    "encodings": other_encodings,
}


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a command does not do what it promises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, help="file for the table, CSV")
    options = parser.parse_args(arguments)
    import covshift.cli.commands.adapt
    import covshift.cli.commands.monitor
    import covshift.cli.commands.predict
    import covshift.cli.commands.show
    import covshift.tables  # noqa: F401

    rows = []
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_small(folder)
        for case in options.only:
            for what, refusal, ended in CASES[case](folder, options):
                words, good = describe(ended, refusal)
                left = (folder / "out.csv").exists()
                if ended.code not in (0, 3) and left:
                    words, good = f"{words}; leaves an output", False
                (folder / "out.csv").unlink(missing_ok=True)
                failed += not good
                words = re.sub(r"\s+", " ", words.replace(str(folder), "."))
                rows.append([what, words, f"{ended.cpu:.1f}", f"{ended.megabytes:.0f}"])
                print(*rows[-1], sep=" | ", flush=True)
    print(f"{len(rows)} cases, {failed} not as promised.")
    if options.out is not None:
        with options.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["case", "what happens", "processor seconds", "peak MB"])
            writer.writerows(rows)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
