"""Rows and labels that other libraries would read as something else: a clear error each."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from covshift import (
    AdaptedClassifier,
    CorrelationAlignment,
    DenoisingAutoencoder,
    DomainStandardScaler,
    JointAlignmentClassifier,
    LSPClassifier,
    PeriodicSparseFiltering,
    SourceStandardScaler,
    SparseFiltering,
    ULSIFWeights,
    diagnose,
    split_domains,
    stack_domains,
)
from covshift.measures import (
    calibrated_confidence,
    check_representation_bounds,
    classifier_two_sample_test,
    ks_test,
    mmd,
    support_overlap,
)
from covshift.row_checks import check_readable
from covshift.signals import OrderTracking, Spectrum
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
WHERE = {"sample_domain": SAMPLE_DOMAIN}
NAMES = np.array(["no", "perhaps", "yes, by all means"])
MODELS = [
    AdaptedClassifier(),
    AdaptedClassifier(DomainStandardScaler()),
    CorrelationAlignment(),
    DenoisingAutoencoder(2, max_epochs=3),
    DomainStandardScaler(),
    JointAlignmentClassifier(),
    LSPClassifier(),
    PeriodicSparseFiltering(4, max_iter=3),
    SourceStandardScaler(),
    SparseFiltering(4, max_iter=3),
    ULSIFWeights(),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def bad_sparse(part, value):
    """A sparse matrix that SciPy did not check: compiled code would follow its indices."""
    matrix = sparse.csr_array(X)
    numbers = getattr(matrix, part).copy()
    numbers[5] = value
    setattr(matrix, part, numbers)
    return matrix


def masked(mask):
    return np.ma.MaskedArray(X, mask=mask)


DATE, DURATION = np.datetime64("2024-01-01"), np.timedelta64(3, "D")
BAD = {
    "masked entries": (masked(X > 1), "masked array with .* masked entries"),
    "a list of masked rows": (list(masked(X > 1)), "masked array with .* masked entries"),
    "dates": (np.full(X.shape, DATE), "dates or times"),
    "durations": (np.full(X.shape, DURATION), "dates or times"),
    "a list of dates": (np.full(X.shape, DATE, dtype=object).tolist(), "dates or times"),
    "dates among objects": (np.full(X.shape, DATE, dtype=object), "dates or times"),
    "durations among objects": (np.full(X.shape, DURATION, dtype=object), "dates or times"),
    "repeated names": (pd.DataFrame(X, columns=["a", "b", "a"]), "repeated: 'a'"),
}


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("name", BAD)
def test_rows_that_would_be_misread(name, model):
    rows, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        clone(model).fit(rows, Y, **WHERE)
    fitted = clone(model).fit(X, Y, **WHERE)
    for method in ("predict", "transform", "score_weights"):
        if hasattr(fitted, method):
            with pytest.raises(ValueError, match=message):
                getattr(fitted, method)(rows)


@pytest.mark.parametrize("name", BAD)
def test_measures_refuse_the_same_rows(name):
    rows, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        diagnose(rows, Y, **WHERE)
    for measure in (classifier_two_sample_test, ks_test, mmd, support_overlap):
        for pair in ((rows, X), (X, rows)):
            with pytest.raises(ValueError, match=message):
                measure(*pair)
    for measure in (calibrated_confidence, check_representation_bounds):
        with pytest.raises(ValueError, match=message):
            measure(rows)


def test_measures_name_the_sample_that_is_masked():
    with pytest.raises(ValueError, match=r"^B is a masked array.*B\.filled"):
        mmd(X, masked(X > 1))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_dates_are_named(library):
    days = np.arange(len(X)).astype("datetime64[D]").astype("datetime64[us]")
    rows = library({"a": X[:, 0], "when": days})
    with pytest.raises(ValueError, match="Column 'when' holds dates"):
        SparseFiltering(2).fit(rows, Y, **WHERE)


def test_a_column_of_date_objects_is_named():
    days = [datetime.date(2024, 1, 1 + row % 28) for row in range(len(X))]
    rows = pd.DataFrame({"a": X[:, 0], "when": days})
    with pytest.raises(ValueError, match="Column 'when' holds dates"):
        SparseFiltering(2).fit(rows, Y, **WHERE)


@pytest.mark.parametrize("name", [name for name in BAD if name != "repeated names"])
def test_signals_refuse_the_same_rows(name):
    rows, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        Spectrum().fit(rows)
    with pytest.raises(ValueError, match=message):
        Spectrum().fit(X).transform(rows)
    with pytest.raises(ValueError, match=message):
        OrderTracking(3, rpm=120).fit(X).transform(rows)


@pytest.mark.parametrize("name", ["masked entries", "dates", "dates among objects"])
def test_rows_are_checked_before_they_are_stacked(name):
    """Stacking would drop a mask, and with it the reason to refuse the rows later."""
    rows, message = BAD[name]
    with pytest.raises(ValueError, match=f"domain 'target': .*{message}"):
        stack_domains(X, Y, rows)
    with pytest.raises(ValueError, match=f"domain 'b': .*{message}"):
        stack_domains({"a": (X, Y), "b": (rows, Y)}, target={"c": X})
    with pytest.raises(ValueError, match=message):
        split_domains(rows, Y, SAMPLE_DOMAIN)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_sparse_rows_are_checked_before_they_are_stacked(form):
    """Compiled code that changes the format would follow an index out of the matrix."""
    rows = sparse.csr_array(X).asformat(form)
    rows.indices = np.full_like(rows.indices, 10**8)
    for use in (lambda: stack_domains(X, Y, rows), lambda: split_domains(rows, Y, SAMPLE_DOMAIN)):
        with pytest.raises(ValueError, match="indices do not fit its shape"):
            use()


SPARSE = [
    SparseFiltering(4, max_iter=3),
    PeriodicSparseFiltering(4, max_iter=3),
    DomainStandardScaler(with_mean=False),
    AdaptedClassifier(),
]


@pytest.mark.parametrize("model", SPARSE, ids=repr)
@pytest.mark.parametrize(
    ("part", "value"), [("indices", 10**8), ("indices", -1), ("indptr", 10**8), ("indptr", 0)]
)
def test_sparse_rows_whose_indices_point_outside(model, part, value):
    with pytest.raises(ValueError, match="indices do not fit its shape"):
        clone(model).fit(bad_sparse(part, value), Y, **WHERE)
    fitted = clone(model).fit(sparse.csr_array(X), Y, **WHERE)
    method = "predict" if hasattr(fitted, "predict") else "transform"
    with pytest.raises(ValueError, match="indices do not fit its shape"):
        getattr(fitted, method)(bad_sparse(part, value))


def test_sparse_rows_of_other_formats():
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        check_readable(sparse.csr_array(X).asformat(form))
        check_readable(sparse.csr_matrix(X).asformat(form))
    pairs = sparse.coo_array(X)
    pairs.col[3] = 99
    with pytest.raises(ValueError, match="from 0 to 99 on an axis of 3"):
        check_readable(pairs)


def test_a_checked_matrix_is_not_changed():
    matrix = sparse.csr_array(X)
    matrix.data, matrix.indices = np.append(matrix.data, 7.0), np.append(matrix.indices, 0)
    check_readable(matrix)
    assert len(matrix.data) == X.size + 1


def test_a_mask_that_masks_nothing():
    ours = DomainStandardScaler().fit(masked(False), Y, **WHERE).transform(masked(False))
    theirs = DomainStandardScaler().fit(X, Y, **WHERE).transform(X)
    np.testing.assert_array_equal(ours, theirs)


def test_masked_labels():
    y = np.ma.MaskedArray(Y, mask=SAMPLE_DOMAIN < 0)  # of the target: never read
    ours = AdaptedClassifier(DomainStandardScaler()).fit(X, y, **WHERE).predict(X_NEW)
    theirs = AdaptedClassifier(DomainStandardScaler()).fit(X, Y, **WHERE).predict(X_NEW)
    np.testing.assert_array_equal(ours, theirs)
    y.mask = SAMPLE_DOMAIN >= 0
    with pytest.raises(ValueError, match="y is a masked array"):
        AdaptedClassifier(DomainStandardScaler()).fit(X, y, **WHERE)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has these labels")
@pytest.mark.parametrize("model", [MODELS[1], LSPClassifier(random_state=0)], ids=repr)
def test_texts_of_any_length(model):
    texts = NAMES[Y % 3]
    labels = texts.astype(np.dtypes.StringDType())
    ours, theirs = (clone(model).fit(X, one, **WHERE) for one in (labels, texts))
    np.testing.assert_array_equal(ours.predict(X_NEW), theirs.predict(X_NEW))
    source = SAMPLE_DOMAIN >= 0
    scores = [ours.score(X[source], one[source], sample_domain=0) for one in (labels, texts)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("model", MODELS[1:], ids=repr)
def test_a_column_that_overflows_is_named(model):
    """scikit-learn 1.6 and 1.9 alike."""
    rows = pd.DataFrame(X, columns=["age", "income", "size"])
    rows.loc[3, "income"] = 1e160
    with pytest.raises(ValueError, match="Column 'income' holds magnitudes"):
        clone(model).fit(rows, Y, **WHERE)
