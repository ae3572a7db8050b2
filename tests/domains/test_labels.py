from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covshift.domains import (
    blank_labels,
    check_no_placeholders,
    encode_classes,
    known_labels,
    placeholder_label,
    stack_domains,
)

MASK = np.array([True, True, False, True, False])


class Explosive:
    """Fails when anything is asked of it."""

    def _explode(self, *_):
        raise AssertionError("a masked label was read")

    __eq__ = __ne__ = __lt__ = __hash__ = __bool__ = __float__ = __int__ = _explode
    __str__ = __repr__ = __array__ = __len__ = __iter__ = __getitem__ = _explode


def hidden(known, *masked):
    """An object array of five labels, the masked entries being those given."""
    y = np.empty(5, dtype=object)
    y[MASK] = known
    for position, value in zip(np.flatnonzero(~MASK), masked, strict=True):
        y[position] = value
    return y


LABELS = {
    "strings": np.array(["b", "a", "b"]),
    "integers": np.array([1, -1, 1]),
    "booleans": np.array([True, False, True]),
    "floats": np.array([2.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("known", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "masked",
    [(Explosive(), Explosive()), (None, None), (np.nan, None), ("x", 7), ([1, 2], {})],
    ids=["explosive", "none", "nan", "other types", "containers"],
)
def test_masked_labels_are_never_looked_at(known, masked):
    y = hidden(known.tolist(), *masked)
    labels = known_labels(y, MASK, kind="class")
    assert labels.dtype == known.dtype
    assert labels.tolist() == known.tolist()
    classes, codes = encode_classes(y, MASK)
    assert classes.dtype == known.dtype
    assert classes.tolist() == np.unique(known).tolist()
    assert codes.tolist() == [1, 0, -1, 1, -1]


@pytest.mark.parametrize("known", LABELS.values(), ids=LABELS)
def test_scalars_of_numpy_among_objects(known):
    y = hidden(known.tolist(), None, None)
    for position, value in zip(np.flatnonzero(MASK), known, strict=True):
        y[position] = value
    assert encode_classes(y, MASK)[0].dtype == known.dtype


@pytest.mark.parametrize("known", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("masked", [None, np.nan, "x", 7, 7.5, [1, 2]], ids=repr)
def test_masked_entries_of_a_list_do_not_decide_the_type(known, masked):
    y = [*known[:2].tolist(), masked, known[2].item(), masked]
    classes, codes = encode_classes(y, MASK)
    assert classes.dtype.kind == known.dtype.kind
    assert classes.tolist() == np.unique(known).tolist()
    assert codes.tolist() == [1, 0, -1, 1, -1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (pd.Series(["b", "a", None, "b", None]), ["a", "b"]),
        (pd.Series(["b", "a", None, "b", None], dtype="category"), ["a", "b"]),
        (pd.Series([1, -1, None, 1, None], dtype="Int64"), [-1, 1]),
        (pd.Series([True, False, None, True, None], dtype="boolean"), [False, True]),
        (pl.Series(["b", "a", None, "b", None]), ["a", "b"]),
        (pl.Series([1, -1, None, 1, None]), [-1, 1]),
        (pl.Series([True, False, None, True, None]), [False, True]),
    ],
    ids=lambda y: f"{type(y).__module__}-{getattr(y, 'dtype', '')}",
)
def test_series_may_have_gaps_where_labels_are_masked(y, classes):
    found, codes = encode_classes(y, MASK)
    assert found.tolist() == classes
    assert type(found[0].item()) is type(classes[0])
    assert codes.tolist() == [1, 0, -1, 1, -1]


def test_numbers_for_a_regression():
    y = hidden([1, 2.5, 3], "x", Explosive())
    labels = known_labels(y, MASK, kind="number")
    assert labels.dtype == np.float64
    assert labels.tolist() == [1.0, 2.5, 3.0]
    labels = known_labels(np.array([1, 2, 9, 3, 9], dtype=np.float32), MASK, kind="number")
    assert labels.dtype == np.float32


@pytest.mark.parametrize("kind", ["class", "number", "any"])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0, 1], "one label per row: expected 5 labels, got 4"),
        (3, "one label per row: expected 5 labels, got a single value"),
        (np.array([0, np.nan, 0, 1, 0]), "Input y contains NaN"),
        (np.array([0, np.inf, 0, 1, 0]), "Input y contains infinity"),
        (np.zeros((5, 2)), "1d array"),
    ],
)
def test_bad_labels(y, message, kind):
    with pytest.raises(ValueError, match=message):
        known_labels(y, MASK, kind=kind)


@pytest.mark.parametrize("kind_of", [Decimal, Fraction])
def test_exact_numbers_are_read_as_floats(kind_of):
    """As databases give them; scikit-learn does not take them for classes."""
    y = hidden([kind_of(2), kind_of(1), kind_of(2)], None, None)
    classes, codes = encode_classes(y, MASK)
    assert classes.dtype == np.float64
    assert classes.tolist() == [1.0, 2.0]
    assert codes.tolist() == [1, 0, -1, 1, -1]
    y = hidden([kind_of("0.1"), 1, 2.5], None, None)
    assert known_labels(y, MASK, kind="number").tolist() == [0.1, 1.0, 2.5]
    assert check_no_placeholders(y[MASK], None, None).tolist() == [0.1, 1.0, 2.5]


def test_integers_beyond_64_bits():
    y = hidden([10**20, -(10**20), 10**20], None, None)
    assert known_labels(y, MASK, kind="number").tolist() == [1e20, -1e20, 1e20]
    with pytest.raises(ValueError, match="whole numbers that floats cannot represent"):
        encode_classes(hidden([10**20, 10**20 + 1, 10**20], None, None), MASK)


def test_a_missing_date_is_not_a_class():
    dates = np.array(["2024-01-01", "NaT", "NaT", "2024-01-02", "NaT"], dtype="datetime64[D]")
    for kind in ("class", "any"):
        with pytest.raises(ValueError, match="contains NaT"):
            known_labels(dates, MASK, kind=kind)
    dates[1] = dates[0]
    assert known_labels(dates, MASK, kind="class").tolist() == dates[MASK].tolist()


def test_labels_must_suit_their_use():
    with pytest.raises(ValueError, match="Unknown label type"):
        known_labels([0.1, 0.2, 0, 0.3, 0], MASK, kind="class")
    with pytest.raises(ValueError, match="y must hold numbers, got <U1"):
        known_labels(list("abcde"), MASK, kind="number")
    assert known_labels([0.1, 0.2, 0, 0.3, 0], MASK, kind="any").tolist() == [0.1, 0.2, 0.3]
    with pytest.raises(ValueError, match="several types: int, str"):
        known_labels(hidden(["a", 1, "b"], None, None), MASK, kind="any")
    with pytest.raises(ValueError, match="No label is known"):
        known_labels([0, 1, 0, 1, 0], np.zeros(5, dtype=bool), kind="any")


@pytest.mark.parametrize(
    ("labels", "placeholder", "dtype"),
    [
        (np.array([0, 1]), -1, np.int64),
        (np.array([-1, 1]), -2, np.int64),
        (np.array([-1, -5, 3]), -6, np.int64),
        (np.array([0, 1], dtype=np.int8), -1, np.int8),
        (np.array([-128, 5], dtype=np.int8), -1, np.int8),
        (np.array([-128, -1], dtype=np.int8), -129, np.int16),
        (np.array([0, 1], dtype=np.uint8), -1, np.int16),
        (np.array([0, 1], dtype=np.uint64), -1, np.int64),
        (np.array(["a", "b"]), "", "<U1"),
        (np.array(["", "b"]), "_", "<U1"),
        (np.array(["", "_", "__"]), "___", "<U3"),
        (np.array([True, False]), False, np.bool_),
        (np.array(["a", 1], dtype=object), None, object),
    ],
    ids=str,
)
def test_placeholders(labels, placeholder, dtype):
    assert placeholder_label(labels) == placeholder
    assert placeholder not in labels.tolist() or labels.dtype == bool
    mask = np.array([True] * len(labels) + [False])
    blanked = blank_labels(labels, mask)
    assert blanked.dtype == dtype
    assert blanked.tolist() == [*labels.tolist(), placeholder]


def test_whole_numbers_that_no_type_with_sign_holds():
    """They became negative ones, or, beside signed ones, floats: 2**60 and 2**60 + 1 were alike."""
    large = np.array([2**63, 2**63 + 1], dtype=np.uint64)
    with pytest.raises(ValueError, match="whole numbers up to 9223372036854775809, and 922"):
        blank_labels(large, np.array([True, True, False]))
    sources = {"a": ([[1.0], [2.0]], large - 2**63 + 2**60), "b": ([[1.0]], [5])}
    assert stack_domains(sources, target={"c": [[1.0]]}).y.tolist() == [2**60, 2**60 + 1, 5, -1]


def test_complex_numbers_are_no_labels():
    with pytest.raises(ValueError, match=r"^Complex data not supported: y must hold classes"):
        known_labels([1j, 2j, 3j, 4j, 5j], np.ones(5, dtype=bool), kind="any")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_placeholder_of_floats_is_nan(dtype):
    blanked = blank_labels(np.array([1.5, 2.5], dtype=dtype), np.array([False, True, True]))
    assert blanked.dtype == dtype
    np.testing.assert_array_equal(blanked, [np.nan, 1.5, 2.5])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([-1, 1]),
        np.array(["a", "b"]),
        np.array(["", "b"]),
        np.array([0, 1], dtype=np.uint8),
        np.array([0, 255], dtype=np.uint8),
        np.array([-128, -1], dtype=np.int8),
    ],
    ids=str,
)
def test_rows_without_a_label_cannot_be_scored(labels):
    mask = np.array([True, True, False])
    y = blank_labels(labels, mask)
    classes, _ = encode_classes(y, mask)  # what an estimator fitted on y has
    domain = np.where(mask, 0, -1)
    check_no_placeholders(y[mask], None, classes)
    check_no_placeholders(y, np.zeros(3, dtype=int), classes)  # target rows alone can lack one
    for sample_domain in (None, domain):
        with pytest.raises(ValueError, match=r"without a label.*SourceOnlySplit"):
            check_no_placeholders(y, sample_domain, classes)


def test_whole_numbers_of_a_regression_give_placeholders_away_together():
    domain = np.array([0, 0, -1, -1])
    check_no_placeholders([3, 4, -1, 5], domain, None)
    check_no_placeholders([3, -1, -1, -1], domain, None)  # -1 is a label: it would be -2
    with pytest.raises(ValueError, match="SourceOnlySplit"):
        check_no_placeholders([3, 4, -1, -1], domain, None)
    check_no_placeholders([3, 4, -1, -1], domain[:2], None)  # not of these rows


def test_booleans_and_labels_of_another_type_have_no_placeholder_to_find():
    check_no_placeholders([True, False], None, np.array([False, True]))
    check_no_placeholders([0, 1], None, np.array(["a", "b"]))
    check_no_placeholders([0.0, 1.0], None, np.array([0.0, 1.0]))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_missing_labels_among_objects_cannot_be_scored(missing):
    labels = check_no_placeholders(np.array([3, 4], dtype=object), None, np.array([3, 4]))
    assert labels.dtype.kind == "i"
    with pytest.raises(ValueError, match=r"without a label.*SourceOnlySplit"):
        check_no_placeholders(np.array([3, missing], dtype=object), None, np.array([3, 4]))
