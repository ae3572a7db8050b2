"""Classifiers of LightGBM and XGBoost in model files: as these libraries write them, checked."""

import json
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, load, save
from covshift.persistence import ModelFileError, read_card
from covshift.persistence.boosted_models import StoredModel, pack_boosted, stored_is_sound
from covshift.tables.own_models import NumberedClasses
from tests.shifted import make_problem

X, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
WHERE = {"sample_domain": SAMPLE_DOMAIN}
SMALL = {"n_estimators": 3, "random_state": 0, "n_jobs": 1}

# Two splits and three leaves, as the libraries write them, less what is not followed.
LIGHTGBM = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=binary sigmoid:1
feature_names=Column_0 Column_1 Column_2

Tree=0
num_leaves=3
num_cat=0
split_feature=1 2
threshold=0.5 -0.25
decision_type=2 10
left_child=1 -1
right_child=-2 -3
leaf_value=0.1 -0.2 0.3
is_linear=0
shrinkage=1


end of trees
"""
OF_NODES = (
    "split_conditions", "base_weights", "default_left", "sum_hessian", "loss_changes", "parents",
)  # fmt: skip
XGBOOST = {
    "learner": {
        "learner_model_param": {"num_class": "0", "num_feature": "3", "num_target": "1"},
        "gradient_booster": {
            "name": "gbtree",
            "model": {
                "gbtree_model_param": {"num_trees": "1"},
                "iteration_indptr": [0, 1],
                "tree_info": [0],
                "trees": [
                    {
                        "tree_param": {
                            "num_nodes": "3", "num_feature": "3", "size_leaf_vector": "1",
                        },
                        "left_children": [1, -1, -1],
                        "right_children": [2, -1, -1],
                        "split_indices": [2, 0, 0],
                        "split_type": [0, 0, 0],
                        "categories": [],
                    }
                    | {name: [0, 0, 0] for name in OF_NODES}
                ],
            },
        },
    }
}  # fmt: skip


def make(library):
    module = pytest.importorskip(library)
    if library == "lightgbm":
        return module.LGBMClassifier(**SMALL, verbose=-1)
    return module.XGBClassifier(**SMALL, verbosity=0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_they_come_back_the_same(library, n_classes, tmp_path):
    labels = np.array(["a", "b", "c"])[np.arange(len(X)) % n_classes]
    alone = NumberedClasses(make(library))
    for model in (clone(alone).fit(X, labels), AdaptedClassifier("coral", alone)):
        if isinstance(model, AdaptedClassifier):  # holds the unfitted model as a parameter
            model.fit(X, labels, **WHERE)
        for _ in range(2):  # what was loaded can be saved
            save(model, tmp_path / "model.skops")
            loaded = load(tmp_path / "model.skops")
            np.testing.assert_array_equal(loaded.predict_proba(X_NEW), model.predict_proba(X_NEW))
            np.testing.assert_array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
            assert str(loaded) == str(model)
            model = loaded
    card = read_card(tmp_path / "model.skops")
    assert card["software"][library] == sys.modules[library].__version__


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_the_library_must_be_there(library, tmp_path, monkeypatch):
    save(make(library).fit(X, np.arange(len(X)) % 2), tmp_path / "model.skops")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModelFileError, match=f"is not installed: pip install {library}$"):
        load(tmp_path / "model.skops")


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_their_own_texts_are_sound_and_forged_ones_are_refused(library, tmp_path):
    stored = pack_boosted(make(library).fit(X, np.arange(len(X)) % 3))
    assert stored_is_sound(stored)
    text = stored.text.tobytes().decode()
    forged = {
        "lightgbm": text.replace("left_child=", "left_child=9", 1),
        "xgboost": text.replace('"left_children":[', '"left_children":[9', 1),
    }[library]
    assert forged != text
    model = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    model.inside_ = StoredModel(library, {}, forged)  # skops writes what it is given
    save(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="is inconsistent: the file is forged or damaged"):
        load(tmp_path / "model.skops")


FORGED_LIGHTGBM = {
    "a child outside": ("left_child=1 -1", "left_child=7 -1"),
    "a leaf outside": ("right_child=-2 -3", "right_child=-2 -4"),
    "a circle": ("left_child=1 -1", "left_child=1 0"),
    "a feature outside": ("split_feature=1 2", "split_feature=1 3"),
    "a negative feature": ("split_feature=1 2", "split_feature=-1 2"),
    "too few leaves": ("leaf_value=0.1 -0.2 0.3", "leaf_value=0.1 -0.2"),
    "too few thresholds": ("threshold=0.5 -0.25", "threshold=0.5"),
    "categories": ("decision_type=2 10", "decision_type=3 10"),
    "linear leaves": ("is_linear=0", "is_linear=1"),
    "more outputs": ("num_class=1", "num_class=2"),
    "more outputs of the objective": ("binary sigmoid:1", "multiclass num_class:900"),
    "offsets": ("label_index=0", "tree_sizes=1000000"),
}


def test_a_sound_text_of_lightgbm():
    assert stored_is_sound(StoredModel("lightgbm", {}, LIGHTGBM))
    one_leaf = LIGHTGBM.replace("num_leaves=3", "num_leaves=1")
    for name in ("split_feature", "threshold", "decision_type", "left_child", "right_child"):
        start = one_leaf.index(f"{name}=")
        end = one_leaf.index("\n", start)
        one_leaf = f"{one_leaf[:start]}{name}={one_leaf[end:]}"
    one_leaf = one_leaf.replace("leaf_value=0.1 -0.2 0.3", "leaf_value=0.1")
    assert stored_is_sound(StoredModel("lightgbm", {}, one_leaf))


@pytest.mark.parametrize("case", FORGED_LIGHTGBM)
def test_forged_texts_of_lightgbm(case):
    before, after = FORGED_LIGHTGBM[case]
    assert before in LIGHTGBM
    assert not stored_is_sound(StoredModel("lightgbm", {}, LIGHTGBM.replace(before, after)))


FORGED_XGBOOST = {
    "a child outside": ("left_children", [3, -1, -1]),
    "a circle": ("left_children", [0, -1, -1]),
    "a feature outside": ("split_indices", [3, 0, 0]),
    "categories": ("split_type", [1, 0, 0]),
    "too few nodes": ("base_weights", [0, 0]),
    "a tree of no output": ("tree_info", [1]),
    "iterations outside": ("iteration_indptr", [0, 5]),
    "another kind": ("name", "gblinear"),
}


def test_a_sound_text_of_xgboost():
    assert stored_is_sound(StoredModel("xgboost", {}, json.dumps(XGBOOST)))


@pytest.mark.parametrize("case", FORGED_XGBOOST)
def test_forged_texts_of_xgboost(case):
    name, value = FORGED_XGBOOST[case]
    document = json.loads(json.dumps(XGBOOST))
    booster = document["learner"]["gradient_booster"]
    places = [booster, booster["model"], booster["model"]["trees"][0]]
    (place,) = [one for one in places if name in one]
    place[name] = value
    assert not stored_is_sound(StoredModel("xgboost", {}, json.dumps(document)))


def test_a_library_that_is_not_known():
    assert not stored_is_sound(StoredModel("catboost", {}, ""))
