"""Adapters by name."""

import numpy as np
import pytest

from covshift.selection.named_adapters import ADAPTERS, MODELS, named_classifier, named_model
from tests.shifted import make_problem


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::covshift.UnreliableWeightsWarning")
def test_every_adapter_fits(name):
    X, y, sample_domain, X_new = make_problem()
    model = named_classifier(name, "linear", n_source=len(X), n_features=X.shape[1])
    model.fit(X, y, sample_domain=sample_domain)
    assert set(model.predict(X_new)) <= set(model.classes_)
    again = named_classifier(name, "linear", n_source=len(X), n_features=X.shape[1])
    again.fit(X, y, sample_domain=sample_domain)
    np.testing.assert_array_equal(again.predict_proba(X_new), model.predict_proba(X_new))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_fits(name):
    X, y, sample_domain, X_new = make_problem()
    model = named_classifier("standardise", name, n_source=len(X), n_features=X.shape[1])
    model.fit(X, y, sample_domain=sample_domain)
    assert set(model.predict(X_new)) <= set(model.classes_)


def test_many_rows_get_a_kernel_machine_that_can_take_them():
    assert type(named_model("rbf", 3000)).__name__ == "SVC"
    assert type(named_model("rbf", 3001)).__name__ == "Pipeline"


def test_names_that_are_none():
    with pytest.raises(ValueError, match="adapter must be one of 'none'"):
        named_classifier("magic", "linear", n_source=10, n_features=2)
    with pytest.raises(ValueError, match="model must be one of 'linear'"):
        named_classifier("none", "deep", n_source=10, n_features=2)
