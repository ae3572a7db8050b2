"""Made-up corpora of feature tables, and a small plan to run on them.

python -m tests.paper.speech.made_corpora FOLDER KILL_AFTER
"""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from covshift.paper.speech.plans import Plan
from covshift.paper.speech.printed import COSTS, GRIDS
from covshift.paper.speech.protocol import SpeechTable, save_tables
from covshift.paper.speech.study import speech_study
from covshift.studies.runner import run_experiment

N_FEATURES = 72  # SSA's settings have up to 70 directions

SMALL_PLAN = Plan(
    "small",
    {
        **{system: settings[:2] for system, settings in GRIDS.items()},
        "PSF": [{"activation": "sin", "L": 4, "label_reward": 1.0}],
        "SF": [{"L": 4}, {"L": 8}],
    },
    COSTS[::10],
    mini_batches=20,
    n_trials=2,
    n_test_trials=4,
)
TINY_PLAN = replace(
    SMALL_PLAN,
    grids={system: settings[:1] for system, settings in SMALL_PLAN.grids.items()},
    n_trials=1,
    n_test_trials=2,
)


def make_table(n_speakers, seed, n_recordings=10):
    """A shift by speaker, and a class that shows in the first feature."""
    rng = np.random.RandomState(seed)
    rows = []
    for speaker in range(n_speakers):
        offset = rng.standard_normal(N_FEATURES)
        for recording in range(n_recordings):
            label = "positive" if recording % 3 == 0 else "negative"
            for _ in range(rng.randint(2, 4)):
                x = rng.standard_normal(N_FEATURES) + offset
                x[0] += 1.5 * (label == "positive")
                rows.append((x, label, f"{speaker:02d}", f"{speaker:02d}-{recording}.wav"))
    X, y, speakers, recordings = zip(*rows, strict=True)
    return SpeechTable(np.array(X), np.array(y), np.array(speakers), np.array(recordings))


def make_corpora():
    return {"emodb": make_table(3, 0), "ravdess": make_table(4, 1), "vam": make_table(2, 2)}


def small_study(folder, plan=SMALL_PLAN, tables=None, leave_out="corpus"):
    """A study in the folder, whose features are there."""
    tables = make_corpora() if tables is None else tables
    folder.mkdir(exist_ok=True)
    save_tables(tables, folder)
    return speech_study(tables, plan, leave_out, 0, folder)


def run(study, folder, **options):
    return run_experiment(study.tasks, study.function, folder / "trials.sqlite", **options)


if __name__ == "__main__":

    def kill_after(done, total, failed):
        if done >= int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

    run(small_study(Path(sys.argv[1]), TINY_PLAN), Path(sys.argv[1]), progress=kill_after)
