"""Dates and times in the spellings that people and programs use, as timestamps.

=========  =======================================================================
spelling   examples
=========  =======================================================================
``ymd``    2024/5/1, 2024.05.01 10:30 (ISO 8601, ``2024-05-01``, needs no spelling)
``dmy``    1/5/2024, 01.05.2024, 01-05-24 10:30
``mdy``    5/1/2024, 05-01-2024 10:30 PM
``dby``    1 May 2024, 01-May-24, Wed, 1 May 2024 10:30:00
``bdy``    May 1, 2024, Wed May 1 2024
``packed`` 20240501
``month``  2024-05, May 2024
``time``   10:30, 10:30:15, 9:05 pm
=========  =======================================================================

A time may follow any date. Years of two digits are 1970 to 2069. A zone is not read. A time alone
is a time of 1970-01-01.

**As features**: where in the year, the week and the day, and days between two dates.
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

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from covshift.kernels.array_types import FloatArray

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LONG_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
# Patterns of RE2.
CLOCK_PATTERN = (
    r"(?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d(?:[.,]\d{1,6})?))?"
    r"(?:\s*(?P<P>[AaPp])\.?[Mm]\.?)?"
)
AFTER = rf"(?:[T,\s]+{CLOCK_PATTERN})?"
DAY_PART, YEAR = r"(?P<d>\d{1,2})", r"(?P<y>\d{4}|\d{2})"
WEEKDAY = r"(?:[A-Za-z]{2,9}\.?,?\s+)?"
MONTH_NAME = r"(?P<b>[A-Za-z]{3,9})\.?"
SPELLING_PATTERNS = {
    "ymd": rf"^(?P<y>\d{{4}})[./-](?P<m>\d{{1,2}})[./-]{DAY_PART}{AFTER}$",
    "dmy": rf"^{DAY_PART}[./-](?P<m>\d{{1,2}})[./-]{YEAR}{AFTER}$",
    "mdy": rf"^(?P<m>\d{{1,2}})[./-]{DAY_PART}[./-]{YEAR}{AFTER}$",
    "dby": rf"^{WEEKDAY}{DAY_PART}(?:st|nd|rd|th)?\.?[\s/-]*{MONTH_NAME}[\s,/-]*{YEAR}{AFTER}$",
    "bdy": rf"^{WEEKDAY}{MONTH_NAME}[\s-]*{DAY_PART}(?:st|nd|rd|th)?[\s,-]+(?P<y>\d{{4}}){AFTER}$",
    "packed": r"^(?P<y>(?:19|20)\d\d)(?P<m>\d\d)(?P<d>\d\d)$",
    "month": r"^(?:(?P<y>(?:19|20)\d\d)[-/](?P<m>\d\d)|(?P<b>[A-Za-z]{3,9})\.?[\s-](?P<z>\d{4}))$",
    "time": rf"^{CLOCK_PATTERN}$",
}
SPELLINGS = tuple(SPELLING_PATTERNS)
MEANINGS = {
    "": "ISO 8601",
    "ymd": "year, month, day",
    "dmy": "day before month",
    "mdy": "month before day",
    "dby": "day, month's name, year",
    "bdy": "month's name, day, year",
    "packed": "year, month and day in eight digits",
    "month": "months",
    "time": "times of day",
}
DAYS = "days"  # the spelling of a number that is written as a date
DAY_MICROSECONDS = 86_400_000_000


def read_spelling(cells: Any, spelling: str) -> Any:
    """Return text as timestamps; what is not a date of this spelling is missing."""
    trimmed = pa.compute.utf8_trim_whitespace(cells)
    parts = pa.compute.extract_regex(trimmed, SPELLING_PATTERNS[spelling])
    fields = {field.name: pa.compute.struct_field(parts, field.name) for field in parts.type}
    fits = np.asarray(parts.is_valid())

    def whole(name: str, absent: int) -> Any:
        if name not in fields:
            return np.full(len(fits), absent)
        texts = pa.compute.if_else(pa.compute.equal(fields[name], ""), str(absent), fields[name])
        return np.asarray(pa.compute.cast(texts, pa.int64()).fill_null(absent))

    year = whole("y", 1970)
    if "z" in fields:
        year = np.where(np.asarray(pa.compute.equal(fields["z"], "").fill_null(True)),
                        year, whole("z", 1970))  # fmt: skip
    year = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    month, day = whole("m", 1), whole("d", 1)
    if "b" in fields:
        named = _month_numbers(fields["b"])
        month = np.where(named >= 0, named, month if "m" in fields else 0)
    hour, minute = whole("H", 0), whole("M", 0)
    if "P" in fields:
        half = pa.compute.utf8_lower(fields["P"])
        am, pm = (np.asarray(pa.compute.equal(half, one).fill_null(False)) for one in "ap")
        fits &= ~(am | pm) | ((hour >= 1) & (hour <= 12))
        hour = np.where(am | pm, hour % 12 + 12 * pm, hour)
    years = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]")
    months = years + (month - 1).astype("timedelta64[M]")
    following = (months + np.timedelta64(1, "M")).astype("datetime64[D]")
    first = months.astype("datetime64[D]")
    n_days = (following - first).astype(np.int64)
    fits &= (month >= 1) & (month <= 12) & (day >= 1) & (day <= n_days)
    seconds = _seconds(fields["S"]) if "S" in fields else np.zeros(len(fits), dtype=np.int64)
    fits &= (hour <= 23) & (minute <= 59) & (seconds < 60_000_000)
    clock = (hour * 60 + minute) * 60_000_000 + seconds
    stamps = (first + (day - 1).astype("timedelta64[D]")).astype("datetime64[us]") + clock.astype(
        "timedelta64[us]"
    )
    return pa.array(stamps, pa.timestamp("us"), mask=~fits)


def _month_numbers(texts: Any) -> Any:
    """Return 1 to 12 for names of months, 0 for other text and -1 for none."""
    lower = pa.compute.utf8_lower(texts)
    number = np.zeros(len(texts), dtype=np.int64)
    for names in (MONTHS, LONG_MONTHS, (*MONTHS[:8], "sept", *MONTHS[9:])):
        found = pa.compute.index_in(lower, value_set=pa.array(names))
        number = np.maximum(number, np.asarray(found.fill_null(-1)) + 1)
    absent = np.asarray(pa.compute.equal(texts, "").fill_null(True))
    return np.where(absent, -1, number)


def _seconds(texts: Any) -> Any:
    """Return microseconds of ``15`` or ``15.25``; 0 where there are none."""
    plain = pa.compute.replace_substring(texts, ",", ".")
    plain = pa.compute.if_else(pa.compute.equal(plain, ""), "0", plain)
    seconds = np.asarray(pa.compute.cast(plain, pa.float64()).fill_null(0.0))
    return np.rint(seconds * 1e6).astype(np.int64)


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
    """Return whether dates are times of day alone, which are those of 1970-01-01."""
    known = days[~np.isnan(days)]
    return bool(len(known)) and bool(known.min() >= 0 and known.max() < 1)


def is_days(spelling: str) -> bool:
    """Return whether numbers of this spelling are written as dates."""
    return spelling.partition(" ")[0] == DAYS


def date_spelling(spelling: str) -> str:
    """Return the spelling of the dates that numbers are written as."""
    return spelling[len(DAYS) :].strip()


def as_days(dates: Any) -> Any:
    """Return timestamps as days since 1970."""
    microseconds = pa.compute.cast(pa.compute.cast(dates, pa.int64()), pa.float64(), safe=False)
    return pa.compute.divide(microseconds, float(DAY_MICROSECONDS))


def name_periods(days: FloatArray, by: str) -> list[str | None]:
    """Return the period of each day since 1970, as text that sorts by time; None: no date.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift.tables.dates import name_periods
    >>> [name_periods(np.array([19723.5]), by)[0] for by in ("day", "week", "month")]
    ['2024-01-01', '2024-W01', '2024-01']
    """
    names: list[str | None] = []
    known: dict[int, str] = {}
    for day in days.tolist():
        if math.isnan(day):
            names.append(None)
            continue
        whole = math.floor(day)
        if whole not in known:
            date = datetime.fromtimestamp(whole * 86400, UTC).date()
            week = date.isocalendar()
            known[whole] = {
                "day": date.isoformat(),
                "week": f"{week.year}-W{week.week:02d}",
                "month": date.isoformat()[:7],
            }[by]
        names.append(known[whole])
    return names
