"""The card of a model file, and the seal of all its members: ``covshift.json``.

The card says what a model is and what made it. The seal is the digest of all members and, with a
key, its signature.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from covshift._version import __version__
from covshift.output_files import software_versions
from covshift.persistence.archive import CARD, ModelFileError

FORMAT = 1
MIN_KEY_BYTES = 16


def make_document(
    model: Any,
    card: Mapping[str, Any] | None,
    digests: Mapping[str, str],
    key: bytes | None = None,
    **versions: str,
) -> str:
    """Return ``covshift.json``: format, card, digest and, with a key, signature.

    ``digests`` has the SHA-256 of every other member of the file.
    """
    if card is not None and not isinstance(card, Mapping):
        raise TypeError(f"card must be a dictionary, got {type(card).__name__}.")
    own = _describe(model)
    own["software"] = {"covshift": __version__, **software_versions(), **versions}
    own["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    given = dict(card or {})
    taken = sorted(own.keys() & given.keys())
    if taken:
        raise ValueError(f"These entries of the card are filled in by save: {', '.join(taken)}.")
    content = {"format": FORMAT, "covshift": __version__, "card": {**own, **given}}
    try:
        document = json.loads(json.dumps(content, default=_plain, allow_nan=False))
        document["digest"] = digest_of(document, digests)
        if key is not None:
            document["signature"] = _sign(document["digest"], key)
        return json.dumps(document, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"The card must hold texts, finite numbers, lists and dictionaries: {error}"
        ) from None


def digest_of(document: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file: of its card and of the digests of all other members."""
    said = {name: one for name, one in document.items() if name not in ("digest", "signature")}
    members = {name: one for name, one in digests.items() if name != CARD}
    return hashlib.sha256(json.dumps([said, members], sort_keys=True).encode()).hexdigest()


def _sign(digest: str, key: bytes) -> str:
    """Return the HMAC-SHA-256 of a file's digest."""
    return hmac.new(check_key(key), digest.encode(), "sha256").hexdigest()


def check_key(key: Any) -> bytes:
    """Refuse a key that is not secret bytes."""
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, got {type(key).__name__}.")
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(
            f"key has {len(key)} bytes, at least {MIN_KEY_BYTES} are needed. Make one with "
            "secrets.token_bytes(32)."
        )
    return key


def check_seal(content: bytes, digests: Mapping[str, str], key: bytes | None = None) -> None:
    """Refuse a file that differs from what was written or, with a key, that was not signed by it.

    Files of covshift 0.1 have no digest. Anyone who can write a file can write its digest as
    well: only a signature shows who wrote it.
    """
    document = json.loads(content)
    digest = digest_of(document, digests)
    if "digest" in document and document["digest"] != digest:
        raise ModelFileError("Its contents do not match its digest: it is damaged, or was changed.")
    if key is None:
        return
    signature = document.get("signature")
    if signature is None:
        raise ModelFileError("It has no signature: save(model, path, key=...) writes one.")
    if not hmac.compare_digest(str(signature).encode(), _sign(digest, key).encode()):
        raise ModelFileError(
            "Its signature does not match the key: it was changed, or signed by another key."
        )


def read_document(content: bytes) -> dict[str, Any]:
    """Return the card of ``covshift.json``, or say why this version does not read it."""
    document = json.loads(content)
    version = document["format"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"Unknown format version {version!r}.")
    if version > FORMAT:
        raise ModelFileError(
            f"It has format {version}, written by covshift {document['covshift']!s:.50}; this is "
            f"covshift {__version__}, which reads formats up to {FORMAT}. Install that version or "
            "a newer one."
        )
    card = document["card"]
    if not isinstance(card, dict):
        raise ModelFileError("Its card is not a dictionary.")
    return card


def _describe(model: Any) -> dict[str, Any]:
    """Return the facts about a fitted model; None where they are unknown."""
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
    filled = {*_describe(None), "software", "date"}
    return {name: value for name, value in card.items() if name not in filled}


def _as_list(values: Any) -> list[Any] | None:
    if values is None:
        return None
    plain = np.asarray(values).tolist()
    return [one if isinstance(one, str | int | float | bool) else str(one) for one in plain]


def _plain(value: Any) -> Any:
    """Return arrays and NumPy's scalars as JSON values."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r:.100} is of type {type(value).__name__}")
