"""Types that had another module when older versions of the package wrote them to model files."""

import io
import json
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from covshift.persistence.archive import SCHEMA

# Old module and class -> the module that has the class now.
MOVED = {
    (
        "covshift.selection.source_standard_scaler",
        "SourceStandardScaler",
    ): "covshift.adapters.source_standard_scaler",
}


def follow_moves(content: io.BytesIO) -> io.BytesIO:
    """Return a checked archive whose schema names every type by its present module."""
    with ZipFile(content) as archive:
        schema = json.loads(archive.read(SCHEMA))
        if not _rename(schema):
            return content
        moved = io.BytesIO()
        with ZipFile(moved, "w", ZIP_DEFLATED) as copy:
            for member in archive.infolist():
                text = json.dumps(schema) if member.filename == SCHEMA else None
                copy.writestr(member, archive.read(member) if text is None else text)
    moved.seek(0)
    return moved


def _rename(node: Any) -> bool:
    """Rename types in a description, in place; return whether there were any."""
    waiting, found = [node], False
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            module, name = part.get("__module__"), part.get("__class__")
            # A dictionary of the user's may have such keys, too, with values that are not text.
            if isinstance(module, str) and isinstance(name, str) and (module, name) in MOVED:
                part["__module__"], found = MOVED[module, name], True
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found
