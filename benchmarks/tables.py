"""The chunked reader beside pandas.read_csv: rate and peak memory, on a generated file.

python benchmarks/tables.py [--megabytes 500] [--file FILE] [--out results.json]

Each is timed in a process of its own, in turns, three times; the median counts. "with schema" is
what prediction does (one pass); "without" reads the file twice, for the kinds first. "to features
and written" is a prediction less the model: read, encode, write one column; "predicted" is what
`covshift predict` does, with a logistic regression behind a scaler.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from measuring import report

ROWS = 100_000

PROGRAM = """
import json, sys, time
import pandas as pd
from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.tables import (
    TableClassifier, TableEncoder, TableSchema, open_table, predict_file, write_table
)

path, out, kinds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
schema = TableSchema.from_dict(kinds)
first = next(iter(open_table(path, schema=schema)))
encoder = TableEncoder().fit(first)
model = TableClassifier(AdaptedClassifier(DomainStandardScaler()))
role = -(first.index.to_numpy() % 2)
model.fit(first, (first["x0"] + first["x1"] > 0).to_numpy(), sample_domain=role)

def predictions():
    for frame in open_table(path, schema=schema):
        yield pd.DataFrame({{"score": encoder.transform(frame)[:, 0]}})

def megabytes(field):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) / 1024

open("/proc/self/clear_refs", "w").write("5")
start = time.perf_counter()
{statement}
print(time.perf_counter() - start, megabytes("VmHWM"))
"""
STATEMENTS = {
    "pandas": "frame = pd.read_csv(path)",
    "pandas in chunks": "n = sum(len(frame) for frame in pd.read_csv(path, chunksize=40_000))",
    "with schema": "n = sum(len(frame) for frame in open_table(path, schema=schema))",
    "without": "n = sum(len(frame) for frame in open_table(path))",
    "to features and written": "write_table(out, predictions())",
    "predicted": "predict_file(model, path, out)",
}


def generate(path, megabytes):
    """Write numbers, whole numbers, words, dates and truth values, and some missing values."""
    rng = np.random.default_rng(0)
    cities = np.array(["Paris", "Berlin", "New York", "São Paulo", ""])
    with path.open("w", encoding="utf-8") as file:
        header = True
        while file.tell() < megabytes * 1e6:
            columns = {f"x{i}": rng.normal(size=ROWS).round(6) for i in range(8)}
            columns |= {f"k{i}": rng.integers(0, 1000, ROWS) for i in range(4)}
            columns |= {f"c{i}": rng.choice(cities, ROWS) for i in range(3)}
            columns["day"] = np.datetime64("2020-01-01") + rng.integers(0, 1000, ROWS)
            columns["flag"] = rng.random(ROWS) < 0.5
            pd.DataFrame(columns).to_csv(file, index=False, header=header)
            header = False


def measure(path, folder):
    """Return the median seconds and the peak megabytes of each statement."""
    import json

    from covshift.tables import open_table

    kinds = json.dumps(open_table(path).schema.to_dict())
    results = {name: [] for name in STATEMENTS}
    for _ in range(3):
        for name, statement in STATEMENTS.items():
            code = PROGRAM.format(statement=statement)
            arguments = [str(path), str(folder / "out.csv"), kinds]
            shown = subprocess.run(
                [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
            )
            results[name].append([float(value) for value in shown.stdout.split()])
    return {
        name: (median(seconds for seconds, _ in runs), max(peak for _, peak in runs))
        for name, runs in results.items()
    }


def main():
    """Generate, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--file", type=Path, help="a file to use instead; made if missing")
    options, rest = parser.parse_known_args()
    sys.argv = [sys.argv[0], *rest]
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder, "generated.csv")
        if not path.exists():
            generate(path, options.megabytes)
        size = path.stat().st_size / 1e6
        results = measure(path, Path(folder))
    for name, (seconds, peak) in results.items():
        print(f"{name:24s} {seconds:7.2f} s {size / seconds:7.0f} MB/s {peak:7.0f} MB at most")
    rates = {name: results["pandas"][0] / seconds for name, (seconds, _) in results.items()}
    peaks = {name: peak for name, (_, peak) in results.items()}
    what, encoded = f"{size:.0f} MB of CSV:", "to features and written"
    report(
        [
            (f"{what} rate with schema / pandas.read_csv", rates["with schema"], ">=", 0.5, 1),
            (f"{what} rate without schema / pandas.read_csv", rates["without"], ">=", 0.25),
            (f"{what} rate to features and written / pandas", rates[encoded], ">=", 0.5),
            (f"{what} rate of predict / pandas.read_csv", rates["predicted"], ">=", 0.5),
            (f"{what} peak MB with schema", peaks["with schema"], "<=", 1000, 400),
            (f"{what} peak MB without schema", peaks["without"], "<=", 1000, 400),
            (f"{what} peak MB to features and written", peaks[encoded], "<=", 1000, 400),
            (f"{what} peak MB of predict", peaks["predicted"], "<=", 1000, 500),
        ]
    )


if __name__ == "__main__":
    main()
