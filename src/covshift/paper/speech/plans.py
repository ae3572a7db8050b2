"""Plans of the speech study: all of the paper's grids, or a part chosen beforehand.

Measured in one process (OpenBLAS with one thread) on the trial that trains on RAVDESS and tests a
speaker of EMODB: 5,027 training rows, of which SETTING_SECONDS and the others below are the rates.
By them the default plan takes a part of the grids: every third C, 34 of the 170 settings of PSF and
12 of the 54 of DAE, drawn with seed 0; and auto-encoders, whose training on 200 trials would take
half of the time, have 5,000 mini-batches for 10,000. Nothing else is left out of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covshift.paper.grid_systems import (
    SYSTEMS,
    WITHOUT_TARGET,
    Setting,
    draw_settings,
)
from covshift.paper.speech.printed import (
    COSTS,
    GRIDS,
    MINI_BATCHES,
    N_TEST_TRIALS,
    N_TRIALS,
)
from covshift.paper.speech.protocol import (
    SpeechTable,
    source_speakers,
)
from covshift.studies.trial import Trial

# Of one setting without its SVMs: seconds for 1,000 training rows.
SETTING_SECONDS = {
    "SVM": 0.0,
    "SF": 0.18,
    "PSF": 0.17,
    "LSPC": 0.005,
    "IW+LSPC": 0.005,
    "SSA": 0.003,
}
BATCH_SECONDS = 0.00015  # a mini-batch of an auto-encoder fitted beside others
LONE_BATCH_SECONDS = 0.0003  # a mini-batch of an auto-encoder fitted alone
SVM_SECONDS = 0.004  # one value of C, for 1,000 training rows
CONTROL_SHARE = {
    "SF": 0.4,
    "PSF": 0.4,
    "DAE": 1.0,
}  # without target rows, KS distances cost nothing
TRIAL_SECONDS = 0.1  # fixed part of every trial


@dataclass(frozen=True)
class Plan:
    """A part of the study.

    Attributes
    ----------
    name : str
        As the user knows it.
    grids : mapping of str to list of settings
        Settings of each system among which to choose.
    costs : tuple of float
        Values of C among which to choose.
    mini_batches : int
        That auto-encoders are trained with.
    n_trials : int
        Trials of each corpus on which settings are chosen.
    n_test_trials : int
        Trials of each corpus with the printed configurations; the first are the same trials.
    """

    name: str
    grids: Mapping[str, Sequence[Setting]]
    costs: tuple[float, ...]
    mini_batches: int = MINI_BATCHES
    n_trials: int = N_TRIALS
    n_test_trials: int = N_TEST_TRIALS

    def describe(self) -> str:
        """Say in a sentence what part of the paper's grids it is."""
        parts = [f"{len(self.costs)} of {len(COSTS)} values of C"]
        parts += [
            f"{len(self.grids[system])} of {len(GRIDS[system])} settings of {system}"
            for system in SYSTEMS
            if len(GRIDS[system]) > 1
        ]
        return (
            f"{', '.join(parts)}; {self.mini_batches} of {MINI_BATCHES} mini-batches for "
            f"auto-encoders; {self.n_trials} trials per corpus to choose settings on, "
            f"{self.n_test_trials} with the printed ones."
        )

    def configured(self, setting: Setting) -> Setting:
        """Return the setting with the mini-batches of the plan, where it has any."""
        if "mini_batches" not in setting:
            return setting
        return {**setting, "mini_batches": self.mini_batches}


PLANS = {
    plan.name: plan
    for plan in (
        Plan(
            "quick",  # shows that everything works, in a minute; too little to conclude from
            {
                **{system: settings[:2] for system, settings in GRIDS.items()},
                "LSPC": GRIDS["LSPC"][-2:],
                "IW+LSPC": GRIDS["IW+LSPC"][-2:],
            },
            COSTS[::10],
            mini_batches=100,
            n_trials=2,
            n_test_trials=6,
        ),
        Plan(
            "default",
            {
                **GRIDS,
                "PSF": draw_settings(GRIDS["PSF"], 34),
                "DAE": draw_settings(GRIDS["DAE"], 12),
            },
            COSTS[::3],
            mini_batches=5000,
        ),
        Plan("full", GRIDS, COSTS),
    )
}


def estimated_seconds(
    tables: Mapping[str, SpeechTable], tasks: Sequence[Sequence[Trial]], n_processes: int
) -> float:
    """Estimate the time that the trials of a plan take on a machine like the measured one."""
    rows = {
        (corpus, leave_out): _training_rows(tables, corpus, leave_out)
        for corpus, leave_out in {
            (trial.settings["corpus"], trial.settings["leave_out"]) for (trial,) in tasks
        }
    }
    total = 0.0
    for (trial,) in tasks:
        settings = trial.settings
        n_rows = rows[settings["corpus"], settings["leave_out"]]
        if settings["kind"] == "fold":
            n_rows *= 1 - 1 / settings["n_folds"]
        total += _trial_seconds(settings, n_rows / 1000)
    return total / n_processes


def _trial_seconds(settings: dict[str, Any], thousands: float) -> float:
    system, printed = settings["system"], settings["kind"] == "printed"
    several = [settings["setting"]] if printed else settings["settings"]
    n_costs = 1 if printed else len(settings["costs"])
    seconds = 0.0
    for setting in several:
        if system == "DAE":
            rate = LONE_BATCH_SECONDS if printed else BATCH_SECONDS
            fit = rate * setting["mini_batches"]
        else:
            fit = SETTING_SECONDS[system] * thousands
        if printed and system in WITHOUT_TARGET:
            fit *= 1 + CONTROL_SHARE[system]
        seconds += fit + SVM_SECONDS * n_costs * thousands
    return TRIAL_SECONDS + seconds


def _training_rows(tables: Mapping[str, SpeechTable], corpus: str, leave_out: str) -> float:
    """Return the rows after balancing, nearly."""
    sources = source_speakers(tables, corpus, leave_out, without=None).values()
    _, counts = np.unique(np.concatenate([y for _, y in sources]), return_counts=True)
    return float(counts.max() * len(counts))
