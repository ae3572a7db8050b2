"""The encoder against a slow twin, and what new rows may hold."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from covshift import AdaptedClassifier, DomainStandardScaler, stack_domains
from covshift.tables import TableEncoder

N = 300


def mixed_frame(seed=0, n=N):
    rng = np.random.RandomState(seed)
    text = pd.StringDtype("pyarrow")
    cities = np.array(["Oslo", "Rome", "Bonn", None], dtype=object)
    return pd.DataFrame(
        {
            "age": np.where(rng.rand(n) < 0.1, np.nan, rng.normal(size=n)),
            "count": rng.randint(0, 9, n),
            "city": pd.array(cities[rng.randint(0, 4, n)], dtype=text),
            "rare": pd.array([f"v{int(v)}" for v in rng.exponential(8, n)], dtype=text),
            "flag": pd.array(np.where(rng.rand(n) < 0.2, None, rng.rand(n) < 0.5), dtype="boolean"),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.randint(0, 99, n), unit="D"),
        }
    )


def naive_encoding(train, new, max_categories, min_frequency):
    """The features, column by column and row by row."""
    features = []
    for name in train:
        old, now = train[name], new[name]
        if name in ("city", "rare"):
            counts = old.dropna().value_counts().to_dict()
            ranked = sorted(counts, key=lambda v: (-counts[v], v))
            kept = [v for v in ranked if counts[v] >= min_frequency][:max_categories]
            block = [
                [float(not pd.isna(v) and v == category) for v in now] for category in sorted(kept)
            ]
            if len(kept) < len(counts):
                block.append([float(not pd.isna(v) and v not in kept) for v in now])
            if old.isna().any():
                block.append([float(pd.isna(v)) for v in now])
            features += block if len(block) > 1 else []
            continue

        if name == "day":  # of a hundred days: they go round the week, not round the year
            angles = [2 * math.pi * ((v.weekday() - 3) % 7) / 7 for v in now]  # from Thursday on
            features += [[math.sin(a) for a in angles], [math.cos(a) for a in angles]]
            continue
        median = np.median([float(v) for v in old if not pd.isna(v)])
        features.append([median if pd.isna(v) else float(v) for v in now])
        if old.isna().any():
            features.append([float(pd.isna(v)) for v in now])
    return np.array(features).T


@pytest.mark.parametrize(("max_categories", "min_frequency"), [(30, 5), (2, 1), (30, 1), (3, 50)])
def test_it_equals_the_slow_encoding(max_categories, min_frequency):
    train, new = mixed_frame(0), mixed_frame(1)
    encoder = TableEncoder(max_categories=max_categories, min_frequency=min_frequency)
    expected = naive_encoding(train, new, max_categories, min_frequency)
    found = encoder.fit(train).transform(new)
    np.testing.assert_array_equal(found[:, :-2], expected[:, :-2])
    np.testing.assert_allclose(found[:, -2:], expected[:, -2:], rtol=0, atol=1e-15)
    assert len(encoder.get_feature_names_out()) == expected.shape[1]
    assert np.isfinite(found).all()


def test_rows_columns_and_chunks_do_not_matter():
    train, new = mixed_frame(0), mixed_frame(1)
    encoder = TableEncoder().fit(train)
    whole = encoder.transform(new)
    chunks = [encoder.transform(new.iloc[i : i + 7]) for i in range(0, N, 7)]
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    np.testing.assert_array_equal(encoder.transform(new[new.columns[::-1]].assign(more=1)), whole)
    shuffled = TableEncoder().fit(train.sample(frac=1, random_state=0))
    assert shuffled.categories_ == encoder.categories_
    assert shuffled.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_frames_put_together_of_several():
    train = pd.concat([mixed_frame(0), mixed_frame(1)], ignore_index=True)
    copied = train.assign(city=train["city"].tolist(), rare=train["rare"].tolist())
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(train), TableEncoder().fit_transform(copied)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("age", "old"),
        ("age", np.inf),
        ("age", None),
        ("age", pd.Timestamp("2024-01-01")),
        ("count", True),
        ("city", "never seen"),
        ("city", 3.0),
        ("city", ("a", "tuple")),
        ("city", "\ud800"),
        ("rare", None),
        ("flag", "maybe"),
        ("flag", 1),
        ("flag", "TRUE"),
        ("day", "2024-05-01"),
        ("day", "soon"),
        ("day", 5),
        ("day", pd.Timestamp("2024-01-01", tz="UTC")),
    ],
)
def test_new_values_never_raise(name, value):
    encoder = TableEncoder().fit(mixed_frame())
    new = mixed_frame(1, 4).astype({name: object})
    new[name] = pd.Series([value] * 4, dtype=object)
    assert np.isfinite(encoder.transform(new)).all()
    if value != "\ud800":  # which pandas itself cannot infer
        assert np.isfinite(encoder.transform(new.infer_objects())).all()


def test_unseen_categories_are_others_where_there_were_others():
    encoder = TableEncoder().fit(mixed_frame())
    new = mixed_frame(1, 1).assign(city="Paris", rare="Paris")
    features = dict(zip(encoder.get_feature_names_out(), encoder.transform(new)[0], strict=True))
    assert features["rare=(other)"] == 1
    assert not any(v for name, v in features.items() if name.startswith("city="))


def test_text_without_common_categories_is_no_feature():
    frame = pd.DataFrame({"x": np.arange(20.0), "note": [f"note {i}" for i in range(20)]})
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == ["x"]
    with pytest.raises(ValueError, match="No column has anything to encode"):
        TableEncoder().fit(frame[["note"]])


def test_it_learns_from_source_rows_only():
    train, new = mixed_frame(0), mixed_frame(1).assign(city="Paris", age=1000.0)
    X, _, sample_domain = stack_domains(train, None, new)
    encoder = TableEncoder().fit(X, sample_domain=sample_domain)
    alone = TableEncoder().fit(train)
    assert encoder.categories_ == alone.categories_
    assert encoder.fill_values_ == alone.fill_values_


def test_in_a_pipeline_with_domains():
    train, new = mixed_frame(0), mixed_frame(1).assign(city="Paris")
    y = np.where(train["count"] > 4, "many", "few")
    X, y, sample_domain = stack_domains(train, y, new)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            TableEncoder(), AdaptedClassifier(DomainStandardScaler(), LogisticRegression())
        )
        model.fit(X, y, sample_domain=sample_domain)
        assert "Paris" not in model[0].categories_["city"]
        assert (model.predict(new) == np.where(new["count"] > 4, "many", "few")).mean() > 0.9


def test_scikit_learns_conventions():
    train = mixed_frame()
    before = train.copy()
    encoder = TableEncoder(max_categories=3)
    fitted = clone(encoder).fit(train)
    pd.testing.assert_frame_equal(train, before)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        encoder.transform(train)
    framed = clone(encoder).set_output(transform="pandas").fit_transform(train)
    assert list(framed) == fitted.get_feature_names_out().tolist()
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.transform(train), fitted.transform(train))
    assert fitted.n_features_in_ == 6
    assert fitted.feature_names_in_.tolist() == list(train)


def test_other_kinds_of_frames():
    train = mixed_frame()
    expected = TableEncoder().fit_transform(train)
    found = TableEncoder().fit_transform(pl.from_pandas(train))
    np.testing.assert_array_equal(found, expected)
    values = np.random.RandomState(0).normal(size=(9, 2))
    np.testing.assert_array_equal(TableEncoder().fit_transform(values), values)
    categories = pd.DataFrame(
        {"c": pd.Categorical(["a", "b"] * 5), "n": pd.Categorical([1, 2] * 5)}
    )
    assert TableEncoder().fit(categories).kinds_ == {"c": "text", "n": "number"}
    assert TableEncoder().fit_transform(categories)[:2].tolist() == [[1, 0, 1], [0, 1, 2]]


@pytest.mark.parametrize(
    ("options", "frame", "error", "message"),
    [
        ({"max_categories": 0}, mixed_frame(), ValueError, "max_categories"),
        ({"min_frequency": 1.5}, mixed_frame(), TypeError, "min_frequency"),
        ({}, mixed_frame().iloc[:0], ValueError, "needs rows and columns"),
        ({}, pd.concat([mixed_frame()] * 2, axis=1), ValueError, "different names"),
        ({}, [1, 2, 3], ValueError, "rows and columns"),
    ],
)
def test_what_is_refused(options, frame, error, message):
    encoder = TableEncoder(**options)
    with pytest.raises(error, match=message):
        encoder.fit(frame)
    assert not hasattr(encoder, "kinds_")


def test_absent_columns_are_named():
    encoder = TableEncoder().fit(mixed_frame())
    with pytest.raises(ValueError, match="absent: 'age', 'day'"):
        encoder.transform(mixed_frame().drop(columns=["age", "day"]))


def test_each_feature_has_its_column():
    frame = pd.DataFrame({
        "n": [1.0, np.nan, 3.0], "city": ["Oslo", "Rome", None], "yes": [True, False, True],
    })  # fmt: skip
    encoder = TableEncoder(min_frequency=1).fit(frame)
    names, owners = encoder.get_feature_names_out(), encoder.columns_of_features()
    assert len(owners) == len(names) == encoder.transform(frame).shape[1]
    assert all(name.startswith(owner) for name, owner in zip(names, owners, strict=True))
