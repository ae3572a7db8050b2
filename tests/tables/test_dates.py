"""Clocks of twelve hours, and places in a cycle."""

import numpy as np
import pyarrow as pa
import pytest

from covshift.tables.dates import cycle_features, read_spelling


@pytest.mark.parametrize(
    ("text", "hour"),
    [("12:30 am", 0), ("1:30 am", 1), ("11:30 am", 11), ("12:30 pm", 12), ("11:30 PM", 23),
     ("13:30 pm", None), ("0:30 pm", None)],
)  # fmt: skip
def test_hours_before_and_after_noon(text, hour):
    (found,) = read_spelling(pa.array([f"2024-05-01 {text}"]), "ymd").to_pylist()
    assert (found and found.hour) == hour


def test_a_day_of_the_week_lasts_all_day():
    days = np.array([4.0, 4.25, 4.999, 5.0, np.nan])
    sine, cosine = cycle_features(days, "week")
    assert sine[0] == sine[1] == sine[2] != sine[3]
    assert cosine[0] == cosine[1] == cosine[2] != cosine[3]
    assert (sine[4], cosine[4]) == (0, 0)
