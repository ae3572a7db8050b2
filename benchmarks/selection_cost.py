"""Seconds and memory of `AutoAdaptedClassifier` with its default candidates.

    python benchmarks/selection_cost.py

Each size in a process of its own, on two processes; prints JSON.
"""

import json
import subprocess
import sys

SIZES = {"1,500 + 1,500 rows": (1500, 1500), "50,000 + 50,000 rows": (50_000, 50_000)}
N_FEATURES = 50
CODE = """
import json, resource, sys, time, warnings
import numpy as np
from covshift import AutoAdaptedClassifier
n_source, n_target, n_features = map(int, sys.argv[1:])
rng = np.random.RandomState(0)
y = rng.randint(3, size=n_source + n_target)
centers = rng.standard_normal((3, n_features))
X = rng.standard_normal((len(y), n_features)) + 0.5 * centers[y]
domain = np.where(np.arange(len(y)) < n_source, rng.randint(3, size=len(y)), -1)
X[domain < 0] = X[domain < 0] * 1.5 + 1
known = np.where(domain >= 0, y, -1)
begin = time.perf_counter()
warnings.simplefilter("ignore")
model = AutoAdaptedClassifier(n_jobs=2, random_state=0).fit(X, known, sample_domain=domain)
fitted = time.perf_counter()
score = float((model.predict(X[domain < 0]) == y[domain < 0]).mean())
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "fit seconds": round(fitted - begin, 1),
    "predict seconds": round(time.perf_counter() - fitted, 1),
    "peak MB of the process": peak // 1024,
    "peak MB of the largest child": children // 1024,
    "accuracy on the target": round(score, 3),
    "candidates": len(model.leaderboard_),
}))
"""


def main():
    """Measure all sizes."""
    found = {}
    for name, (n_source, n_target) in SIZES.items():
        sizes = [str(n) for n in (n_source, n_target, N_FEATURES)]
        run = subprocess.run(
            [sys.executable, "-c", CODE, *sizes], check=True, capture_output=True, text=True
        )
        found[name] = json.loads(run.stdout)
        print(json.dumps({name: found[name]}), flush=True)


if __name__ == "__main__":
    main()
