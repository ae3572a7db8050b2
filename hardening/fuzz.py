"""Random combinations of faults: every case works or ends with a clear error.

python hardening/fuzz.py [--minutes 10] [--seed 0] [--out counts.json]
python hardening/fuzz.py --seed 0 --case 123        # one case again, with its traceback

A case takes an estimator, a function on two samples, or a command on files, and puts one to four
faults into its input at once. It runs in a child process with a time limit. Outcomes:

=============  ====================================================================
works          results of the right shape, finite where the input is
clear error    ours or scikit-learn's check says what is wrong
from below     a readable message of a library underneath
unreadable     another type of error, no sentence, or results that are not finite
crash, hang    the process was ended by a signal, or by the time limit
=============  ====================================================================
"""

import argparse
import collections
import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from children import run_in_child, use_one_thread

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 60.0  # seconds of processor time for one case
OUTCOMES = ("works", "clear error", "from below", "unreadable", "crash", "hang")
READABLE = (ValueError, TypeError, NotImplementedError, ImportError, OSError)


# Faults of arrays. Each takes and returns one argument; one that cannot be applied after others
# raises and is left out.


def put(value):
    """Return the fault that sets a few entries to a value."""

    def fault(rng, X):
        X = X.astype(float) if X.dtype.kind in "iub" else X.copy()
        X[tuple(rng.integers(n, size=2) for n in X.shape)] = value
        return X

    return fault


def as_frame(rng, X, *, names):
    """Return rows as a frame whose columns have these names."""
    import pandas as pd

    return pd.DataFrame(X, columns=names[: X.shape[1]])


def scaled(factor):
    """Return the fault that scales all entries, or one column."""

    def fault(rng, X):
        X = X * 1.0
        X[:, rng.integers(X.shape[1]) if rng.random() < 0.5 else slice(None)] *= factor
        return X

    return fault


def constant(rng, X):
    """Make a column constant."""
    X = X.copy()
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, 1e9])
    return X


def sparse_rows(rng, X):
    """Return rows as a sparse matrix, in one of three cases with indices out of bounds."""
    from scipy import sparse

    X = sparse.csr_array(X)
    if rng.random() < 1 / 3:
        X.indices[0] = rng.choice([-1, X.shape[1], 2**31 - 1])
    return X


def masked(rng, X):
    """Return a masked array with some entries masked."""
    import numpy as np

    return np.ma.masked_array(X, mask=rng.random(X.shape) < 0.1)


def read_only(rng, X):
    """Return rows that cannot be written."""
    X = X.copy()
    X.flags.writeable = False
    return X


def row_faults():
    """Return the faults of rows by name."""
    import numpy as np
    import pandas as pd

    return {
        "NaN": put(np.nan),
        "infinity": put(-np.inf),
        "1e300": scaled(1e300),
        "1e-300": scaled(1e-300),
        "1e8 added": lambda rng, X: X + 1e8,
        "constant column": constant,
        "all zero": lambda rng, X: X * 0,
        "rows alike": lambda rng, X: np.repeat(X[:1], len(X), axis=0),
        "two values": lambda rng, X: (X > 0) * 1.0,
        "columns alike": lambda rng, X: np.repeat(X[:, :1], X.shape[1], axis=1),
        "one column": lambda rng, X: X[:, :1],
        "no column": lambda rng, X: X[:, :0],
        "no row": lambda rng, X: X[:0],
        "one row": lambda rng, X: X[:1],
        "three rows": lambda rng, X: X[:3],
        "wide": lambda rng, X: np.tile(X, 100),
        "flat": lambda rng, X: X[:, 0],
        "cube": lambda rng, X: X[:, :, None],
        "whole numbers": lambda rng, X: X.astype(np.int64),
        "truth values": lambda rng, X: X > 0,
        "float16": lambda rng, X: X.astype(np.float16),
        "float32": lambda rng, X: X.astype(np.float32),
        "long double": lambda rng, X: X.astype(np.longdouble),
        "complex": lambda rng, X: X + 0j,
        "objects": lambda rng, X: X.astype(object),
        "texts": lambda rng, X: X.astype(str),
        "an object": lambda rng, X: put(object())(rng, X.astype(object)),
        "None": lambda rng, X: put(None)(rng, X.astype(object)),
        "dates": lambda rng, X: X.astype("datetime64[s]"),
        "list": lambda rng, X: X.tolist(),
        "ragged list": lambda rng, X: [*X.tolist(), [1.0]],
        "backwards": lambda rng, X: X[::-1, ::-1],
        "Fortran": lambda rng, X: np.asfortranarray(X),
        "big endian": lambda rng, X: X.astype(">f8"),
        "read only": read_only,
        "frame": lambda rng, X: as_frame(rng, X, names=[f"c{i}" for i in range(X.shape[1])]),
        "names repeat": lambda rng, X: as_frame(rng, X, names=["a"] * X.shape[1]),
        "names of mixed types": lambda rng, X: as_frame(rng, X, names=[0, "b", None, 1.5]),
        "frame of texts": lambda rng, X: pd.DataFrame(X).astype(str),
        "nullable frame": lambda rng, X: pd.DataFrame(X).convert_dtypes(),
        "sparse": sparse_rows,
        "masked": masked,
        "None for all": lambda rng, X: None,
        "a text": lambda rng, X: "X",
    }


def column_faults():
    """Return the faults of labels, domains and masks by name."""
    import numpy as np
    import pandas as pd

    return {
        "one value": lambda rng, y: np.repeat(y[:1], len(y)),
        "two values": lambda rng, y: (np.arange(len(y)) % 2).astype(y.dtype),
        "all differ": lambda rng, y: np.arange(len(y)) * 1.0,
        "negative": lambda rng, y: -1 - np.abs(y),
        "zeros": lambda rng, y: y * 0,
        "shorter": lambda rng, y: y[:-1],
        "longer": lambda rng, y: np.append(y, y[:1]),
        "empty": lambda rng, y: y[:0],
        "column": lambda rng, y: y[:, None],
        "two columns": lambda rng, y: np.c_[y, y],
        "floats": lambda rng, y: y + 0.5,
        "NaN": lambda rng, y: np.where(rng.random(len(y)) < 0.2, np.nan, y),
        "infinity": lambda rng, y: np.where(rng.random(len(y)) < 0.2, np.inf, y),
        "objects": lambda rng, y: y.astype(object),
        "texts": lambda rng, y: y.astype(str),
        "texts and numbers": lambda rng, y: np.array(["a", *y[1:].tolist()], dtype=object),
        "None among": lambda rng, y: np.array([None, *y[1:].tolist()], dtype=object),
        "truth values": lambda rng, y: y > np.median(y),
        "dates": lambda rng, y: y.astype("datetime64[D]"),
        "complex": lambda rng, y: y + 0j,
        "large": lambda rng, y: y * 10.0**300,
        "series with another index": lambda rng, y: pd.Series(y, index=np.arange(len(y))[::-1]),
        "categories": lambda rng, y: pd.Categorical(y),
        "masked": masked,
        "list": lambda rng, y: y.tolist(),
        "None for all": lambda rng, y: None,
        "a number": lambda rng, y: 3,
    }


VALUES = [None, -1, 0, 1, 2, 0.5, -0.5, 1e300, 1e-300, float("nan"), float("inf"), True, "x", "",
          "auto", (), [], [1], {}, object]  # fmt: skip


class Problem:
    """Files that every case starts from, made once."""

    def __init__(self):
        sys.path.insert(0, str(ROOT))
        from tests.estimators import ESTIMATORS, problem_for
        from tests.weights.estimators import WEIGHTS

        self.estimators, self.problem_for = [*ESTIMATORS, *WEIGHTS], problem_for
        self.rows, self.columns = row_faults(), column_faults()
        self.files = make_files()

    def apply(self, rng, kind, value, applied):
        """Apply a random fault; a fault that does not fit is left out."""
        faults = self.rows if kind == "rows" else self.columns
        name = str(rng.choice(list(faults)))
        try:
            changed = faults[name](rng, value)
        except Exception:
            return value
        applied.append(name)
        return changed


def fit_case(rng, problem, told):
    """Fit an estimator and use it, with faults in rows, labels, domains, masks and parameters."""
    import numpy as np
    from sklearn.base import clone

    estimator = clone(problem.estimators[rng.integers(len(problem.estimators))])
    told["what"] = repr(estimator)
    X, y, domain, X_new = problem.problem_for(estimator)
    given = {"X": X, "y": y, "sample_domain": domain, "X_new": X_new}
    if rng.random() < 0.3:
        given["label_mask"] = rng.random(len(y)) < 0.7
    for _ in range(rng.integers(1, 5)):
        name = str(rng.choice([*given, "X", "parameter"]))
        applied: list[str] = []
        if name == "parameter":
            parameter = str(rng.choice(sorted(estimator.get_params(deep=False)) or ["none"]))
            value = VALUES[rng.integers(len(VALUES))]
            estimator.set_params(**{parameter: value})
            applied.append(f"{parameter}={value!r}")
        else:
            kind = "rows" if name in ("X", "X_new") else "columns"
            given[name] = problem.apply(rng, kind, given[name], applied)
        told["faults"] += [f"{name}: {one}" for one in applied]
    X_new = given.pop("X_new")
    model = estimator.fit(given.pop("X"), given.pop("y"), **given)
    told["fitted"] = True
    for method in ("predict", "predict_proba", "transform", "score_weights"):
        if hasattr(model, method):
            check_result(getattr(model, method)(X_new), X_new, told)
    if hasattr(model, "weights_"):
        assert np.isfinite(model.weights_).all(), "weights are not finite"


def check_result(result, X_new, told):
    """Raise AssertionError where finite rows give results that are not, or too few."""
    import numpy as np

    rows = np.asarray(X_new.toarray() if hasattr(X_new, "toarray") else X_new)
    values = np.asarray(result.toarray() if hasattr(result, "toarray") else result)
    assert len(values) == len(rows), "another number of results than rows"
    numeric = rows.dtype.kind in "fiub" and values.dtype.kind in "fiub"
    if numeric and np.isfinite(rows).all():
        assert np.isfinite(values).all(), "results are not finite"


def measure_case(rng, problem, told):
    """Compare two samples by one of the measures."""
    import numpy as np

    from covshift import measures

    functions = ["mmd", "mmd_test", "ks_test", "ks_distance", "classifier_two_sample_test",
                 "support_overlap", "approximate_mmd", "median_bandwidth"]  # fmt: skip
    name = str(rng.choice(functions))
    told["what"] = name
    samples = [rng.standard_normal((30, 3)), rng.standard_normal((25, 3)) + 1]
    for _ in range(rng.integers(1, 5)):
        which, applied = int(rng.integers(2)), []
        samples[which] = problem.apply(rng, "rows", samples[which], applied)
        told["faults"] += [f"sample {which + 1}: {one}" for one in applied]
    options = {}
    if rng.random() < 0.3:
        import inspect

        parameters = list(inspect.signature(getattr(measures, name)).parameters)[2:]
        options = {str(rng.choice(parameters)): VALUES[rng.integers(len(VALUES))]}
        told["faults"].append(f"{options}")
    result = getattr(measures, name)(*samples, **options)
    for field in ("statistic", "pvalue", "auc"):
        value = np.asarray(getattr(result, field, 0.0))
        assert value.dtype.kind not in "f" or np.isfinite(value).all(), f"{field} is not finite"


# Faults of files. Each takes and returns bytes.


def replaced(before, after):
    """Return the fault that replaces a text, here and there or everywhere."""

    def fault(rng, raw):
        times = int(rng.choice([1, 5, -1]))
        return raw.replace(before.encode(), after.encode("utf-8", "surrogateescape"), times)

    return fault


def flipped(rng, raw):
    """Change a few bytes."""
    raw = bytearray(raw)
    for place in rng.integers(len(raw), size=3):
        raw[place] = rng.integers(256)
    return bytes(raw)


def shuffled_lines(rng, raw):
    """Put the lines in another order, the names among them."""
    lines = raw.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def file_faults():
    """Return the faults of files by name."""
    import gzip

    return {
        "cut": lambda rng, raw: raw[: int(rng.random() * len(raw))],
        "bytes changed": flipped,
        "NUL bytes": lambda rng, raw: raw.replace(b"0", b"\0", int(rng.choice([1, 50]))),
        "all NUL": lambda rng, raw: b"\0" * len(raw),
        "not UTF-8": lambda rng, raw: raw.replace(b"o", b"\xff\xfe\x80", 3),
        "UTF-16": lambda rng, raw: raw.decode("latin-1").encode("utf-16"),
        "two encodings": lambda rng, raw: raw + "é;ü\n".encode("latin-1") + "é,ü\n".encode(),
        "semicolons": replaced(",", ";"),
        "tabs": replaced(",", "\t"),
        "quotes": replaced(",", ',"'),
        "no line breaks": replaced("\n", " "),
        "CR": replaced("\n", "\r"),
        "empty lines": replaced("\n", "\n\n"),
        "names repeat": replaced("age", "income"),
        "no label": replaced("churned", "gone"),
        "no names": lambda rng, raw: raw.partition(b"\n")[2],
        "names only": lambda rng, raw: raw.partition(b"\n")[0] + b"\n",
        "empty": lambda rng, raw: b"",
        "one class": replaced(",yes", ",no"),
        "many classes": replaced("yes", "maybe"),
        "formulas": replaced("Oslo", "=cmd|' /C calc'!A0"),
        "control characters": replaced("Rome", "\x1b[31mRome\x07"),
        "markup": replaced("Oslo", "<script>alert(1)</script>"),
        "long cell": replaced("Bonn", "B" * 200_000),
        "huge numbers": replaced(".", "e300"),
        "missing": replaced("Oslo", ""),
        "no numbers": replaced(".", "x"),
        "shuffled": shuffled_lines,
        "twice": lambda rng, raw: raw + raw,
        "wide": lambda rng, raw: b"\n".join(
            line + b"," + b",".join(b"%d" % i for i in range(300)) for line in raw.splitlines()
        ),
        "few rows": lambda rng, raw: b"".join(raw.splitlines(keepends=True)[:4]),
        "gzip": lambda rng, raw: gzip.compress(raw),
        "cut gzip": lambda rng, raw: gzip.compress(raw)[:-20],
        "Parquet's mark": lambda rng, raw: b"PAR1" + raw + b"PAR1",
        "archive's mark": lambda rng, raw: b"PK\x03\x04" + raw,
        "a bomb": lambda rng, raw: gzip.compress(b"0," * 5_000_000),
    }


OPTIONS = [
    ["--label", "chruned"], ["--label", ""], ["--domain", "site"], ["--domain", "nowhere"],
    ["--domain", "churned"], ["--ignore", "age,income"], ["--ignore", "age,income,city,since"],
    ["--use", "customer_id"], ["--decimal", ","], ["--decimal", "x"], ["--separator", ";"],
    ["--separator", "\0"], ["--no-header"], ["--missing", "Oslo"], ["--seed", "-1"],
    ["--seed", "99999999999"], ["--adapter", "coral"], ["--adapter", "../x"], ["--model", "deep"],
    ["--bins", "0"], ["--trust", "os.system"], ["--out", "/dev/null/at/all"], ["--out", "."],
    ["--out", ""], ["--json"], ["--proba"], ["--level", "2"], ["--estimator", "os.system"],
    ["--estimator-params", "{"], ["--as", "age=text"], ["--time", "since"], ["--rows", "nan"],
]  # fmt: skip
COMMANDS = {
    "adapt": (["train", "new"], ["--label", "churned", "--adapter", "standardize"], True),
    "adapt later": (["model", "later"], [], True),
    "predict": (["model", "new"], [], True),
    "score": (["model", "labeled"], ["--label", "churned"], False),
    "monitor": (["model", "new"], [], False),
    "show": (["model"], [], False),
    "diagnose": (["train", "new"], ["--label", "churned"], False),
}


def make_files():
    """Return good tables and a good model as bytes."""
    from tests.cli.user_files import make_tables, run

    with tempfile.TemporaryDirectory() as name:
        folder, files = Path(name), {}
        for table, frame in make_tables().items():
            frame.head(50).to_csv(folder / table, index=False)
            files[table] = (folder / table).read_bytes()
        options = ["--label", "churned", "--adapter", "standardize", "--out", folder / "model"]
        result = run("adapt", folder / "train", folder / "new", *options)
        assert result.exit_code == 0, result.output
        files["model"] = (folder / "model").read_bytes()
    return files


def command_case(rng, problem, told):
    """Run a command with faults in its files and options."""
    from tests.cli.user_files import run

    # A diagnosis takes seconds, the others parts of one.
    odds = [0.05 if name == "diagnose" else 0.95 / (len(COMMANDS) - 1) for name in COMMANDS]
    command = str(rng.choice(list(COMMANDS), p=odds))
    names, options, writes = COMMANDS[command]
    told["what"], files, faults = command, dict(problem.files), file_faults()
    options = list(options)
    for _ in range(rng.integers(1, 5)):
        if rng.random() < 0.25:
            more = OPTIONS[rng.integers(len(OPTIONS))]
            options += more
            told["faults"].append(" ".join(more))
        else:
            name, fault = str(rng.choice(names)), str(rng.choice(list(faults)))
            try:
                files[name] = faults[fault](rng, files[name])
            except Exception:
                continue
            told["faults"].append(f"{name}: {fault}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in names:
            (folder / name).write_bytes(files[name])
        os.chdir(folder)
        out = ["--out", "out.csv"] if writes else []
        before = set(os.listdir(folder))
        result = run(command.split()[0], *names, *out, *options)
        told["printed"] = result.output[:500]
        check_command(result, set(os.listdir(folder)) - before, told)
        os.chdir(ROOT)


def check_command(result, new_files, told):
    """Say how a command ended; raise AssertionError if not as it should."""
    told["outcome"] = "works"
    if result.exit_code in (0, 3):
        return
    assert result.exit_code in (1, 2), f"exit code {result.exit_code}: {result.exception!r}"
    assert not new_files, f"an error left {new_files}"
    assert "Traceback" not in result.stderr, "a traceback"
    told["outcome"] = "clear error"
    if result.exit_code == 1:
        assert result.stdout == "", "an error and a result"
        (line,) = result.stderr.splitlines()
        assert line.isprintable(), "an error that steers a terminal"
        message = line.partition(": ")[2].removesuffix("(--debug shows where)").strip()
        assert is_sentence(message), f"no sentence: {message!r}"
        told["outcome"] = "from below" if line.endswith("shows where)") else "clear error"


def is_sentence(message):
    """Return whether a message has some words, and not a page of them."""
    return len(message.split()) >= 3 and len(message) < 5000


def outcome_of(error):
    """Return the outcome that an exception stands for."""
    if not isinstance(error, READABLE) or isinstance(error, UnicodeError):
        return "unreadable"
    if not is_sentence(str(error)):
        return "unreadable"
    frames = traceback.extract_tb(error.__traceback__)
    module = frames[-1].filename.replace(os.sep, "/")
    checked = ("/covshift/", "/sklearn/", "/tests/estimators")
    return "clear error" if any(one in module for one in checked) else "from below"


def run_case(seed, number, problem, *, debug=False):
    """Run one case in this process and return what happened."""
    import numpy as np

    rng = np.random.default_rng([seed, number])
    kinds = {"fit": fit_case, "measure": measure_case, "command": command_case}
    kind = str(rng.choice(list(kinds), p=[0.6, 0.15, 0.25]))
    told: dict[str, Any] = {"case": number, "kind": kind, "what": "", "faults": [], "outcome": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kinds[kind](rng, problem, told)
            told["outcome"] = told["outcome"] or "works"
        except BaseException as error:
            told["outcome"] = outcome_of(error)
            told["error"] = f"{type(error).__name__}: {error}"[:400]
            last = traceback.extract_tb(error.__traceback__)[-1]
            told["where"] = f"{Path(last.filename).name}:{last.lineno}"
            if debug:
                traceback.print_exc()
    return told


def run_apart(seed, number, problem, folder):
    """Run one case in a child and return what happened."""
    path, log = folder / "told.json", folder / "log.txt"
    path.unlink(missing_ok=True)

    def work():
        path.write_text(json.dumps(run_case(seed, number, problem), default=repr))
        return 0

    code = run_in_child(work, log, LIMIT)
    if code == 0 and path.exists():
        return json.loads(path.read_text())
    outcome = "hang" if code is None else "crash"
    return {"case": number, "outcome": outcome, "error": log.read_text()[-400:], "code": code}


def main(arguments: list[str] | None = None) -> int:
    """Run cases until the time is up; return 1 for anything unreadable, a crash or a hang."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most this many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one only, in this process")
    parser.add_argument("--out", type=Path, help="file for the counts and the cases that failed")
    options = parser.parse_args(arguments)
    use_one_thread()
    problem = Problem()
    if options.case is not None:
        told = run_case(options.seed, options.case, problem, debug=True)
        print(json.dumps(told, indent=1, default=repr))
        return int(told["outcome"] not in OUTCOMES[:3])
    counts: collections.Counter[str] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    failed, below = [], []
    end, number = time.monotonic() + 60 * options.minutes, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and number < options.cases:
            told = run_apart(options.seed, number, problem, Path(folder))
            counts[told["outcome"]] += 1
            kinds[told.get("kind", "unknown")] += 1
            if told["outcome"] not in OUTCOMES[:3]:
                failed.append(told)
                print(json.dumps(told), flush=True)
            elif told["outcome"] == "from below":
                below.append(told)
            number += 1
    summary = {"seed": options.seed, "cases": number, "kinds": dict(kinds),
               **{name: counts[name] for name in OUTCOMES}}  # fmt: skip
    print(json.dumps(summary))
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**summary, "failed": failed, "messages from below": below}, indent=1)
        options.out.write_text(text, encoding="utf-8")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
