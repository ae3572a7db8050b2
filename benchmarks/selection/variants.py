"""One name, several settings: which of them to keep. Candidates on the real tasks, without a vote.

    python benchmarks/selection/variants.py DATA_FOLDER --out FILE.csv [--at-most 6]

Alignments can map source rows to the target or target rows to the source; filters can use labels or
not. A saved model learns another target only if the map goes from target to source. Each variant is
fitted to real tasks of `real_tasks` with three models, and judged on the test rows; ``--at-most``
takes so many tasks of each collection. The table has means over collections.
"""

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from real_tasks import declare_tasks, draw_task, read_collections

from covshift.registry import ALIGNED_FEATURES, FILTERED_FEATURES, AdapterRecord, find_record
from covshift.selection.candidates import Candidate
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.models import make_model
from covshift.selection.outputs import run_scene
from covshift.selection.problem import Problem, make_scene
from covshift.solvers.blas_threads import one_blas_thread

TEXTS = {"title": "", "assumption": "", "fixes": "", "harms": "", "hypothesis": ""}
CORAL = "covshift.adapters.correlation_alignment:CorrelationAlignment"
MONGE = "covshift.adapters.linear_monge_alignment:LinearMongeAlignment"
PSF = "covshift.adapters.periodic_sparse_filtering:PeriodicSparseFiltering"
TO_SOURCE = {"direction": "target_to_source"}


def labeled(reward, init):
    """Settings of PSF with labels: reward per labeled row, scale of the start."""
    return lambda size: {
        "label_reward": reward * (1 + size.n_target / size.n_source),
        "init_scale": init(size),
        "n_restarts": 10,
        "max_iter": 100,
        "tol": 1e-4,
        "random_state": 0,
    }


def variant(name, path, before, settings):
    """A record that says nothing but how to build the adapter."""
    return AdapterRecord(name=name, path=path, before=before, settings=settings, **TEXTS)


VARIANTS = [
    find_record("none"),
    find_record("standardize"),
    *(
        variant(f"{name}, {direction}", path, ("scale", ALIGNED_FEATURES), settings)
        for name, path in (("coral", CORAL), ("monge", MONGE))
        for direction, settings in (("to target", {}), ("to source", TO_SOURCE))
    ),
    variant(
        "psf, labels, raw", PSF, (FILTERED_FEATURES,), labeled(4.0, lambda size: 1 / size.spread)
    ),
    variant(
        "psf, labels, scaled", PSF, ("scale", FILTERED_FEATURES), labeled(4.0, lambda size: 1.0)
    ),
    variant(
        "psf, labels, scaled, 1/sqrt(m)",
        PSF,
        ("scale", FILTERED_FEATURES),
        labeled(4.0, lambda size: min(size.n_features, FILTERED_FEATURES) ** -0.5),
    ),
    *(find_record(name) for name in ("sf", "psf-unlabeled")),
]
MODELS = ("logistic", "linear-svm", "rbf")


def measure(task):
    """Balanced accuracy of every variant with every model on the test rows of a task."""
    classes = np.unique(task.y_source)
    problem = Problem(
        task.X_source.astype(np.float64),
        np.searchsorted(classes, task.y_source),
        task.source_domain,
        task.X_target.astype(np.float64),
        np.full(len(task.X_target), -1),
        len(classes),
    )
    size = problem.size
    X_test, truth = task.X_test.astype(np.float64), np.searchsorted(classes, task.y_test)
    scene = make_scene(*problem[:5], test=(X_test, np.full(len(X_test), -1)))
    scores = {}
    for record in VARIANTS:
        adapter = record.build(size)
        candidates = [
            Candidate(record.name, model, adapter, make_model(model, *size[:1], size.n_features))
            for model in MODELS
        ]
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")
            outputs = run_scene(candidates, scene, len(classes))
            for one, output in zip(candidates, outputs, strict=True):
                score = np.nan if output.logits is None else balanced_accuracy(truth, output.codes)
                scores[one.adapter_name, one.estimator_name] = score
    return scores


def main():
    """Measure all tasks and print means over collections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--at-most", type=int, default=6)
    options = parser.parse_args()
    collections = read_collections(options.data)
    rows = []
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["collection", "sources", "target", "adapter", "model", "score"])
        taken = dict.fromkeys(collections, 0)
        for where in declare_tasks(collections):
            name = where["collection"]
            taken[name] += 1
            if taken[name] > options.at_most:
                continue
            task = draw_task(collections, name, where["sources"], where["target"])
            for (adapter, model), score in measure(task).items():
                row = (name, "+".join(where["sources"]), where["target"], adapter, model, score)
                writer.writerow(row)
                rows.append(row)
            file.flush()
            print(name, where["target"], file=sys.stderr, flush=True)
    print_means(rows)


def print_means(rows):
    """Means of the collections' means, by variant and model."""
    names = sorted({row[0] for row in rows})
    print(f"{'variant':34}" + "".join(f"{model:>12}" for model in MODELS))
    for adapter in dict.fromkeys(row[3] for row in rows):
        means = [
            np.mean(
                [
                    np.nanmean([r[5] for r in rows if r[0] == name and r[3:5] == (adapter, model)])
                    for name in names
                ]
            )
            for model in MODELS
        ]
        print(f"{adapter:34}" + "".join(f"{mean:12.3f}" for mean in means))


if __name__ == "__main__":
    main()
