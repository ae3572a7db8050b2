"""Mutation testing: put small faults into the code, one at a time, and see whether a test fails.

python hardening/mutate.py [--count 600] [--seed 0] [--minutes 60] [--jobs 2] [--out FOLDER]

A sample of mutants (see `mutants`) is drawn, equally many from each package. Everything happens in
copies of the project below ``--out``, one for each of ``--jobs`` processes; the work tree is only
read. First the tests that mirror the packages run once, and coverage says which of them execute
which line. A mutant is then put into a copy, and the tests that execute its line run, the fastest
first, in a child process with a time limit; if all pass, the other tests of its module run, too.
``--by-name`` saves that first run and takes the test files that name the module instead, then all
that mirror its package: for samples of a few mutants. Run the same command again to resume.
"""

import argparse
import json
import math
import multiprocessing
import os
import py_compile
import re
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from children import run_in_child, use_one_thread
from mutants import Mutant, sample_mutants

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("kernels", "solvers", "weights", "measures", "selection", "tables")
# Tests and examples that mirror the packages, and those of their closest users.
TESTS = [
    *(f"tests/{package}" for package in PACKAGES),
    *(f"src/covshift/{package}" for package in PACKAGES),
    "tests/adapters",
    "tests/predictors",
    "tests/diagnosis",
    "tests/streams/test_measures.py",
    "tests/streams/test_moments.py",
    "tests/streams/test_weights.py",
    "tests/cli/test_file_stories.py",
    "tests/cli/test_user_files.py",
    "tests/cli/test_snapshots.py",
]
# Packages whose tests follow, by name, where those of a mutant's own package do not notice it.
USERS = {
    "kernels": ("solvers", "adapters", "weights"),
    "solvers": ("kernels", "adapters"),
    "weights": ("predictors",),
    "measures": ("predictors", "selection"),
    "selection": ("diagnosis", "cli"),
    "tables": ("cli",),
}
NEEDS_A_GPU = ("kernels/fused_filters.py",)
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "hardening")
SECONDS = 15.0  # of tests for one mutant, at most, as they took without a fault
SECONDS_BY_NAME = 120.0  # limit for one mutant where nothing was measured
FILES_BY_NAME = 4
NOTICED = ("killed", "time limit", "crash")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")


def copy_project(target: Path) -> None:
    """Copy what the tests read, and compile the package."""
    skipped = shutil.ignore_patterns("__pycache__", ".*", "_build", "gallery", "generated")
    for name in COPIED:
        shutil.copytree(ROOT / name, target / name, ignore=skipped)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, target / path.name)
    for path in (target / "src").rglob("*.py"):
        py_compile.compile(str(path), quiet=2)


def load_libraries() -> None:
    """Import what every child needs; nothing of the package, nothing that starts threads."""
    import coverage  # noqa: F401
    import hypothesis
    import numpy.testing  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.utils.estimator_checks  # noqa: F401

    # A failing example is enough; a smaller one would take time.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, database=None, deadline=None)


def run_in_copy(work: Callable[[], int], folder: Path, log: Path, limit: float) -> int | None:
    """Run some work in a child that imports the copy of the package."""

    def enter_and_work() -> int:
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(folder / "src")  # for processes that tests start
        sys.path[:0] = [str(folder / "src"), str(folder)]
        return work()

    return run_in_child(enter_and_work, log, limit)


class _Coverage:
    """Say which test runs which line. Lines that fixtures run belong to all tests of their file."""

    def __init__(self, measured: Any, limit: float):
        self.measured, self.limit = measured, limit
        self.seconds, self.good = {}, set()

    def pytest_runtest_logstart(self, nodeid, location):
        self.measured.switch_context(nodeid.partition("::")[0])
        self.start = time.process_time()

    def pytest_runtest_call(self, item):
        self.measured.switch_context(item.nodeid)
        if time.process_time() > self.limit:
            item.session.shouldstop = "the time for this file is up"

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.good.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid, location):
        self.seconds[nodeid] = time.process_time() - self.start


class _FirstFailure:
    def __init__(self, path: Path):
        self.path = path

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)


def run_pytest(tests: list[str], plugin: Any) -> int:
    """Run tests in this process; warnings are errors, as in the suite."""
    import hypothesis
    import pytest

    hypothesis.settings.load_profile("mutants")
    options = ["-q", "-p", "no:cacheprovider", "--no-header", "-m", "not slow"]
    options += ["--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *tests], plugins=[plugin]))


def measure_tests(tests: list[str], folder: Path, path: Path, limit: float) -> int:
    """Run the tests without a fault and write down which of them runs which line."""
    import coverage

    package = folder / "src" / "covshift"
    measured = coverage.Coverage(source=[str(package)], data_file=None, config_file=False)
    plugin = _Coverage(measured, limit)
    measured.start()
    status = run_pytest(tests, plugin)
    measured.stop()
    data, lines = measured.get_data(), {}
    for name in data.measured_files():
        found = data.contexts_by_lineno(name)
        module = Path(name).relative_to(package).as_posix()
        lines[module] = {str(line): sorted(set(one) - {""}) for line, one in found.items()}
    seconds = {name: plugin.seconds[name] for name in sorted(plugin.good)}
    path.write_text(json.dumps({"status": status, "seconds": seconds, "lines": lines}))
    return 0


class Selection:
    """Tests for each mutant, by what was measured."""

    def __init__(self, measured: dict[str, Any]):
        self.seconds, self.lines = measured["seconds"], measured["lines"]
        self.of_file = defaultdict(list)
        for test in self.seconds:
            self.of_file[test.partition("::")[0]].append(test)

    def tests_of(self, mutant: Mutant, *, whole_module: bool) -> list[str]:
        """Return the tests that run the lines of a mutant, or those of its whole module."""
        lines = self.lines.get(mutant.module, {})
        chosen = [
            names
            for line, names in lines.items()
            if whole_module or mutant.line <= int(line) <= mutant.last_line
        ]
        found: set[str] = set()
        for name in {name for names in chosen for name in names}:
            found.update([name] if name in self.seconds else self.of_file[name])
        package = mutant.module.partition("/")[0]
        mirrored = (f"tests/{package}/", f"src/covshift/{package}/")
        order = sorted(found, key=lambda test: (not test.startswith(mirrored), self.seconds[test]))
        total, kept = 0.0, []
        for test in order:
            total += self.seconds[test]
            if kept and total > SECONDS:
                break
            kept.append(test)
        return kept

    def limit(self, tests: list[str]) -> float:
        """Return the seconds after which tests are ended."""
        return 20 + 5 * sum(self.seconds[test] for test in tests)


def dotted_name(module: str) -> str:
    """Return the name by which a module is imported."""
    return "covshift." + module.removesuffix(".py").replace("/", ".")


class SelectionByName:
    """Test files for each mutant: those that import its module, or name what it defines.

    If these do not notice it, the others that mirror its package and its users follow.
    """

    def __init__(self, tree: Path, targets: list[str]):
        self.tree, self.texts = tree, {}
        for target in targets:
            place = tree / target
            for path in [place] if place.is_file() else sorted(place.rglob("test_*.py")):
                self.texts[path.relative_to(tree).as_posix()] = path.read_text(encoding="utf-8")

    def tests_of(self, mutant: Mutant, *, whole_module: bool) -> list[str]:
        """Return the files, those that mirror the package first."""
        if whole_module:
            package = mutant.module.partition("/")[0]
            near = tuple(f"tests/{name}/" for name in (package, *USERS[package]))
            return sorted(test for test in self.texts if test.startswith(near))
        modules = [mutant.module]
        if not (found := self.files_naming(modules)):
            # A module that only its package uses: the tests are those of its users.
            dotted = dotted_name(mutant.module)
            package = self.tree / "src" / "covshift"
            modules = [
                path.relative_to(package).as_posix()
                for path in sorted(package.rglob("*.py"))
                if dotted in path.read_text(encoding="utf-8")
            ]
            found = self.files_naming(modules)
        return found[:FILES_BY_NAME]

    def files_naming(self, modules: list[str]) -> list[str]:
        """Return the test files that import one of some modules, or name what they define."""
        ranks = {}
        for module in modules:
            text = (self.tree / "src" / "covshift" / module).read_text(encoding="utf-8")
            defined = re.findall(r"^(?:def|class) ([A-Za-z]\w+)", text, re.MULTILINE)
            dotted, mirrored = dotted_name(module), f"tests/{module.partition('/')[0]}/"
            for test, lines in self.texts.items():
                named = sum(bool(re.search(rf"\b{name}\b", lines)) for name in defined)
                if named or dotted in lines:
                    rank = (not test.startswith(mirrored), dotted not in lines, -named, test)
                    ranks[test] = min(rank, ranks.get(test, rank))
        return sorted(ranks, key=ranks.__getitem__)

    def limit(self, tests: list[str]) -> float:
        """Return the seconds after which tests are ended."""
        return SECONDS_BY_NAME * max(1.0, len(tests) / FILES_BY_NAME)


def judge(mutant: Mutant, folder: Path, selection: Any) -> dict[str, Any]:
    """Put a mutant into the copy, run its tests, take it out, and say what happened."""
    path = folder / "src" / "covshift" / mutant.module
    failure, log = folder / "failure.txt", folder / "log.txt"
    source = path.read_text(encoding="utf-8")
    # A compiled file is distinguished from a stale one by seconds and size, which may both agree.
    compiled = Path(py_compile.compile(str(path)) or "")
    compiled.unlink()
    start, done, status = time.monotonic(), [], "not run"
    path.write_text(mutant.apply(source), encoding="utf-8")
    try:
        for whole_module in (False, True):
            tests = selection.tests_of(mutant, whole_module=whole_module)
            tests = [test for test in tests if test not in done]
            if not tests:
                continue
            done += tests
            failure.unlink(missing_ok=True)

            def work(tests=tests):
                sys.dont_write_bytecode = True
                return run_pytest(["-x", *tests], _FirstFailure(failure))

            code = run_in_copy(work, folder, log, selection.limit(tests))
            # Tests that cannot be collected, or their conftest not imported, notice it as well.
            status = {0: "survived", None: "time limit"}.get(
                code, "crash" if code is not None and code < 0 else "killed"
            )
            if status != "survived":
                break
    finally:
        path.write_text(source, encoding="utf-8")
        py_compile.compile(str(path))
    by = failure.read_text() if status == "killed" and failure.exists() else ""
    if status == "killed" and not by:
        # No test failed by name: then the tests must pass without the mutant.
        code = run_in_copy(work, folder, log, selection.limit(tests))
        if code != 0:
            raise RuntimeError(f"Tests fail without a mutant (status {code}): see {log}")
    return {
        "key": mutant.key, "module": mutant.module, "line": mutant.line,
        "operator": mutant.operator, "before": mutant.before, "after": mutant.after,
        "text": source.splitlines()[mutant.line - 1].strip(), "status": status, "by": by,
        "tests": len(done), "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip


def wilson(k: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    if not n:
        return 0.0, 1.0
    z, p = 1.959963984540054, k / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def is_equivalent(result: dict[str, Any], known: list[dict[str, Any]]) -> bool:
    """Return whether a mutant is listed as one that changes nothing that is promised."""
    names = ("module", "operator", "text", "before", "after")
    return any(all(one[name] == result[name] for name in names) for one in known)


def summarize(results: list[dict[str, Any]], known: list[dict[str, Any]]) -> tuple[str, float]:
    """Return a table by package with the survivors, and the share that was noticed."""
    lines = ["package     mutants  noticed  survived  of these equivalent"]
    totals = [0, 0, 0]
    for package in PACKAGES:
        part = [one for one in results if one["module"].startswith(f"{package}/")]
        survived = [one for one in part if one["status"] not in NOTICED]
        equivalent = sum(is_equivalent(one, known) for one in survived)
        counts = [len(part), len(part) - len(survived), equivalent]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        lines.append(
            f"{package:10}  {counts[0]:7}  {counts[1]:7}  {len(survived):8}  {equivalent:19}"
        )
    n, noticed, equivalent = totals
    low, high = wilson(noticed, n)
    lines.append(f"{noticed} of {n} noticed, {noticed / max(n, 1):.1%} ({low:.1%} to {high:.1%})")
    rest = n - equivalent
    low, high = wilson(noticed, rest)
    share = noticed / max(rest, 1)
    lines.append(f"without equivalent: {noticed} of {rest}, {share:.1%} ({low:.1%} to {high:.1%})")
    for one in results:
        if one["status"] not in NOTICED and not is_equivalent(one, known):
            lines.append(
                f"{one['status']}: {one['module']}:{one['line']} {one['operator']}: "
                f"{one['before']!r} -> {one['after']!r}   [{one['text']}]"
            )
    return "\n".join(lines), share


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Return the results of earlier runs; a line cut short by a kill is left out."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            result = json.loads(line)
        except ValueError:
            continue
        found[result["key"]] = result
    return found


_worker: dict[str, Any] = {}  # what a process was given when it started: ``tree``, ``selection``


def _start_worker(out: Path, number: Any, selection: Any) -> None:
    with number.get_lock():
        _worker.update(tree=out / f"tree-{number.value}", selection=selection)
        number.value += 1


def start_workers(out: Path, jobs: int, selection: Any = None) -> Any:
    """Return a pool of processes, each with its own copy of the project in ``out``."""
    for number in range(jobs):
        # A run that was killed may have left its mutant in a copy.
        shutil.rmtree(out / f"tree-{number}", ignore_errors=True)
        shutil.copytree(out / "source", out / f"tree-{number}")
    # Forks hold the imported libraries; nothing has started a thread yet.
    context = multiprocessing.get_context("fork")
    return context.Pool(jobs, _start_worker, (out, context.Value("i", 0), selection))


def copy_once(out: Path) -> None:
    """Copy the project, unless an earlier run has done so."""
    source = out / "source"
    if not (out / "copied").exists():
        shutil.rmtree(source, ignore_errors=True)
        (out / "tests.json").unlink(missing_ok=True)
        copy_project(source)
        (out / "copied").touch()


def measure_file(limit: float, target: str) -> dict[str, Any]:
    """Measure the tests of a file in the copy of this process."""
    tree = _worker["tree"]
    path, log = tree / "measured.json", tree / "log.txt"
    path.unlink(missing_ok=True)
    status = run_in_copy(lambda: measure_tests([target], tree, path, limit), tree, log, 1800)
    if not path.exists():
        return {"status": status, "seconds": {}, "lines": {}, "log": log.read_text()[-2000:]}
    return dict(json.loads(path.read_text()))


def merge_measured(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return what was measured of all files, as if of one."""
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        seconds.update(part["seconds"])
        for module, found in part["lines"].items():
            known = lines.setdefault(module, {})
            for line, names in found.items():
                known[line] = sorted({*known.get(line, []), *names})
    return {"seconds": seconds, "lines": lines}


def choose_selection(
    out: Path, jobs: int, tests: list[str], limit: float = math.inf, *, by_name: bool
) -> Any:
    """Return which tests belong to a mutant; what an earlier run measured is used again."""
    source, path = out / "source", out / "tests.json"
    if by_name:
        return SelectionByName(source, tests)
    if path.exists():
        print(f"Resuming with the copy and the tests in {out}.", flush=True)
    else:
        files = [
            one.relative_to(source).as_posix()
            for place in (source / target for target in tests)
            for one in ([place] if place.is_file() else sorted(place.rglob("*.py")))
            if one.name.startswith("test_") or ">>>" in one.read_text(encoding="utf-8")
        ]
        if not files:
            sys.exit(f"There are no tests in {', '.join(tests)}.")
        print(f"Running the tests of {len(files)} files without a fault.", flush=True)
        with start_workers(out, jobs) as pool:
            parts = pool.map(partial(measure_file, limit), files, chunksize=1)
        for part in parts:
            if "log" in part:
                print(f"Tests could not be run (status {part['status']}):\n{part['log']}")
        path.write_text(json.dumps(merge_measured(parts)))
    return Selection(json.loads(path.read_text()))


def judge_until(end: float, mutant: Mutant) -> dict[str, Any] | None:
    """Judge a mutant in the copy of this process, or return None if the time is up."""
    if time.monotonic() > end:
        return None
    return judge(mutant, _worker["tree"], _worker["selection"])


def main(arguments: list[str] | None = None) -> int:
    """Run the sample; return 1 where too few mutants were noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no mutant after")
    parser.add_argument("--jobs", type=int, default=1, help="mutants judged at a time")
    parser.add_argument("--at-least", type=float, default=0.9, help="share to be noticed")
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), choices=PACKAGES)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="tests that may notice")
    parser.add_argument("--by-name", action="store_true", help="do not measure coverage first")
    parser.add_argument(
        "--file-seconds", type=float, default=math.inf, help="of each file's tests to measure"
    )
    parser.add_argument("--again", action="store_true", help="run survivors of earlier runs again")
    parser.add_argument("--out", type=Path, default=ROOT / "hardening-output" / "mutants")
    options = parser.parse_args(arguments)
    use_one_thread()
    os.environ.setdefault("SCIPY_ARRAY_API", "1")
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * options.minutes
    load_libraries()
    copy_once(out)
    selection = choose_selection(
        out, options.jobs, options.tests, options.file_seconds, by_name=options.by_name
    )
    package = out / "source" / "src" / "covshift"
    sample = sample_mutants(package, options.packages, options.count, options.seed, NEEDS_A_GPU)
    path = out / "results.jsonl"
    results = read_results(path)
    due = [
        mutant
        for mutant in sample
        if mutant.key not in results
        or (options.again and results[mutant.key]["status"] not in NOTICED)
    ]
    n_judged = 0
    with start_workers(out, options.jobs, selection) as pool, open(path, "a") as file:
        for result in filter(None, pool.imap_unordered(partial(judge_until, end), due)):
            results[result["key"]] = result
            n_judged += 1
            file.write("\n" + json.dumps(result))  # after a line that a kill cut short, too
            file.flush()
    if n_judged < len(due):
        print(f"Time is up: {len(due) - n_judged} of {len(sample)} mutants are left.")
    known = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else []
    chosen = [results[mutant.key] for mutant in sample if mutant.key in results]
    text, share = summarize(chosen, known)
    print(text)
    return int(share < options.at_least)


if __name__ == "__main__":
    sys.exit(main())
