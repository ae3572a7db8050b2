"""The fixed 33 candidates that regret is measured against, whatever the package's defaults are."""

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from covshift.selection.candidates import Candidate, pair
from covshift.selection.default_candidates import (
    FILTERED_FEATURES,
    default_adapters,
    linear_machine,
)


def fixed_candidates(n_source: int, n_features: int, n_classes: int) -> list[Candidate]:
    """Candidates for so many source rows, features and classes."""
    aligned, subspaces, filtered = default_adapters(n_source, n_features, n_classes)
    LR = ("LR", LogisticRegression(max_iter=1000))
    linear = ("linear SVM", linear_machine(n_features))
    linear_in_filters = ("linear SVM", linear_machine(FILTERED_FEATURES))
    rbf = ("RBF SVM", SVC())
    return [
        *pair(aligned, [LR, linear, rbf]),
        *pair(subspaces, [LR, rbf]),
        *pair(filtered, [linear_in_filters, rbf]),
    ]
