import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from covshift import (
    DenoisingAutoencoder,
    DomainStandardScaler,
    NothingToAdaptWarning,
    PeriodicSparseFiltering,
    SparseFiltering,
    fit_each,
    fit_many,
    stack_domains,
)
from covshift.adapters import _filter_minimization
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
    batches = _filter_minimization._batches(problems)
    assert [len(batch) for batch in batches] == [5, 2]  # sines of both rewards, and cosines


def test_batches_are_cut_by_the_problems_alone(monkeypatch):
    monkeypatch.setattr(_filter_minimization, "BATCH_FILTERS", 12)
    problem = clone(SETTINGS[0]).set_params(n_restarts=5)._state_problem(X, y, SAMPLE_DOMAIN, None)
    assert [len(batch) for batch in _filter_minimization._batches([problem])] == [2, 2, 1]


@pytest.mark.parametrize("batch_filters", [1, 12, 256])
def test_threads_do_not_change_a_bit(batch_filters, monkeypatch):
    monkeypatch.setattr(_filter_minimization, "BATCH_FILTERS", batch_filters)
    monkeypatch.setattr(_filter_minimization, "MIN_THREADED_SIZE", 0)
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
    monkeypatch.setattr(_filter_minimization, "BATCH_FILTERS", 1)
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
    with pytest.raises(TypeError, match="not DomainStandardScaler: fit it by itself"):
        fit_many([SETTINGS[0], DomainStandardScaler()], X, y, sample_domain=SAMPLE_DOMAIN)


def test_nothing_to_fit():
    assert fit_many([], X, y, sample_domain=SAMPLE_DOMAIN) == []


ENCODERS = [
    DenoisingAutoencoder(2, max_epochs=5, random_state=0),
    DenoisingAutoencoder(2, max_epochs=5, learning_rate=0.01, random_state=1),
    DenoisingAutoencoder(3, max_epochs=5, random_state=0),
]


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist])
def test_auto_encoders_and_filters_together(convert):
    settings = [ENCODERS[0], SETTINGS[0], *ENCODERS[1:]]
    together = fit_many(settings, convert(X), y, sample_domain=SAMPLE_DOMAIN)
    for setting, fitted in zip(settings, together, strict=True):
        alone = clone(setting).fit(X, y, sample_domain=SAMPLE_DOMAIN)
        assert type(fitted) is type(setting)
        assert_allclose(fitted.transform(X_NEW), alone.transform(X_NEW), rtol=1e-7, atol=1e-12)


def draws(n_draws=4, **options):
    """Problems of one shape, with other rows and labels each."""
    for seed in range(n_draws):
        X, y, sample_domain, _ = make_problem(seed=seed, **options)
        source = sample_domain >= 0
        yield stack_domains(X[source], y[source], X[~source])


@pytest.mark.parametrize("setting", [*SETTINGS, *ENCODERS], ids=repr)
def test_each_to_its_own_data(setting):
    data = list(draws())
    settings = [clone(setting).set_params(random_state=seed) for seed in range(len(data))]
    together = fit_each(settings, data)
    for one, fitted, (X_, y_, domain) in zip(settings, together, data, strict=True):
        alone = clone(one).fit(X_, y_, sample_domain=domain)
        assert_allclose(fitted.transform(X_NEW), alone.transform(X_NEW), rtol=1e-7, atol=1e-12)


def test_data_of_other_shapes():
    data = [*draws(1), next(draws(1, n=40))]
    together = fit_each(SETTINGS[:2], data)
    for one, fitted, (X_, y_, domain) in zip(SETTINGS, together, data, strict=False):
        assert_same_fit(fitted, clone(one).fit(X_, y_, sample_domain=domain))


def test_each_needs_its_own_data():
    with pytest.raises(ValueError, match="2 estimators and 3 data sets"):
        fit_each(SETTINGS[:2], list(draws(3)))
