"""The paper's speech study as a study to be run."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from covshift.paper.grid_systems import (
    SYSTEMS,
    WITHOUT_COST,
    WITHOUT_TARGET,
    average_recalls,
    predict_settings,
)
from covshift.paper.speech.oracle import oracle_scores
from covshift.paper.speech.plans import Plan
from covshift.paper.speech.printed import N_FOLDS, printed_configuration
from covshift.paper.speech.protocol import (
    SpeechTable,
    check_corpora,
    corpora_to_test,
    digest_of,
    draw_halves,
    draw_trial,
    load_tables,
    source_fold,
    source_speakers,
)
from covshift.paper.speech.report import speech_document, terminal_table
from covshift.paper.speech.summary import summarize_records
from covshift.studies.store import Record
from covshift.studies.study import Facts, Study
from covshift.studies.trial import Trial

EXPERIMENT = "speech"
NO_COST = [1.0]  # systems without an SVM have one column of results


def _run_speech_trials(folder: str, trials: list[Trial]) -> list[dict[str, Any]]:
    """Run trials of the study of speech on the tables in the folder; one result for each."""
    return [
        _run_on_tables(load_tables(folder, trial.settings["data"]), trial.settings, trial.seed)
        for trial in trials
    ]


def _run_on_tables(
    tables: dict[str, SpeechTable], settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    """Return the result of one trial."""
    return KINDS[settings["kind"]](tables, settings, seed)


def _run_grid(
    tables: dict[str, SpeechTable], settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    table = tables[settings["corpus"]]
    halves, training, X_test, start = draw_trial(
        tables, settings["corpus"], settings["leave_out"], seed
    )
    # The target half is predicted for the oracle. No prediction depends on the other rows.
    n_test = len(X_test)
    predicted = predict_settings(
        settings["system"],
        settings["settings"],
        settings["costs"] or NO_COST,
        training,
        np.concatenate([X_test, training.target]),
        random_state=start,
    )
    return {
        "speaker": halves.speaker,
        "n_target": len(training.target),
        "n_test": n_test,
        "test_uar": average_recalls(predicted[..., :n_test], table.y[halves.test]).tolist(),
        **oracle_scores(predicted[..., n_test:], table, halves),
    }


def _run_printed(
    tables: dict[str, SpeechTable], settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    y = tables[settings["corpus"]].y
    halves, training, X_test, start = draw_trial(
        tables, settings["corpus"], settings["leave_out"], seed
    )

    def score(without_target: bool) -> float:
        predicted = predict_settings(
            settings["system"],
            [settings["setting"]],
            NO_COST if settings["cost"] is None else [settings["cost"]],
            training,
            X_test,
            random_state=start,
            without_target=without_target,
        )
        return float(average_recalls(predicted, y[halves.test])[0, 0])

    result = {"speaker": halves.speaker, "test_uar": score(False)}
    if settings["system"] in WITHOUT_TARGET:
        result["without_target_test_uar"] = score(True)
    return result


def _run_fold(
    tables: dict[str, SpeechTable], settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    source = source_speakers(
        tables, settings["corpus"], settings["leave_out"], without=settings["tested_speaker"]
    )
    training, y_held_out, start = source_fold(source, settings["fold"], settings["n_folds"], seed)
    predicted = predict_settings(
        settings["system"],
        settings["settings"],
        settings["costs"] or NO_COST,
        training,
        training.target,
        random_state=start,
    )
    return {"fold_uar": average_recalls(predicted, y_held_out).tolist()}


KINDS = {"grid": _run_grid, "printed": _run_printed, "fold": _run_fold}


def speech_study(
    tables: Mapping[str, SpeechTable], plan: Plan, leave_out: str, seed: int, folder: Path
) -> Study:
    """Return the study of a plan; ``folder`` is where `save_tables` puts the features."""
    check_corpora(tables, leave_out, seed)
    digest = digest_of(tables)

    def document(records: Sequence[Record], facts: Facts) -> Any:
        return speech_document(summarize_records(records), tables, plan, facts)

    return Study(
        name="speech",
        tasks=declare(tables, plan, leave_out, seed, digest),
        function=partial(_run_speech_trials, str(folder)),
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
    """Return the trials of a plan of speech, each a task of its own, long and short mixed.

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
    """Return the number of folds of each set of source speakers, by the speaker it leaves out.

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
