"""The page of monitored batches: what its table, its first sentence and its chart say."""

import pytest

from covshift.tables.monitoring_report import monitor_document

FINE = {
    "name": "may", "rows": 1200, "moved": False, "level": 0.01, "what_moved": [], "n_labels": 0,
    "features": [{"feature": "age"}], "estimate": {"value": 0.9, "low": 0.85, "high": 0.95},
    "observed": None, "covered": None, "below_alert": False,
}  # fmt: skip
MOVED = {
    "name": "june", "rows": 80, "moved": True, "level": 0.01, "what_moved": ["rows"],
    "n_labels": 30, "features": [{"feature": name} for name in ("age", "mass", "site", "price")],
    "estimate": {"value": 0.9, "low": 0.85, "high": 0.95}, "covered": False, "below_alert": True,
    "updated": {"value": 0.7, "low": 0.6, "high": 0.8}, "observed": {"value": 0.65},
}  # fmt: skip


@pytest.fixture
def document():
    return monitor_document([FINE, MOVED], "accuracy", ["a note"], alert=0.75, model="m.skops")


def test_the_table_has_every_batch_the_latest_first(document):
    (table,) = next(one for one in document["sections"] if one["id"] == "batches")["tables"]
    june, may = (
        {
            name: cell["text"] if isinstance(cell, dict) else cell
            for name, cell in row.items()
        }
        for row in table["rows"]
    )  # fmt: skip
    assert june == {
        "batch": "june", "rows": 80, "moved": "yes", "what": "rows", "covered": "no",
        "features": "age, mass, site", "expected": "0.700 (0.600 to 0.800)",
        "observed": "0.650 (30 labels)",
    }  # fmt: skip
    assert may == {
        "batch": "may", "rows": 1200, "moved": "no", "what": None, "covered": None,
        "features": None, "expected": "0.900 (0.850 to 0.950)", "observed": None,
    }  # fmt: skip


def test_the_first_sentence_counts_and_describes_the_last_batch(document):
    assert document["lead"] == (
        "1 of 2 batches moved. 1 gave an alert. Last batch: june; 80 rows; moved; expected "
        "accuracy 0.700 (90 % interval 0.600 to 0.800); observed 0.650 on 30 labeled rows."
    )


def test_points_of_the_chart(document):
    (figure,) = next(one for one in document["sections"] if one["id"] == "time")["figures"]
    points = figure["chart"]["points"]
    assert [(one["name"], one["kind"], one["value"]) for one in points] == [
        ("may", "fine", 0.9), ("june", "alert", 0.7)
    ]  # fmt: skip
    assert [one["observed"] for one in points] == [None, 0.65]
