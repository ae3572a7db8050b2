"""Numbers in a model file, checked once they are loaded: indices, shapes, coefficients.

An allow-list knows types, not contents. Where scikit-learn, SciPy or NumPy would follow an index
without a look at the bounds, a forged file could read or write outside of arrays. Checked here are
those places in what models of this package are commonly made of: trees (those of LightGBM and
XGBoost included), kernel machines, sparse matrices, random states. Other estimators are taken as
skops takes them, by type. Each check returns whether all is well.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from covshift.persistence.archive import ModelFileError
from covshift.persistence.boosted_models import StoredModel, stored_is_sound
from covshift.persistence.fitted_checks import attributes_agree
from covshift.persistence.model_parts import children_of, parts_of
from covshift.persistence.tree_checks import (
    BOOSTED,
    DECISION_TREES,
    FORESTS,
    TREE,
    UNCHECKED,
    boosted_trees_are_sound,
    forest_is_sound,
    holds_loose_trees,
    tree_is_sound,
)

TWISTER_WORDS = 624


def check_contents(model: Any, trusted: Collection[str] = ()) -> None:
    """Raise `ModelFileError` if a part of the model points outside of its arrays or disagrees.

    Trees that the user trusts by name are left alone.
    """
    for part in parts_of(model):
        for kinds, is_sound in CHECKS:
            if isinstance(part, kinds) and not is_sound(part):
                raise ModelFileError(
                    f"Its {type(part).__name__} is inconsistent: the file is forged or damaged."
                )
        if TREE not in trusted and (
            isinstance(part, UNCHECKED) or holds_loose_trees(part, children_of(part))
        ):
            raise ModelFileError(
                f"It holds trees in a {type(part).__name__}, whose contents cannot be checked. If "
                f"you trust its author: load(path, trusted=['{TREE}'])."
            )


def machine_is_sound(model: Any) -> bool:
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


def sparse_is_sound(matrix: Any) -> bool:
    """Return the compressed rows or columns, whose indices are inside of the shape."""
    if matrix.format not in ("csr", "csc"):
        return False
    matrix.check_format(full_check=True)  # raises ValueError
    return True


def random_state_is_sound(state: Any) -> bool:
    """Return whether the position of a Mersenne twister lies inside its words."""
    generator = getattr(state, "bit_generator", None) or state._bit_generator
    inside = generator.state
    if inside["bit_generator"] != "MT19937":
        return True
    return bool(0 <= inside["state"]["pos"] <= TWISTER_WORDS)


CHECKS: list[tuple[Any, Callable[[Any], bool]]] = [
    (DECISION_TREES, tree_is_sound),
    (FORESTS, forest_is_sound),
    (BOOSTED, boosted_trees_are_sound),
    (StoredModel, stored_is_sound),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), machine_is_sound),
    ((sparse.spmatrix, sparse.sparray), sparse_is_sound),
    ((np.random.RandomState, np.random.Generator), random_state_is_sound),
    (BaseEstimator, attributes_agree),
]
