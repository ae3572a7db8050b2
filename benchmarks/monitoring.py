"""False alarms and detection of `covshift monitor` on made-up batches.

    python benchmarks/monitoring.py false-alarms --series 1200 --out runs/false_alarms.jsonl
    python benchmarks/monitoring.py detection --repeats 40 --out runs/detection.jsonl

Lines are added to the file as they are computed; a second run resumes.

**False alarms**: series of 20 batches of 500 rows with the distribution of the rows that the model
keeps; a new model for each series. An alarm is exit code 3 (a batch has moved). Asked: at most 5 %
of the series have one. Beside it: exit code 4, a false alert, with an alert .05 below the score on
held-out rows.

**Detection**: a change of a made-up stream lowers the accuracy of the model by .1. How strong a
change must be for that is found by bisection on 20,000 labeled rows, once for each case (ORACLE:
labels set up the case and are shown to nothing else). Two batches of 500 rows follow; the change is
found if one of them gives exit code 3. Asked: at least 80 %. Beside it: exit code 4, with the same
alert.

The cases, the sizes and the seeds were fixed before the first run. Cases in which only P(y|x)
changes are listed apart: no data without labels show them, and an alarm there is a false one. The
first run showed that "columns swapped" belongs to them: the columns are exchangeable, so that their
joint distribution stays the same. It is counted where it was listed, and named beside the figure.

**Harmless changes** move rows by a fixed strength and lower the accuracy by nothing: an alarm there
is right, an alert is false. They were added when readings of the alert were compared (`READINGS`).
Lines hold the quantities of each estimate, so that other coefficients need no second run.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, DomainStandardScaler
from covshift.predictors.objectives import ACCURACY
from covshift.selection.performance_estimate import performance_coefficients, predict_performance
from covshift.tables import TableClassifier, match_tables
from covshift.tables.monitoring_batch import MAX_ROWS, SERIES_LEVEL, Sample, compare_batch
from covshift.tables.table_models import estimate_score

BATCH_ROWS, N_BATCHES, N_KEPT = 500, 20, 1000
DROP, TOLERANCE, ORACLE_ROWS = 0.1, 0.005, 20_000
ALERT_MARGIN = 0.05
# Readings of --alert: the alert also comes where the probability of a score below it is above the
# first value; if the second is True, in batches that have moved only. That of the package: .3.
READINGS = {
    "expected": (1.0, False),
    "chance .4": (0.4, False),
    "chance .3": (0.3, False),
    "chance .2": (0.2, False),
    "moved, chance .4": (0.4, True),
    "moved, chance .3": (0.3, True),
    "moved, chance .2": (0.2, True),
    "moved, chance .1": (0.1, True),
    "moved, chance .05": (0.05, True),
}
NAMES = ["a", "b", "c", "d", "e"]


# --- Streams: rows with labels, before anything changes ---


def plain_rows(n, rng):
    """Five features, of which two decide; errors near the border."""
    X = pd.DataFrame(rng.standard_normal((n, 5)), columns=NAMES)
    return X, (2 * X["a"] + 1.5 * X["b"] + rng.logistic(0, 0.5, n) > 0).to_numpy()


def curved_rows(n, rng):
    """A curved border, which a linear model follows where the rows are."""
    X = pd.DataFrame(rng.standard_normal((n, 5)), columns=NAMES)
    X["a"] -= 1
    return X, (2 * X["a"] + 2 + X["b"] - 2 * np.maximum(X["a"], 0) ** 2 > 0).to_numpy()


def mixed_rows(n, rng):
    """Heavy tails, a count and two columns of text; three classes, one of them rare."""
    X = pd.DataFrame({"a": rng.standard_t(3, n), "b": rng.lognormal(0, 1, n)})
    X["c"] = rng.poisson(3, n)
    X["city"] = rng.choice(["Oslo", "Rome", "Bonn", "Lima"], n, p=[0.4, 0.3, 0.2, 0.1])
    X["plan"] = rng.choice(["basic", "plus"], n)
    score = X["a"] + np.log(X["b"]) + 0.3 * X["c"] + (X["city"] == "Rome") * 1.5
    score = score + rng.normal(0, 0.5, n)
    return X, np.digitize(score, [1.0, 4.0])


def unbalanced_rows(n, rng, share=0.1):
    """One row in ten is of the class that is recognized badly."""
    y = rng.random(n) < share
    X = pd.DataFrame(rng.standard_normal((n, 5)), columns=NAMES)
    X["a"] += 2.0 * y
    return X, y


# --- Changes: rows and labels of a stream, changed with a strength from 0 to 1 ---


def offset(X, y, s, rng):
    """A sensor reads too much."""
    return X.assign(a=X["a"] + 4 * s), y


def gain(X, y, s, rng):
    """A sensor reads in another unit."""
    return X.assign(a=X["a"] * (1 - 2 * s)), y


def noise(X, y, s, rng):
    """A sensor becomes noisy."""
    return X.assign(a=X["a"] + 8 * s * rng.standard_normal(len(X))), y


def lost(X, y, s, rng):
    """A sensor fails for some rows, which get a constant."""
    return X.assign(a=np.where(rng.random(len(X)) < s, 0.0, X["a"])), y


def swapped(X, y, s, rng):
    """Two columns change places in some rows."""
    there = rng.random(len(X)) < s
    b, c = np.where(there, X["c"], X["b"]), np.where(there, X["b"], X["c"])
    a, d = np.where(there, X["d"], X["a"]), np.where(there, X["a"], X["d"])
    return X.assign(a=a, b=b, c=c, d=d), y


def to_border(X, y, s, rng):
    """More rows lie where the classes overlap (covariate shift: P(y|x) stays)."""
    n = len(X)
    X, y = plain_rows(20 * n, rng)
    near = np.exp(-12 * s * np.abs(2 * X["a"] + 1.5 * X["b"]))
    kept = rng.choice(20 * n, n, replace=False, p=near / near.sum())
    return X.iloc[kept].reset_index(drop=True), y[kept]


def beyond_the_fit(X, y, s, rng):
    """Rows move to where the border bends away from the model (covariate shift)."""
    n = len(X)
    X, y = curved_rows(60 * n, rng)
    tilt = np.exp(3.0 * s * X["a"])
    kept = rng.choice(60 * n, n, replace=False, p=tilt / tilt.sum())
    return X.iloc[kept].reset_index(drop=True), y[kept]


def class_proportions(X, y, s, rng):
    """The class that is recognized badly becomes common (label shift: P(x|y) stays)."""
    return unbalanced_rows(len(X), rng, share=0.1 + 0.9 * s)


def new_group(X, y, s, rng):
    """A new group of rows, elsewhere, with the opposite labels."""
    there = rng.random(len(X)) < s
    moved = X.assign(c=np.where(there, X["c"] + 3, X["c"]))
    return moved, np.where(there, ~y, y)


def new_city(X, y, s, rng):
    """Customers of a city that training hardly had, who behave otherwise."""
    there = rng.random(len(X)) < s
    return X.assign(city=np.where(there, "Lima", X["city"])), np.where(there, (y + 1) % 3, y)


def flipped(X, y, s, rng):
    """Labels of some rows change, the rows do not."""
    return X, np.where(rng.random(len(X)) < s, ~y, y)


def turned(X, y, s, rng):
    """The border turns, the rows stay: another feature decides."""
    score = 2 * (1 - s) * X["a"] + 1.5 * X["b"] + 2 * s * X["c"]
    return X, (score + rng.logistic(0, 0.5, len(X)) > 0).to_numpy()


def unused_drift(X, y, s, rng):
    """A sensor that decides nothing reads too much."""
    return X.assign(e=X["e"] + 4 * s), y


def from_border(X, y, s, rng):
    """Fewer rows lie where the classes overlap."""
    n = len(X)
    X, y = plain_rows(20 * n, rng)
    far = 1 - s * np.exp(-np.abs(2 * X["a"] + 1.5 * X["b"]))
    kept = rng.choice(20 * n, n, replace=False, p=far / far.sum())
    return X.iloc[kept].reset_index(drop=True), y[kept]


def fewer_of_class(X, y, s, rng):
    """The class that is recognized badly becomes rare."""
    return unbalanced_rows(len(X), rng, share=0.1 * (1 - s))


# Name: stream, change, whether rows without labels can show it.
CASES = {
    "offset of a sensor": (plain_rows, offset, True),
    "gain of a sensor": (plain_rows, gain, True),
    "noise of a sensor": (plain_rows, noise, True),
    "sensor lost": (plain_rows, lost, True),
    "columns swapped": (plain_rows, swapped, True),  # in fact it cannot be seen: see above
    "rows move to the border": (plain_rows, to_border, True),
    "rows move beyond the fit": (curved_rows, beyond_the_fit, True),
    "class proportions": (unbalanced_rows, class_proportions, True),
    "new group": (plain_rows, new_group, True),
    "new city": (mixed_rows, new_city, True),
    "labels flipped": (plain_rows, flipped, False),
    "border turned": (plain_rows, turned, False),
}
# Name: stream, change, strength.
HARMLESS = {
    "unused sensor drifts": (plain_rows, unused_drift, 0.25),
    "rows leave the border": (plain_rows, from_border, 1.0),
    "difficult class becomes rare": (unbalanced_rows, fewer_of_class, 0.7),
}
SHOWN, HIDDEN, NO_HARM = "the rows show it", "P(y|x) alone changed", "harmless"
STREAMS = {"plain": plain_rows, "mixed": mixed_rows, "unbalanced": unbalanced_rows}


def make_model(stream, rng, adapter=None):
    """Return a model of a stream, with rows of the same stream as its target."""
    X, y = stream(N_KEPT, rng)
    new, _ = stream(N_KEPT, rng)
    tables = match_tables(X.assign(label=y.astype(str)), new, label="label")
    classifier = AdaptedClassifier(adapter, LogisticRegression(max_iter=500), keep_rows=True)
    return TableClassifier(classifier).fit_tables(tables)


def check(model, X, seed):
    """Return whether a batch has moved, by which tests, and what its score is estimated from."""
    sample = Sample(MAX_ROWS, np.random.RandomState(seed))
    sample.add(model.encode(X))
    found = compare_batch(model, sample, (), [], level=SERIES_LEVEL, path="batch")
    quantities = estimate_score(model, sample.rows, sample.domain).quantities
    return {
        "moved": bool(found["moved"]),
        "what": found["what_moved"],
        "quantities": {name: float(f"{value:.4g}") for name, value in quantities.items()},
    }


def false_alarms(number):
    """Return how many batches of a series of unmoved batches give an alarm."""
    name = list(STREAMS)[number % len(STREAMS)]
    adapter = DomainStandardScaler() if number // len(STREAMS) % 2 else None
    rng = np.random.default_rng([27, number])
    model = make_model(STREAMS[name], rng, adapter)
    batches = [check(model, STREAMS[name](BATCH_ROWS, rng)[0], i) for i in range(N_BATCHES)]
    return {
        "stream": name,
        "adapter": "none" if adapter is None else "standardize",
        "batches": batches,
    }


def accuracy(model, X, y):
    """ORACLE: the accuracy on rows with their labels."""
    return float(np.mean(model.predict(X) == y.astype(str)))


def find_strength(model, stream, change, seed):
    """ORACLE: the strength of a change that lowers the accuracy by .1; None: none does."""
    before = accuracy(model, *stream(ORACLE_ROWS, np.random.default_rng(seed)))

    def drop(s):
        rng = np.random.default_rng(seed + 1)
        return before - accuracy(model, *change(*stream(ORACLE_ROWS, rng), s, rng))

    low, high = 0.0, 1.0
    if drop(high) < DROP:
        return None
    for _ in range(12):
        middle = (low + high) / 2
        size = drop(middle)
        if abs(size - DROP) <= TOLERANCE:
            return middle
        low, high = (middle, high) if size < DROP else (low, middle)
    return (low + high) / 2


def strength_of(name):
    """ORACLE: the strength of a case, with a model of its own."""
    stream, change, _ = CASES[name]
    model = make_model(stream, np.random.default_rng([29, list(CASES).index(name)]))
    return find_strength(model, stream, change, 1000)


def detection(number, strengths):
    """Return what is found in two batches after a change; repeats go through all cases."""
    names = [*CASES, *HARMLESS]
    index, repeat = number % len(names), number // len(names)
    name = names[index]
    stream, change, visible = {**CASES, **HARMLESS}[name]
    kind, strength = NO_HARM, visible
    if name in CASES:
        kind, strength = SHOWN if visible else HIDDEN, strengths[index]
    found = {"case": name, "repeat": repeat, "kind": kind, "strength": strength}
    if strength is None:
        return found
    rng = np.random.default_rng([28, index, repeat])
    model = make_model(stream, rng)
    batches = [
        check(model, change(*stream(BATCH_ROWS, rng), strength, rng)[0], batch)
        for batch in range(2)
    ]
    return found | {"batches": batches}


def alerts_of(batch):
    """Return whether a batch gives an alert, by each reading."""
    quantities = batch["quantities"]
    expected = predict_performance(quantities, performance_coefficients()[ACCURACY])
    alert = quantities["reference"] - ALERT_MARGIN
    chance = expected.below(alert)
    return {
        name: bool(expected.value < alert)
        or bool(chance > least and (batch["moved"] or not only_moved))
        for name, (least, only_moved) in READINGS.items()
    }


def compute(measure, n_wanted, path, n_jobs, *settings):
    """Compute the rows of a measurement that the file has not yet; return all of them."""
    done = []
    if path.exists():
        done = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.parent.mkdir(parents=True, exist_ok=True)
    jobs = (delayed(measure)(number, *settings) for number in range(len(done), n_wanted))
    with path.open("a", encoding="utf-8") as file:
        for found in Parallel(n_jobs, return_as="generator")(jobs):
            done.append(found)
            file.write(json.dumps(found) + "\n")
            file.flush()
    return pd.DataFrame(done)


def share(happened):
    """Return how often something happened, with its 95 % interval."""
    n, k = len(happened), int(np.sum(happened))
    low, high = binomtest(k, n).proportion_ci()
    return f"{k} of {n} ({k / n:.1%}, {low:.1%} to {high:.1%})"


def add_alerts(frame):
    """Add columns: whether each run has an alarm, and an alert by each reading."""
    frame = frame[frame["batches"].notna()].copy()
    frame["alarm"] = [any(one["moved"] for one in batches) for batches in frame["batches"]]
    frame["first"] = [batches[0]["moved"] for batches in frame["batches"]]
    found = [[alerts_of(one) for one in batches] for batches in frame["batches"]]
    for name in READINGS:
        frame[name] = [any(one[name] for one in alerts) for alerts in found]
    return frame


def report_series(frame):
    """Print false alarms and false alerts of series of unmoved batches."""
    frame = add_alerts(frame)
    shown = frame.groupby(["stream", "adapter"])[["alarm", *READINGS]]
    print(shown.sum().assign(series=shown.size()).to_string())
    batches = frame["batches"].explode()
    what = batches.map(lambda one: one["what"]).explode()
    print("tests with an alarm:", what.value_counts().to_dict())
    print("batches with an alarm:", share(batches.map(lambda one: one["moved"])))
    for name in ("alarm", *READINGS):
        print(f"series with a false one, {name}:", share(frame[name]))


def report_runs(frame):
    """Print how often changes give an alarm and an alert."""
    frame = add_alerts(frame)
    columns = ["alarm", "first", *READINGS]
    shown = frame.groupby(["kind", "case"], sort=False)[columns]
    print(shown.sum().assign(runs=shown.size()).to_string())
    for kind, part in frame.groupby("kind", sort=False):
        for name in columns:
            print(f"{kind}, {name}:", share(part[name]))


def main():
    """Run one of the two measurements and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["false-alarms", "detection"])
    parser.add_argument("--series", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "false-alarms":
        report_series(compute(false_alarms, options.series, options.out, options.jobs))
    else:
        strengths = Parallel(options.jobs)(delayed(strength_of)(name) for name in CASES)
        n_runs = options.repeats * (len(CASES) + len(HARMLESS))
        report_runs(compute(detection, n_runs, options.out, options.jobs, strengths))


if __name__ == "__main__":
    main()
