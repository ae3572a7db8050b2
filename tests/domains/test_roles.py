import numpy as np
import pandas as pd
import polars as pl
import pytest

from covshift.domains import (
    SOME_SOURCE,
    SOME_TARGET,
    check_fit_domains,
    check_new_domains,
    new_target_domain,
)

DOMAINS = [0, 2, -1, -3, 0]


@pytest.mark.parametrize(
    "sample_domain",
    [
        DOMAINS,
        tuple(DOMAINS),
        np.array(DOMAINS, dtype=np.int8),
        np.array(DOMAINS, dtype=np.float32),
        np.array(DOMAINS, dtype=object),
        np.array([np.int64(d) for d in DOMAINS], dtype=object),
        pd.Series(DOMAINS, index=list("abcde")),
        pd.Series(DOMAINS, dtype="Int64"),
        pl.Series(DOMAINS),
    ],
    ids=lambda values: f"{type(values).__module__}-{getattr(values, 'dtype', '')}",
)
def test_whole_numbers_of_any_type_are_accepted(sample_domain):
    fit = check_fit_domains(sample_domain, None, 5)
    assert fit.sample_domain.dtype == np.int64
    assert fit.sample_domain.tolist() == DOMAINS
    assert fit.given
    assert fit.has_target
    assert fit.source.tolist() == [True, True, False, False, True]
    assert fit.target.tolist() == [False, False, True, True, False]
    assert fit.domains.tolist() == [-3, -1, 0, 2]


def test_without_sample_domain_there_is_one_source():
    fit = check_fit_domains(None, None, 3)
    assert fit.sample_domain.tolist() == [0, 0, 0]
    assert not fit.given
    assert not fit.has_target
    assert fit.label_mask.tolist() == [True, True, True]


def test_unsigned_numbers_are_sources():
    fit = check_fit_domains(np.array([0, 255], dtype=np.uint8), None, 2)
    assert fit.sample_domain.tolist() == [0, 255]
    assert not fit.has_target


@pytest.mark.parametrize(
    ("sample_domain", "message"),
    [
        ([0, -1], r"expected shape \(3,\), got \(2,\)"),
        ([0, -1, -1, 0], r"expected shape \(3,\), got \(4,\)"),
        ([[0], [-1], [-1]], r"expected shape \(3,\), got \(3, 1\)"),
        (0, r"expected shape \(3,\), got \(\)"),
        (["a", "b", "b"], r"must hold integers.*\['a', 'b'\].*stack_domains"),
        (["0", "-1", "-1"], r"must hold integers.*\['-1', '0'\].*stack_domains"),
        ([0.0, -1.0, 0.5], r"must hold integers.*0\.5.*float64"),
        ([0.0, -1.0, np.nan], "must hold integers.*nan"),
        ([0.0, -1.0, -np.inf], "must hold integers.*inf"),
        ([0.0, -1.0, 1e20], "must hold integers"),
        (np.array([0, 1, 2**63], dtype=np.uint64), "must hold integers"),
        ([0, 1, -(2**70)], "must hold integers"),
        ([True, False, True], "must hold integers.*bool"),
        (np.array([0, -1, True], dtype=object), "must hold integers.*True"),
        (np.array([0, -1, None], dtype=object), "must hold integers.*None"),
        (np.array([0, -1, 1.5], dtype=object), "must hold integers.*1.5"),
        ([0j, 1j, 1j], "must hold integers.*complex"),
        ([-1, -2, -1], r"no source rows: at least one entry must be >= 0"),
    ],
    ids=str,
)
def test_bad_sample_domains(sample_domain, message):
    with pytest.raises(ValueError, match=f"sample_domain.*{message}"):
        check_fit_domains(sample_domain, None, 3)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has these texts")
def test_texts_of_numpy_are_no_domains():
    domain = np.array(["0", "-1", "-1"]).astype(np.dtypes.StringDType())
    with pytest.raises(ValueError, match=r"must hold integers.*\['-1', '0'\] of type StringDType"):
        check_fit_domains(domain, None, 3)


def test_only_source_labels_are_known_by_default():
    assert check_fit_domains([0, -1, 5, -2], None, 4).label_mask.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("as_type", [list, np.array, pd.Series, pl.Series])
def test_label_mask_is_taken_as_given(as_type):
    mask = [False, True, True, False]
    fit = check_fit_domains([0, -1, 5, -2], as_type(mask), 4)
    assert fit.label_mask.dtype == bool
    assert fit.label_mask.tolist() == mask


@pytest.mark.parametrize(
    ("label_mask", "message"),
    [
        ([True, False], r"one boolean per row: expected shape \(3,\), got \(2,\)"),
        ([[True], [False], [True]], r"expected shape \(3,\), got \(3, 1\)"),
        (True, r"expected shape \(3,\), got \(\)"),
        ([1, 0, 1], "be boolean.*int64"),
        ([1.0, 0.0, 1.0], "be boolean.*float64"),
        (["yes", "no", "yes"], "be boolean"),
        ([True, None, False], "be boolean.*object"),
    ],
    ids=str,
)
def test_bad_label_masks(label_mask, message):
    with pytest.raises(ValueError, match=f"label_mask must.*{message}"):
        check_fit_domains([0, 0, -1], label_mask, 3)


@pytest.mark.parametrize("has_target", [True, False])
def test_new_rows_without_a_domain_have_only_a_role(has_target):
    domain = check_new_domains(None, 3, has_target=has_target, domain_names={})
    assert domain.tolist() == [SOME_TARGET if has_target else SOME_SOURCE] * 3
    assert (domain < 0).all() == has_target


@pytest.mark.parametrize(
    ("sample_domain", "expected"),
    [
        ([-1, 0, 7], [-1, 0, 7]),
        (np.array([-1.0, 0.0, 7.0]), [-1, 0, 7]),
        (-4, [-4] * 3),
        (np.int16(2), [2] * 3),
        ("site C", [-2] * 3),
    ],
)
def test_new_rows_with_a_domain(sample_domain, expected):
    domain = check_new_domains(sample_domain, 3, has_target=True, domain_names={-2: "site C"})
    assert domain.dtype == np.int64
    assert domain.tolist() == expected


@pytest.mark.parametrize(
    ("sample_domain", "message"),
    [
        ("site D", r"'site D' is not a domain.*\['site B', 'site C'\]"),
        ([-1, -1], r"expected shape \(3,\), got \(2,\)"),
        (["site C"] * 3, "must hold integers"),
        (True, "must hold one integer per row"),
        (-1.5, "must hold one integer per row"),
    ],
)
def test_bad_new_domains(sample_domain, message):
    names = {-2: "site C", -1: "site B"}
    with pytest.raises(ValueError, match=f"sample_domain.*{message}"):
        check_new_domains(sample_domain, 3, has_target=True, domain_names=names)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        (None, SOME_TARGET),
        (-9, -9),
        (np.int64(-1), -1),
        ("old", -6),
        ("new", -7),
    ],
)
def test_new_target_domain(domain, expected):
    number = new_target_domain(domain, [0, 3, -4], {-6: "old"})
    assert number == expected
    assert type(number) is int


def test_the_first_name_of_a_model_without_targets_is_minus_one():
    assert new_target_domain("new", [2, 3], {}) == -1


@pytest.mark.parametrize("domain", [0, 3, -1.0, True, ["a"]])
def test_bad_new_target_domain(domain):
    with pytest.raises(ValueError, match="domain must be a negative integer, a name, or None"):
        new_target_domain(domain, [0, -1], {})
