"""Sparse filtering and its periodic form: parameters, attributes, invariances."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

from covshift import NothingToAdaptWarning, PeriodicSparseFiltering, SparseFiltering
from tests.shifted import make_problem
from tests.twins import naive

X, y, SAMPLE_DOMAIN, X_NEW = make_problem()
QUICK = {"max_iter": 20, "random_state": 0}
both_filters = pytest.mark.parametrize(
    "filter_", [SparseFiltering(**QUICK), PeriodicSparseFiltering(n_restarts=3, **QUICK)], ids=repr
)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fit(filter_, **changes):
    return filter_.__class__(**{**filter_.get_params(), **changes}).fit(
        X, y, sample_domain=SAMPLE_DOMAIN
    )


def activations(fitted, rows):
    H = rows @ fitted.components_.T
    return naive.np.vectorize(lambda h: naive.activation(h, fitted.activation, fitted.epsilon))(H)


@both_filters
def test_loss_is_that_of_the_formula(filter_):
    fitted = fit(filter_, alpha=0.3, norm_epsilon=1e-8)
    codes = np.where(SAMPLE_DOMAIN >= 0, y, -1)
    groups = getattr(fitted, "feature_groups_", np.zeros((3, 3)))
    rewards = getattr(fitted, "label_reward_", np.ones(3))
    arguments = (X, codes, groups, rewards, fitted.activation, 1e-8, 1e-8, 0.3)
    assert_allclose(fitted.loss_, naive.joint_loss(fitted.components_, *arguments), rtol=1e-10)


def test_blockwise_loss_is_the_other_formula():
    psf = fit(PeriodicSparseFiltering(**QUICK), loss="blockwise", label_reward=[0.5, 1, 2])
    codes = np.where(SAMPLE_DOMAIN >= 0, y, -1)
    arguments = (X, codes, psf.feature_groups_, [0.5, 1, 2], "sin", 1e-8, 0.0, 0.0)
    assert_allclose(psf.loss_, naive.blockwise_loss(psf.components_, *arguments), rtol=1e-10)


@both_filters
@pytest.mark.parametrize("norm_epsilon", [0.0, 1e-3])
@pytest.mark.parametrize("pooling", ["role", "domain"])
def test_each_unit_is_normalized_as_its_own_batch(filter_, norm_epsilon, pooling):
    fitted = fit(filter_, norm_epsilon=norm_epsilon, pooling=pooling)
    Z = fitted.transform(X, sample_domain=SAMPLE_DOMAIN)
    F = activations(fitted, X)
    unit = SAMPLE_DOMAIN if pooling == "domain" else SAMPLE_DOMAIN >= 0
    for value in np.unique(unit):
        rows = unit == value
        assert_allclose(Z[rows], naive.normalize(F[rows], norm_epsilon), rtol=1e-9)
    batch = fit(filter_, norm_epsilon=norm_epsilon, pooling=pooling, normalization="batch")
    assert_allclose(batch.transform(X, sample_domain=SAMPLE_DOMAIN), Z, rtol=1e-9)


@both_filters
def test_joint_norms_are_those_of_all_rows(filter_):
    fitted = fit(filter_, normalization="joint")
    expected = naive.normalize(activations(fitted, X), 0.0)
    assert_allclose(fitted.transform(X, sample_domain=SAMPLE_DOMAIN), expected, rtol=1e-9)
    assert_allclose(fitted.transform(X), expected, rtol=1e-9)
    assert fitted.norm_units_ == ["all"]


@both_filters
def test_batch_norms_are_those_of_the_call(filter_):
    fitted = fit(filter_, normalization="batch")
    expected = naive.normalize(activations(fitted, X_NEW), 0.0)
    assert_allclose(fitted.transform(X_NEW), expected, rtol=1e-9)
    assert fitted.norm_units_ == ["all"]


@both_filters
def test_stored_norms(filter_):
    fitted = fit(filter_, pooling="domain")
    assert fitted.norm_units_ == [-2, -1, 0, 1, "source", "target"]
    assert_array_equal(fitted.norm_counts_, [20, 20, 20, 20, 40, 40])
    F = activations(fitted, X)
    for unit, norms in zip(fitted.norm_units_, fitted.feature_norms_, strict=True):
        rows = {"source": SAMPLE_DOMAIN >= 0, "target": SAMPLE_DOMAIN < 0}.get(
            unit, unit == SAMPLE_DOMAIN
        )
        assert_allclose(norms, naive.root_mean_squares(F[rows]), rtol=1e-10)


@both_filters
def test_small_domains_use_the_norms_of_their_role(filter_):
    fitted = fit(filter_, pooling="domain", min_domain_size=21)
    pooled = fit(filter_, pooling="role")
    where = {"sample_domain": SAMPLE_DOMAIN}
    assert_allclose(fitted.transform(X, **where), pooled.transform(X, **where), rtol=1e-12)


@both_filters
def test_attributes(filter_):
    fitted = fit(filter_)
    assert fitted.components_.shape == (fitted.transform(X).shape[1], 3)
    assert fitted.loss_ == fitted.restart_losses_.min() == fitted.loss_curve_[-1]
    assert len(fitted.restart_losses_) == fitted.n_restarts
    assert len(fitted.loss_curve_) == fitted.n_iter_ + 1
    assert np.all(np.diff(fitted.loss_curve_) <= 0)
    assert fitted.kept_iteration_ == fitted.n_iter_
    assert fitted.history_.keys() == {"loss", "gradient_norm", "ks_distance"}
    assert all(len(values) == fitted.n_iter_ + 1 for values in fitted.history_.values())
    assert_array_equal(fitted.domains_, [-2, -1, 0, 1])


@both_filters
def test_rows_lie_on_the_unit_sphere(filter_):
    Z = fit(filter_).transform(X)
    assert (Z >= 0).all()
    assert_allclose((Z**2).sum(axis=1), 1.0)


def test_default_number_of_components():
    assert len(fit(SparseFiltering(**QUICK)).components_) == 3
    assert len(fit(PeriodicSparseFiltering(**QUICK)).components_) == 12
    assert len(fit(PeriodicSparseFiltering(**QUICK), n_unlabelled_components=5).components_) == 17
    assert len(PeriodicSparseFiltering(**QUICK).fit(X).components_) == 3


def test_groups_are_consecutive_and_even():
    groups = fit(PeriodicSparseFiltering(**QUICK), n_components=9, n_unlabelled_components=2)
    expected = [[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0, 0], [0] * 5 + [1, 1, 0, 0]]
    assert_array_equal(groups.feature_groups_, expected)
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    assert_array_equal(
        fit(PeriodicSparseFiltering(**QUICK), feature_groups=mask).feature_groups_, mask
    )


def test_fewer_filters_than_classes_is_a_warning():
    with pytest.warns(UserWarning, match="2 filters for 3 classes"):
        psf = fit(PeriodicSparseFiltering(**QUICK), n_components=2)
    assert_array_equal(psf.feature_groups_, [[1, 0], [0, 1], [0, 0]])


def test_labels_guide_the_periodic_filters_only_through_their_reward():
    rewarded = fit(PeriodicSparseFiltering(**QUICK))
    unrewarded = fit(PeriodicSparseFiltering(**QUICK), label_reward=0.0)
    plain = fit(SparseFiltering(**QUICK), activation="sin", n_components=12, n_restarts=10)
    # The sums over each class are added up in another order than those over all rows.
    assert_allclose(unrewarded.components_, plain.components_, rtol=1e-9)
    assert not np.allclose(rewarded.components_, plain.components_)


def test_result_does_not_depend_on_the_threads_of_blas():
    """At a size where products by one and by two BLAS threads differ in their last bits."""
    rng = np.random.RandomState(0)
    rows, W = rng.standard_normal((7000, 72)), rng.standard_normal((110, 72))
    fits = []
    for limit in (1, 2):
        with threadpool_limits(limits=limit, user_api="blas"):
            fits.append(SparseFiltering(110, init=W, max_iter=2).fit(rows).components_)
    assert_array_equal(fits[1], fits[0])


def test_fits_in_several_threads_give_blas_its_threads_back():
    def blas_threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda seed: fit(SparseFiltering(random_state=seed)), range(16)))
        assert blas_threads() == before


@both_filters
def test_result_does_not_depend_on_n_jobs(filter_):
    fits = [fit(filter_, n_restarts=6, n_jobs=n_jobs) for n_jobs in (None, 1, 2, 3)]
    for other in fits[1:]:
        assert_array_equal(other.components_, fits[0].components_)
        assert_array_equal(other.restart_losses_, fits[0].restart_losses_)


def test_more_restarts_keep_the_earlier_ones():
    few, many = (fit(PeriodicSparseFiltering(**QUICK), n_restarts=n) for n in (3, 6))
    assert_array_equal(many.restart_losses_[:3], few.restart_losses_)
    assert many.loss_ <= few.loss_


@both_filters
def test_permuting_fitted_rows_changes_nothing_but_rounding(filter_):
    order = np.random.RandomState(3).permutation(len(X))
    ours = fit(filter_, max_iter=3)
    theirs = filter_.__class__(**{**filter_.get_params(), "max_iter": 3}).fit(
        X[order], y[order], sample_domain=SAMPLE_DOMAIN[order]
    )
    assert_allclose(theirs.components_, ours.components_, rtol=1e-6)


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_sparse_filtering_ignores_the_scale_of_filters_and_of_rows(factor):
    """Without epsilon the map is homogeneous: W and X may be scaled, feature by feature."""
    W = np.random.RandomState(0).standard_normal((4, 3))
    settings = {"epsilon": 0.0, "max_iter": 0}
    where = {"sample_domain": SAMPLE_DOMAIN}
    ours = SparseFiltering(4, init=W, **settings).fit(X, **where)
    scaled = SparseFiltering(4, init=W * factor, **settings).fit(X, **where)
    assert_allclose(scaled.transform(X), ours.transform(X), rtol=1e-9)
    assert_allclose(scaled.fit(X * factor, **where).transform(X * factor), ours.transform(X))
    # Rows keep their direction, whatever their length.
    assert_allclose(ours.transform(-5 * X), ours.transform(X), rtol=1e-9)


def test_periodic_filters_repeat():
    psf = fit(PeriodicSparseFiltering(**QUICK), n_components=3)
    period = np.linalg.solve(psf.components_, 2 * np.pi * np.array([1, -2, 3]))
    assert_allclose(psf.transform(X + period), psf.transform(X), rtol=1e-6, atol=1e-9)


def test_max_iter_zero_leaves_the_start_alone(recwarn):
    W = np.arange(6.0).reshape(2, 3)
    sf = SparseFiltering(2, init=W, max_iter=0).fit(X)
    assert_array_equal(sf.components_, W)
    assert sf.n_iter_ == 0
    assert not recwarn.list


@both_filters
def test_init_scale_scales_the_draws(filter_):
    ours, theirs = (fit(filter_, max_iter=0, n_restarts=1, init_scale=s) for s in (1.0, 0.25))
    assert_allclose(theirs.components_, 0.25 * ours.components_)


@both_filters
def test_auto_scale_is_one_over_the_root_of_the_number_of_features(filter_):
    wide = np.hstack([X, X])
    ours, theirs = (
        clone(filter_)
        .set_params(max_iter=0, n_restarts=1, init_scale=scale, n_components=4)
        .fit(wide, y, sample_domain=SAMPLE_DOMAIN)
        for scale in ("auto", 1.0)
    )
    assert_allclose(ours.components_, theirs.components_ / 6**0.5)


def test_auto_reward_grows_with_the_rows_without_labels():
    mask = (SAMPLE_DOMAIN >= 0) & (np.arange(len(y)) % 4 != 0)
    psf = PeriodicSparseFiltering(8, label_reward="auto", n_restarts=1, **QUICK)
    psf.fit(X, y, sample_domain=SAMPLE_DOMAIN, label_mask=mask)
    assert_allclose(psf.label_reward_, np.full(3, 4 * len(y) / mask.sum()))
    named = clone(psf).set_params(label_reward=4 * len(y) / mask.sum())
    named.fit(X, y, sample_domain=SAMPLE_DOMAIN, label_mask=mask)
    assert_array_equal(named.components_, psf.components_)
    codes = np.where(mask, y, -1)
    arguments = (X, codes, psf.feature_groups_, psf.label_reward_, "sin", 1e-8, 0.0, 0.0)
    assert_allclose(psf.loss_, naive.joint_loss(psf.components_, *arguments), rtol=1e-10)
    source = SAMPLE_DOMAIN >= 0
    alone = clone(psf).fit(X[source], y[source])
    assert_array_equal(alone.label_reward_, [4, 4, 4])  # all rows have labels
    without = clone(psf).fit(X, sample_domain=SAMPLE_DOMAIN)
    assert without.label_reward_.shape == (0,)


@both_filters
def test_warm_start_goes_on_from_the_filters(filter_):
    first = fit(filter_, max_iter=5, warm_start=True)
    start = first.components_
    again = first.fit(X, y, sample_domain=SAMPLE_DOMAIN)
    assert again.loss_curve_[0] == pytest.approx(again.loss_curve_.max())
    assert not np.array_equal(again.components_, start)
    cold = fit(filter_, max_iter=5)
    assert again.loss_ < cold.loss_
    with pytest.raises(ValueError, match="warm_start"):
        first.set_params(n_components=7).fit(X, y, sample_domain=SAMPLE_DOMAIN)


@both_filters
def test_penalty_shrinks_the_filters(filter_):
    norms = [np.linalg.norm(fit(filter_, alpha=a, n_restarts=1).components_) for a in (0, 10)]
    assert norms[1] < 0.5 * norms[0]


@pytest.mark.parametrize("normalization", ["domain", "joint", "batch"])
def test_early_stopping_keeps_the_iterate_with_the_smallest_distance(normalization):
    settings = {"n_restarts": 1, "normalization": normalization, "random_state": 0, "tol": 0}
    stopped = fit(
        PeriodicSparseFiltering(), early_stopping="ks", stopping_window=8, max_iter=99, **settings
    )
    assert len(stopped.loss_curve_) == 9  # the window, not max_iter
    kept = int(np.argmin(stopped.history_["ks_distance"]))
    assert stopped.loss_ == stopped.loss_curve_[kept]
    run_so_far = fit(PeriodicSparseFiltering(), max_iter=kept, **settings)
    assert_allclose(stopped.components_, run_so_far.components_)
    Z = stopped.transform(X, sample_domain=SAMPLE_DOMAIN)
    distance = naive.mean_ks_distance(Z[SAMPLE_DOMAIN >= 0], Z[SAMPLE_DOMAIN < 0])
    assert stopped.history_["ks_distance"][kept] == pytest.approx(distance)


def test_restarts_are_kept_by_the_loss_at_the_kept_iteration():
    """Not by the loss at the end of the window, which is never used."""
    settings = {"early_stopping": "ks", "stopping_window": 15, "max_iter": 15, "tol": 0}
    several = fit(PeriodicSparseFiltering(n_restarts=12, random_state=2), **settings)
    rng = np.random.RandomState(2)
    shape = several.components_.shape
    alone = [
        fit(PeriodicSparseFiltering(init=rng.standard_normal(shape)), **settings) for _ in range(12)
    ]
    kept, last = ([one.loss_ for one in alone], [one.loss_curve_[-1] for one in alone])
    assert_allclose(several.restart_losses_, kept)
    assert np.argmin(kept) != np.argmin(last)  # else this seed shows nothing
    assert_allclose(several.components_, alone[int(np.argmin(kept))].components_)
    assert several.kept_iteration_ == alone[int(np.argmin(kept))].kept_iteration_


def test_early_stopping_needs_a_target():
    sf = SparseFiltering(early_stopping="ks")
    with pytest.raises(ValueError, match="no target rows"):
        sf.fit(X, sample_domain=np.zeros(len(X), dtype=int))
    with pytest.warns(NothingToAdaptWarning, match="early_stopping='ks' is ignored"):
        sf.fit(X)


@both_filters
def test_convergence(filter_):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        fit(filter_, max_iter=2)


def test_no_warning_once_converged(recwarn):
    fit(SparseFiltering(random_state=0), max_iter=5000)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


@both_filters
def test_sparse_rows_give_the_dense_result(filter_):
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    filter_ = clone(filter_).set_params(max_iter=3)  # few, so that rounding does not grow
    dense = filter_.fit(rows, y, sample_domain=SAMPLE_DOMAIN)
    expected, W = dense.transform(rows), dense.components_
    for as_sparse in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        fitted = filter_.fit(as_sparse(rows), y, sample_domain=SAMPLE_DOMAIN)
        assert_allclose(fitted.components_, W, rtol=1e-8)
        assert_allclose(fitted.transform(as_sparse(rows)), expected, rtol=1e-8)


@both_filters
def test_adapt_target_learns_norms(filter_):
    fitted = fit(filter_)
    rows = 3 * X[:15] + 1
    refit_norms = naive.normalize(activations(fitted, rows), 0.0)
    before = fitted.transform(rows)

    assert fitted.adapt_target(rows, domain="clinic") is fitted
    assert_allclose(fitted.transform(rows, sample_domain="clinic"), refit_norms, rtol=1e-9)
    assert_array_equal(fitted.transform(rows), before)  # the default target stays
    number = {name: number for number, name in fitted.domain_names_.items()}["clinic"]
    assert number == -3  # below the domains of the fit
    assert_allclose(fitted.transform(rows, sample_domain=number), refit_norms, rtol=1e-9)

    fitted.adapt_target(rows, domain=-9)
    fitted.adapt_target(2 * rows, domain="another")
    assert fitted.domain_names_ == {-3: "clinic", -10: "another"}
    assert_allclose(fitted.transform(rows, sample_domain=-9), refit_norms, rtol=1e-9)
    fitted.adapt_target(rows)
    assert_allclose(fitted.transform(rows), refit_norms, rtol=1e-9)


def test_adapt_target_by_batches_only_learns_the_name():
    fitted = fit(SparseFiltering(**QUICK), normalization="batch")
    expected = fitted.transform(X_NEW)
    fitted.adapt_target(X, domain="ward")
    assert_array_equal(fitted.transform(X_NEW, sample_domain="ward"), expected)


def test_adapt_target_refuses_what_it_cannot_do():
    with pytest.raises(NotFittedError):
        SparseFiltering().adapt_target(X)
    with pytest.raises(ValueError, match="refit"):
        fit(SparseFiltering(**QUICK), normalization="joint").adapt_target(X)
    sf = fit(SparseFiltering(**QUICK))
    with pytest.raises(ValueError, match="min_domain_size"):
        sf.adapt_target(X[:9])
    for domain in (0, 3, 1.5, True, ["a"]):
        with pytest.raises(ValueError, match="negative integer, a name"):
            sf.adapt_target(X, domain=domain)
    with pytest.raises(ValueError, match="is not a domain"):
        sf.transform(X, sample_domain="nowhere")


@both_filters
def test_verbose_says_how_it_goes(filter_, capsys):
    fit(filter_, n_restarts=2, verbose=1)
    assert len(capsys.readouterr().out.splitlines()) == 2
    fit(filter_, n_restarts=1, verbose=2, max_iter=3)
    assert "iteration 3" in capsys.readouterr().out
