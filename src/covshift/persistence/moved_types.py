"""Descriptions of models by older versions, brought up to date.

Types had other modules when older versions of the package wrote them. And scikit-learn warns at
every part that another version of it wrote; `covshift.load` warns once for all of them, so that
users' filters of warnings stay unchanged.
"""

import io
import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import sklearn

from covshift.persistence.archive import SCHEMA

# Old module and class -> the module that has the class now.
MOVED = {
    (
        "covshift.selection.source_standard_scaler",
        "SourceStandardScaler",
    ): "covshift.adapters.source_standard_scaler",
}


def follow_moves(content: io.BytesIO) -> io.BytesIO:
    """Return an unpacked archive whose schema names types and versions as they are now."""
    with ZipFile(content) as archive:
        schema = json.loads(archive.read(SCHEMA))
        # Both walk the whole schema.
        if not sum([_rename(schema), _set_versions(schema)]):
            return content
        moved = io.BytesIO()
        with ZipFile(moved, "w", ZIP_STORED) as copy:
            for name in archive.namelist():
                copy.writestr(name, json.dumps(schema) if name == SCHEMA else archive.read(name))
    moved.seek(0)
    return moved


def _rename(schema: Any) -> bool:
    """Rename types in a description, in place; return whether there were any."""
    found = False
    for part in _dictionaries_in(schema):
        module, name = part.get("__module__"), part.get("__class__")
        # A dictionary of the user's may have such keys, too, with values that are not text.
        if isinstance(module, str) and isinstance(name, str) and (module, name) in MOVED:
            part["__module__"], found = MOVED[module, name], True
    return found


def _set_versions(schema: Any) -> bool:
    """Say of scikit-learn's estimators that this version wrote them; return whether none did."""
    found, current = False, json.dumps(sklearn.__version__)
    for part in _dictionaries_in(schema):
        if part.get("__loader__") == "ObjectNode" and isinstance(part.get("content"), dict):
            attributes = part["content"].get("content")
            version = attributes.get("_sklearn_version") if isinstance(attributes, dict) else None
            if isinstance(version, dict) and version.get("content") not in (None, current):
                version["content"], found = current, True
    return found


def _dictionaries_in(node: Any) -> Iterator[dict[str, Any]]:
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
