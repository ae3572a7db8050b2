"""Loaders of users' folders: every layout, and every way in which a folder can be wrong."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from covshift.datasets import load_amazon_reviews, load_office_caltech, load_vowels
from tests.datasets.made_folders import (
    make_office,
    make_processed_reviews,
    make_review_arrays,
    make_review_texts,
    make_vowels,
)

LOADERS = {
    "vowels": (load_vowels, make_vowels),
    "office": (load_office_caltech, make_office),
    "review arrays": (load_amazon_reviews, make_review_arrays),
    "review texts": (load_amazon_reviews, make_review_texts),
    "processed reviews": (load_amazon_reviews, make_processed_reviews),
}


@pytest.fixture(params=LOADERS.values(), ids=LOADERS)
def loaded(request, tmp_path):
    load, make = request.param
    return load(make(tmp_path / "data"))


def test_rows_of_all_parts_match(loaded):
    n_rows, n_features = loaded.data.shape
    assert loaded.target.shape == loaded.domain.shape == (n_rows,)
    assert len(loaded.feature_names) == n_features
    assert loaded.data.dtype == np.float64
    values = loaded.data.data if sparse.issparse(loaded.data) else loaded.data
    assert np.isfinite(values).all()
    assert "Cite" in loaded.DESCR or "Journal" in loaded.DESCR


def test_domains_are_numbered_from_zero(loaded):
    assert loaded.domain.dtype == np.int64
    assert set(loaded.domain) == set(loaded.domain_names) == set(range(len(loaded.domain_names)))


@pytest.mark.parametrize("load", [load_vowels, load_office_caltech, load_amazon_reviews])
def test_a_folder_that_is_not_there(load, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: give"):
        load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="has no"):
        load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file: give"):
        load(tmp_path / "file")
    with pytest.raises(TypeError, match="folder must be a path, got 3"):
        load(3)
    with pytest.raises(TypeError, match="folder must be a path, got None"):
        load(None)


# Vowels


def test_vowels(tmp_path):
    vowels = load_vowels(make_vowels(tmp_path))
    assert vowels.domain_names == {0: "men", 1: "women", 2: "boys", 3: "girls"}
    assert set(vowels.target) == {"i", "3'", "{"}
    for speaker in set(vowels.speaker):  # a speaker is of one kind
        assert len(set(vowels.domain[vowels.speaker == speaker])) == 1
    assert vowels.domain[vowels.speaker == 1].tolist() == [2, 2, 2]  # the first are boys


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("type", "x"), "line 2: type 'x' is none of m, w, b, g"),
        (("vowel", ""), "line 2: no vowel"),
        (("f2", "loud"), "is not a number"),
        (("f2", "nan"), "not finite"),
        (("speaker", "inf"), "damaged"),
    ],
)
def test_damaged_vowels(change, message, tmp_path):
    path = make_vowels(tmp_path) / "h95.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0][change[0]] = change[1]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(ValueError, match=message):
        load_vowels(tmp_path)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "has no column type"),
        (b"type,speaker,vowel,dur,f0,f1,f2\n", "has no column f3"),
        (b"type,speaker,vowel,dur,f0,f1,f2,f3\n", "has no rows"),
        (b"type,speaker,vowel,dur,f0,f1,f2,f3\nm,1,i,1\n", "is not a number"),
        (b"\xff\xfe\x00", "is no text"),
        (b"type,speaker,vowel,dur,f0,f1,f2,f3\nm," + 200_000 * b"1", "cannot be read as CSV"),
    ],
)
def test_other_files_as_vowels(contents, message, tmp_path):
    (tmp_path / "h95.csv").write_bytes(contents)
    with pytest.raises(ValueError, match=f"{message}.*fetch it again"):
        load_vowels(tmp_path)


def test_vowels_saved_by_a_spreadsheet(tmp_path):
    """With a mark of UTF-8 before the first column's name."""
    path = make_vowels(tmp_path) / "h95.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_vowels(tmp_path).data) == 36


# Images


def test_images_are_histograms(tmp_path):
    images = load_office_caltech(make_office(tmp_path))
    np.testing.assert_allclose(images.data.sum(axis=1), 1)  # single bytes would have overflown
    assert images.target.min() == 0
    assert len(images.target_names) == images.target.max() + 1 == 10


def test_an_image_without_words_stays_zero(tmp_path):
    make_office(tmp_path)
    arrays = {"fts": np.zeros((2, 12)), "labels": [[1], [2]]}
    savemat(tmp_path / "dslr_SURF_L10.mat", arrays)
    images = load_office_caltech(tmp_path)
    assert not images.data[images.domain == 2].any()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"fts": np.ones((3, 12))}, "has no array labels"),
        ({"fts": np.ones((3, 12)), "labels": [[1], [2]]}, "has fts"),
        ({"fts": np.ones((2, 11)), "labels": [[1], [2]]}, "has 11 features, others 12"),
        ({"fts": np.ones((2, 12)), "labels": [[0], [2]]}, "outside 1 to 10"),
        ({"fts": -np.ones((2, 12)), "labels": [[1], [2]]}, "below zero"),
        ({"fts": np.full((2, 12), np.nan), "labels": [[1], [2]]}, "not finite"),
        ({"fts": [["a", "b"]], "labels": [[1]]}, "values that are not numbers"),
        ({"fts": sparse.csc_matrix(np.eye(12)), "labels": np.ones((12, 1))}, "sparse"),
    ],
)
def test_damaged_images(arrays, message, tmp_path):
    make_office(tmp_path)
    savemat(tmp_path / "webcam_SURF_L10.mat", arrays)
    with pytest.raises(ValueError, match=message):
        load_office_caltech(tmp_path)


@pytest.mark.parametrize("keep", [0, 10, 50, 200, 600])
def test_images_cut_off(keep, tmp_path):
    path = make_office(tmp_path) / "amazon_SURF_L10.mat"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"amazon_SURF_L10\.mat .*fetch it again"):
        load_office_caltech(tmp_path)


# Reviews


@pytest.mark.parametrize("byte", [b"\x85", b"\xa0", b"\x1c"])
def test_bytes_that_some_encodings_take_for_spaces(byte, tmp_path):
    make_processed_reviews(tmp_path)
    path = tmp_path / "books" / "positive.review"
    path.write_bytes(b"great" + byte + b"fun:2 plot:1 #label#:positive\r\n")
    reviews = load_amazon_reviews(tmp_path)
    assert reviews.domain.tolist().count(0) == 3 + 1
    assert f"great{byte.decode('latin-1')}fun" in reviews.feature_names


def test_reviews_as_arrays(tmp_path):
    make_review_arrays(tmp_path)
    reviews = load_amazon_reviews(tmp_path)
    assert sparse.issparse(reviews.data)
    assert list(reviews.domain_names.values()) == ["books", "dvd", "electronics", "kitchen"]
    assert reviews.target_names == ["negative", "positive"]
    logs = load_amazon_reviews(tmp_path, features="log400")
    assert "the plot" not in logs.feature_names  # single words alone
    columns = [reviews.feature_names.index(word) for word in logs.feature_names]
    np.testing.assert_array_equal(logs.data, np.log1p(reviews.data.toarray()[:, columns]))


def test_the_most_common_words_are_kept(tmp_path):
    make_review_arrays(tmp_path, n_words=450)
    counts, logs = (load_amazon_reviews(tmp_path, features=name) for name in ("counts", "log400"))
    totals = dict(zip(counts.feature_names, counts.data.sum(axis=0), strict=True))
    assert logs.data.shape[1] == 400
    rest = set(counts.feature_names) - set(logs.feature_names) - {"the plot"}
    assert max(totals[word] for word in rest) <= min(totals[word] for word in logs.feature_names)


def test_reviews_as_texts(tmp_path):
    reviews = load_amazon_reviews(make_review_texts(tmp_path))
    assert reviews.domain_names == {0: "books", 1: "kitchen"}
    assert reviews.target.tolist() == [0, 0, 1, 1] * 2
    assert reviews.feature_names == [
        "awful", "don't", "don't miss", "great", "great plot", "it", "it great", "miss", "miss it",
        "plot",
    ]  # fmt: skip
    assert reviews.data.toarray()[:, 0].tolist() == [1, 1, 0, 0] * 2


def test_processed_reviews(tmp_path):
    reviews = load_amazon_reviews(make_processed_reviews(tmp_path))
    assert reviews.feature_names == ["10:00", "awful", "great", "great plot"]
    assert reviews.data.toarray()[3].tolist() == [0, 0, 2, 1]
    few = load_amazon_reviews(tmp_path, max_words=1)
    assert few.feature_names == ["great"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("great:2", "line 1: the label is None, not 'positive'"),
        ("great:2 #label#:negative", "line 1: the label is 'negative'"),
        ("great #label#:positive", "'great' is not of the form word:count"),
        ("great:x #label#:positive", "'great:x' is not of the form word:count"),
        ("great:" + 30 * "9" + " #label#:positive", "is not of the form word:count"),
        ("great:" + 5000 * "9" + " #label#:positive", "is not of the form word:count"),
        ("\n", "holds no review"),
        ("<review>\n</review>", "holds no review"),
    ],
)
def test_damaged_texts(line, message, tmp_path):
    make_processed_reviews(tmp_path)
    (tmp_path / "dvd" / "positive.review").write_text(line)
    with pytest.raises(ValueError, match=message):
        load_amazon_reviews(tmp_path)


def test_reviews_without_a_word(tmp_path):
    (tmp_path / "dvd").mkdir()
    for label in ("negative", "positive"):
        text = "<review><review_text>1 2</review_text></review>"
        (tmp_path / "dvd" / f"{label}.review").write_text(text)
    with pytest.raises(ValueError, match="without any word"):
        load_amazon_reviews(tmp_path)


def test_a_domain_with_half_of_its_reviews(tmp_path):
    make_processed_reviews(tmp_path)
    (tmp_path / "dvd" / "negative.review").unlink()
    with pytest.raises(FileNotFoundError, match=r"dvd has no file negative\.review"):
        load_amazon_reviews(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": np.zeros(80)}, "does not hold y, domain and vocab"),
        ({"y": np.zeros(3), "domain": ["dvd"] * 3, "vocab": ["a"] * 6}, "the counts are"),
        ({"y": np.full(80, 2), "domain": ["dvd"] * 80, "vocab": ["a"] * 6}, "neither 0 nor 1"),
        ({"y": np.array([None] * 80), "domain": ["dvd"] * 80, "vocab": ["a"] * 6}, "does not hold"),
    ],
)
def test_other_arrays_as_reviews(arrays, message, tmp_path):
    make_review_arrays(tmp_path)
    np.savez(tmp_path / "amazon_meta.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_amazon_reviews(tmp_path)


def test_names_as_bytes(tmp_path):
    path = make_review_arrays(tmp_path) / "amazon_meta.npz"
    before = load_amazon_reviews(tmp_path)
    with np.load(path) as arrays:
        names = {name: arrays[name].astype(bytes) for name in ("domain", "vocab")}
        labels = arrays["y"]
    np.savez(path, y=labels, **names)
    after = load_amazon_reviews(tmp_path)
    assert after.domain_names == before.domain_names
    assert after.feature_names == before.feature_names


@pytest.mark.parametrize("name", ["amazon_counts5000.npz", "amazon_meta.npz"])
def test_files_that_are_no_archives_of_arrays(name, tmp_path):
    path = make_review_arrays(tmp_path) / name
    with np.load(path) as arrays:
        np.savez_compressed(path, **arrays)
    whole = bytearray(path.read_bytes())
    place = whole.index(b".npy") + 40  # among the compressed bytes of the first array
    whole[place : place + 20] = bytes(20)
    np.save(tmp_path / "one.npy", np.eye(3))
    for contents in (b"", bytes(whole), (tmp_path / "one.npy").read_bytes()):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=f"{name} .*fetch it again"):
            load_amazon_reviews(tmp_path)


def test_damaged_counts(tmp_path):
    path = make_review_arrays(tmp_path) / "amazon_counts5000.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is not a sparse matrix"):
        load_amazon_reviews(tmp_path)
    sparse.save_npz(path, sparse.csr_matrix(-np.ones((80, 6))))
    with pytest.raises(ValueError, match="below zero"):
        load_amazon_reviews(tmp_path)
    sparse.save_npz(path, sparse.csr_matrix(1j * np.ones((80, 6))))
    with pytest.raises(ValueError, match="complex128 in place of counts"):
        load_amazon_reviews(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="amazon_counts5000"):
        load_amazon_reviews(tmp_path)


def test_parameters_are_checked(tmp_path):
    with pytest.raises(ValueError, match="features must be one of 'counts', 'log400'"):
        load_amazon_reviews(tmp_path, features="tf")
    with pytest.raises(ValueError, match="max_words"):
        load_amazon_reviews(tmp_path, max_words=0)


# The real ones, where they are


@pytest.fixture
def real():
    if "COVSHIFT_DATA" not in os.environ:
        pytest.skip("COVSHIFT_DATA, the folder with the public data sets, is not set")
    return Path(os.environ["COVSHIFT_DATA"])


def within_and_across(collection, X, C):
    """Accuracy of logistic regression inside domains (five folds), and from each to the others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=5000))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    within, across = [], []
    for source in collection.domain_names:
        rows = collection.domain == source
        within.append(cross_val_score(model, X[rows], collection.target[rows], cv=folds).mean())
        model.fit(X[rows], collection.target[rows])
        for target in collection.domain_names:
            if target != source:
                rows = collection.domain == target
                across.append(model.score(X[rows], collection.target[rows]))
    return np.mean(within), np.mean(across)


def test_real_vowels(real):
    vowels = load_vowels(real / "vowels_h95")
    assert vowels.data.shape == (1668, 5)
    assert np.bincount(vowels.domain).tolist() == [540, 576, 324, 228]
    assert len(set(vowels.speaker)) == 139
    assert set(np.unique(vowels.target, return_counts=True)[1]) == {139}
    assert within_and_across(vowels, vowels.data, 1.0) == pytest.approx((0.78, 0.61), abs=0.03)


def test_real_images(real):
    from sklearn.preprocessing import scale

    images = load_office_caltech(real / "office_caltech10_surf")
    assert images.data.shape == (2533, 800)
    assert np.bincount(images.domain).tolist() == [958, 1123, 157, 295]
    assert np.bincount(images.target[images.domain == 2]).tolist() == [
        12, 21, 12, 13, 10, 24, 22, 12, 8, 23
    ]  # fmt: skip
    X = images.data.copy()
    for domain in images.domain_names:
        X[images.domain == domain] = scale(X[images.domain == domain])
    within, across = within_and_across(images, X, 1.0)
    assert across == pytest.approx(0.46, abs=0.03)
    assert within > across + 0.15


def test_real_reviews(real):
    reviews = load_amazon_reviews(real / "amazon_reviews", features="log400")
    assert reviews.data.shape == (8000, 400)
    for domain in reviews.domain_names:
        assert np.bincount(reviews.target[reviews.domain == domain]).tolist() == [1000, 1000]
    with np.load(real / "amazon_reviews" / "amazon_log400.npz") as stored:
        assert reviews.feature_names == stored["vocab"].tolist()
        np.testing.assert_allclose(reviews.data, stored["X"], atol=1e-6)
    assert within_and_across(reviews, reviews.data, 0.01) == pytest.approx((0.77, 0.66), abs=0.03)
