"""A model and a file with labels -> how good the model is there."""

from collections.abc import Callable
from typing import Any

import numpy as np

from covshift.measures.labeled_scores import (
    number_gain,
    paired_gain,
    score_numbers,
    score_predictions,
)
from covshift.predictors.objectives import (
    ACCURACY,
    BALANCED_ACCURACY,
    MAE,
    OBJECTIVES,
    R2,
    REGRESSION_OBJECTIVES,
    describe_objective,
)
from covshift.selection.assessment_words import as_shown
from covshift.selection.expected_scores import Estimate
from covshift.shared_docs import documented_like
from covshift.tables.columns import to_frame
from covshift.tables.label_column import read_known_labels
from covshift.tables.messages import TableError, listed, table_error
from covshift.tables.model_reader import open_for_model
from covshift.tables.predicting import predict_file
from covshift.tables.table_models import TableClassifier, TableEstimator
from covshift.tables.table_words import NO_PLAIN_MODEL
from covshift.tables.text_layout import plain_name


@documented_like(predict_file)
def score_file(
    model: TableEstimator,
    path: Any,
    *,
    label: str | None = None,
    domain: str | None = None,
    progress: Callable[[int, float | None], object] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Predict the rows of a file and compare with their labels.

    Parameters
    ----------
    path : path
        Rows with labels.
    label : str or None, default=None
        Label column; None: that of the training table.

    Returns
    -------
    dict
        What `covshift.measures.labeled_scores.score_predictions` gives, or
        `covshift.measures.labeled_scores.score_numbers` for a regression; ``task``, ``label``,
        ``objective`` and ``notes``; ``plain``, the scores of the plain model, and ``gain``, the
        difference by the objective, if the model has one other than itself; ``hurt``, whether
        the whole interval of the gain is below zero; ``expected``, the score that was expected
        when the model was made, with its 90 % interval, the one observed, and whether the
        interval covers it, if the model has an assessment; ``stated`` has the digits that
        were printed then.
    """
    label = label if label is not None else getattr(model, "label_", None)
    if label is None:
        raise TableError("The model does not know its label column: name it with --label.")
    label = plain_name(label)
    if label in getattr(model, "feature_names_in_", ()):
        raise TableError(f"{listed([label])} is a column that the model predicts from.")
    reader = open_for_model(model, path, label=label, domain=domain, **options)
    plain = model.plain_
    truths, predictions, plain_predictions, domains = [], [], [], []
    n_unlabeled = 0
    for frame in map(to_frame, reader.chunks()):
        if progress is not None:
            progress(reader.reader.n_rows, reader.reader.share_read)
        classes = getattr(model, "classes_", None)
        truth, known = read_known_labels(
            frame[label], classes, model.schema_.missing, model.label_edges_
        )
        n_unlabeled += int((~known).sum())
        frame, truth = frame[known], truth[known]
        if not len(frame):
            continue
        names = reader.domain_names(frame)
        domains += names or []
        where = None if names is None else model.domain_numbers(names)
        truths.append(truth)
        predictions.append(model.predict(frame, sample_domain=where))
        if plain is not None:
            plain_predictions.append(plain.predict(frame, sample_domain=where))
    if not truths:
        raise table_error(path, f"no row has a label in {listed([label])}.")
    notes = reader.notes()
    truth, prediction = np.concatenate(truths), np.concatenate(predictions)
    if n_unlabeled:
        notes.append(f"{n_unlabeled} rows have no label and are left out.")
    task = _Classes(model) if isinstance(model, TableClassifier) else _Numbers(model)
    notes += task.notes(truth)
    scores = {
        "task": task.name,
        "label": label,
        "objective": describe_objective(model.objective_),
        **task.score(truth, prediction, np.array(domains) if domains else None),
    }
    assessment = getattr(model.estimator_, "assessment_", None)
    if plain is not None:
        plain_prediction = np.concatenate(plain_predictions)
        whole = task.score(truth, plain_prediction, None)
        scores["plain"] = {name: whole[name] for name in task.objectives}
        if assessment is None or assessment.action != "keep":  # else both are one model
            gain = task.gain(truth, prediction, plain_prediction, task.objective)
            scores["gain"] = gain
            scores["hurt"] = gain["high"] is not None and gain["high"] < 0
            scores["adapts"] = model.adapts_
    else:
        notes.append(NO_PLAIN_MODEL)
    if assessment is not None:
        observed = scores[task.objective]["value"]
        if observed is not None:
            scores["expected"] = _compare_expected(assessment.recommended, observed)
            shown = as_shown(assessment)
            stated = shown.plain if assessment.action == "keep" else shown.vote
            scores["expected"]["stated"] = stated._asdict()
    return {**scores, "notes": notes}


class _Classes:
    """How predicted classes are scored."""

    name = "classification"
    objectives = OBJECTIVES
    score = staticmethod(score_predictions)
    gain = staticmethod(paired_gain)

    def __init__(self, model: TableClassifier):
        self._classes = model.classes_
        self.objective = BALANCED_ACCURACY if model.objective_ == BALANCED_ACCURACY else ACCURACY

    def notes(self, truth: Any) -> list[str]:
        """Name the classes that no model could have predicted."""
        names = np.unique(truth).tolist()
        strangers = [name for name in names if name not in self._classes]
        if not strangers:
            return []
        if len(strangers) == len(names):
            raise TableError(
                f"No label is a class of the model: the file has {listed(names)}, the model "
                f"{listed(self._classes.tolist())}. Write the labels as in training, or name "
                "another column with --label."
            )
        return [f"Classes that the model has never seen count as errors: {listed(strangers)}."]


class _Numbers:
    """How predicted numbers are scored."""

    name = "regression"
    objectives = REGRESSION_OBJECTIVES
    score = staticmethod(score_numbers)
    gain = staticmethod(number_gain)

    def __init__(self, model: TableEstimator):
        mean_absolute = model.objective_ == MAE
        self.objective = MAE if mean_absolute else R2

    def notes(self, truth: Any) -> list[str]:
        """Say where R² is undefined."""
        if len(np.unique(truth)) > 1:
            return []
        return ["All labels are the same number: R² is undefined."]


def _compare_expected(expected: Estimate, observed: float) -> dict[str, Any]:
    """Return an expected score beside the one observed, and whether its interval covers that."""
    covered = expected.low <= observed <= expected.high
    return {**expected._asdict(), "observed": observed, "covered": covered}
