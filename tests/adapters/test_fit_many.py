import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from covshift import (
    DomainStandardScaler,
    NothingToAdaptWarning,
    PeriodicSparseFiltering,
    SparseFiltering,
    fit_many,
)
from covshift.adapters import _filter_fit
from tests.shifted import make_problem

X, y, SAMPLE_DOMAIN, X_NEW = make_problem()
QUICK = {"max_iter": 12, "random_state": 0}
SETTINGS = [
    PeriodicSparseFiltering(6, n_restarts=3, **QUICK),
    PeriodicSparseFiltering(6, label_reward=2.0, alpha=0.1, n_restarts=2, **QUICK),
    PeriodicSparseFiltering(6, activation="cos", n_restarts=2, **QUICK),
    PeriodicSparseFiltering(4, loss="blockwise", n_restarts=2, **QUICK),
    PeriodicSparseFiltering(6, n_restarts=2, early_stopping="ks", stopping_window=5, **QUICK),
    SparseFiltering(6, **QUICK),
    SparseFiltering(3, normalization="joint", **QUICK),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_same_fit(ours, theirs, rtol=1e-7):
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.kept_iteration_ == theirs.kept_iteration_
    for name in ("components_", "feature_norms_", "loss_curve_", "restart_losses_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=rtol, err_msg=name)
    assert_allclose(ours.transform(X_NEW), theirs.transform(X_NEW), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, np.ndarray.tolist])
def test_each_is_what_its_own_fit_gives(convert):
    rows = convert(X)
    together = fit_many(SETTINGS, rows, y, sample_domain=SAMPLE_DOMAIN)
    assert len(together) == len(SETTINGS)
    for setting, fitted in zip(SETTINGS, together, strict=True):
        assert_same_fit(fitted, clone(setting).fit(rows, y, sample_domain=SAMPLE_DOMAIN))
        assert not hasattr(setting, "components_")


def test_problems_of_one_kind_are_evaluated_together():
    problems = [
        setting._state_problem(X, y, SAMPLE_DOMAIN, None) for setting in map(clone, SETTINGS[:3])
    ]
    batches = _filter_fit._batches(problems)
    assert [len(batch) for batch in batches] == [5, 2]  # sines of both rewards, and cosines


def test_batches_are_cut_by_the_problems_alone(monkeypatch):
    monkeypatch.setattr(_filter_fit, "BATCH_FILTERS", 12)
    problem = clone(SETTINGS[0]).set_params(n_restarts=5)._state_problem(X, y, SAMPLE_DOMAIN, None)
    assert [len(batch) for batch in _filter_fit._batches([problem])] == [1, 2, 2]


@pytest.mark.parametrize("batch_filters", [1, 12, 256])
def test_threads_do_not_change_a_bit(batch_filters, monkeypatch):
    monkeypatch.setattr(_filter_fit, "BATCH_FILTERS", batch_filters)
    monkeypatch.setattr(_filter_fit, "MIN_THREADED_SIZE", 0)
    one, two = (
        fit_many(SETTINGS, X, y, sample_domain=SAMPLE_DOMAIN, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    for ours, theirs in zip(one, two, strict=True):
        assert_array_equal(ours.components_, theirs.components_)
        assert_array_equal(ours.restart_losses_, theirs.restart_losses_)


def test_batched_and_single_restarts_end_in_the_same_places(monkeypatch):
    """Rounding sends single starts elsewhere; the distribution of final losses stays."""
    many = PeriodicSparseFiltering(4, n_restarts=100, max_iter=100, random_state=0)
    together = np.sort(clone(many).fit(X, y, sample_domain=SAMPLE_DOMAIN).restart_losses_)
    monkeypatch.setattr(_filter_fit, "BATCH_FILTERS", 1)
    alone = np.sort(clone(many).fit(X, y, sample_domain=SAMPLE_DOMAIN).restart_losses_)
    assert_allclose(together[0], alone[0], rtol=1e-6)
    assert_allclose(
        np.quantile(together, [0.25, 0.5, 0.75]), np.quantile(alone, [0.25, 0.5, 0.75]), rtol=0.02
    )


def test_warns_of_each_that_has_not_converged():
    with pytest.warns(ConvergenceWarning) as caught:
        fit_many(SETTINGS[:2], X, y, sample_domain=SAMPLE_DOMAIN)
    assert len(caught) == 2
    assert caught[0].filename == __file__


def test_without_domains():
    with pytest.warns(NothingToAdaptWarning):
        (fitted,) = fit_many([SETTINGS[4]], X, y)
    assert fitted.norm_units_ == ["source"]


def test_refuses_what_is_no_filter():
    with pytest.raises(TypeError, match="DomainStandardScaler: fit it by itself"):
        fit_many([SETTINGS[0], DomainStandardScaler()], X, y, sample_domain=SAMPLE_DOMAIN)


def test_nothing_to_fit():
    assert fit_many([], X, y, sample_domain=SAMPLE_DOMAIN) == []
