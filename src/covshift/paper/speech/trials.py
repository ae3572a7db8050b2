"""Running the trials of the speech study.

Three kinds, by ``settings["kind"]``:

- "grid": every setting and C of a system on one trial: UAR on the test half, and the oracle's;
- "printed": the configuration that the paper prints on one trial, and its control without target;
- "fold": every setting and C with some of the source speakers in the target's place.
"""

from typing import Any

import numpy as np

from covshift.paper.grid_systems import WITHOUT_TARGET, average_recalls, predict_settings
from covshift.paper.speech.oracle import oracle_scores
from covshift.paper.speech.protocol import (
    SpeechTable,
    draw_trial,
    load_tables,
    source_fold,
    source_speakers,
)
from covshift.studies.trial import Trial

EXPERIMENT = "speech"
NO_COST = [1.0]  # for systems without an SVM, whose one column of results has no C


def run_speech_trials(folder: str, trials: list[Trial]) -> list[dict[str, Any]]:
    """Run trials on the tables in the folder; one result for each."""
    return [
        run_on_tables(load_tables(folder, trial.settings["data"]), trial.settings, trial.seed)
        for trial in trials
    ]


def run_on_tables(
    tables: dict[str, SpeechTable], settings: dict[str, Any], seed: int
) -> dict[str, Any]:
    """The result of one trial."""
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
