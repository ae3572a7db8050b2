"""Fitted attributes that must agree: shapes with the numbers of features and classes, and values.

NumPy broadcasts: an array of the wrong shape often predicts something. Here a shape is a text of
symbols, one for each axis. ``m`` is the number of features, ``k`` that of classes, ``q`` the number
of linear functions that separate them (1 for two classes), ``u`` the number of units with their own
statistics. Any other letter stands for one number within an estimator, and ``*`` for any number.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm._base import BaseLibSVM

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
    "_share_ratios": "k",
    "_source_shares": "k",
}
OURS_BY_CLASS: dict[str, Shapes] = {
    "AdaptedRegressor": {"held_out_scores_": "h"},
    "JointAlignmentClassifier": {"bases_": "b *", "coefficients_": "b k", "center_": "m"},
    "KLIEPWeights": {"bases_": "b m", "coefficients_": "b"},
    "LSPClassifier": {"bases_": "b m", "coefficients_": "b k"},
    "RuLSIFWeights": {"bases_": "b m", "coefficients_": "b"},
    "SegmentSparseFiltering": {"components_": "p *"},  # filters of segments, shorter than rows
    "ULSIFWeights": {"bases_": "b m", "coefficients_": "b"},
}
# Common estimators of scikit-learn; the first that fits counts.
THEIRS: list[tuple[Any, Shapes]] = [
    ((LinearDiscriminantAnalysis, LinearClassifierMixin), {"coef_": "q m", "intercept_": "q"}),
    (LinearModel, {"coef_": "m"}),  # with one output
    (PCA, {"components_": "p m", "mean_": "m", "explained_variance_": "p"}),
    (GaussianNB, {"theta_": "k m", "var_": "k m", "class_prior_": "k"}),
    (NeighborsBase, {"_fit_X": "n m"}),
    (
        (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler),
        {name: "m" for name in ("mean_", "var_", "scale_", "min_", "center_")},
    ),
    (BaseLibSVM, {"support_vectors_": "s m", "_dual_coef_": "* s", "_intercept_": "*"}),
]
# Of a feature without any value these are NaN, and so are the rows that they scale: the caller
# reports them.
MAY_BE_MISSING = frozenset(
    (
        "mean_", "means_", "scale_", "scales_", "var_", "min_", "center_", "quantiles_",
        "reference_", "held_out_rows_",
    )
)  # fmt: skip


def attributes_agree(model: Any) -> bool:
    """Return whether classes are in order, shapes agree, and coefficients are numbers."""
    classes = vars(model).get("classes_")
    if isinstance(classes, np.ndarray) and is_classifier(model) and not _in_order(classes):
        return False
    sizes = _known_sizes(model)
    for name, shape in _shapes_of(model).items():
        value = vars(model).get(name)
        # Lists and dictionaries hold one array per unit; numbers and None stand for an intercept
        # that is not there.
        if isinstance(value, dict):
            value = list(value.values())
        for array in value if isinstance(value, list) else [value]:
            if isinstance(array, np.ndarray) and not (
                _fits(array, shape.split(), sizes) and (name in MAY_BE_MISSING or _is_finite(array))
            ):
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


def _is_finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _in_order(classes: Any) -> bool:
    return classes.ndim == 1 and bool(np.array_equal(np.unique(classes), classes))
