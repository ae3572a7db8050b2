"""Write tables and lists of adapters into the guide and the reference.

    python docs/adapter_tables.py

They come from the registry. A page says where: between ``<!-- table ID -->`` and ``<!-- end -->``
in Markdown, between ``.. list ID`` and ``.. end`` in reStructuredText, on lines of their own. The
tests fail if a page is behind the registry.
"""

import re
from pathlib import Path

from insert_tables import PLACE

import covshift
from covshift.registry import BUILT_IN

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "docs" / "guide" / "adapters.md",
    ROOT / "docs" / "reference" / "adapter-names.md",
    ROOT / "docs" / "reference" / "adapters.rst",
    ROOT / "docs" / "reference" / "weights.rst",
)
LIST_PLACE = re.compile(r"(\.\. list (\S+)\n\n).*?(\n\.\. end\n)", re.DOTALL)
CAPABILITIES = {
    "reads_labels": "reads labels",
    "needs_target": "needs a target",
    "learns_targets": "learns a new target",
    "streams": "larger than memory",
    "runs_on_device": "GPU",
    "exports_to_onnx": "ONNX",
}


def make_tables():
    """Return Markdown tables by their ids."""
    return {
        # Names of one assumption share a row.
        "adapters": _table(["name", "assumes", "fixes", "harms where"], _rows_by_assumption()),
        "names": _table(
            ["name", "class", "method"],
            [
                [f"`{one.name}`", f"{{obj}}`~covshift.{_public_name(one)}`", one.title]
                for one in BUILT_IN
            ],
        ),
        "capabilities": _table(
            ["name", *CAPABILITIES.values()],
            [
                [f"`{one.name}`", *("yes" if getattr(one, key) else "" for key in CAPABILITIES)]
                for one in BUILT_IN
            ],
        ),
    }


def make_list(kind):
    """Return the directive that lists the classes of this kind."""
    names = dict.fromkeys(_public_name(one) for one in BUILT_IN if one.kind == kind)
    lines = [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   {name}" for name in names)]) + "\n"


def _public_name(record):
    """Name within ``covshift``: of the package, or of the class's own module."""
    if record.class_name in covshift.__all__:
        return record.class_name
    return record.path.removeprefix("covshift.").replace(":", ".")


def _rows_by_assumption():
    rows = {}
    for one in BUILT_IN:
        rows.setdefault((one.assumption, one.fixes, one.harms), []).append(f"`{one.name}`")
    return [[", ".join(names), *texts] for texts, names in rows.items()]


def _table(headings, rows):
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines
    )


def insert_tables(text):
    """Return a page with its tables and lists replaced; those of other programs stay."""
    tables = make_tables()

    def replace(found):
        start, table_id, end = found.groups()
        return f"{start}{tables[table_id]}\n{end}" if table_id in tables else found.group(0)

    text = LIST_PLACE.sub(lambda found: f"{found[1]}{make_list(found[2])}{found[3]}", text)
    return PLACE.sub(replace, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(insert_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
