"""Measure every made-up task, or every real one, in parallel, so that a stop costs little.

    python benchmarks/selection/run_tasks.py --out FOLDER [--per-family 30] [--jobs 2] [--skada]
    python benchmarks/selection/run_tasks.py --out FOLDER --real DATA_FOLDER [--jobs 2] [--skada]

Each task becomes one file of the folder. Run the same again after a stop, and it goes on; after a
score was added, and every file gets it.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from families import FAMILIES, make_task
from measure import MEASURED, SKADA_NAMES, measure
from real_tasks import declare_tasks, draw_task, read_collections

from covshift.studies.runner import run_experiment
from covshift.studies.trial import Trial


def run_made_up(trials, folder):
    """Measure made-up tasks; the results are in files, and their names are stored."""
    results = []
    for trial in trials:
        family = trial.settings["family"]
        path = Path(folder) / f"{family}-{trial.seed}.npz"
        results.append(_measure_into(path, make_task(family, trial.seed), trial))
    return results


def run_real(trials, folder, data):
    """Measure real tasks, likewise."""
    collections = read_collections(data)
    results = []
    for trial in trials:
        where = trial.settings
        task = draw_task(collections, where["collection"], where["sources"], where["target"])
        sources = "+".join(where["sources"]) if len(where["sources"]) < 3 else "rest"
        path = Path(folder) / f"{where['collection']}-{sources}>{where['target']}.npz"
        results.append(_measure_into(path, task, trial))
    return results


def _measure_into(path, task, trial):
    """Write the file of a task, or what it lacks."""
    known = dict(np.load(path)) if path.exists() else None
    unfinished = path.with_suffix(".part.npz")
    skada = SKADA_NAMES[0] in trial.settings["scores"]
    np.savez_compressed(unfinished, **measure(task, trial.seed, known, skada=skada))
    unfinished.replace(path)
    return {"file": path.name}


def main():
    """Read the options and run what is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--per-family", type=int, default=30)
    parser.add_argument("--real", help="folder of the real collections")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--skada", action="store_true", help="SKADA's scorers too")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    scores = sorted([*MEASURED, *SKADA_NAMES] if options.skada else MEASURED)
    if options.real:
        tasks = declare_real(options.real, scores)
        return run(options, tasks, partial(run_real, data=options.real))
    # Seed by seed over the families, so that a part of the run is a sample of the whole.
    tasks = [
        [Trial("selection", {"family": family, "scores": scores}, seed)]
        for seed in range(options.per_family)
        for family in FAMILIES
    ]
    return run(options, tasks, run_made_up)


def declare_real(data, scores):
    """Trials of the real tasks."""
    return [
        [Trial("selection", {**where, "scores": scores}, 0)]
        for where in declare_tasks(read_collections(data))
    ]


def run(options, tasks, function):
    """Run what is left of the tasks."""
    outcome = run_experiment(
        tasks,
        partial(function, folder=str(options.out)),
        options.out / "tasks.sqlite",
        n_jobs=options.jobs,
        progress=lambda done, total, failed: print(
            f"{done} of {total}, {failed} failed", flush=True
        ),
    )
    print(outcome.summary())


if __name__ == "__main__":
    main()
