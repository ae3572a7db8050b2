"""The page of the synthetic study says what its agreement with the rebuild shows, cell by cell."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from covshift.paper.synthetic.report import LARGEST_DIFFERENCE

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
PAGE = (RESULTS / "synthetic-study.md").read_text(encoding="utf-8")
NAMES = re.compile(r"\b(SF|PSF|DAE|SSA|IW)\b|`(\w+)`(?: \((\.\d+))?")
ALGEBRA, STRONG, FAIR, WEAK = range(4)  # the points of the list, in its order


def last_number(text):
    """The last mean of a cell and its standard error."""
    mean, error = re.findall(r"(\.\d+) ± (\.\d+)", text)[-1]
    return float(mean), float(error)


def cells():
    """Each cell that the rebuild reproduced, with the allowed and the actual difference."""
    with (RESULTS / "synthetic-study-paper.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if "not reproduced" in row["agrees with the paper"]:
                continue
            name = row["system"].partition("+")[0], row["data set"]
            if row["rebuilt"] == "no change":
                yield name, 0.0, 0.0
                continue
            (ours, error), (rebuilt, other) = map(last_number, (row["as released"], row["rebuilt"]))
            yield name, LARGEST_DIFFERENCE * np.hypot(error, other), abs(ours - rebuilt)


def listed():
    """The cells that each point of the list names, and the numbers beside them."""
    found = []
    for point in PAGE.split("strong evidence:")[1].split("\n- ")[1:5]:
        names, system = {}, ""
        point = point.partition("\n\n")[0]
        for mark, data, number in re.findall(
            r"\b(SF|PSF|DAE|SSA|IW)\b|`(\w+)`(?: \((\.\d+))?", point
        ):
            system = mark or system
            if data:
                names[system, data] = number
        found.append(names)
    return found


def test_every_cell_is_in_the_point_of_its_allowed_difference():
    found = {}
    for name, allowed, actual in cells():
        if name[0] == "SSA":
            point = ALGEBRA
        else:
            point = STRONG if round(allowed, 2) <= 0.06 else FAIR if allowed <= 0.105 else WEAK
        found.setdefault(point, {})[name] = f"{allowed:.3f}".lstrip("0") if point == WEAK else ""
        assert actual <= allowed or name[0] == "SSA"
    assert [found[point] for point in range(4)] == listed()
    assert sum(len(one) for one in found.values()) == 18


def test_the_largest_difference_is_that_of_its_cell():
    differences = dict((name, actual) for name, _, actual in cells())
    name = max(differences, key=differences.__getitem__)
    assert name == ("PSF", "diagonal")
    assert differences[name] == pytest.approx(0.142)
    assert "where the figures differ by .142" in PAGE
