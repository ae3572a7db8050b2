"""Numbers in a model file, checked once they are loaded: indices, shapes, coefficients.

An allow-list (`covshift.persistence.schema_audit`) knows types, not contents. Where scikit-learn,
SciPy or NumPy would follow an index without a look at the bounds, a forged file could read or write
outside of arrays. Checked here are those places in what models of this package are commonly made
of: trees, kernel machines, sparse matrices, random states, and shapes of fitted attributes. Models
of LightGBM and XGBoost are checked in `covshift.persistence.boosted_models`. Other estimators are
taken as skops takes them, by type.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from covshift.kernels.array_types import BoolArray
from covshift.persistence.archive import ModelFileError

# --- Trees of scikit-learn ---
#
# Compiled code goes from node to node by the numbers of its children, and looks into a row by the
# number of a feature, all unchecked: a forged child sends it to any place in memory, or round in a
# circle for ever. A tree is sound if every inner node's children come after it, which excludes
# circles, and its feature is one that rows have. A caller of a tree must have as many
# features as the tree: forests do not look again.


TREE = "sklearn.tree._tree.Tree"

DECISION_TREES = (DecisionTreeClassifier, DecisionTreeRegressor)

FORESTS = (
    RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor,
)  # fmt: skip

BOOSTED = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)

# Their compiled code takes more from a file on trust than is checked here.
UNCHECKED = (
    GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest, RandomTreesEmbedding,
)  # fmt: skip


def _tree_is_sound(model: Any) -> bool:
    """Return whether a decision tree's nodes are those of a tree over its features."""
    if not hasattr(model, "tree_"):
        return True  # not fitted
    tree = model.tree_
    if _type_name(tree) != TREE or tree.capacity != tree.node_count or tree.node_count < 1:
        return False
    if not np.isfinite(tree.value).all():
        return False
    return tree.n_features == model.n_features_in_ and nodes_are_sound(
        tree.children_left != -1,
        (tree.children_left, tree.children_right),
        tree.feature,
        tree.n_features,
    )


def _forest_is_sound(model: Any) -> bool:
    """Return whether the members of a forest are trees over its features."""
    return all(
        isinstance(tree, DECISION_TREES) and tree.n_features_in_ == model.n_features_in_
        for tree in getattr(model, "estimators_", [])
    )


def _boosted_trees_are_sound(model: Any) -> bool:
    """Return the same for boosted trees on binned features; those on categories are not read."""
    if not hasattr(model, "_predictors"):
        return True
    categorical = np.asarray(model._bin_mapper.is_categorical_)
    if model._preprocessor is not None or categorical.any():
        return False
    return all(
        tree.nodes.ndim == 1
        and len(tree.nodes) > 0
        and not tree.nodes["is_categorical"].any()
        and nodes_are_sound(
            tree.nodes["is_leaf"] == 0,
            (tree.nodes["left"], tree.nodes["right"]),
            tree.nodes["feature_idx"],
            model.n_features_in_,
        )
        for stage in model._predictors
        for tree in stage
    )


def _holds_loose_trees(part: Any, children: Iterable[Any]) -> bool:
    """Return whether something other than a decision tree would hand rows to compiled nodes."""
    return not isinstance(part, DECISION_TREES) and any(_type_name(one) == TREE for one in children)


def _type_name(value: Any) -> str:
    """Name of a value's type, as the allow-list has it."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def nodes_are_sound(
    inner: BoolArray, sides: tuple[Any, Any], features: Any, n_features: int
) -> bool:
    """Check whether inner nodes' children come after them, with features that rows have."""
    parents = np.flatnonzero(inner)
    return all(
        bool(((side[inner] > parents) & (side[inner] < len(inner))).all()) for side in sides
    ) and bool(((features[inner] >= 0) & (features[inner] < n_features)).all())


# --- Kernel machines, sparse matrices and random states ---
#
# libsvm, SciPy's sparse products and the Mersenne twister follow numbers in these objects, too.


TWISTER_WORDS = 624


def _machine_is_sound(model: Any) -> bool:
    """As many coefficients, offsets and numbers of support vectors as libsvm will read."""
    if not hasattr(model, "support_vectors_"):
        return True
    if np.ndim(model.support_vectors_) != 2:
        return False
    n_vectors, n_columns = model.support_vectors_.shape
    classifies = isinstance(model, SVC | NuSVC)
    n_support = np.asarray(model._n_support)
    n_classes = len(n_support) if classifies else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    n_probabilities = {np.shape(model._probA), np.shape(model._probB)}
    return (
        # Of a kernel that is computed elsewhere, columns are rows of the fit.
        model.kernel in ("linear", "poly", "rbf", "sigmoid")
        and n_columns == model.n_features_in_
        and n_classes >= 2
        and bool((n_support >= 0).all())
        and (not classifies or int(n_support.sum()) == n_vectors)
        and model.support_.shape == (n_vectors,)
        and model._dual_coef_.shape == (n_classes - 1, n_vectors)
        and np.shape(model._intercept_) == (n_pairs,)
        and len(n_probabilities) == 1
        and n_probabilities <= {(0,), (n_pairs,), (n_pairs + 1,)}
    )


def _sparse_is_sound(matrix: Any) -> bool:
    """Return the compressed rows or columns, whose indices are inside of the shape."""
    if matrix.format not in ("csr", "csc"):
        return False
    matrix.check_format(full_check=True)  # raises ValueError
    return True


def _random_state_is_sound(state: Any) -> bool:
    """Return whether the position of a Mersenne twister lies inside its words."""
    generator = getattr(state, "bit_generator", None) or state._bit_generator
    inside = generator.state
    if inside["bit_generator"] != "MT19937":
        return True
    return bool(0 <= inside["state"]["pos"] <= TWISTER_WORDS)


# --- Fitted attributes that must agree: shapes with numbers of features and classes, values ---
#
# NumPy broadcasts: an array of the wrong shape often predicts something. Here a shape is a text of
# symbols, one for each axis. `m` is the number of features, `k` that of classes, `q` the number
# of linear functions that separate them (1 for two classes), `u` the number of units with their own
# statistics. Any other letter stands for one number within an estimator, and `*` for any number.


Shapes = Mapping[str, str]

# Attributes that mean the same in every estimator of this package.
OURS: Shapes = {
    "alignment_": "p p",
    "class_shares_": "k",
    "components_": "p m",
    "data_center_": "m",
    "data_range_": "m",
    "decoder_components_": "m p",
    "decoder_intercept_": "m",
    "domains_": "d",
    "feature_groups_": "k p",
    "feature_norms_": "u p",
    "held_out_domain_": "h",
    "held_out_labels_": "h",
    "held_out_rows_": "h m",
    "held_out_scores_": "h k",
    "intercept_": "p",
    "label_reward_": "k",
    "landmarks_": "l m",
    "matrices_": "u m m",
    "mean_": "m",
    "means_": "u m",
    "norm_counts_": "u",
    "quantiles_": "* m",
    "reference_": "r *",
    "reference_covariance_": "m m",
    "reference_domain_": "r",
    "reference_mean_": "m",
    "scale_": "m",
    "scales_": "u m",
    "shifts_": "u m",
    "shrinkages_": "u",
    "source_components_": "p m",
    "source_rows_": "n m",
    "target_components_": "p m",
    "target_rows_": "t m",
    "weights_": "n",
    "_direction": "r",
    "_root": "l r",
    "_share_ratios": "k",
    "_solution": "n",
    "_source_shares": "k",
}

OURS_BY_CLASS: dict[str, Shapes] = {
    "AdaptedRegressor": {"held_out_scores_": "h"},
    "JointAlignmentClassifier": {"bases_": "b p", "coefficients_": "b k", "center_": "m"},
    "KLIEPWeights": {"bases_": "b m", "coefficients_": "b"},
    "LSPClassifier": {"bases_": "b m", "coefficients_": "b k"},
    "RuLSIFWeights": {"bases_": "b m", "coefficients_": "b"},
    "SegmentSparseFiltering": {"components_": "p *"},  # filters of segments, shorter than rows
    "ULSIFWeights": {"bases_": "b m", "coefficients_": "b"},
}

# Common estimators of scikit-learn; the first that fits counts.
THEIRS: list[tuple[Any, Shapes]] = [
    ((LinearDiscriminantAnalysis, LinearClassifierMixin), {"coef_": "q m", "intercept_": "q"}),
    (LinearModel, {"coef_": "m", "intercept_": ""}),  # with one output
    (PCA, {"components_": "p m", "mean_": "m", "explained_variance_": "p"}),
    (GaussianNB, {"theta_": "k m", "var_": "k m", "class_prior_": "k"}),
    (NeighborsBase, {"_fit_X": "n m"}),
    (
        (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler),
        {name: "m" for name in ("mean_", "var_", "scale_", "min_", "center_")},
    ),
    (
        BaseLibSVM,
        {
            "support_vectors_": "s m",
            "_dual_coef_": "* s",
            "_intercept_": "*",
            "_gamma": "",
            "_probA": "*",
            "_probB": "*",
        },
    ),
]

# Of a feature without any value these are NaN, and so are the rows that they scale: the caller
# reports them.
MAY_BE_MISSING = frozenset(
    (
        "mean_", "means_", "scale_", "scales_", "var_", "min_", "center_", "quantiles_",
        "reference_", "held_out_rows_",
    )
)  # fmt: skip

SCALES = ("scale_", "scales_")  # rows are divided by them; a feature that does not vary has 1


def _attributes_agree(model: Any) -> bool:
    """Return whether classes are in order, shapes agree, and coefficients are numbers."""
    classes = vars(model).get("classes_")
    if isinstance(classes, np.ndarray) and is_classifier(model) and not _in_order(classes):
        return False
    sizes = _known_sizes(model)
    for name, shape in _shapes_of(model).items():
        value = vars(model).get(name)
        # Lists and dictionaries hold one array per unit; None stands for what is not there.
        if isinstance(value, dict):
            value = list(value.values())
        for array in value if isinstance(value, list) else [value]:
            if isinstance(array, np.ndarray) and not _fits(array, shape.split(), sizes):
                return False
            if isinstance(array, np.ndarray | np.generic) and not _is_plausible(name, array):
                return False
    return True


def _shapes_of(model: Any) -> Shapes:
    if _is_ours(model):
        return {**OURS, **OURS_BY_CLASS.get(type(model).__name__, {})}
    shapes = next((shapes for kinds, shapes in THEIRS if isinstance(model, kinds)), {})
    coef = vars(model).get("coef_")
    if isinstance(model, LinearModel) and not is_classifier(model) and np.ndim(coef) == 2:
        return {"coef_": "o m", "intercept_": "o"}  # with several outputs
    return shapes


def _is_ours(model: Any) -> bool:
    return type(model).__module__.startswith("covshift.")


def _known_sizes(model: Any) -> dict[str, int]:
    attributes, sizes = vars(model), {}
    if isinstance(attributes.get("n_features_in_"), int):
        sizes["m"] = attributes["n_features_in_"]
    # Some of ours have the classes of the estimator inside.
    classes = getattr(model, "classes_", None) if _is_ours(model) else attributes.get("classes_")
    if isinstance(classes, np.ndarray):
        sizes["k"] = len(classes)
        sizes["q"] = 1 if sizes["k"] == 2 else sizes["k"]
    for name in ("units_", "norm_units_"):
        if isinstance(attributes.get(name), list):
            sizes["u"] = len(attributes[name])
    return sizes


def _fits(array: Any, symbols: list[str], sizes: dict[str, int]) -> bool:
    """Whether a shape is as described; symbols that are met for the first time are learned."""
    return array.ndim == len(symbols) and all(
        symbol == "*" or sizes.setdefault(symbol, size) == size
        for symbol, size in zip(symbols, array.shape, strict=True)
    )


def _is_plausible(name: str, array: Any) -> bool:
    """Whether values are those that a fit can give an attribute of this name."""
    if array.dtype.kind not in "fiub":  # texts, complex numbers
        return False
    if not (np.isfinite(array) | (np.isnan(array) & (name in MAY_BE_MISSING))).all():
        return False
    if name in SCALES:
        return not (array <= 0).any()  # which NaN passes
    if name == "domains_":
        return _in_order(array) and len(array) > 0
    if name == "norm_counts_":
        return not (array < 0).any()
    if name == "quantiles_":
        return len(array) > 0 and not (np.diff(array, axis=0) < 0).any()
    return True


def _in_order(classes: Any) -> bool:
    return classes.ndim == 1 and bool(np.array_equal(np.unique(classes), classes))


# --- A whole model: all of its parts, each by the checks of its type ---


CHECKS: list[tuple[Any, Callable[[Any], bool]]] = [
    (DECISION_TREES, _tree_is_sound),
    (FORESTS, _forest_is_sound),
    (BOOSTED, _boosted_trees_are_sound),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), _machine_is_sound),
    ((sparse.spmatrix, sparse.sparray), _sparse_is_sound),
    ((np.random.RandomState, np.random.Generator), _random_state_is_sound),
    (BaseEstimator, _attributes_agree),
]


def check_contents(model: Any, trusted: Collection[str] = ()) -> None:
    """Raise `ModelFileError` if a part of the model points outside of its arrays or disagrees.

    Trees that the user trusts by name are left alone.
    """
    for part in parts_of(model):
        for kinds, is_sound in CHECKS:
            if isinstance(part, kinds) and not is_sound(part):
                raise forged(part)
        if TREE not in trusted and (
            isinstance(part, UNCHECKED) or _holds_loose_trees(part, _children_of(part))
        ):
            raise ModelFileError(
                f"It holds trees in a {type(part).__name__}, whose contents cannot be checked. If "
                f"you trust its author: load(path, trusted=['{TREE}'])."
            )


def forged(part: Any) -> ModelFileError:
    """Return the error for contents that are not as `save` writes them."""
    return ModelFileError(
        f"Its {type(part).__name__} is inconsistent: the file is forged or damaged."
    )


def parts_of(model: Any) -> Iterator[Any]:
    """Yield the contents of a model, itself and everything in it, each object once."""
    waiting, seen = [model], set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(_children_of(part))


def _children_of(part: Any) -> list[Any]:
    """Return the parts that an object contains itself."""
    if isinstance(part, dict):
        return list(part.values())
    if isinstance(part, list | tuple | set):
        return list(part)
    if isinstance(part, np.ndarray):
        return list(part.flat) if part.dtype == object else []
    if hasattr(part, "__dict__") and not isinstance(part, type):
        return list(vars(part).values())
    return []
