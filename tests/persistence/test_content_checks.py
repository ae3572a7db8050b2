"""Model files that were changed: digests, signatures, and arrays that disagree."""

import io
import json
import secrets
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from covshift import (
    AdaptedClassifier,
    CorrelationAlignment,
    DomainQuantileTransformer,
    DomainStandardScaler,
    JointAlignmentClassifier,
    KMMWeights,
    LSPClassifier,
    SourceStandardScaler,
    SparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
    load,
    save,
)
from covshift.persistence import ModelFileError, UntrustedTypesError, read_card
from tests.persistence.test_hostile_files import read_members, write_members
from tests.persistence.test_older_models import ARRAY_FILES
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
WHERE = {"sample_domain": SAMPLE_DOMAIN}
KEY = secrets.token_bytes(32)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def model():
    return AdaptedClassifier(DomainStandardScaler()).fit(X, Y, **WHERE)


@pytest.fixture
def path(tmp_path, model):
    path = tmp_path / "model.skops"
    save(model, path, key=KEY)
    return path


def write_as_they_are(path, members):
    with ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_every_member_is_part_of_the_digest(path):
    members = read_members(path)
    for name, content in members.items():
        if name == "covshift.json":
            changed = content.replace(b'"n_features": 3', b'"n_features": 4')
        elif name == "schema.json":
            changed = content + b" "
        else:
            changed = content[:-1] + bytes([content[-1] ^ 1])
        assert changed != content
        write_as_they_are(path, {**members, name: changed})
        with pytest.raises(ModelFileError, match="do not match its digest"):
            load(path)


def test_members_that_are_added_or_missing(path):
    members = read_members(path)
    array = next(name for name in members if name.endswith(".npy"))
    write_as_they_are(path, {**members, "123.npy": members[array]})
    with pytest.raises(ModelFileError, match="do not match its digest"):
        load(path)
    del members[array]
    write_as_they_are(path, members)
    with pytest.raises(ModelFileError, match="do not match its digest"):
        load(path)


def test_files_of_earlier_versions_have_no_digest():
    with ZipFile(ARRAY_FILES[0]) as archive:
        assert "digest" not in json.loads(archive.read("covshift.json"))
    with pytest.raises(ModelFileError, match="no signature"):
        load(ARRAY_FILES[0], key=KEY)


def test_a_signature(path, model):
    np.testing.assert_array_equal(load(path, key=KEY).predict(X_NEW), model.predict(X_NEW))
    load(path)  # without a key it is ignored
    with pytest.raises(ModelFileError, match="signature does not match the key"):
        load(path, key=secrets.token_bytes(32))
    write_members(path, read_members(path) | {"7.npy": npy(np.zeros(3))})  # with a new digest
    load(path)
    with pytest.raises(ModelFileError, match="signature does not match the key"):
        load(path, key=KEY)
    save(model, path)
    with pytest.raises(ModelFileError, match="no signature"):
        load(path, key=KEY)
    assert "signature" not in read_card(path)


@pytest.mark.parametrize(
    ("key", "error"), [("a text", TypeError), (b"", ValueError), (b"short", ValueError)]
)
def test_keys_that_are_none(key, error, path, model):
    before = path.read_bytes()
    for use in (lambda: save(model, path, key=key), lambda: load(path, key=key)):
        with pytest.raises(error, match="key"):
            use()
    assert path.read_bytes() == before


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def spoil(path, part, name, change):
    """Change an attribute of an estimator in a file, as a forger would."""
    members = read_members(path)
    schema = json.loads(members["schema.json"])
    waiting, files = [schema], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("__class__") == part and isinstance(node.get("content"), dict):
                attribute = node["content"]["content"].get(name, {"content": []})  # else unfitted
                arrays = attribute["content"] if "file" not in attribute else [attribute]
                files += [one["file"] for one in arrays]
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    assert files
    for file in files:
        array = np.load(io.BytesIO(members[file]))
        members[file] = npy(change(array))
    write_members(path, members)


CHANGES = {
    "doubled": lambda array: np.concatenate([array, array]),
    "doubled in columns": lambda array: np.concatenate([array, array], axis=-1),
    "emptied": lambda array: array[:0],
    "flattened": lambda array: array.ravel()[:1],
    "nan": lambda array: np.full_like(array, np.nan),
    "infinite": lambda array: np.full_like(array, np.inf),
    "complex": lambda array: array.astype(complex),
    "texts": lambda array: array.astype(str),
}
MAY_BE_NAN = ("means_", "scales_", "quantiles_")
SPOILED = [
    (AdaptedClassifier(), "LogisticRegression", "coef_"),
    (AdaptedClassifier(), "LogisticRegression", "intercept_"),
    (AdaptedClassifier(), "AdaptedClassifier", "class_shares_"),
    (AdaptedClassifier(None, SVC()), "SVC", "_dual_coef_"),
    (AdaptedClassifier(None, SVC()), "SVC", "support_vectors_"),
    (CorrelationAlignment(), "CorrelationAlignment", "matrices_"),
    (CorrelationAlignment(), "CorrelationAlignment", "shifts_"),
    (DomainStandardScaler(), "DomainStandardScaler", "means_"),
    (DomainStandardScaler(), "DomainStandardScaler", "scales_"),
    (DomainQuantileTransformer(), "DomainQuantileTransformer", "quantiles_"),
    (JointAlignmentClassifier(n_components=2), "JointAlignmentClassifier", "components_"),
    (JointAlignmentClassifier(n_components=2), "JointAlignmentClassifier", "bases_"),
    (KMMWeights(), "KMMWeights", "_solution"),
    (KMMWeights(n_landmarks=9), "KMMWeights", "landmarks_"),
    (KMMWeights(n_landmarks=9), "KMMWeights", "_direction"),
    (LSPClassifier(), "LSPClassifier", "bases_"),
    (LSPClassifier(), "LSPClassifier", "coefficients_"),
    (Ridge(), "Ridge", "coef_"),
    (SparseFiltering(4, max_iter=3), "SparseFiltering", "components_"),
    (SparseFiltering(4, max_iter=3), "SparseFiltering", "feature_norms_"),
    (SubspaceAlignment(2), "SubspaceAlignment", "alignment_"),
    (ULSIFWeights(), "ULSIFWeights", "bases_"),
    (ULSIFWeights(), "ULSIFWeights", "coefficients_"),
]


@pytest.mark.parametrize(
    ("model", "part", "name"), SPOILED, ids=[f"{part}.{name}" for _, part, name in SPOILED]
)
def test_arrays_that_disagree(model, part, name, tmp_path):
    path = tmp_path / "model.skops"
    where = {} if isinstance(model, Ridge) else WHERE
    save(model.fit(X, Y, **where), path)
    good = path.read_bytes()
    for what, change in CHANGES.items():
        if what == "nan" and name in MAY_BE_NAN:
            continue
        path.write_bytes(good)
        spoil(path, part, name, change)
        with pytest.raises(ModelFileError, match="is inconsistent"):
            load(path)
    path.write_bytes(good)
    spoil(path, part, name, lambda array: array)
    load(path)


NEVER_FITTED = [
    (Ridge(), "intercept_", lambda value: np.full_like(value, np.nan)),
    (Ridge(), "intercept_", lambda value: np.full_like(value, np.inf)),
    (SourceStandardScaler(), "scale_", lambda scales: scales * [1, 0, 1]),
    (SourceStandardScaler(), "scale_", np.negative),
    (SVC(), "_gamma", lambda value: np.full_like(value, np.nan)),
    (SVC(kernel="linear"), "_gamma", lambda value: np.full_like(value, np.inf)),
    (DomainStandardScaler(), "scales_", np.zeros_like),
    (DomainStandardScaler(), "domains_", lambda domains: domains[:0]),
    (DomainStandardScaler(), "domains_", lambda domains: domains[::-1]),
    (DomainStandardScaler(), "domains_", np.zeros_like),
    (SparseFiltering(4, max_iter=3), "norm_counts_", np.negative),
    (DomainQuantileTransformer(), "quantiles_", lambda quantiles: quantiles[::-1]),
]


@pytest.mark.parametrize(("model", "name", "change"), NEVER_FITTED)
def test_values_that_no_fit_gives(model, name, change, tmp_path):
    path = tmp_path / "model.skops"
    save(model.fit(X, Y, **({} if isinstance(model, Ridge | SVC) else WHERE)), path)
    spoil(path, type(model).__name__, name, change)
    with pytest.raises(ModelFileError, match="is inconsistent"):
        load(path)


def test_classes_that_are_swapped(tmp_path):
    path = tmp_path / "model.skops"
    save(AdaptedClassifier().fit(X, Y, **WHERE), path)
    spoil(path, "LogisticRegression", "classes_", lambda classes: classes[::-1])
    with pytest.raises(ModelFileError, match="LogisticRegression is inconsistent"):
        load(path)


@pytest.mark.parametrize(
    "neighbors",
    [
        KNeighborsClassifier(),
        KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
        KNeighborsClassifier(algorithm="kd_tree", p=3, leaf_size=5),
        KNeighborsClassifier(algorithm="brute"),
        KNeighborsRegressor(),
        LocalOutlierFactor(novelty=True),
    ],
    ids=repr,
)
def test_nearest_neighbors_are_read_without_trust(neighbors, tmp_path):
    path = tmp_path / "model.skops"
    tree = neighbors.fit(X, Y)._tree
    save(neighbors, path)
    assert neighbors._tree is tree  # not changed
    np.testing.assert_array_equal(load(path).predict(X_NEW), neighbors.predict(X_NEW))


def test_functions_of_the_system_are_never_offered(tmp_path):
    path = tmp_path / "model.skops"
    save(LogisticRegression().fit(X, Y), path)
    from os import system

    transformer = FunctionTransformer(system)
    transformer.n_features_in_ = 3
    save(transformer, path)
    with pytest.raises(UntrustedTypesError, match=r"system.*Do not use this file") as refused:
        load(path)
    assert "trusted" not in str(refused.value)
