"""Numbers in a model file by which compiled code indexes memory, checked once they are loaded.

An allow-list knows types, not contents. Where scikit-learn, SciPy or NumPy would follow an index
without a look at the bounds, a forged file could read or write outside of arrays; every such place
that a trusted type has is checked here. Each check returns whether all is well.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from covshift.persistence.archive import ModelFileError
from covshift.persistence.model_parts import parts_of

TREES = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
TWISTER_WORDS = 624


def check_contents(model: Any) -> None:
    """Raise `ModelFileError` if a part of the model points outside of its arrays."""
    for part in parts_of(model):
        for kinds, is_sound in CHECKS:
            if isinstance(part, kinds) and not is_sound(part):
                raise ModelFileError(
                    f"Its {type(part).__name__} does not fit together: forged, or damaged."
                )


def boosted_trees_are_sound(model: Any) -> bool:
    """Children come after their parents, features exist; trees on categories are not read."""
    if not hasattr(model, "_predictors"):
        return True  # not fitted
    categorical = np.asarray(model._bin_mapper.is_categorical_)
    if model._preprocessor is not None or categorical.any():
        return False
    return all(
        _tree_is_sound(tree.nodes, model.n_features_in_)
        for stage in model._predictors
        for tree in stage
    )


def _tree_is_sound(nodes: Any, n_features: int) -> bool:
    inner = nodes[nodes["is_leaf"] == 0]
    parents = np.flatnonzero(nodes["is_leaf"] == 0)
    return (
        nodes.ndim == 1
        and len(nodes) > 0
        and all(
            bool(((inner[side] > parents) & (inner[side] < len(nodes))).all())
            for side in ("left", "right")
        )
        and bool(((inner["feature_idx"] >= 0) & (inner["feature_idx"] < n_features)).all())
        and not nodes["is_categorical"].any()
    )


def machine_is_sound(model: Any) -> bool:
    """As many coefficients, offsets and numbers of support vectors as libsvm will read."""
    if not hasattr(model, "support_vectors_"):
        return True
    n_vectors, n_columns = model.support_vectors_.shape
    n_classes = len(model._n_support) if isinstance(model, SVC | NuSVC) else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    n_support = np.asarray(model._n_support)
    of_vectors = not isinstance(model, SVC | NuSVC) or n_support.sum() == n_vectors
    n_probabilities = {np.shape(model._probA), np.shape(model._probB)}
    return (
        # Of a kernel that is computed elsewhere, columns are rows of the fit.
        model.kernel in ("linear", "poly", "rbf", "sigmoid")
        and n_columns == model.n_features_in_
        and n_classes >= 2
        and bool((n_support >= 0).all())
        and bool(of_vectors)
        and model.support_.shape == (n_vectors,)
        and model._dual_coef_.shape == (n_classes - 1, n_vectors)
        and np.shape(model._intercept_) == (n_pairs,)
        and len(n_probabilities) == 1
        and n_probabilities <= {(0,), (n_pairs,), (n_pairs + 1,)}
    )


def sparse_is_sound(matrix: Any) -> bool:
    """Compressed rows or columns, whose indices are inside of the shape."""
    if matrix.format not in ("csr", "csc"):
        return False
    matrix.check_format(full_check=True)  # raises ValueError
    return True


def random_state_is_sound(state: Any) -> bool:
    """The Mersenne twister's position is inside of its words."""
    generator = getattr(state, "bit_generator", state._bit_generator)
    inside = generator.state
    if inside["bit_generator"] != "MT19937":
        return True
    return 0 <= inside["state"]["pos"] <= TWISTER_WORDS


CHECKS: list[tuple[Any, Callable[[Any], bool]]] = [
    (TREES, boosted_trees_are_sound),
    (MACHINES, machine_is_sound),
    ((sparse.spmatrix, sparse.sparray), sparse_is_sound),
    ((np.random.RandomState, np.random.Generator), random_state_is_sound),
]
