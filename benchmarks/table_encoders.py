"""TableEncoder beside skrub's TableVectorizer and a ColumnTransformer: 100,000 rows, 30 columns.

python benchmarks/table_encoders.py [--out results.json]

skrub is left out where it is not installed, skops likewise. The ColumnTransformer is what a user
would write: medians with an indicator, at most 30 categories, dates as days. Fits are timed once,
the rest in turns, as medians of five (transform) and thirty (one row).
"""

import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from measuring import median_seconds, report
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from covshift.tables import TableEncoder

ROWS = 100_000


def make_frame():
    """16 numbers, 8 words of 5 to 40 values, 2 of 20,000, 2 truth values, 2 dates."""
    rng = np.random.default_rng(0)
    text = pd.StringDtype("pyarrow")
    columns = {
        f"x{i}": np.where(rng.random(ROWS) < 0.05, np.nan, rng.normal(size=ROWS)) for i in range(16)
    }
    for i in range(8):
        words = rng.choice([f"v{j}" for j in range(5 + 5 * i)], ROWS)
        columns[f"c{i}"] = pd.array(np.where(rng.random(ROWS) < 0.03, None, words), dtype=text)
    for i in range(2):
        columns[f"t{i}"] = pd.array([f"item {j}" for j in rng.integers(0, 20_000, ROWS)], text)
        columns[f"b{i}"] = pd.array(rng.random(ROWS) < 0.5, dtype="boolean")
        seconds = rng.integers(0, 10**8, ROWS).astype("timedelta64[s]")
        columns[f"d{i}"] = np.datetime64("2020-01-01", "s") + seconds
    return pd.DataFrame(columns)


def as_text(frame):
    """Missing values as a category."""
    return frame.astype(object).where(frame.notna(), "(missing)")


def as_days(frame):
    """Dates as days since 1970."""
    return frame.apply(lambda dates: (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D"))


def as_floats(frame):
    """Truth values as 0 and 1."""
    return frame.astype("float64")


def column_transformer(frame):
    """Return the transformer written by hand for this frame."""
    by = {kind: [name for name in frame if name[0] in kind] for kind in ("x", "ct", "b", "d")}
    categories = OneHotEncoder(
        max_categories=30, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    return ColumnTransformer(
        [
            ("numbers", imputer, by["x"]),
            ("text", make_pipeline(FunctionTransformer(as_text), categories), by["ct"]),
            ("truth", FunctionTransformer(as_floats), by["b"]),
            ("dates", make_pipeline(FunctionTransformer(as_days), imputer), by["d"]),
        ]
    )


def odd_rows(frame):
    """Return frames with what new files hold; each is a trial."""
    few = frame.iloc[:3]
    text = pd.StringDtype("pyarrow")
    return {
        "unseen category": few.assign(c0=pd.array(["new"] * 3, dtype=text)),
        "missing": few.assign(x0=np.nan, c1=pd.array([None] * 3, dtype=text), d0=pd.NaT),
        "missing truth": few.assign(b0=pd.array([None] * 3, dtype="boolean")),
        "text for a number": few.assign(x1=pd.array(["old"] * 3, dtype=text)),
        "number for a text": few.assign(c2=[1.0, 2.0, 3.0]),
    }


def behavior(encoder, frame):
    """Return what the encoder does with odd rows."""
    found = {}
    for name, rows in odd_rows(frame).items():
        try:
            values = np.asarray(encoder.transform(rows), dtype=float)
            found[name] = "NaN" if np.isnan(values).any() else "ok"
        except Exception as error:
            found[name] = type(error).__name__
    return found


def measure(encoders, frame):
    """Return seconds of fit and transform, and milliseconds of one row, of each encoder."""
    fits = {}
    for name, encoder in encoders.items():
        start = time.perf_counter()
        encoder.fit(frame)
        fits[name] = time.perf_counter() - start
    row = frame.iloc[[5]]
    whole = median_seconds({n: partial(e.transform, frame) for n, e in encoders.items()}, 5)
    single = median_seconds({n: partial(e.transform, row) for n, e in encoders.items()}, 30)
    return {name: (fits[name], whole[name], 1000 * single[name]) for name in encoders}


def untrusted_types(encoder):
    """Return the number of types that skops asks to be trusted."""
    try:
        import skops.io
    except ImportError:
        return "?"
    try:
        return len(skops.io.get_untrusted_types(data=skops.io.dumps(encoder)))
    except Exception as error:
        return type(error).__name__


def main():
    """Measure all, print, report."""
    frame = make_frame()
    encoders = {"TableEncoder": TableEncoder(), "ColumnTransformer": column_transformer(frame)}
    try:
        from skrub import TableVectorizer

        encoders["TableVectorizer"] = TableVectorizer()
    except ImportError:
        print("skrub is not installed: no TableVectorizer.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = measure(encoders, frame)
        for name, encoder in encoders.items():
            fit, whole, single = results[name]
            width = encoder.transform(frame.iloc[:1]).shape[1]
            print(
                f"{name:18s} fit {fit:6.2f} s  transform {whole:5.2f} s  one row {single:7.2f} ms  "
                f"{width} features  untrusted types {untrusted_types(encoder)}  "
                f"{behavior(encoder, frame)}"
            )
    ours = results.pop("TableEncoder")
    report(
        [
            (f"times faster than {name}, {what}", theirs[i] / ours[i], ">=", 1)
            for name, theirs in results.items()
            for i, what in enumerate(("fit", "transform", "one row"))
        ]
    )


if __name__ == "__main__":
    main()
