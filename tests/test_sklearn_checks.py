"""scikit-learn's own checks, over every estimator, plain and on the adapting path."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.estimators import ESTIMATORS, with_injected_split

pytestmark = pytest.mark.filterwarnings(
    "ignore::covshift.NothingToAdaptWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:1 filters for:UserWarning",  # the checks set n_components=1
)


def unweighted_adapter(estimator):
    """Weights reach the predictor's estimator, and filters have none to take.

    So removing or repeating rows changes what the adapter learns and weighting them does
    not, just as in a scikit-learn pipeline whose transformer takes no weights.
    """
    if getattr(estimator, "class_shares", None) == "estimated":
        reason = "rows to calibrate on are held out by their position"
    elif getattr(estimator, "adapter", None) is not None:
        reason = "the adapter takes no sample_weight"
    else:
        return {}
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=unweighted_adapter)
def test_plain(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [with_injected_split(estimator) for estimator in ESTIMATORS],
    expected_failed_checks=unweighted_adapter,
)
def test_adapting(estimator, check):
    check(estimator)
