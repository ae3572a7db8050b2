"""Two files -> a fitted model and its card; a model and another file -> a model for that target."""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import numpy as np

from covshift.kernels.probabilities import class_shares, is_unbalanced
from covshift.predictors import AdaptedClassifier, AdaptedRegressor
from covshift.predictors.adapted import AdaptedEstimator
from covshift.predictors.objectives import (
    ACCURACY,
    BALANCED_ACCURACY,
    MAE,
    NAMES,
    OBJECTIVES,
    REGRESSION_OBJECTIVES,
    describe_objective,
)
from covshift.registry import AUTO, find_record, records
from covshift.report.document import to_plain
from covshift.selection import AutoAdaptedClassifier, AutoAdaptedRegressor
from covshift.selection.assessment import MAX_RISK
from covshift.selection.candidates import (
    describe_candidate,
    find_model,
    make_model,
    model_name,
    named_model,
)
from covshift.selection.vote import FewerMembersWarning
from covshift.solvers.threads import one_blas_thread
from covshift.tables.columns import domain_texts
from covshift.tables.encoder import TableEncoder
from covshift.tables.label_column import CLASSIFICATION, REGRESSION
from covshift.tables.matching import MatchedTables
from covshift.tables.messages import TableError, one_line
from covshift.tables.model_reader import open_for_model
from covshift.tables.own_models import (
    check_own_model,
    inner_model,
    trial_rows,
    with_any_labels,
)
from covshift.tables.reading import read_most
from covshift.tables.table_models import TableClassifier, TableEstimator, TableRegressor
from covshift.tables.table_words import NOT_ADAPTED, say_sampled, say_scored, say_unbalanced
from covshift.warning_filters import ignored_warnings

LEADERBOARD_HEAD = 10
FEW_ROWS = 30  # means and spreads of fewer rows are off by a fifth of a deviation
MAX_LISTED = 50  # classes and domains of a card
LABEL_KIND: dict[str, Literal["class", "number"]] = {CLASSIFICATION: "class", REGRESSION: "number"}
DEFAULT_MODELS = {CLASSIFICATION: "logistic", REGRESSION: "ridge"}  # paired with a named adapter


def check_choice(
    adapter: str, model: Any = None, objective: str | None = None, task: str = CLASSIFICATION
) -> tuple[str, Any]:
    """Return the registry's names of an adapter and a model to adapt with, or refuse them.

    ``adapter`` may be a candidate as the leaderboard prints it, "coral + logistic", if no model
    is named beside it. A model that is not a name but an estimator is returned as it is.
    """
    objective = check_objective(objective, task)
    adapter, plus, after = adapter.partition("+")
    if plus and model is not None:
        raise TableError("Name the model once: in --adapter, --model or --estimator.")
    model = after if plus else model
    model = find_model(model, LABEL_KIND[task]) if isinstance(model, str) else model
    adapter = adapter.strip().lower()
    if adapter != AUTO:
        record = find_record(adapter)
        adapter = record.name
        if task == REGRESSION and record.needs_classes:
            raise TableError(
                f"The adapter {adapter} cannot be used with --task regression: "
                f"{record.needs_classes}."
            )
    if objective == MAE and adapter != AUTO:
        raise TableError(
            f"--objective {MAE} drives the choice between models, and --adapter "
            f"{adapter} leaves no choice. Leave out one of them; covshift score states both R² "
            "and the mean absolute error."
        )
    used = DEFAULT_MODELS[task] if model is None else model
    used = make_model(used, 100, 2, LABEL_KIND[task]) if isinstance(used, str) else used
    if objective == BALANCED_ACCURACY and adapter != AUTO and not hasattr(used, "predict_proba"):
        raise TableError(
            f"The objective {BALANCED_ACCURACY} needs probabilities, and {model_name(used)} has "
            f"none. Use another model (logistic, boosting), --adapter auto, or --objective "
            f"{ACCURACY}."
        )
    return adapter, model


def check_objective(objective: str | None, task: str = CLASSIFICATION) -> str:
    """Return the objective to adapt tables for: the task's first, or a given one of this task."""
    allowed = REGRESSION_OBJECTIVES if task == REGRESSION else OBJECTIVES
    if objective is None:
        return allowed[0]
    if objective in allowed:
        return objective
    choices = f"{allowed[0]} (default) or {allowed[1]}"
    if objective not in NAMES:
        raise TableError(f"Unknown objective {one_line(objective)!r}. Choose {choices}.")
    if task == REGRESSION:
        raise TableError(
            f"--objective {objective} is for classes. With --task regression, choose {choices}."
        )
    raise TableError(
        f"--objective {objective} is for a numeric label. Add --task regression, or choose "
        f"{choices}."
    )


def choose_estimator(
    tables: MatchedTables,
    adapter: str = AUTO,
    model: Any = None,
    *,
    objective: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    time_budget: float | None = None,
    min_gain: float | None = None,
    max_risk: float = MAX_RISK,
    scores_from: Any = None,
    keep_rows: bool = True,
) -> Any:
    """Return the unfitted classifier or regressor that adapts to two tables, by names.

    Parameters
    ----------
    tables : MatchedTables
        For their task and size.
    adapter : str, default="auto"
        "auto", a name of `covshift.registry`, or a candidate of a leaderboard, such as
        "coral + logistic".
    model : str, estimator or None, default=None
        A name of `covshift.selection.candidates`, or an estimator, which is tried on a few rows and
        refused if a model file cannot hold it. None: those of the default candidates for "auto";
        for a named adapter "logistic", or "ridge" for a regression.
    objective : {"accuracy", "balanced_accuracy", "r2", "mae"} or None, default=None
        Objective that is maximized, by the choice and by ``predict``; None: "accuracy", or "r2" for
        a regression.
    seed, n_jobs, time_budget, min_gain, max_risk, scores_from
        Of `AutoAdaptedClassifier`.
    keep_rows : bool, default=True
        Whether a classifier keeps held-out source rows, for prediction sets and expected scores.

    Returns
    -------
    AutoAdaptedClassifier, AutoAdaptedRegressor, AdaptedClassifier or AdaptedRegressor
    """
    task = tables.task
    objective = check_objective(objective, task)
    adapter, model = check_choice(adapter, model, objective, task)
    n_source = len(tables.X_train)
    encoder = TableEncoder().fit(tables.X_train, schema=tables.schema)
    n_features = len(encoder.get_feature_names_out())
    around = (
        make_model(model, n_source, n_features, LABEL_KIND[task])
        if isinstance(model, str)
        else model
    )
    if not (model is None or isinstance(model, str)):
        rows = trial_rows(tables.y, task)
        trial = encoder.transform(tables.X_train.iloc[rows])
        check_own_model(with_any_labels(model), trial, tables.y[rows])
    if adapter == AUTO:
        kind = AutoAdaptedRegressor if task == REGRESSION else AutoAdaptedClassifier
        chosen = kind(
            around,
            objective=objective,
            random_state=seed,
            n_jobs=n_jobs,
            time_budget=time_budget,
            max_risk=max_risk,
            scores_from=scores_from,
            keep_rows=keep_rows,
        )
        return chosen if min_gain is None else chosen.set_params(min_gain=min_gain)
    if model is None or isinstance(model, str):
        name = model or DEFAULT_MODELS[task]
        chosen = named_model(adapter, name, n_source, n_features, LABEL_KIND[task])
    elif task == REGRESSION:
        chosen = AdaptedRegressor(adapter, model)
    else:
        chosen = AdaptedClassifier(adapter, with_any_labels(model))
    # A regressor predicts the same for either objective.
    if task == REGRESSION:
        return chosen.set_params(keep_rows=keep_rows)
    return chosen.set_params(objective=objective, keep_rows=keep_rows)


def adapt_tables(
    tables: MatchedTables,
    estimator: Any,
    *,
    max_reference_rows: int = 1000,
    progress: Callable[[str, float], object] | None = None,
) -> TableEstimator:
    """Fit a `TableClassifier` to two tables, or a `TableRegressor` if their label is a number.

    Parameters
    ----------
    tables : MatchedTables
        From `read_pair` or `match_tables`.
    estimator : classifier or regressor
        From `choose_estimator`, or any that the model takes.
    max_reference_rows : int, default=1000
        As in `TableClassifier`.
    progress : callable or None, default=None
        As in ``TableClassifier.fit``.

    Returns
    -------
    TableClassifier or TableRegressor
    """
    kind = TableRegressor if tables.task == REGRESSION else TableClassifier
    model = kind(estimator, max_reference_rows=max_reference_rows)
    # Scores fit many small models: threads of BLAS would only wait for each other, and for cores
    # that other programs use (57 s in place of 7 on such a machine).
    with one_blas_thread():
        model.fit_tables(tables, progress)
    for one in (model.estimator, model.estimator_):
        if hasattr(one, "scores_from"):
            one.scores_from = None  # the path of a file here means nothing to who gets the model
    return model


def describe_model(
    model: TableEstimator, tables: MatchedTables, files: Sequence[Any]
) -> dict[str, Any]:
    """Return the card of a model adapted to tables: data, notes, what was chosen and why.

    Parameters
    ----------
    model : TableClassifier or TableRegressor
        Fitted to the tables.
    tables : MatchedTables
        Tables that it was fitted to.
    files : sequence of two paths, the second None where one file was split
        Their files; the card has their names, not their folders.

    Returns
    -------
    dict
        For ``card`` in `covshift.save`.
    """
    estimator = model.estimator_
    card: dict[str, Any] = {
        "task": tables.task,
        "label": tables.label,
        "data": {
            "training file": one_line(Path(files[0]).name, 200),
            "new file": one_line(Path(files[1] or files[0]).name, 200),
            "training rows": len(tables.X_train),
            "new rows": len(tables.X_new),
            "columns": dict(tables.kinds),
            "features": len(model.encoder_.get_feature_names_out()),
            **_describe_labels(tables),
            "rows of each training domain": _counts(
                [tables.domain_names[number] for number in tables.source_domain.tolist()]
            ),
            "rows of each new domain": _counts(
                [tables.domain_names[number] for number in tables.target_domain.tolist()]
            ),
        },
        "notes": [
            *tables.notes,
            *_few_rows_note(len(tables.X_new)),
            *unbalanced_note(tables, model.objective_),
        ],
        "reference rows": len(model.reference_),
        "later targets": [],
        "objective": describe_objective(model.objective_),
        "chosen": list_members(model),
        "plain model": _plain_name(model),
    }
    if tables.labeled_rows is not None:
        card["data"]["new rows with a label"] = len(tables.labeled_rows)
    if _is_automatic(estimator):
        card["notes"] += _scored_rows_note(estimator.max_rows, tables)
        card["decision"] = estimator.decision_
        if estimator.assessment_ is not None:
            card["assessment"] = to_plain(estimator.assessment_)
        card["score"] = estimator.score_kind_
        card["leaderboard"] = [
            {
                key: to_plain(row[key])
                for key in ("candidate", "expected gain", "weight", "disqualified")
            }
            for row in estimator.leaderboard_[:LEADERBOARD_HEAD]
        ]
    else:
        card["decision"] = "Used the adapter you chose; no alternatives were compared."
    return card


def list_members(model: TableEstimator) -> list[dict[str, Any]]:
    """Return what a model adapted to tables predicts with: members of a vote, or one classifier."""
    estimator = model.estimator_
    if not _is_automatic(estimator):
        return [{"candidate": _one_name(estimator), "weight": 1.0}]
    return [
        {"candidate": member.candidate.name, "weight": round(member.weight, 4)}
        for member in estimator.members_
    ]


def adapt_model(
    model: TableEstimator, path: Any, *, domain: str | None = None, **options: Any
) -> tuple[TableEstimator, dict[str, Any]]:
    """Adapt a model to the rows of another file, without the training rows.

    Members of a vote that cannot learn a new target leave it, which the summary says; if the
    others have less than half of its weight, the model is refused.

    Parameters
    ----------
    model : TableClassifier or TableRegressor
        Stays as it is.
    path : path
        Rows of the new target.
    domain : str or None, default=None
        Column that names each row's site: each becomes a target that rows can be predicted as.
        None: that of the training table, if the file has it; else all rows are one target, the one
        of rows without domain from now on.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    model : TableClassifier or TableRegressor
    summary : dict
        ``file``, ``rows`` (of each domain), ``left the vote`` (names) and ``notes``.
    """
    reader = open_for_model(model, path, domain=domain, **options)
    table = read_most(reader.reader)
    frame = table.frame
    adapted = deepcopy(model)
    # Not `reader.domain_names`, which counts unknown domains: here they are learned.
    missing = model.schema_.missing
    names = None if reader.domain is None else domain_texts(frame[reader.domain], missing)
    reader.departures.add(frame)
    read = reader.notes()
    if table.rows is not None:
        read.append(say_sampled(len(table.rows), reader.reader.n_rows))
    notes = [f"{one_line(Path(path).name)}: {note}" for note in read]
    if not model.adapts_:
        notes.append(NOT_ADAPTED)
    try:
        with ignored_warnings(FewerMembersWarning):  # told in the summary
            if names is None:
                adapted.adapt_target(frame)
            else:
                rows_of = np.array(names)
                for name in dict.fromkeys(names):
                    adapted.adapt_target(frame[rows_of == name], domain=name)
    except (ValueError, AttributeError) as error:
        raise TableError(
            f"This model cannot learn a new target from new rows alone: {_short(error)} To refit: "
            "covshift adapt TRAIN NEW --label COL --out MODEL. Models made with one of these "
            f"adapters can: {', '.join(one.name for one in records() if one.learns_targets)}."
        ) from error
    if _is_automatic(adapted.estimator_):
        adapted.estimator_.assessment_ = None  # the assessment belongs to the earlier target
    summary = {
        "file": one_line(Path(path).name, 200),
        "rows": _counts(names if names is not None else ["(default target)"] * len(frame)),
        "left the vote": _left_the_vote(model, adapted),
        "notes": notes,
    }
    return adapted, summary


def _left_the_vote(before: TableEstimator, after: TableEstimator) -> list[str]:
    names = [one["candidate"] for one in list_members(after)]
    return [one["candidate"] for one in list_members(before) if one["candidate"] not in names]


def _is_automatic(estimator: Any) -> bool:
    """Return whether a fitted estimator has chosen its members by itself."""
    return hasattr(estimator, "members_")


def _describe_labels(tables: MatchedTables) -> dict[str, Any]:
    """Return the rows of each class, or the values of a numeric label."""
    if tables.task == CLASSIFICATION:
        return {"rows of each class": _counts(tables.y.tolist())}
    low, median, high = np.quantile(tables.y, [0, 0.5, 1]).tolist()
    values = {"smallest": low, "median": median, "largest": high}
    return {"values of the label": {**values, "standard deviation": float(np.std(tables.y))}}


def unbalanced_note(tables: MatchedTables, objective: Any) -> list[str]:
    """Mention the other objective of adapting to tables where the two differ visibly."""
    if tables.task == REGRESSION:
        return []
    y = tables.y
    names, codes = np.unique(y, return_inverse=True)
    shares = class_shares(codes, len(names))
    if not is_unbalanced(shares):
        return []
    return [say_unbalanced(one_line(names[shares.argmin()]), shares.min(), objective)]


def _few_rows_note(n_new: int) -> list[str]:
    if n_new >= FEW_ROWS:
        return []
    rows = "The new table has one row" if n_new == 1 else f"The new table has only {n_new} rows"
    return [f"{rows}: too few to learn about the target."]


def _scored_rows_note(max_rows: int, tables: MatchedTables) -> list[str]:
    if max(len(tables.X_train), len(tables.X_new)) <= max_rows:
        return []
    return [say_scored(max_rows)]


def _one_name(estimator: Any) -> str:
    """Return the name of a model as a leaderboard has it, as far as it has one."""
    if not isinstance(estimator, AdaptedEstimator):
        return model_name(estimator)
    adapter, model = estimator.adapter, estimator._base_estimator()
    name = find_record(adapter).name if isinstance(adapter, str) else describe_candidate(adapter)
    return f"{name} + {model_name(inner_model(model))}"


def _plain_name(model: TableEstimator) -> str | None:
    plain = model.plain_
    return None if plain is None else str(list_members(plain)[0]["candidate"])


def _counts(names: list[Any]) -> dict[str, int]:
    counts = Counter(map(str, names)).most_common()
    shown = dict(counts[:MAX_LISTED])
    if len(counts) > MAX_LISTED:
        rest = counts[MAX_LISTED:]
        shown[f"({len(rest)} more)"] = sum(count for _, count in rest)
    return shown


def _short(error: Exception) -> str:
    text = one_line(error, 300)
    return text if text.endswith((".", "…")) else f"{text}."
