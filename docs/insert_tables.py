"""Put the tables of a report into a page of the documentation, in place of older ones.

python docs/insert_tables.py docs/results/collections.md runs/compare/report.json

A page says where: between ``<!-- table ID -->`` and ``<!-- end -->``, on lines of their own, stands
the table with that id. Nothing else of the page is changed.
"""

import json
import re
import sys
from pathlib import Path

from covshift.report.files import table_markdown

PLACE = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def insert_tables(page, document):
    """Return the page with every table taken from the document; an unknown id is an error."""
    tables = {table["id"]: table for part in document["sections"] for table in part["tables"]}

    def replace(found):
        start, table_id, end = found.groups()
        if table_id not in tables:
            raise SystemExit(f"the report has no table {table_id}; it has {', '.join(tables)}.")
        return f"{start}{table_markdown(tables[table_id])}\n{end}"

    return PLACE.sub(replace, page)


if __name__ == "__main__":
    page, report = map(Path, sys.argv[1:])
    document = json.loads(report.read_text(encoding="utf-8"))
    page.write_text(insert_tables(page.read_text(encoding="utf-8"), document), encoding="utf-8")
