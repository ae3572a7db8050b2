"""Model files that earlier versions wrote are read, and predict what they predicted then."""

import csv
import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from covshift import load, save
from covshift.persistence import read_card
from covshift.persistence.archive import SCHEMA
from covshift.persistence.schema_audit import MOVED, TRUSTED
from tests.cli.user_files import succeed

FOLDERS = sorted(Path(__file__).parents[1].glob("fixtures/models_*"))
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("*.skops"))]
TABLE_FILES = [path for path in FILES if path.stem.startswith("table_")]
ARRAY_FILES = [path for path in FILES if path not in TABLE_FILES]
TOLERANCE = 1e-9  # of probabilities and other numbers; labels are the same


def each(files):
    return pytest.mark.parametrize(
        "path", files, ids=lambda path: f"{path.parent.name}/{path.stem}"
    )


def expected_of(path):
    """Return what the model of a file said when it was written, by method, and of which rows."""
    with np.load(path.parent / "expected.npz") as file:
        keys = [key for key in file.files if key.partition("|")[0] == path.stem]
        return {key.partition("|")[2]: file[key] for key in keys}, file["X_new"]


def assert_same(ours, theirs, method):
    if theirs.dtype.kind in "US":
        assert_array_equal(ours, theirs, err_msg=method)
    else:
        assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, err_msg=method)


def skip_unless_same_scikit_learn(path):
    """Skip where scikit-learn, which promises nothing across versions, is another one."""
    written_by = read_card(path)["software"]["scikit-learn"]
    if written_by.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        pytest.skip(f"written with scikit-learn {written_by}")


def test_there_are_files():
    assert len(ARRAY_FILES) >= 18
    assert len(TABLE_FILES) >= 2


@pytest.mark.filterwarnings("ignore::covshift.persistence.ModelVersionWarning")
@each(ARRAY_FILES)
def test_an_older_model_predicts_the_same(path):
    skip_unless_same_scikit_learn(path)
    expected, X_new = expected_of(path)
    model = load(path)
    assert expected
    for method, theirs in expected.items():
        assert_same(getattr(model, method)(X_new), theirs, method)


@each(TABLE_FILES)
def test_the_command_line_predicts_by_an_older_model(path, tmp_path):
    skip_unless_same_scikit_learn(path)
    out = tmp_path / "predictions.csv"
    succeed("predict", path, path.parent / "new.csv", "--proba", "--out", out)
    with out.open(encoding="utf-8", newline="") as file:
        rows = [*csv.reader(file)][1:]
    expected, _ = expected_of(path)
    assert_same([row[0] for row in rows], expected["predict"], "predict")
    probabilities = np.array([row[1:] for row in rows], dtype=float)
    assert_same(probabilities, expected["predict_proba"], "predict_proba")


@each(FILES)
def test_the_card_of_an_older_model(path):
    card = read_card(path)
    version = path.parent.name.removeprefix("models_").replace("_", ".")
    assert card["software"]["covshift"].startswith(f"{version}.")
    assert card["class_name"].partition(".")[0] in ("covshift", "sklearn")
    assert json.loads(succeed("show", path, "--json")) == card
    assert card["class_name"] in succeed("show", path)


# Every type that a model file may name, by the module that it had then.
OLD_NAMES = {
    "covshift.kernels.vector_scaling": ["Scaling"],
    "covshift.predictors.adapted_classifier": ["AdaptedClassifier"],
    "covshift.predictors.adapted_regressor": ["AdaptedRegressor"],
    "covshift.predictors.numbered_classes": ["NumberedClasses"],
    "covshift.selection.auto_adapted_classifier": ["AutoAdaptedClassifier"],
    "covshift.selection.auto_adapted_regressor": ["AutoAdaptedRegressor"],
    "covshift.selection.expectations": ["Estimate"],
    "covshift.selection.members": ["Member"],
    "covshift.selection.source_standard_scaler": ["SourceStandardScaler"],
    "covshift.tables.classifier": ["TableClassifier"],
    "covshift.tables.regressor": ["TableRegressor"],
}


def test_old_modules_are_gone_and_their_types_are_trusted_where_they_are_now():
    assert OLD_NAMES.keys() == MOVED.keys()
    for old, names in OLD_NAMES.items():
        assert find_spec(old) is None
        for name in names:
            assert f"{MOVED[old]}.{name}" in TRUSTED
            assert getattr(import_module(MOVED[old]), name).__module__ == MOVED[old]


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("covshift.predictors.numbered_classes", "NumberedClasses"),
        ("covshift.selection.source_standard_scaler", "SourceStandardScaler"),
    ],
)
def test_a_class_that_moved_is_found_where_it_is_now(old, name, tmp_path, monkeypatch):
    cls = getattr(import_module(MOVED[old]), name)
    model = cls(LogisticRegression()) if name == "NumberedClasses" else cls()
    model.fit(np.eye(4), list("abab"))
    with monkeypatch.context() as then:
        then.setattr(cls, "__module__", old)
        save(model, tmp_path / "old.skops")
    with ZipFile(tmp_path / "old.skops") as file:
        assert old in file.read(SCHEMA).decode()
    assert type(load(tmp_path / "old.skops")) is cls
