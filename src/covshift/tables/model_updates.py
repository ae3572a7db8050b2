"""A model that learns from labels that arrive later, without the training rows.

A model file holds no training rows, so nothing is fitted again. Two things can be learned:

- **a batch that has moved** becomes the target, if the adapters can learn one from new rows alone
  (`TableClassifier.adapt_target`); this needs no labels;
- **an ensemble** weighs its members again: the score of each on the labeled rows is one more
  measurement beside its expected gain (`covshift.selection.vote.combine_with_labels`, the rule by
  which ``covshift adapt --labels`` weighs all candidates).

The result must be right on at least as many of the labeled rows as the model before. That is a
check against mistakes, not an estimate: the weights were learned from the same rows. To learn from
the labels themselves, ``covshift adapt TRAIN NEW --labels`` fits the members again.
"""

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.persistence import read_card, save
from covshift.persistence.card_and_seal import given_entries
from covshift.predictors.objectives import METRICS
from covshift.selection import AutoAdaptedClassifier
from covshift.selection.leaderboard import GAIN
from covshift.selection.vote import combine_with_labels, vote_weights
from covshift.tables.adapting import adapt_model, list_members
from covshift.tables.label_files import read_batch_labels
from covshift.tables.messages import TableError, one_line
from covshift.tables.model_reader import open_for_model
from covshift.tables.table_models import TARGET, TableClassifier, objective_of, predict_encoded
from covshift.tables.table_words import REFIT, say_updated

MIN_LABELS_TO_UPDATE = 10  # fewer weigh the members by chance


def update_model(
    path: Path,
    model: TableClassifier,
    batch: Any,
    labels: Any,
    out: Path,
    *,
    moved: bool,
    domain: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Write a model that has learned from labeled rows of a batch; the old file stays as it is.

    Parameters
    ----------
    path : Path
        File of the model.
    model : TableClassifier
        From that file; stays as it is.
    batch, labels : paths
        Rows, and labels of some of them, as in `covshift.tables.monitoring_series.monitor_series`.
    out : Path
        File to write.
    moved : bool
        Whether the batch has moved: only then it becomes the target.
    domain : str or None, default=None
        Column that names each row's domain.
    **options
        ``separator`` and ``decimal``, as in `open_table`.

    Returns
    -------
    dict
        ``model`` (the file), ``labels``, ``right_before`` and ``right_after`` (labeled rows),
        ``adapted``, ``reweighed``, ``weights`` and ``lines``, which say so in words.

    Raises
    ------
    TableError
        If nothing can be learned without the training rows, or the result is worse on the labeled
        rows.
    """
    Z, where, codes = _labeled_rows(model, batch, labels, domain, options)
    if len(codes) < MIN_LABELS_TO_UPDATE:
        raise TableError(
            f"--update needs at least {MIN_LABELS_TO_UPDATE} labels of classes that the model "
            f"knows; there are {len(codes)}."
        )
    updated, lines, target = deepcopy(model), [], None
    if moved and model.adapts_:
        try:
            updated, target = adapt_model(model, batch, domain=domain, **options)
        except TableError as error:
            lines.append(one_line(f"The model could not adapt to the batch. {error}", 500))
        else:
            lines.append("The batch has moved and is now the target that the model adapts to.")
    weights = _reweigh_members(updated, Z, where, codes)
    if weights is not None:
        lines.append(f"The weights of the ensemble were fitted again with {len(codes)} labels.")
    if target is None and weights is None:
        why = " ".join(lines) or (
            "A single model has no weights to change, and the batch has not moved."
            if not moved
            else "A single model without adaptation cannot be updated."
        )
        raise TableError(f"The model cannot be updated without the training rows. {why} {REFIT}")
    before, after = (_count_right(one, Z, where, codes) for one in (model, updated))
    if after < before:
        raise TableError(
            f"The updated model is right on {after} of {len(codes)} labeled rows, the present "
            f"model on {before}: nothing was written. {REFIT}"
        )
    if isinstance(updated.estimator_, AutoAdaptedClassifier):
        updated.estimator_.assessment_ = None  # the assessment belongs to the earlier model
    card = given_entries(read_card(path))
    if target is not None:
        card["later targets"] = [*card.get("later targets", []), target]
    card["reference rows"] = len(updated.reference_)
    card["chosen"] = list_members(updated)
    card["updates"] = [
        *card.get("updates", []),
        {"file": one_line(Path(batch).name, 200), "labels": len(codes), "notes": lines},
    ]
    card.pop("assessment", None)
    save(updated, out, card=card)
    lines += [
        say_updated(after, before, len(codes)),
        f"Model: {out}",
    ]
    return {
        "model": str(out),
        "labels": len(codes),
        "right_before": before,
        "right_after": after,
        "adapted": target is not None,
        "reweighed": weights is not None,
        "weights": card["chosen"],
        "lines": lines,
    }


def _reweigh_members(
    model: TableClassifier, Z: FloatArray, domain: IntArray, codes: IntArray
) -> FloatArray | None:
    """Weigh the members of an ensemble by labeled rows as well; None: it has one member.

    Parameters
    ----------
    model : TableClassifier
        Changed in place.
    Z, domain : ndarrays of shape (n_rows, n_features), (n_rows,)
        Encoded rows and their domains.
    codes : ndarray of shape (n_rows,)
        Their classes, as numbers.
    """
    estimator = model.estimator_
    if not isinstance(estimator, AutoAdaptedClassifier) or len(estimator.members_) < 2:
        return None
    where = None if (domain == TARGET).all() else domain
    metric, n_classes = METRICS[objective_of(model)], len(model.classes_)
    gain_of = {row["candidate"]: row[GAIN] for row in estimator.leaderboard_}
    gains = np.array([gain_of.get(one.candidate.name, np.nan) for one in estimator.members_])
    scores = np.array(
        [
            metric(codes, _decide(model, one.probabilities(Z, n_classes, where)))
            for one in estimator.members_
        ]
    )
    able = ~np.isnan(gains)
    if able.sum() < 2:
        return None
    combined = combine_with_labels(gains, scores, len(codes), able)
    plain = estimator.plain_member_
    names = [one.candidate.name for one in estimator.members_]
    place = names.index(plain.candidate.name) if plain and plain.candidate.name in names else None
    weights = vote_weights(combined, able, len(names), place)
    order = np.argsort(-weights, kind="stable")
    members = [estimator.members_[i]._replace(weight=float(weights[i])) for i in order]
    estimator.members_ = [one for one in members if one.weight > 0]
    estimator.chosen_ = [one.candidate.name for one in estimator.members_]
    return weights


def _decide(model: TableClassifier, P: FloatArray) -> IntArray:
    decided: IntArray = np.searchsorted(model.classes_, model.estimator_.decide(P))
    return decided


def _labeled_rows(
    model: TableClassifier, batch: Any, labels: Any, domain: str | None, options: dict[str, Any]
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the labeled rows of a batch, encoded, their domains and their classes as numbers."""
    known = read_batch_labels(model, batch, labels, [], **options)
    places = {name: code for code, name in enumerate(model.classes_.tolist())}
    reader = open_for_model(model, batch, domain=domain, **options)
    pieces, start = [], 0
    for chunk in reader.chunks():
        Z, numbers = model.encode(chunk), reader.domain_numbers(chunk)
        where = np.full(len(Z), TARGET) if numbers is None else numbers
        rows = [i for i in range(len(Z)) if known.get(start + i) in places]
        codes = np.array([places[known[start + i]] for i in rows], dtype=np.int64)
        pieces.append((Z[rows], where[rows], codes))
        start += len(Z)
    Z, where, codes = map(np.concatenate, zip(*pieces, strict=True))
    return Z, where, codes


def _count_right(model: TableClassifier, Z: FloatArray, domain: IntArray, codes: IntArray) -> int:
    return int((predict_encoded(model, Z, domain).codes == codes).sum())
