"""Models of LightGBM and XGBoost, stored in the formats of these libraries.

Their trees live in compiled code. In a model file they are what the library itself writes, the text
of LightGBM or the JSON of XGBoost, beside the attributes of the model. The libraries follow
the numbers in these texts without a look at the bounds, so that trees are checked here, before the
text is handed over: children come after their parents, and features are ones that rows have.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from covshift.kernels.array_types import IntArray
from covshift.persistence.archive import ModelFileError
from covshift.persistence.content_checks import forged, nodes_are_sound, parts_of

BOOSTER = "_Booster"
# Offsets into the text, which LightGBM would follow unchecked. It reads the text without them.
TREE_SIZES = re.compile(r"^tree_sizes=.*\n", re.MULTILINE)
# Records of the fit that nothing reads later, of types that files do not hold.
LIGHTGBM_RECORDS = ("_best_score", "_class_map", "_evals_result")
XGBOOST_NODES = (
    "left_children", "right_children", "split_indices", "split_conditions", "split_type",
    "base_weights", "default_left", "sum_hessian", "loss_changes", "parents",
)  # fmt: skip


class StoredModel:
    """A model of another library, fitted or not, as a model file holds it.

    Attributes
    ----------
    library : {"lightgbm", "xgboost"}
    attributes : dict
        Those of the model, less the trees.
    class_name : str or None
        Its class; None: the library's classifier, as in files of earlier versions.
    text : ndarray of uint8
        The trees, as the library writes them, in UTF-8; empty: not fitted.
    """

    class_name: str | None = None

    def __init__(
        self, library: str, attributes: dict[str, Any], text: str, class_name: str | None = None
    ) -> None:
        self.library = library
        self.class_name = class_name
        self.attributes = attributes
        self.text = np.frombuffer(text.encode(), np.uint8)


class Library(NamedTuple):
    """How one library writes, reads and lays out its models."""

    title: str
    class_names: Sequence[str]  # the classifier first
    import_it: Callable[[], Any]
    write: Callable[[Any], str]
    read: Callable[[Any, str], Any]  # (module, text) -> model
    is_sound: Callable[[str], bool]
    records: Sequence[str]


def pack_boosted(model: Any) -> Any:
    """Return the model, or a copy in which models of LightGBM and XGBoost are `StoredModel`."""
    found = [(one, name) for one in parts_of(model) if (name := _library_of(one))]
    if not found:
        return model
    # deepcopy takes what the memo has for an object in place of a copy.
    return deepcopy(model, {id(one): _store(one, name) for one, name in found})


def unpack_boosted(model: Any) -> Any:
    """Return the model, or a copy in which every `StoredModel` is the model again.

    All are checked before the first is handed to its library.
    """
    found = [one for one in parts_of(model) if isinstance(one, StoredModel)]
    if not found:
        return model
    for stored in found:
        if not stored_is_sound(stored):
            raise forged(stored)
    return deepcopy(model, {id(one): _restore(one) for one in found})


def stored_is_sound(stored: StoredModel) -> bool:
    """Whether a stored boosted model's trees point nowhere outside of themselves and the rows."""
    return (
        stored.library in LIBRARIES
        and stored.class_name in (None, *LIBRARIES[stored.library].class_names)
        and isinstance(stored.attributes, dict)
        and stored.text.dtype == np.uint8
        and (not len(stored.text) or LIBRARIES[stored.library].is_sound(_text_of(stored)))
    )


def library_versions(model: Any) -> dict[str, str]:
    """Return the versions of the boosting libraries that the model has parts of."""
    names = {name for one in parts_of(model) if (name := _library_of(one))}
    return {name: LIBRARIES[name].import_it().__version__ for name in sorted(names)}


def _library_of(part: Any) -> str | None:
    """Return the library of a model; None: none of those known here."""
    library = type(part).__module__.partition(".")[0]
    known = library in LIBRARIES and type(part).__name__ in LIBRARIES[library].class_names
    return library if known else None


def _store(model: Any, name: str) -> StoredModel:
    library = LIBRARIES[name]
    left_out = (BOOSTER, *library.records)
    attributes = {key: value for key, value in vars(model).items() if key not in left_out}
    booster = vars(model).get(BOOSTER)
    text = "" if booster is None else library.write(booster)
    return StoredModel(name, attributes, text, type(model).__name__)


def _restore(stored: StoredModel) -> Any:
    library = LIBRARIES[stored.library]
    try:
        module = library.import_it()
    except ImportError as error:
        raise ModelFileError(
            f"It holds a model of {library.title}, which is not installed: pip install "
            f"{stored.library}"
        ) from error
    kind = getattr(module, stored.class_name or library.class_names[0])
    model = kind.__new__(kind)
    vars(model).update({name: {} for name in library.records} | stored.attributes)
    text = _text_of(stored)
    vars(model)[BOOSTER] = library.read(module, text) if text else None
    return model


def _text_of(stored: StoredModel) -> str:
    return stored.text.tobytes().decode()


def _lightgbm_is_sound(text: str) -> bool:
    head, *trees = re.split(r"^Tree=\d+$", text.partition("\nend of trees")[0], flags=re.MULTILINE)
    fields = _fields(head)
    n_outputs, n_features = int(fields["num_class"]), int(fields["max_feature_idx"]) + 1
    stated = re.search(r"num_class:(\d+)", fields["objective"])
    return (
        "tree_sizes" not in fields
        and n_outputs >= 1
        and int(fields["num_tree_per_iteration"]) == n_outputs
        and int(stated.group(1) if stated else 1) == n_outputs
        and len(trees) % n_outputs == 0
        and all(_lightgbm_tree_is_sound(_fields(tree), n_features) for tree in trees)
    )


def _lightgbm_tree_is_sound(tree: dict[str, str], n_features: int) -> bool:
    n_leaves = int(tree["num_leaves"])
    left, right, features, kinds = (
        _whole(tree[name].split())
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    lengths = {len(left), len(right), len(features), len(kinds), len(tree["threshold"].split())}
    if n_leaves < 1 or lengths != {n_leaves - 1} or len(tree["leaf_value"].split()) != n_leaves:
        return False
    # Numbers of leaves are written as -1, -2, ...; here leaves come after the inner nodes.
    sides = [np.where(side < 0, n_leaves - 2 - side, side) for side in (left, right)]
    inner = np.arange(2 * n_leaves - 1) < n_leaves - 1
    padded = [np.pad(side, (0, n_leaves)) for side in (*sides, features)]
    plain = tree["num_cat"] == "0" and tree["is_linear"] == "0" and not (kinds & 1).any()
    return plain and nodes_are_sound(inner, (padded[0], padded[1]), padded[2], n_features)


def _fields(lines: str) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines.splitlines()]
    return {name: value for name, equals, value in pairs if equals}


def _xgboost_is_sound(text: str) -> bool:
    learner = json.loads(text)["learner"]
    booster = learner["gradient_booster"]
    dart = booster["name"] == "dart"
    if booster["name"] not in ("gbtree", "dart"):
        return False
    model = booster["gbtree"]["model"] if dart else booster["model"]
    stated = learner["learner_model_param"]
    n_outputs, n_features = max(1, int(stated["num_class"])), int(stated["num_feature"])
    trees, groups = model["trees"], _whole(model["tree_info"])
    starts = _whole(model["iteration_indptr"])
    return (
        int(stated["num_target"]) == 1
        and int(model["gbtree_model_param"]["num_trees"]) == len(trees) == len(groups)
        and bool(((groups >= 0) & (groups < n_outputs)).all())
        and len(starts) > 0
        and (starts[0], starts[-1]) == (0, len(trees))
        and bool((np.diff(starts) >= 0).all())
        and (not dart or len(booster["weight_drop"]) == len(trees))
        and all(_xgboost_tree_is_sound(tree, n_features) for tree in trees)
    )


def _xgboost_tree_is_sound(tree: dict[str, Any], n_features: int) -> bool:
    stated = tree["tree_param"]
    n_nodes = int(stated["num_nodes"])
    if n_nodes < 1 or {len(tree[name]) for name in XGBOOST_NODES} != {n_nodes}:
        return False
    left, right, features = (
        _whole(tree[name]) for name in ("left_children", "right_children", "split_indices")
    )
    return (
        int(stated["num_feature"]) == n_features
        and int(stated["size_leaf_vector"]) <= 1
        and not any(tree["split_type"])
        and not tree["categories"]
        and nodes_are_sound(left != -1, (left, right), features, n_features)
    )


def _whole(values: Iterable[Any]) -> IntArray:
    return np.array([int(value) for value in values], dtype=np.int64)


def _import_lightgbm() -> Any:
    import lightgbm

    return lightgbm


def _import_xgboost() -> Any:
    import xgboost

    return xgboost


LIBRARIES = {
    "lightgbm": Library(
        "LightGBM",
        ("LGBMClassifier", "LGBMRegressor"),
        _import_lightgbm,
        lambda booster: TREE_SIZES.sub("", booster.model_to_string()),
        lambda module, text: module.Booster(model_str=text),
        _lightgbm_is_sound,
        LIGHTGBM_RECORDS,
    ),
    "xgboost": Library(
        "XGBoost",
        ("XGBClassifier", "XGBRegressor"),
        _import_xgboost,
        lambda booster: bytes(booster.save_raw(raw_format="json")).decode(),
        lambda module, text: module.Booster(model_file=bytearray(text.encode())),
        _xgboost_is_sound,
        (),
    ),
}
