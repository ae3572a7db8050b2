"""How much code a reader meets: sizes of the package, and what a single fit or command runs.

python benchmarks/footprint.py [--json FILE]

A reader should find a module by its name, and read a fit in a few files. These figures show
whether a change moves the package closer to that:

- **Sizes** of the files of the package: lines, the share of import statements and of comment lines
  (lines that hold nothing else), files below 60 lines.
- **Imports** as written, those inside functions included: files that exactly one other file
  imports, which may belong into it, and imports of a private module (its name starts with an
  underscore) from outside its folder.
- **Modules loaded** by ``import covshift`` and by ``covshift --version``, and whether these load
  scikit-learn and pandas, which take most of the start-up time.
- **Runs**, each in a new process, without parallel work: distinct functions of the package that are
  called, files that hold these functions, the greatest call depth (functions of the package that
  are active at once; frames of other packages do not count), and modules of the package loaded at
  the end. Bodies of modules and classes and comprehensions do not count as functions. A fit is
  counted after all imports, a command from its entry point on.

Everything is counted by path below the folder of the package, so that versions with other module
names compare. It takes some minutes, most of them for the study.
"""

import argparse
import ast
import importlib.util
import inspect
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SMALL = 60  # lines
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def find_package() -> Path:
    """Return the folder of the package that would be imported, without importing it."""
    spec = importlib.util.find_spec("covshift")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parent


# --- Sizes and imports ---


def import_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that import statements take."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def comment_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold a comment and nothing else."""
    lines = text.splitlines()
    return {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#")
    }


def measure_sizes(root: Path) -> dict[str, float]:
    """Count files and lines."""
    lengths, n_imports, n_comments = [], 0, 0
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lengths.append(len(text.splitlines()))
        n_imports += len(import_lines(ast.parse(text)))
        n_comments += len(comment_lines(text))
    return {
        "files": len(lengths),
        "lines": sum(lengths),
        "median lines": statistics.median(lengths),
        f"files under {SMALL} lines": sum(length < SMALL for length in lengths),
        "import lines, %": round(100 * n_imports / sum(lengths), 2),
        "comment lines, %": round(100 * n_comments / sum(lengths), 2),
    }


def module_files(root: Path) -> dict[str, Path]:
    """Return the file of each module, by its dotted name."""
    found = {}
    for path in root.rglob("*.py"):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def imported_modules(path: Path, name: str, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that each import statement of a file names."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules.keys()
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, node.module or ""]).rstrip(".") if node.level else node.module
            # A name may be a module of the package, or something in it.
            named = {f"{base}.{alias.name}" for alias in node.names}
            yield from named & modules.keys()
            if base in modules and not named <= modules.keys():
                yield str(base)


def measure_imports(root: Path) -> dict[str, int]:
    """Count who imports whom."""
    modules = module_files(root)
    importers = defaultdict(set)
    n_private = 0
    for name, path in modules.items():
        for imported in imported_modules(path, name, modules):
            if imported != name:
                importers[imported].add(name)
            private = imported.rpartition(".")[2].startswith("_")
            n_private += private and modules[imported].parent not in (path.parent, *path.parents)
    return {
        "files imported by one other": sum(len(names) == 1 for names in importers.values()),
        "imports of private modules from elsewhere": n_private,
    }


# --- Runs, each in a process of its own ---


def is_function_of(root: str, code: Any) -> bool:
    """Return whether code is that of a function of the package."""
    # Bodies of modules and classes have names in dictionaries: they are not optimized.
    return (
        bool(code.co_flags & inspect.CO_OPTIMIZED)
        and code.co_name not in COMPREHENSIONS
        and os.path.realpath(code.co_filename).startswith(root)
    )


def count_calls(function: Callable[[], object], root: Path) -> dict[str, int]:
    """Call a function and count what it calls of the package, in all threads."""
    is_ours: dict[Any, bool] = {}
    active: defaultdict[int, int] = defaultdict(int)  # depth in each thread
    called: dict[Any, int] = {}  # code -> greatest depth it was called at
    inside = str(root) + os.sep
    get_thread = threading.get_ident

    def see(frame: Any, event: str, argument: Any) -> None:
        if event[0] == "c" and event != "call":  # functions of C, the most by far
            return
        code = frame.f_code
        ours = is_ours.get(code)
        if ours is None:
            ours = is_ours[code] = is_function_of(inside, code)
        if not ours:
            return
        thread = get_thread()
        if event == "call":
            depth = active[thread] = active[thread] + 1
            if depth > called.get(code, 0):
                called[code] = depth
        else:
            active[thread] -= 1

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {
        "functions": len(called),
        "files": len({code.co_filename for code in called}),
        "depth": max(called.values()),
        "modules loaded": count_loaded(),
    }


def count_loaded() -> int:
    """Return how many modules of the package are loaded."""
    return sum(name.partition(".")[0] == "covshift" for name in sys.modules)


def run_command(*arguments: str) -> None:
    """Run the command line on arguments, in this process."""
    from covshift.cli import main

    sys.argv = ["covshift", *arguments]
    try:
        main()
    except SystemExit as error:
        if error.code not in (None, 0):
            raise


def make_rows() -> tuple[Any, Any, Any]:
    """Return rows of two source domains and a target, in the plane."""
    from covshift import stack_domains
    from covshift.datasets import make_smooth_shift

    data = make_smooth_shift(60, 60, 1, random_state=0)
    halves = {"A": slice(30), "B": slice(30, None)}
    source = {name: (data.X_source[rows], data.y_source[rows]) for name, rows in halves.items()}
    X, y, sample_domain = stack_domains(source, target={"C": data.X_target})
    return X, y, sample_domain


def prepare_filter() -> Callable[[], object]:
    """Return the fit of PSF."""
    from covshift import PeriodicSparseFiltering

    X, y, sample_domain = make_rows()
    model = PeriodicSparseFiltering(random_state=0)
    return lambda: model.fit(X, y, sample_domain=sample_domain)


def prepare_alignment() -> Callable[[], object]:
    """Return the fit of CORAL alone."""
    from covshift import CorrelationAlignment

    X, y, sample_domain = make_rows()
    return lambda: CorrelationAlignment().fit(X, y, sample_domain=sample_domain)


def prepare_classifier() -> Callable[[], object]:
    """Return the fit of a classifier behind CORAL, and its predictions."""
    from covshift import AdaptedClassifier, CorrelationAlignment

    X, y, sample_domain = make_rows()
    model = AdaptedClassifier(CorrelationAlignment())
    return lambda: model.fit(X, y, sample_domain=sample_domain).predict(X)


def write_tables(folder: Path) -> None:
    """Write train.csv with labels and sites, and new.csv without."""
    X, y, sample_domain = make_rows()
    for name, rows in (("train", sample_domain >= 0), ("new", sample_domain < 0)):
        lines = ["a,b,word,site,label"]
        for (a, b), label, domain in zip(X[rows], y[rows], sample_domain[rows], strict=True):
            word = "low" if b < 0 else "high"
            known = f"class {label}" if name == "train" else ""
            lines.append(f"{a:.6f},{b:.6f},{word},site {domain},{known}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


ADAPT = ("adapt", "train.csv", "new.csv", "--label", "label", "--domain", "site")
DIAGNOSE = ("diagnose", "train.csv", "new.csv", "--label", "label", "--domain", "site")
FITS = {
    "PSF fit": prepare_filter,
    "CORAL fit": prepare_alignment,
    "CORAL classifier, fit and predict": prepare_classifier,
}
COMMANDS = {
    "covshift adapt": (*ADAPT, "--out", "made.skops"),
    "covshift adapt --adapter coral": (*ADAPT, "--adapter", "coral", "--out", "made.skops"),
    "covshift predict": ("predict", "model.skops", "new.csv", "--out", "predictions.csv"),
    "covshift diagnose": DIAGNOSE,
    "covshift reproduce synthetic": ("reproduce", "synthetic", "--trials", "1", "--out", "study"),
}


def count_run(name: str, root: Path) -> dict[str, int]:
    """Count what one run calls; in a process that has run nothing else."""
    if name in FITS:
        return count_calls(FITS[name](), root)
    import covshift.cli  # noqa: F401

    return count_calls(lambda: run_command(*COMMANDS[name]), root)


def count_loading(statement: str) -> dict[str, Any]:
    """Count modules after ``import covshift`` or ``covshift --version``."""
    if statement == "import covshift":
        import covshift  # noqa: F401
    else:
        run_command("--version")
    return {
        "modules of covshift": count_loaded(),
        "modules in all": len(sys.modules),
        "scikit-learn": "sklearn" in sys.modules,
        "pandas": "pandas" in sys.modules,
    }


LOADING = ("import covshift", "covshift --version")


def in_new_process(name: str, folder: Path) -> dict[str, Any]:
    """Return what `count_loading` or `count_run` gives for a name, in a process of its own."""
    single = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP")}
    command = [sys.executable, str(Path(__file__).resolve()), "--inside", name]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | single, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    counts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return counts


def measure(root: Path) -> dict[str, dict[str, Any]]:
    """Measure everything."""
    found: dict[str, dict[str, Any]] = {"package": measure_sizes(root) | measure_imports(root)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        command = [*ADAPT, "--adapter", "coral", "--out", "model.skops"]
        subprocess.run(
            [sys.executable, "-m", "covshift", *command], cwd=folder, check=True,
            capture_output=True,
        )  # fmt: skip
        for run in (*LOADING, *FITS, *COMMANDS):
            found[run] = in_new_process(run, folder)
    return found


def show(found: dict[str, dict[str, Any]]) -> str:
    """Return all figures as text."""
    lines = ["Package"]
    lines += [f"  {name:44s} {value:>8}" for name, value in found["package"].items()]
    for names in (LOADING, (*FITS, *COMMANDS)):
        columns = list(found[names[0]])
        lines += ["", f"{'':36s}" + "".join(f"{column:>21s}" for column in columns)]
        for name in names:
            cells = [found[name][column] for column in columns]
            texts = [("no", "yes")[cell] if isinstance(cell, bool) else str(cell) for cell in cells]
            lines.append(f"{name:36s}" + "".join(f"{text:>21s}" for text in texts))
    return "\n".join(lines)


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--inside", metavar="RUN", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    root = find_package()
    if arguments.inside is not None:
        name = arguments.inside
        counts = count_loading(name) if name in LOADING else count_run(name, root)
        print("\n" + json.dumps(counts))
        return
    found = measure(root)
    print(show(found))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
