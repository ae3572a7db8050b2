import dataclasses
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from covshift.domains import StackedDomains, split_domains, stack_domains

A = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 6.0]])
B = np.array([[7.0, 0.0]])
C = np.array([[9.0, 10.0], [11.0, 12.0]])
MAY, JUNE = date(2020, 5, 1), date(2020, 6, 1)

MAKERS = {
    "array": np.array,
    "list": np.ndarray.tolist,
    "pandas": lambda X: pd.DataFrame(X, columns=["u", "v"], index=range(5, 5 + len(X))),
    "polars": lambda X: pl.DataFrame(X, schema=["u", "v"]),
    "csr_array": sparse.csr_array,
    "coo_matrix": sparse.coo_matrix,
}
every_type = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


@every_type
def test_one_source_and_one_target(make):
    stacked = stack_domains(make(A), ["a", "b", "a"], make(C))
    assert isinstance(stacked, StackedDomains)
    X, y, sample_domain = stacked
    np.testing.assert_array_equal(dense(X), np.concatenate([A, C]))
    assert y.tolist() == ["a", "b", "a", "", ""]
    assert sample_domain.tolist() == [0, 0, 0, -1, -1]
    assert sample_domain.dtype == np.int64
    assert stacked.domain_names == {0: "source", -1: "target"}


@every_type
def test_several_named_domains_in_the_order_given(make):
    stacked = stack_domains(
        {"site B": (make(B), [1]), "site A": (make(A), [0, 1, 0])},
        target={"site D": make(C), 7: make(B)},
    )
    X, y, sample_domain = stacked
    np.testing.assert_array_equal(dense(X), np.concatenate([B, A, C, B]))
    assert y.tolist() == [1, 0, 1, 0, -1, -1, -1]
    assert sample_domain.tolist() == [0, 1, 1, 1, -1, -1, -2]
    assert stacked.domain_names == {0: "site B", 1: "site A", -1: "site D", -2: "7"}


@every_type
def test_splitting_undoes_stacking(make):
    labels = ["a", "b", "a"]
    X, y, sample_domain = stack_domains(make(A), labels, make(C))
    X_source, y_source, X_target = split_domains(X, y, sample_domain)
    assert type(X_source) is type(X_target) is type(X)
    np.testing.assert_array_equal(dense(X_source), A)
    np.testing.assert_array_equal(dense(X_target), C)
    assert y_source.tolist() == labels


def test_splitting_takes_rows_in_any_order():
    X_source, y_source, X_target = split_domains(A, [5, 6, 7], [-2, 3, 0])
    np.testing.assert_array_equal(X_source, A[1:])
    np.testing.assert_array_equal(X_target, A[:1])
    assert y_source.tolist() == [6, 7]
    assert split_domains(A, None, [-2, 3, 0])[1] is None
    with pytest.raises(ValueError, match="one integer per row"):
        split_domains(A, None, [0, -1])


def test_frames_stay_frames_and_sparse_stays_sparse():
    for name, kind in [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]:
        X = stack_domains(MAKERS[name](A), None, MAKERS[name](C)).X
        assert isinstance(X, kind)
        assert list(X.columns) == ["u", "v"]
    for other in (sparse.csc_array(C), C):
        X = stack_domains(sparse.csr_array(A), None, other).X
        assert X.format == "csr"
        np.testing.assert_array_equal(X.toarray(), np.concatenate([A, C]))


def test_the_index_of_a_pandas_frame_starts_anew():
    X = stack_domains(MAKERS["pandas"](A), None, MAKERS["pandas"](C)).X
    assert X.index.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_columns_are_matched_by_name(name):
    source, target = MAKERS[name](A), MAKERS[name](C)
    X = stack_domains(source, None, target[["v", "u"]]).X
    assert list(X.columns) == ["u", "v"]
    np.testing.assert_array_equal(X.to_numpy(), np.concatenate([A, C]))
    with pytest.raises(ValueError, match=r"'target' do not match those of 'source': \['v', 'w'\]"):
        stack_domains(source, None, target.rename({"v": "w"}, **rename_axis(name)))


def rename_axis(name):
    return {"axis": "columns"} if name == "pandas" else {}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_whole_numbers_in_one_frame_and_fractions_in_the_other(frame):
    X = stack_domains(frame({"u": [1, 2]}), None, frame({"u": [0.5, 1.5]})).X
    assert X["u"].to_list() == [1.0, 2.0, 0.5, 1.5]


def test_frames_with_repeated_names_keep_their_width():
    frame = pd.DataFrame(A, columns=["u", "u"])
    X = stack_domains(frame, None, frame).X
    np.testing.assert_array_equal(X.to_numpy(), np.concatenate([A, A]))


def test_precision_is_kept():
    for make in (np.array, sparse.csr_array, MAKERS["pandas"]):
        X = stack_domains(make(A.astype(np.float32)), None, make(C.astype(np.float32))).X
        assert dense(X).dtype == np.float32


def test_inputs_are_not_changed():
    X_source, y_source = A.copy(), np.array([1, 2, 3])
    X, y, _ = stack_domains(X_source, y_source, C)
    X[:] = 0
    y[:] = 0
    np.testing.assert_array_equal(X_source, A)
    assert y_source.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", "b", "a"], ["a", "b", "a", ""]),
        (["", "b", ""], ["", "b", "", "_"]),
        ([0, 1, 2], [0, 1, 2, -1]),
        ([-1, 1, 1], [-1, 1, 1, -2]),
        (np.array([0, 255, 0], dtype=np.uint8), [0, 255, 0, -1]),
        (np.array([-128, -1, 1], dtype=np.int8), [-128, -1, 1, -129]),
        ([True, False, True], [True, False, True, False]),
        (np.array([MAY, JUNE, MAY], dtype=object), [MAY, JUNE, MAY, None]),
        (np.array(["a", "b", "a"], dtype=object), ["a", "b", "a", ""]),
        (pd.Series(["a", "b", "a"], index=[3, 1, 2]), ["a", "b", "a", ""]),
        (pd.Series([2, 1, 2], dtype="category"), [2, 1, 2, -1]),
        (pl.Series([0, 1, 2]), [0, 1, 2, -1]),
    ],
    ids=str,
)
def test_placeholders_of_every_label_type(labels, expected):
    assert stack_domains(A, labels, B).y.tolist() == expected


def test_the_placeholder_of_numbers_with_fractions_is_nan():
    np.testing.assert_array_equal(stack_domains(A, [0.5, 1.5, 2], B).y, [0.5, 1.5, 2, np.nan])
    sources = {"a": (A, [0, 1, 2]), "b": (B, [0.5])}
    y = stack_domains(sources, target={"c": B}).y
    np.testing.assert_array_equal(y, [0, 1, 2, 0.5, np.nan])


def test_the_placeholder_is_no_class_of_any_source():
    sources = {"a": (A, ["x", "y", "x"]), "b": (B, [""])}
    assert stack_domains(sources, target={"c": B}).y.tolist() == ["x", "y", "x", "", "_"]


def test_without_labels():
    assert stack_domains(A, None, C).y is None
    assert stack_domains({"a": (A, None), "b": (B, None)}, target={"c": C}).y is None


def test_stacked_domains_cannot_be_changed():
    stacked = stack_domains(A, None, C)
    with pytest.raises(dataclasses.FrozenInstanceError):
        stacked.y = 3


@pytest.mark.parametrize(
    ("arguments", "target", "error", "message"),
    [
        ((A, [0, 1, 0]), None, TypeError, "stack_domains.X_source, y_source, X_target."),
        ((A, [0, 1, 0]), {"t": C}, TypeError, "stack_domains.X_source, y_source, X_target."),
        ((A, [0, 1, 0], C), {"t": C}, TypeError, "stack_domains.X_source, y_source, X_target."),
        (({"a": (A, None)},), None, TypeError, "give the targets as a mapping"),
        (({"a": (A, None)},), C, TypeError, "give the targets as a mapping"),
        (({"a": (A, None)}, None, C), None, TypeError, "give the targets as a mapping"),
        (({"a": (A, None)}, [0, 1, 0]), {"t": C}, TypeError, "give the targets as a mapping"),
        (({"a": A},), {"t": C}, TypeError, "Source domain 'a' must be a pair .X, y., got ndarray"),
        (({"a": (A,)},), {"t": C}, TypeError, "Source domain 'a' must be a pair"),
        (({},), {"t": C}, ValueError, "at least one source and one target"),
        (({"a": (A, None)},), {}, ValueError, "at least one source and one target"),
        ((A, [0, 1], C), None, ValueError, "domain 'source': .*expected 3 labels, got 2"),
        ((A, 1, C), None, ValueError, "domain 'source': .*expected 3 labels, got a single value"),
        ((A, [0, np.nan, 1], C), None, ValueError, "domain 'source': .*contains NaN"),
        ((A, np.array(["a", 1, 2], dtype=object), C), None, ValueError, "'source': .*int, str"),
        ((A, None, C[:, :1]), None, ValueError, r"features: 'source': 2, 'target': 1"),
        ((A, None, C[0]), None, ValueError, r"'target' must be 2-dimensional, got shape \(2,\)"),
        ((A[0].tolist(), None, C), None, ValueError, "'source' must be 2-dimensional"),
        ((pd.Series(A[0]), None, C), None, ValueError, "'source' must be 2-dimensional"),
        (
            ({"a": (A, None), "b": (B, [1])},),
            {"t": C},
            ValueError,
            r"without labels: \['a'\].*Give labels for all",
        ),
        (
            ({"a": (A, ["x", "y", "x"]), "b": (B, [1])},),
            {"t": C},
            ValueError,
            r"different types: \['<U1', 'int64'\]",
        ),
        (
            ({"a": (A, [True, False, True]), "b": (B, [1])},),
            {"t": C},
            ValueError,
            "'bool', 'int64'",
        ),
        # The same name on both sides: one site, before and after.
        (({"s": (A, None)},), {"s": C[:, :1]}, ValueError, "number of features"),
        ((np.empty((0, 2)), [], C), None, ValueError, "'source'.* no rows"),
        ((A, [0, 1, 0], np.empty((0, 2))), None, ValueError, "'target'.* no rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_arguments(arguments, target, error, message):
    with pytest.raises(error, match=message):
        stack_domains(*arguments, target=target)


def test_frames_and_arrays_are_not_mixed():
    with pytest.raises(TypeError, match=r"different kinds, \['numpy', 'pandas'\]"):
        stack_domains(pd.DataFrame(A), [0, 1, 0], C)
    with pytest.raises(TypeError, match="different kinds"):
        stack_domains(pd.DataFrame(A), [0, 1, 0], sparse.csr_array(C))


def test_frames_of_two_kinds_are_not_mixed():
    with pytest.raises(TypeError, match=r"different kinds, \['pandas', 'polars'\]"):
        stack_domains(MAKERS["pandas"](A), None, MAKERS["polars"](C))
