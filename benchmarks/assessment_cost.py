"""CPU time of the assessment, and of `diagnose` followed by `adapt` on the same files.

    python benchmarks/assessment_cost.py

The first figure is what the assessment adds to scoring the candidates, in one process; what both
need (outputs of the scenes, the AUC between the domains) counts for the scores. The second compares
both commands run one after the other with `diagnose --save-scores` and `adapt --from`, which
compute the scores once. All in one run, one thread; prints JSON.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from covshift_bench.methods.automatic import make_bench

from covshift.selection.assessment import assess
from covshift.selection.choice import choose
from covshift.solvers.threads import one_blas_thread

N_ROWS, N_FEATURES = 600, 20
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def make_rows(n_rows=N_ROWS, seed=0):
    """Return rows, classes and domains of three source sites, and rows of a moved target."""
    rng = np.random.RandomState(seed)
    codes = rng.randint(2, size=2 * n_rows)
    X = rng.standard_normal((2 * n_rows, N_FEATURES)) + 0.5 * codes[:, None]
    domain = np.where(np.arange(2 * n_rows) < n_rows, np.arange(2 * n_rows) % 3, -1)
    X += np.array([0.0, 0.5, -0.5, 2.0])[domain][:, None]
    return X, codes, domain


def measure_assessment():
    """Return the CPU seconds of scoring all candidates and of the assessment alone."""
    X, codes, domain = make_rows()
    source = domain >= 0

    class Task:
        X_source, y_source, source_domain = X[source], codes[source], domain[source]
        X_target, target_domain = X[~source], domain[~source]

    with one_blas_thread():
        bench = make_bench(Task, codes[source], 0)
        begun = time.process_time()
        choice = choose(bench, "rehearsals", n_members=7)
        chosen = time.process_time()
        assess(bench, choice.table, choice.weights, choice.plain)
        ended = time.process_time()
    alone = ended - chosen
    return {
        "choice, with its assessment": round(chosen - begun, 2),
        "assessment": round(alone, 2),
        "assessment / choice without it": round(alone / (chosen - begun - alone), 3),
    }


def cpu_seconds(*arguments):
    """Return the CPU seconds of a command, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "covshift", *map(str, arguments)],
        check=True, capture_output=True, env=os.environ | ONE_THREAD,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_commands():
    """Return the CPU seconds of both commands, with scores computed twice and once."""
    X, codes, domain = make_rows()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(N_FEATURES)]).assign(site=domain)
    with tempfile.TemporaryDirectory() as folder:
        train, new, scores, model = (
            Path(folder) / name for name in ("train.csv", "new.csv", "scores.npz", "model.skops")
        )
        frame[domain >= 0].assign(label=codes[domain >= 0]).to_csv(train, index=False)
        frame[domain < 0].to_csv(new, index=False)
        pair = (train, new, "--label", "label", "--domain", "site")
        diagnose = cpu_seconds("diagnose", *pair, "--save-scores", scores)
        adapt = cpu_seconds("adapt", *pair, "--out", model)
        again = cpu_seconds("adapt", *pair, "--out", model, "--from", scores)
    return {
        "diagnose": round(diagnose, 1),
        "adapt": round(adapt, 1),
        "adapt --from": round(again, 1),
        "both with scores once / twice": round((diagnose + again) / (diagnose + adapt), 2),
    }


if __name__ == "__main__":
    print(
        json.dumps({"assessment": measure_assessment(), "commands": measure_commands()}, indent=2)
    )
