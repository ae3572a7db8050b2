"""Learn the combined score from measured made-up tasks, and write it into the package.

    python benchmarks/selection/run_tasks.py --out FOLDER --per-family 30
    python benchmarks/selection/learn.py FOLDER

No real data are learned from: they are for judging.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import sklearn
from families import FAMILIES
from learning import CLIP, PENALTY, SHIPPED, learn
from measured_tasks import read_tasks

import covshift
from covshift.selection.learned_score import DATA_FILE, METRIC

PACKAGE = Path(covshift.__file__).parent / "selection"


def main():
    """Learn and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("made_up", type=Path)
    parser.add_argument("--out", type=Path, default=PACKAGE / DATA_FILE)
    options = parser.parse_args()
    tasks = read_tasks(options.made_up)
    counts = {family: sum(task.family == family for task in tasks) for family in FAMILIES}
    differences, ranks = learn(tasks, SHIPPED)
    data = {
        "scores": list(SHIPPED),
        "differences": [float(np.round(value, 6)) for value in differences],
        "ranks": [float(np.round(value, 6)) for value in ranks],
        "provenance": {
            "command": "python benchmarks/selection/learn.py FOLDER, after run_tasks.py",
            "metric": METRIC,
            "learned": f"ridge, penalty {PENALTY}, on regret clipped at {CLIP}",
            "tasks": len(tasks),
            "made-up tasks by family": counts,
            "real data": "none",
            "scikit-learn": sklearn.__version__,
        },
    }
    options.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"{options.out}: {len(SHIPPED)} scores, learned on {len(tasks)} tasks")


if __name__ == "__main__":
    main()
