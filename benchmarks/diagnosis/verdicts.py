"""Verdicts on made-up and on real tasks: what was said, and what was true.

    python benchmarks/diagnosis/verdicts.py --out FILE.jsonl [--families NAME ...] [--seeds 16]
    python benchmarks/diagnosis/verdicts.py --out FILE.jsonl --data FOLDER

``--size many`` draws tasks of more rows (``judged_tasks.py``). The second form judges the tasks of
real collections (benchmarks/selection/real_tasks.py). Each task becomes one line of the file; a
task that has its line is not run again. ``said.py`` sums them up.
"""

import argparse
import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from judged_tasks import SIZES, UNDECIDABLE, WORLDS, draw_task

from covshift import diagnose
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.diagnosis.plain import to_plain
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import make_scene

N_LABELS = 20


def judge_task(draw, name, seed):
    """One line: verdict, scores of all hypotheses on the test rows, what labels change."""
    task = draw()
    X = np.concatenate([task.X_source, task.X_target])
    # Source labels again, in place of the target's, which nobody is shown.
    y = np.resize(task.y_source, len(X))
    domain = np.concatenate([task.source_domain, np.full(len(task.X_target), -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diagnosis = diagnose(X, y, sample_domain=domain, random_state=seed)
        line = {
            **name,
            "seed": seed,
            "kind": diagnosis.verdict.kind,
            "decided_by": diagnosis.verdict.decided_by,
            "leading": diagnosis.verdict.leading,
            "followed": diagnosis.verdict.followed,
            "surviving": diagnosis.verdict.surviving,
            "gain": to_plain(diagnosis.verdict.gain),
            "truth": true_scores(diagnosis, task),
            "decidability": diagnosis.to_dict()["decidability"],
            "stability": diagnosis.stability.to_dict(),
            "moved": diagnosis.movement.moved,
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
    n_drawn = min(N_LABELS, len(diagnosis.target_rows))
    drawn = np.random.RandomState(seed).choice(diagnosis.target_rows, n_drawn, replace=False)
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


def made_up_calls(families, size, n_seeds):
    """How to draw each task, its name, its seed."""
    return [
        (partial(draw_task, family, seed, size), {"family": family, "size": size}, seed)
        for seed in range(n_seeds)
        for family in families
    ]


def real_calls(folder):
    """The same of the real collections."""
    import real_tasks

    collections = real_tasks.read_collections(str(folder))
    return [
        (
            partial(draw_real, str(folder), *task.values()),
            {
                "family": task["collection"],
                "sources": [str(one) for one in task["sources"]],
                "target": str(task["target"]),
            },
            0,
        )
        for task in real_tasks.declare_tasks(collections)
    ]


def draw_real(folder, *which):
    """The rows of a real task; collections are read once in each process."""
    import real_tasks

    return real_tasks.draw_task(real_tasks.read_collections(folder), *which)


def name_of(line):
    """What tells a task from all others."""
    which = (line["family"], line.get("size"), str(line.get("sources")), line.get("target"))
    return *which, line["seed"]


def main():
    """Run what is left and append it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="*", default=[*WORLDS, *UNDECIDABLE])
    parser.add_argument("--size", choices=SIZES, default="few", help="see judged_tasks.py")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    done = set()
    if options.out.exists():
        lines = options.out.read_text(encoding="utf-8").splitlines()
        done = {name_of(one) for one in map(json.loads, lines)}
    if options.data is None:
        calls = made_up_calls(options.families, options.size, options.seeds)
    else:
        calls = real_calls(options.data)
    left = [one for one in calls if name_of(one[1] | {"seed": one[2]}) not in done]
    results = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(judge_task)(*one) for one in left
    )
    print(f"{len(left)} tasks, {len(all_hypotheses())} hypotheses")
    with options.out.open("a", encoding="utf-8") as file:
        for line in results:
            file.write(json.dumps(line) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
