"""The card of a model file: what the model is, what made it, and what its maker says of it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from covshift._version import __version__
from covshift.persistence.archive import ModelFileError
from covshift.studies.store import software_versions

FORMAT = 1


def make_document(model: Any, card: Mapping[str, Any] | None, **versions: str) -> str:
    """Return ``covshift.json``: the version of the format, and the card as JSON."""
    if card is not None and not isinstance(card, Mapping):
        raise TypeError(f"card must be a dictionary, got {type(card).__name__}.")
    own = describe(model)
    own["software"] = {"covshift": __version__, **software_versions(), **versions}
    own["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    given = dict(card or {})
    taken = sorted(own.keys() & given.keys())
    if taken:
        raise ValueError(f"These entries of the card are filled in by save: {', '.join(taken)}.")
    document = {"format": FORMAT, "covshift": __version__, "card": {**own, **given}}
    try:
        return json.dumps(document, indent=1, default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"The card must hold texts, finite numbers, lists and dictionaries: {error}"
        ) from None


def read_document(content: bytes) -> dict[str, Any]:
    """Return the card of ``covshift.json``, or say why this version does not read it."""
    document = json.loads(content)
    version = document["format"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"Its format is {version!r}, which no covshift writes.")
    if version > FORMAT:
        raise ModelFileError(
            f"It is of format {version}, written by covshift {document['covshift']!s:.50}; this is "
            f"covshift {__version__}, which reads formats up to {FORMAT}. Install that version or "
            "a newer one."
        )
    card = document["card"]
    if not isinstance(card, dict):
        raise ModelFileError("Its card is no dictionary.")
    return card


def describe(model: Any) -> dict[str, Any]:
    """What a fitted model says of itself; None where it says nothing."""
    return {
        "class_name": f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}",
        "model": repr(model),
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": _as_list(getattr(model, "feature_names_in_", None)),
        "classes": _as_list(getattr(model, "classes_", None)),
        "domains": _as_list(getattr(model, "domains_", None)),
        "domain_names": {
            str(number): name for number, name in getattr(model, "domain_names_", {}).items()
        },
    }


def given_entries(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return a card less what `make_document` fills in: what its maker said."""
    filled = {*describe(None), "software", "date"}
    return {name: value for name, value in card.items() if name not in filled}


def _as_list(values: Any) -> list[Any] | None:
    if values is None:
        return None
    plain = np.asarray(values).tolist()
    return [one if isinstance(one, str | int | float | bool) else str(one) for one in plain]


def _plain(value: Any) -> Any:
    """Arrays and NumPy's scalars, as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r:.100} is of type {type(value).__name__}")
