"""The paper's speech study as a study to be run."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from covshift.paper.grid_systems import SYSTEMS, WITHOUT_COST
from covshift.paper.speech.plans import Plan
from covshift.paper.speech.printed import N_FOLDS, printed_configuration
from covshift.paper.speech.protocol import (
    SpeechTable,
    check_corpora,
    corpora_to_test,
    digest_of,
    draw_halves,
    source_speakers,
)
from covshift.paper.speech.report import speech_document, terminal_table
from covshift.paper.speech.summary import gather
from covshift.paper.speech.trials import EXPERIMENT, run_speech_trials
from covshift.studies.store import Record
from covshift.studies.study import Facts, Study
from covshift.studies.trial import Trial


def speech_study(
    tables: Mapping[str, SpeechTable], plan: Plan, leave_out: str, seed: int, folder: Path
) -> Study:
    """The study of a plan; ``folder`` is where `save_tables` puts the features."""
    check_corpora(tables, leave_out, seed)
    digest = digest_of(tables)

    def document(records: Sequence[Record], facts: Facts) -> Any:
        return speech_document(gather(records), tables, plan, facts)

    return Study(
        name="speech",
        tasks=declare(tables, plan, leave_out, seed, digest),
        function=partial(run_speech_trials, str(folder)),
        run_settings={
            "plan": plan.name,
            "seed": seed,
            "leave_out": leave_out,
            "corpora": list(tables),
            "data": digest,
        },
        document=document,
        table=terminal_table,
    )


def declare(
    tables: Mapping[str, SpeechTable], plan: Plan, leave_out: str, seed: int, digest: str
) -> list[list[Trial]]:
    """The trials of a plan, each a task of its own, in an order in which long and short mix.

    So the time left follows from the trials done.
    """
    tasks: list[list[Trial]] = []
    where: dict[str, Any]
    grid: dict[str, Any]
    for corpus in corpora_to_test(list(tables)):
        where = {"corpus": corpus, "leave_out": leave_out, "data": digest}
        for system in SYSTEMS:
            grid = {
                "system": system,
                "settings": [plan.configured(setting) for setting in plan.grids[system]],
                "costs": [] if system in WITHOUT_COST else list(plan.costs),
            }
            for number in range(plan.n_trials):
                settings = {"kind": "grid", **where, **grid}
                tasks.append([Trial(EXPERIMENT, settings, seed + number)])
            for tested_speaker, n_folds in _folds(tables, plan, corpus, leave_out, seed).items():
                for fold in range(n_folds):
                    part: dict[str, Any] = {
                        "tested_speaker": tested_speaker,
                        "fold": fold,
                        "n_folds": n_folds,
                    }
                    settings = {"kind": "fold", **where, **grid, **part}
                    tasks.append([Trial(EXPERIMENT, settings, seed)])
            setting, cost = printed_configuration(corpus, system)
            printed: dict[str, Any] = {
                "system": system,
                "setting": plan.configured(setting),
                "cost": cost,
            }
            for number in range(plan.n_test_trials):
                settings = {"kind": "printed", **where, **printed}
                tasks.append([Trial(EXPERIMENT, settings, seed + number)])
    order = np.random.RandomState(0).permutation(len(tasks))
    return [tasks[index] for index in order]


def _folds(
    tables: Mapping[str, SpeechTable], plan: Plan, corpus: str, leave_out: str, seed: int
) -> dict[str | None, int]:
    """Number of folds of each set of source speakers, by the speaker it leaves out.

    Trials of corpora have one and the same source, trials of speakers one for each speaker drawn.
    A single source speaker has no folds.
    """
    tested_speaker: list[str | None] = [None]
    if leave_out == "speaker":
        seeds = range(seed, seed + plan.n_trials)
        drawn = (
            draw_halves(tables[corpus], corpus, np.random.RandomState(one)).speaker for one in seeds
        )
        tested_speaker = list(dict.fromkeys(drawn))
    counts = {
        speaker: min(N_FOLDS, len(source_speakers(tables, corpus, leave_out, without=speaker)))
        for speaker in tested_speaker
    }
    return {speaker: n_folds for speaker, n_folds in counts.items() if n_folds > 1}
