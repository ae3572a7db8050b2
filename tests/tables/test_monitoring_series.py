"""Series of batches: periods, labels, alerts, what a history keeps."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from covshift import AdaptedClassifier, DomainStandardScaler, estimate_performance
from covshift.selection.expected_scores import Predictive
from covshift.tables import TableClassifier, TableError, match_tables, monitoring_series
from covshift.tables.dates import name_periods
from covshift.tables.monitoring_batch import _class_proportions_pvalue
from covshift.tables.monitoring_history import (
    append_history,
    count_covered,
    history_lines,
    read_history,
)
from covshift.tables.monitoring_series import is_below, monitor_series


def rows(n, moved=0.0, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal([moved, 0], 1, (n, 2)), columns=["a", "b"])
    return frame.assign(label=np.where(frame["a"] + frame["b"] > moved, "yes", "no"))


class Estimate(NamedTuple):
    """Stands in for the result of `covshift.estimate_performance`."""

    value: float
    low: float
    high: float
    reference: float = 0.95

    @property
    def distribution(self):
        return Predictive(self.value, np.array([0.05, 0.95]), np.array([self.low, self.high]))


def say_estimate(model, Z, domain, y_known=None):
    """A test double: the labels known, if there are any; else .9."""
    if y_known is None:
        return Estimate(0.9, 0.8, 0.99)
    known = np.array([one is not None for one in y_known])
    right = model.estimator_.predict(Z[known]) == y_known[known]
    return Estimate(right.mean(), right.mean() - 0.05, right.mean() + 0.05)


@pytest.fixture
def estimated(monkeypatch):
    monkeypatch.setattr(monitoring_series, "estimate_score", say_estimate)


@pytest.fixture
def not_estimated(monkeypatch):
    def refuse(*_):
        raise ValueError("The model keeps no held-out rows.")

    monkeypatch.setattr(monitoring_series, "estimate_score", refuse)


@pytest.fixture(scope="module")
def model():
    tables = match_tables(rows(300), rows(300, seed=1).drop(columns="label"), label="label")
    return TableClassifier(AdaptedClassifier(DomainStandardScaler())).fit_tables(tables)


def write(path, frame):
    frame.to_csv(path, index=False)
    return path


def test_each_file_is_a_batch(model, estimated, tmp_path):
    paths = [write(tmp_path / "a.csv", rows(200, seed=2))]
    paths.append(write(tmp_path / "b.csv", rows(200, 1.5, seed=3)))
    found = monitor_series(model, paths, alert=0.82)
    assert [one["name"] for one in found["batches"]] == ["a.csv", "b.csv"]
    assert [one["moved"] for one in found["batches"]] == [False, True]
    assert found["moved"]
    assert not found["below_alert"]
    first, second = found["batches"]
    assert first["what_moved"] == []
    assert {"each feature", "predictions", "class proportions"} <= set(second["what_moved"])
    assert second["features"][0]["feature"] == "a"
    assert {"value": 0.9, "low": 0.8, "high": 0.99}.items() <= first["estimate"].items()
    assert first["reference"] == 0.95
    assert monitor_series(model, paths, alert=0.91)["below_alert"]
    shares = {one["class"]: (one["before"], one["now"]) for one in second["classes"]}
    assert shares["yes"][1] > shares["yes"][0] + 0.2
    assert sum(now for _, now in shares.values()) == pytest.approx(1)


def test_an_alert_that_is_likely_enough_comes_for_moved_batches_only(model, estimated, tmp_path):
    fine = write(tmp_path / "a.csv", rows(200, seed=2))
    moved = write(tmp_path / "b.csv", rows(200, 1.5, seed=3))
    # The double expects .9, and less than .87 with probability .05 + .9 * .07 / .19 = .38.
    found = monitor_series(model, [fine, moved], alert=0.87)
    assert [one["below_alert"] for one in found["batches"]] == [False, True]
    estimate = found["batches"][1]["estimate"]
    assert estimate["alert"] == 0.87
    assert estimate["chance_below"] == pytest.approx(0.05 + 0.9 * 0.07 / 0.19)
    assert not monitor_series(model, [moved], alert=0.84)["below_alert"]  # .24
    # What a history says of another alert is not read.
    (line,) = [one for one in history_lines(found) if one["name"] == "b.csv"]
    assert is_below(line, 0.87)
    assert not is_below(line, 0.86)
    assert is_below(line, 0.91)


def test_an_alert_that_does_not_come_for_a_moved_batch_is_no_proof(model, estimated, tmp_path):
    fine = write(tmp_path / "a.csv", rows(200, seed=2))
    moved = write(tmp_path / "b.csv", rows(200, 1.5, seed=3))
    said = {
        case: any("does not mean that the score is fine" in note for note in found["notes"])
        for case, found in {
            "not moved": monitor_series(model, [fine], alert=0.85),
            "moved": monitor_series(model, [fine, moved], alert=0.82),
            "below": monitor_series(model, [moved], alert=0.91),
            "no alert": monitor_series(model, [moved]),
            "labels": monitor_series(model, [moved], alert=0.1, labels=moved),
        }.items()
    }
    assert said == {
        "not moved": False, "moved": True, "below": False, "no alert": False, "labels": False,
    }  # fmt: skip


def test_periods_of_time_over_several_files(model, estimated, tmp_path):
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(30).repeat(10), "D")
    frame = rows(300).assign(day=days.strftime("%d.%m.%Y"))
    frame.loc[[7, 8], "day"] = ""
    paths = [write(tmp_path / "1.csv", frame[:155]), write(tmp_path / "2.csv", frame[155:])]
    found = monitor_series(model, paths, time="day", by="week")
    sizes = {one["name"]: one["rows"] for one in found["batches"]}
    assert sizes == {"2024-W01": 68, "2024-W02": 70, "2024-W03": 70, "2024-W04": 70, "2024-W05": 20}
    assert "2 rows have no date in 'day': left out." in found["notes"]
    by_day = monitor_series(model, [write(tmp_path / "3.csv", frame[:30])], time="day", by="day")
    assert by_day["skipped"] == [{"name": "2024-01-01", "rows": 8}]
    assert len(by_day["batches"]) == 2
    by_month = monitor_series(model, paths, time="day", by="month")
    assert [one["name"] for one in by_month["batches"]] == ["2024-01"]


def test_days_before_1970_and_around_new_year():
    days = np.array([-1.0, np.nan, 19722.99, 18628.0])
    assert name_periods(days, "day") == ["1969-12-31", None, "2023-12-31", "2021-01-01"]
    assert name_periods(days, "week") == ["1970-W01", None, "2023-W52", "2020-W53"]


def test_labels_give_the_truth_and_a_better_estimate(model, estimated, tmp_path):
    frame = rows(200, seed=4)
    path = write(tmp_path / "batch.csv", frame.drop(columns="label"))
    numbers = np.arange(1, 61)
    labels = pd.DataFrame({"row_to_label": numbers, "label": frame["label"][:60]})
    (one,) = monitor_series(model, [path], labels=write(tmp_path / "l.csv", labels))["batches"]
    predicted = model.predict(frame[:60])
    truth = np.mean(predicted == frame["label"][:60])
    assert one["n_labels"] == 60
    assert one["observed"]["value"] == pytest.approx(truth)
    assert one["updated"]["value"] == pytest.approx(truth)
    assert one["covered"] is bool(0.8 <= truth <= 0.99)
    turned = labels.assign(label=np.where(labels["label"] == "yes", "no", "yes"))
    found = monitor_series(model, [path], labels=write(tmp_path / "t.csv", turned), alert=0.5)
    assert found["batches"][0]["covered"] is False
    assert found["below_alert"]  # by the labels: the rows have not moved
    assert not found["moved"]
    assert any("now have other labels than in training" in note for note in found["notes"])


def test_labels_in_the_batch_itself(model, estimated, tmp_path):
    path = write(tmp_path / "batch.csv", rows(100, seed=5))
    found = monitor_series(model, [path], labels=path)
    assert found["batches"][0]["n_labels"] == 100
    assert not any("it is not read" in note for note in found["notes"])
    assert any("it is not read" in note for note in monitor_series(model, [path])["notes"])


def test_few_labels_say_nothing_of_coverage(model, estimated, tmp_path):
    path = write(tmp_path / "batch.csv", rows(100, seed=5))
    labels = write(tmp_path / "l.csv", pd.DataFrame({"row_to_label": [3, 5], "label": "yes"}))
    found = monitor_series(model, [path], labels=labels)
    assert found["batches"][0]["covered"] is None
    assert "2 labels: 30 are needed" in found["notes"][-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row_to_label,label\n101,yes\n", "row 101 is not a row of"),
        ("row_to_label,label\n0,yes\n", "row 0 is not a row of the batch"),
        ("row_to_label,label\n1.5,yes\n", "row 1.5 is not a row of the batch"),
        ("row_to_label,label\n1,yes\n1,no\n", "row 1 has several labels"),
        ("row_to_label,label\n1,\n", "no row has a label yet"),
        ("label\nyes\n", "has no column 'row_to_label'"),
    ],
)
def test_labels_that_do_not_fit(model, estimated, tmp_path, text, words):
    path = write(tmp_path / "batch.csv", rows(100))
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(TableError, match=words):
        monitor_series(model, [path], labels=tmp_path / "labels.csv")


def test_bad_requests(model, estimated, tmp_path):
    path = write(tmp_path / "batch.csv", rows(100))
    with pytest.raises(TableError, match="--labels needs one file"):
        monitor_series(model, [path, path], labels=path)
    with pytest.raises(TableError, match="has no column 'when'"):
        monitor_series(model, [path], time="when")
    with pytest.raises(TableError, match="column 'a' holds number, not dates"):
        monitor_series(model, [path], time="a")
    with pytest.raises(ValueError, match="by must be"):
        monitor_series(model, [path], by="year")
    with pytest.raises(ValueError, match="alert"):
        monitor_series(model, [path], alert=1.5)


def test_a_model_without_held_out_rows_has_no_estimate(model, not_estimated, tmp_path):
    path = write(tmp_path / "batch.csv", rows(100))
    found = monitor_series(model, [path])
    assert found["batches"][0]["estimate"] is None
    assert found["notes"][-1] == (
        "The score cannot be estimated. The model keeps no held-out rows."
    )
    with pytest.raises(TableError, match="--alert needs an expected score"):
        monitor_series(model, [path], alert=0.8)


def test_what_a_history_keeps(model, estimated, tmp_path):
    history = tmp_path / "history.jsonl"
    frame = rows(100, seed=6)
    path = write(tmp_path / "batch.csv", frame.drop(columns="label"))
    found = monitor_series(model, [path], model_digest="m1")
    assert append_history(history, history_lines(found)) == [True]
    assert append_history(history, history_lines(found)) == [False]
    # The same rows in another layout are the same batch; a changed row is another one.
    frame.drop(columns="label").to_csv(path, index=False, sep=";")
    again = monitor_series(model, [path], model_digest="m1")
    assert append_history(history, history_lines(again)) == [False]
    frame.loc[3, "a"] += 1
    write(path, frame)
    labeled = monitor_series(model, [path], labels=path, model_digest="m1")
    assert append_history(history, history_lines(labeled)) == [True, True]
    first, second = read_history(history).batches
    assert first.get("observed") is None
    assert second["observed"]["value"] == labeled["batches"][0]["observed"]["value"]
    assert count_covered(read_history(history).batches)["batches"] == 1


def test_class_proportions_beside_a_plain_test():
    counts = np.array([[40, 60, 100], [60, 70, 70]])
    assert _class_proportions_pvalue(counts) == pytest.approx(chi2_contingency(counts).pvalue)
    rare = np.array([[1, 0, 99, 100], [0, 2, 140, 58]])
    together = np.array([[101, 99], [142, 58]])  # hand-made: rare ones join the smallest
    merged = np.array([[99, 101], [140, 60]])
    assert _class_proportions_pvalue(rare) in (
        pytest.approx(chi2_contingency(together).pvalue),
        pytest.approx(chi2_contingency(merged).pvalue),
    )
    assert _class_proportions_pvalue(np.array([[50, 0], [60, 0]])) == 1


def test_the_real_estimate_with_and_without_labels(tmp_path):
    """Labels narrow the interval, and the estimate is that of the public function."""
    tables = match_tables(rows(300), rows(300, seed=1).drop(columns="label"), label="label")
    adapted = AdaptedClassifier(DomainStandardScaler(), keep_rows=True)
    model = TableClassifier(adapted).fit_tables(tables)
    frame = rows(200, seed=7)
    path = write(tmp_path / "batch.csv", frame)
    (one,) = monitor_series(model, [path], labels=path)["batches"]
    expected = estimate_performance(model, frame.drop(columns="label"))
    assert one["estimate"]["value"] == pytest.approx(expected.value, abs=0.02)
    assert one["reference"] == pytest.approx(expected.reference)
    widths = [one[name]["high"] - one[name]["low"] for name in ("updated", "estimate")]
    assert widths[0] < widths[1]
    truth = np.mean(model.predict(frame) == frame["label"])
    assert one["observed"]["value"] == pytest.approx(truth)
    assert abs(one["updated"]["value"] - truth) < 0.05
