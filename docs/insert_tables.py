"""Put the tables of a report into a page of the documentation, in place of older ones.

python docs/insert_tables.py docs/results/collections.md runs/compare/report.json

A page says where. Between ``<!-- table ID -->`` and ``<!-- end -->``, on lines of their own, stands
the table with that id. Between ``<!-- file ID -->`` and ``<!-- end -->`` stands a link to it: the
table itself is written beside the page, as ``PAGE-ID.csv``. Nothing else of the page is changed.
"""

import csv
import io
import json
import re
import sys
from pathlib import Path

from covshift.report.files import table_markdown

PLACE = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
FILE = re.compile(r"(<!-- file (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
RULE = re.compile(r"[|:\- ]+")  # the line under the names of a table's columns


def insert_tables(page, document, stem="page"):
    """Return the page with every table taken from the document, and the files beside it.

    An unknown id is an error. ``stem`` begins the names of the files, whose texts are returned
    by name.
    """
    tables = {table["id"]: table for part in document["sections"] for table in part["tables"]}
    files = {}

    def find(table_id):
        if table_id not in tables:
            raise SystemExit(f"the report has no table {table_id}; it has {', '.join(tables)}.")
        return tables[table_id]

    def insert(found):
        start, table_id, end = found.groups()
        return f"{start}{table_markdown(find(table_id))}\n{end}"

    def link(found):
        start, table_id, end = found.groups()
        table = find(table_id)
        name = f"{stem}-{table_id}.csv"
        files[name] = csv_of_markdown(table_markdown(table))
        return f"{start}[{table['caption']}]({name})\n{end}"

    return FILE.sub(link, PLACE.sub(insert, page)), files


def csv_of_markdown(text):
    r"""Return the table in a text as CSV, each cell as it is shown.

    Examples
    --------
    >>> csv_of_markdown("A title\n\n| a | b |\n|---|---:|\n| x, y | 1 |")
    'a,b\n"x, y",1\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in text.splitlines():
        if line.startswith("|") and not RULE.fullmatch(line):
            cells = re.split(r"(?<!\\)\|", line.strip()[1:-1])
            writer.writerow([cell.strip().replace("\\|", "|") for cell in cells])
    return out.getvalue()


if __name__ == "__main__":
    page, report = map(Path, sys.argv[1:])
    document = json.loads(report.read_text(encoding="utf-8"))
    text, files = insert_tables(page.read_text(encoding="utf-8"), document, page.stem)
    page.write_text(text, encoding="utf-8")
    for name, table in files.items():
        (page.parent / name).write_text(table, encoding="utf-8")
