"""Verdicts on made-up tasks: what was said, and what was true.

    python benchmarks/diagnosis/verdicts.py --out FILE.jsonl [--families NAME ...] [--seeds 10]

Each task becomes one line of the file; a task that has its line is not run again.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from shared_structures import UNDECIDABLE, WORLDS, draw_task

from covshift import diagnose
from covshift.diagnosis.hypotheses import HYPOTHESES
from covshift.diagnosis.plain import to_plain
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import make_scene

N_LABELS = 20


def judge_task(family, seed):
    """One line: verdict, scores of all hypotheses on the test rows, what labels change."""
    task = draw_task(family, seed)
    X = np.concatenate([task.X_source, task.X_target])
    y = np.concatenate([task.y_source, np.full(len(task.X_target), -9)])
    domain = np.concatenate([task.source_domain, np.full(len(task.X_target), -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnosis = diagnose(X, y, sample_domain=domain, random_state=seed)
        truth = true_scores(diagnosis, task)
        line = {
            "family": family,
            "seed": seed,
            "kind": diagnosis.verdict.kind,
            "decided_by": diagnosis.verdict.decided_by,
            "leading": diagnosis.verdict.leading,
            "surviving": diagnosis.verdict.surviving,
            "gain": to_plain(diagnosis.verdict.gain),
            "truth": truth,
            "decidability": diagnosis.to_dict()["decidability"],
            "moved": diagnosis.movement.moved,
            "auc_left": diagnosis.weighting.auc_left,
            "overlap": diagnosis.weighting.overlap,
            "evidence": {
                kind: to_plain(gains._asdict()) for kind, gains in diagnosis.evidence.items()
            },
            "expected": [one.to_dict() for one in diagnosis.expectations],
        }
        line["labels"] = with_labels(diagnosis, task, len(task.X_source), seed)
    return line


def true_scores(diagnosis, task):
    """Balanced accuracy of each hypothesis's variant on the test rows."""
    bench = diagnosis._bench
    where = np.full(len(task.X_test), -1)
    scene = make_scene(*bench.problem[:5], test=(task.X_test, where))
    outputs = bench.run({"test": scene})["test"]
    codes = np.searchsorted(diagnosis.classes, task.y_test)
    scores = []
    for number in diagnosis._variant_numbers:
        output = None if number < 0 else outputs[number]
        known = output is not None and output.logits is not None
        scores.append(balanced_accuracy(codes, output.codes) if known else None)
    return scores


def with_labels(diagnosis, task, n_source, seed):
    """What leads with as many labels of rows it asks for, and of rows drawn at random."""
    asked = diagnosis.rows_to_label(N_LABELS)
    drawn = np.random.RandomState(seed).choice(diagnosis.target_rows, N_LABELS, replace=False)
    result = {}
    for name, rows in (("asked", asked), ("random", drawn)):
        if len(rows):
            updated = diagnosis.update(rows, task.y_target[rows - n_source])
            result[name] = {
                "n": len(rows),
                "kind": updated.verdict.kind,
                "leading": updated.verdict.leading,
                "surviving": updated.verdict.surviving,
            }
    return result


def main():
    """Run what is left and append it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="*", default=[*WORLDS, *UNDECIDABLE])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    done = set()
    if options.out.exists():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        done = {(one["family"], one["seed"]) for one in map(json.loads, lines)}
    left = [
        (family, seed)
        for seed in range(options.seeds)
        for family in options.families
        if (family, seed) not in done
    ]
    results = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(judge_task)(*one) for one in left
    )
    print(f"{len(left)} tasks, {len(HYPOTHESES)} hypotheses")
    with options.out.open("a", encoding="utf-8") as file:
        for line in results:
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
