"""From records to frames, summaries and tables."""

import math
import statistics
import sys

import numpy as np
import pytest

from covshift.studies.result_tables import (
    STEP,
    Figure,
    Summary,
    build_evidence,
    build_table,
    compare_pairs,
    difference_cell,
    estimate,
    figure_cell,
    figure_text,
    group_rows,
    interval_text,
    make_frame,
    number_column,
    score_cell,
    summarize,
    text_column,
    tidy,
    unit_means,
    values,
    verdict_of,
)
from covshift.studies.trial import Trial
from tests.studies.made_records import record_of


def trial_of(seed=0, **settings):
    return Trial("study", settings, seed)


# Frames


def test_a_row_for_each_trial_that_did_not_fail():
    records = [
        record_of(trial_of(3, system="SF", n=[1]), {"score": 0.5, "n": 2}),
        record_of(trial_of(4, system="SF"), None, "ValueError: no"),
        record_of(trial_of(5, system="PSF", where=None), {"score": float("nan"), "other": True}),
    ]
    frame = tidy(records, reading="", system="none")
    assert frame["seed"].tolist() == [3, 5]
    assert frame["system"].tolist() == ["SF", "PSF"]
    assert frame["reading"].tolist() == ["", ""]
    assert frame["n"].tolist() == [[1], None]  # of the settings, not the result
    assert frame["trial"].tolist() == [records[i].trial.key[:12] for i in (0, 2)]
    assert frame["seconds"].tolist() == [0.0, 0.0]
    assert values(frame, "other") == [True]
    assert math.isnan(values(frame, "score")[1])  # a result, if a bad one
    assert values(frame, "where") == values(frame, "nowhere") == values(None, "score") == []


def test_values_are_kept_as_they_were_stored():
    frame = tidy([record_of(trial_of(7), {"count": 3, "text": "3", "list": [1.0], "flag": False})])
    (row,) = frame.to_dict("records")
    assert (row["count"], row["text"], row["list"], row["flag"]) == (3, "3", [1.0], False)
    assert [type(row[name]) for name in ("seed", "count", "flag")] == [int, int, bool]


def test_frames_without_rows():
    assert tidy([], kind=None)["kind"].tolist() == []
    assert group_rows(tidy([], kind=None), ["system"]) == {}
    assert list(make_frame([], ["a", "b"])) == ["a", "b"]
    assert unit_means(make_frame([], ["a"]), ["a"], "score") == {}


def test_groups_are_in_the_order_of_the_rows():
    rows = [{"a": "y", "b": 2, "v": 1}, {"a": "x", "b": 1, "v": 2}, {"a": "y", "b": 2, "v": 3}]
    found = group_rows(make_frame(rows), ["a", "b"])
    assert list(found) == [("y", 2), ("x", 1)]
    assert found["y", 2]["v"].tolist() == [1, 3]


def test_missing_pandas_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'need pandas.*pip install "covshift\[cli\]"'):
        tidy([])


# Figures and differences


def test_estimate_against_the_naive_computation():
    numbers = [0.25, 0.5, 0.8, 0.7]
    mean, error = estimate(numbers)
    assert mean == pytest.approx(statistics.mean(numbers))
    assert error == pytest.approx(statistics.stdev(numbers) / math.sqrt(4))
    assert estimate([0.3]) == (0.3, None)
    assert estimate([]) is None


def test_interval_by_students_t():
    found = compare_pairs([0.1, 0.2, 0.3])
    # t(2) at 97.5 % is 4.302653; the standard error is 0.1 / sqrt(3).
    assert found.high - found.mean == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert found.verdict == "unclear"
    assert compare_pairs([0.1, 0.11, 0.12]).verdict == "helps"
    assert compare_pairs([-0.1, -0.11, -0.12]).verdict == "harms"
    assert compare_pairs([0.1]).verdict == "unclear"
    assert compare_pairs([]) is None


def test_steps_bound_the_spread_that_equal_differences_prove():
    same = [0.002, 0.002, 0.002]
    assert compare_pairs(same).verdict == "helps"
    found = compare_pairs(same, STEP)
    assert found.verdict == "unclear"
    # t(2) at 97.5 % is 4.302653.
    assert found.high - found.mean == pytest.approx(4.302653 * STEP / math.sqrt(3), rel=1e-6)
    wide = [0.1, 0.2, 0.3]
    assert compare_pairs(wide, STEP) == compare_pairs(wide)
    assert verdict_of(None) == "unclear"


def test_summaries_against_the_naive_computation():
    rng = np.random.default_rng(0)
    rows = [
        {"where": where, "system": system, "pair": pair, "seed": seed, "score": rng.random()}
        for where in "ab"
        for system in ("none", "new", "lone")
        for pair in "uvw"
        for seed in range(3)
        if (where, system, pair) != ("b", "none", "w")  # a unit without its baseline
    ]
    baselines = {"new": "none", "lone": "gone"}
    summaries = summarize(
        make_frame(rows),
        ("where", "system"),
        ("pair",),
        "score",
        lambda system, trials: baselines.get(system),
    )
    found = {one.key: one for one in summaries}
    assert list(found) == [(where, system) for where in "ab" for system in ("none", "new", "lone")]

    def mean(*key):
        return statistics.mean(
            row["score"] for row in rows if (row["where"], row["system"], row["pair"]) == key
        )

    for where, pairs in (("a", "uvw"), ("b", "uv")):
        one = found[where, "new"]
        assert one.id == f"{where}|new"
        assert one.score.mean == pytest.approx(
            statistics.mean(mean(where, "new", p) for p in "uvw")
        )
        shared = [mean(where, "new", pair) - mean(where, "none", pair) for pair in pairs]
        expected = compare_pairs(shared)
        assert one.difference.mean == pytest.approx(expected.mean)
        assert one.difference[3:] == expected[3:]
        assert found[where, "none"].difference is None
        assert found[where, "lone"].difference is None


# Tables


def test_figures_as_text_and_cells():
    assert figure_text(Figure(0.12345, 0.01)) == "0.123 ± 0.010"
    assert figure_text(Figure(12.345), 1) == "12.3"
    assert figure_text(None) == "?"
    assert figure_cell(None) is None
    cell = figure_cell(Figure(0.5, 0.1), evidence="trials")
    assert cell == {"text": "0.500 ± 0.100", "value": 0.5, "evidence": "trials"}


def test_cells_of_a_summary():
    one = Summary(("a", "SF"), None, {"u": 0.5, "v": 0.7}, compare_pairs([0.1, 0.11]))
    assert score_cell(one) == {"text": "0.600 ± 0.100", "value": 0.6, "evidence": "a|SF"}
    assert difference_cell(one)["text"] == "+0.105"
    assert difference_cell(one)["mark"] == "helps"
    assert interval_text(one) == "+0.041 to +0.169"
    single = one._replace(difference=compare_pairs([0.1]))
    assert (difference_cell(single)["mark"], interval_text(single)) == ("unclear", "")
    alone = one._replace(difference=None)
    assert difference_cell(alone) is interval_text(alone) is None


def test_columns_make_the_cells_of_rows():
    columns = [
        text_column("system", help="its name"),
        number_column("twice", "two times", lambda row: 2 * row["n"], digits=1),
    ]
    rows = [{"system": "SF", "n": 1}, {"system": "PSF", "n": 2}]
    table = build_table("t", "caption", columns, rows)
    assert table["rows"] == [{"system": "SF", "twice": 2}, {"system": "PSF", "twice": 4}]
    assert [column["label"] for column in table["columns"]] == ["system", "two times"]
    assert [column["numeric"] for column in table["columns"]] == [False, True]
    assert build_table("t", "caption", columns, make_frame(rows))["rows"] == table["rows"]
    evidence = build_evidence("title", columns, make_frame(rows))
    assert (evidence["title"], evidence["rows"]) == ("title", table["rows"])
