"""Dates as features: where in the year, the week and the day, and days between two dates.

A date itself only grows: new rows lie beyond all training rows, whatever else they are. Parts that
come back each year, week or day do not. A cycle is used if the training dates go round it once; of
a shorter span it would be a clock too.

=======  ==============================  ==========================================
cycle    used if the dates               features
=======  ==============================  ==========================================
year     span 360 days or more           sine and cosine of the day of the year
week     span 7 days or more             sine and cosine of the weekday
day      have times that differ          sine and cosine of the time, by the minute
=======  ==============================  ==========================================
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from covshift.kernels.arrays import FloatArray

YEAR_DAYS = 365.2425
MIN_YEAR_SPAN, MIN_WEEK_SPAN = 360.0, 7.0
MAX_PAIRS = 10
# Steps of each cycle. Sines are looked up, one per step, so that they do not depend on how many
# rows are computed at a time, as those of a vector unit may.
STEPS = {"year": 366, "week": 7, "day": 1440}
NAMES = {"year": "time of year", "week": "weekday", "day": "time of day"}
_ANGLES = {cycle: 2 * np.pi * np.arange(n) / n for cycle, n in STEPS.items()}
WAVES = {cycle: (np.sin(angles), np.cos(angles)) for cycle, angles in _ANGLES.items()}


def find_cycles(days: FloatArray) -> list[str]:
    """Return the cycles that dates, as days since 1970, go round."""
    days = days[~np.isnan(days)]
    if not len(days):
        return []
    span = float(days.max() - days.min())
    times = days - np.floor(days)
    found = {
        "year": span >= MIN_YEAR_SPAN,
        "week": span >= MIN_WEEK_SPAN,
        "day": bool(times.max() > times.min()),
    }
    return [cycle for cycle, used in found.items() if used]


def find_pairs(columns: Mapping[str, FloatArray]) -> list[tuple[str, str]]:
    """Return the pairs of date columns whose distance tells something: it differs among rows."""
    pairs = []
    for first, second in combinations(columns, 2):
        if _is_time(columns[first]) != _is_time(columns[second]):
            continue
        distance = columns[second] - columns[first]
        known = distance[~np.isnan(distance)]
        if len(known) and known.max() > known.min():
            pairs.append((first, second))
    return pairs[:MAX_PAIRS]


def cycle_features(days: FloatArray, cycle: str) -> tuple[FloatArray, FloatArray]:
    """Return sine and cosine of the place in a cycle; both are 0 where there is no date."""
    known = ~np.isnan(days)
    filled = np.where(known, days, 0.0)
    if cycle == "year":
        step = np.floor(np.mod(filled, YEAR_DAYS))
    elif cycle == "week":
        step = np.mod(np.floor(filled), 7)
    else:
        step = np.mod(np.rint((filled - np.floor(filled)) * 1440), 1440)
    places = step.astype(np.intp)
    sine, cosine = WAVES[cycle]
    return np.where(known, sine[places], 0.0), np.where(known, cosine[places], 0.0)


def feature_names(column: str, cycles: list[str]) -> list[str]:
    """Return the names of the features of a date column."""
    return [f"{column}: {NAMES[cycle]} ({wave})" for cycle in cycles for wave in ("sin", "cos")]


def pair_name(first: str, second: str) -> str:
    """Return the name of the days between two dates."""
    return f"days from {first} to {second}"


def describe_use(cycles: list[str]) -> str:
    """Return what a date is used as, in words."""
    return ", ".join(NAMES[cycle] for cycle in cycles)


def _is_time(days: Any) -> bool:
    """Whether dates are times of day alone, which are those of 1970-01-01."""
    known = days[~np.isnan(days)]
    return bool(len(known)) and bool(known.min() >= 0 and known.max() < 1)
