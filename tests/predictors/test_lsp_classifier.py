"""The least-squares probabilistic classifier as an estimator."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covshift import (
    AdaptedClassifier,
    LSPClassifier,
    RuLSIFWeights,
    SourceOnlySplit,
    ULSIFWeights,
    stack_domains,
)
from covshift.kernels.distinct_rows import merge_rows, sum_by_class
from covshift.kernels.drawn_rows import deal_folds, draw_rows
from covshift.kernels.gaussian_kernels import gaussian, gaussian_mixture, squares_to_bases
from covshift.predictors.lsp_classifier import (
    Fold,
    Part,
    _cross_validation_scores,
    _misclassification,
    _squared_error,
    class_probabilities,
    fit_lsp_coefficients,
)
from tests.shifted import make_problem
from tests.twins import lspc_twins

# --- The least-squares probabilistic classifier against its twin, row by row and refit by refit ---

RNG = np.random.default_rng(0)
N, N_CLASSES = 40, 3
X = RNG.normal(size=(N, 2))
CODES = RNG.integers(0, N_CLASSES, N)
WEIGHTS = RNG.uniform(0.1, 3, N)
BASES, SIGMA = X[:7] + 0.1, 0.8
P = gaussian(squares_to_bases(X, BASES), SIGMA)
CLASS_WEIGHTS = np.eye(N_CLASSES)[CODES] * WEIGHTS[:, None]
LAMBDAS = np.array([1e-4, 0.1, 2.0])
CRITERIA = {"misclassification": _misclassification, "squared_error": _squared_error}


def folds_of(splits):
    everything = set(range(N))
    folds = []
    for train, test in splits:
        left_out = np.array(sorted(everything - set(train)), dtype=int)
        parts = [Part(rows, CLASS_WEIGHTS[rows]) for rows in (left_out, np.asarray(test))]
        folds.append(Fold(*parts))
    return folds


def complements(fold_of):
    return [
        (np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold))
        for fold in np.unique(fold_of)
    ]


@pytest.mark.parametrize("lam", LAMBDAS)
def test_coefficients(lam):
    expected = lspc_twins.coefficients(X, CODES, WEIGHTS, N_CLASSES, BASES, SIGMA, lam)
    assert_allclose(fit_lsp_coefficients(P, CLASS_WEIGHTS, lam), expected, rtol=1e-9)


def test_probabilities():
    theta = fit_lsp_coefficients(P, CLASS_WEIGHTS, 1e-3)
    shares = CLASS_WEIGHTS.sum(axis=0) / CLASS_WEIGHTS.sum()
    rows = np.concatenate([X, RNG.normal(0, 4, (50, 2)), [[99.0, 0.0]]])  # some far from all bases
    ours = class_probabilities(gaussian_mixture(rows, BASES, theta, SIGMA), shares)
    naive = [lspc_twins.probabilities(x, theta, BASES, SIGMA, shares) for x in rows]
    assert_allclose(ours, naive, rtol=1e-9, atol=1e-12)
    assert_allclose(ours[-1], shares, rtol=1e-14)
    assert_allclose(ours.sum(axis=1), 1, rtol=1e-14)


def test_probabilities_of_tiny_values():
    values = np.array([[3e-320, 1e-320], [0.0, -1.0], [-2.0, 5e-324], [1e308, 1e308]])
    ours = class_probabilities(values, np.array([0.2, 0.8]))
    assert_allclose(ours, [[0.75, 0.25], [0.2, 0.8], [0, 1], [0.5, 0.5]], rtol=1e-2)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "splits",
    [
        complements(np.arange(N) % 5),
        complements(CODES),  # the class tested is missing from training
        [(np.arange(0, 20), np.arange(30, 40)), (np.arange(5, 40), np.arange(0, 25))],
    ],
    ids=["folds", "missing class", "ready-made"],
)
def test_cross_validation_equals_refitting(criterion, splits):
    ours = _cross_validation_scores(
        P, CLASS_WEIGHTS, folds_of(splits), LAMBDAS, CRITERIA[criterion]
    )
    data = X, CODES, WEIGHTS, splits, N_CLASSES, BASES, SIGMA
    naive = [lspc_twins.cross_validation(*data, lam, criterion) for lam in LAMBDAS]
    assert_allclose(ours, naive, rtol=1e-9)


def test_nothing_to_learn_from_or_to_test_on():
    everything, nothing = np.arange(N), np.arange(0)
    for train, test in ((nothing, everything), (everything, nothing)):
        fold = folds_of([(train, test)])
        assert_array_equal(
            _cross_validation_scores(P, CLASS_WEIGHTS, fold, LAMBDAS, _squared_error), 0
        )


def test_rows_of_which_several_are_alike():
    """A merged row of two classes loses as its copies do."""
    p = np.array([[0.7, 0.2, 0.1]])
    merged = np.array([[2.0, 0.0, 1.5]])
    for criterion in CRITERIA.values():
        copies = [criterion(p, row) for row in (merged * [1, 0, 0], merged * [0, 0, 1])]
        assert_allclose(criterion(p, merged), sum(copies))


def test_merging_rows():
    rows = np.array([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0], [0.0, -3.0], [-0.0, 3.0]])
    merged, number = merge_rows(rows)
    assert_array_equal(merged, [[0, -3], [0, 3], [2, 1]])
    assert_array_equal(number, [2, 1, 2, 0, 1])
    table = sum_by_class(number, np.array([0, 1, 1, 0, 1]), np.array([1.0, 2, 4, 8, 16]), (3, 2))
    assert_array_equal(table, [[8, 0], [0, 18], [1, 4]])


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_hold_every_class_in_its_share(n_folds):
    strata = np.repeat([0, 1, 2], [31, 14, 2])
    folds = deal_folds(strata, n_folds, np.random.RandomState(0))
    for stratum in range(3):
        counts = np.bincount(folds[strata == stratum], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(folds)
    assert counts.max() - counts.min() <= 1
    assert not np.array_equal(folds, deal_folds(strata, n_folds, np.random.RandomState(1)))


def test_draws_hold_every_class_in_its_share():
    strata = np.random.RandomState(0).permutation(np.repeat([0, 1, 2], [600, 300, 100]))
    for seed in range(5):
        drawn = draw_rows(strata, 50, np.random.RandomState(seed))
        assert len(np.unique(drawn)) == 50
        assert_array_equal(drawn, np.sort(drawn))
        assert_array_equal(np.bincount(strata[drawn]), [30, 15, 5])
    assert_array_equal(draw_rows(strata, 9999, np.random.RandomState(0)), np.arange(1000))
    # within a class every row has its chance
    often = sum(np.isin(np.arange(1000), draw_rows(strata, 200, np.random.RandomState(seed)))
                for seed in range(100))  # fmt: skip
    assert often.min() >= 3
    assert often.max() <= 40


def test_rows_out_of_reach_get_the_shares_of_the_training_part():
    """Each basis reaches one row, so that a row that is left out meets no basis."""
    classes = np.array([0, 0, 0, 1])
    class_weights = np.eye(2)[classes]
    folds = [
        Fold(*(Part(np.array([row]), class_weights[[row]]) for _ in range(2))) for row in range(4)
    ]
    scores = _cross_validation_scores(
        np.eye(4), class_weights, folds, np.array([0.1]), _squared_error
    )
    shares = [np.array(pair) / 3 for pair in ([2, 1], [2, 1], [2, 1], [3, 0])]  # of the others
    losses = [(p**2).sum() / 2 - p[c] for p, c in zip(shares, classes, strict=True)]
    np.testing.assert_allclose(scores, np.mean(losses))


X_ALL, Y, SAMPLE_DOMAIN, X_NEW = make_problem()
SOURCE = SAMPLE_DOMAIN >= 0
FITTED = ("bandwidth_", "regularization_", "bases_", "score_table_", "coefficients_")


def fit(model=None, rows=X_ALL, y=Y, **params):
    model = LSPClassifier(random_state=0) if model is None else clone(model)
    return model.fit(rows, y, **{"sample_domain": SAMPLE_DOMAIN, **params})


def test_what_is_stored():
    model = fit(
        LSPClassifier(
            n_bases=10,
            sigmas=LSPClassifier.PAPER_SIGMAS,
            lambdas=LSPClassifier.PAPER_LAMBDAS,
            random_state=0,
        )
    )
    assert model.score_table_.shape == (6, 5)
    row, column = np.unravel_index(model.score_table_.argmin(), (6, 5))
    assert model.bandwidth_ == LSPClassifier.PAPER_SIGMAS[row]
    assert model.regularization_ == LSPClassifier.PAPER_LAMBDAS[column]
    assert model.bases_.shape == (10, 3)
    assert set(map(tuple, model.bases_)) <= set(map(tuple, X_ALL[SOURCE]))
    assert_allclose(model.class_shares_, np.bincount(Y[SOURCE]) / SOURCE.sum())
    assert_array_equal(model.domains_, [-2, -1, 0, 1])
    chosen = model.bases_, model.bandwidth_, model.regularization_
    expected = lspc_twins.coefficients(X_ALL[SOURCE], Y[SOURCE], np.ones(SOURCE.sum()), 3, *chosen)
    assert_allclose(model.coefficients_, expected, rtol=1e-8)


def test_the_table_is_that_of_refits():
    """With ready-made splits, of which unlabeled rows are left out."""
    splits = list(ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=0).split(X_ALL))
    weights = np.random.RandomState(0).uniform(0, 2, len(X_ALL))
    for criterion in ("squared_error", "misclassification"):
        model = LSPClassifier(
            n_bases=8, sigmas=[0.7, 2.0], lambdas=[1e-3, 0.3], cv=splits, criterion=criterion,
            random_state=0,
        )  # fmt: skip
        model = fit(model, sample_weight=weights)
        known = [tuple(part[SOURCE[part]] for part in split) for split in splits]
        naive = [
            [
                lspc_twins.cross_validation(
                    X_ALL, Y, weights, known, 3, model.bases_, sigma, lam, criterion
                )
                for lam in model.lambdas_
            ]
            for sigma in model.sigmas_
        ]
        assert_allclose(model.score_table_, naive, rtol=1e-8)


@pytest.mark.parametrize("n_features", [1, 2])
def test_probabilities_are_those_of_a_known_posterior(n_features):
    """4,000 rows: over six seeds the mean error was .009 to .027, that of a bin up to .035."""

    def posterior(rows):
        wave = 0 if n_features == 1 else np.sin(2 * rows[:, 0])
        return expit(2 * rows.sum(axis=1) - 0.5 + wave)

    rng = np.random.RandomState(0)
    rows, new = rng.normal(size=(2, 4000, n_features))
    model = LSPClassifier(random_state=1).fit(rows, rng.uniform(size=4000) < posterior(rows))
    ours, true = model.predict_proba(new)[:, 1], posterior(new)
    assert np.abs(ours - true).mean() < 0.035  # a constant is off by .27 and .35
    for bin_rows in np.array_split(np.argsort(ours), 10):
        assert abs(ours[bin_rows].mean() - true[bin_rows].mean()) < 0.05


def test_squared_error_chooses_better_than_misclassification():
    """Why it is the default: by error of the probabilities, and by wrong predictions too."""
    errors = {"squared_error": [], "misclassification": []}
    for seed in range(10):
        rng = np.random.RandomState(seed)
        rows, new = rng.normal(size=(200, 1)), rng.normal(size=(2000, 1))
        y = rng.uniform(size=200) < expit(3 * rows[:, 0])
        true = expit(3 * new[:, 0])
        for criterion, error in errors.items():
            model = LSPClassifier(criterion=criterion, random_state=seed).fit(rows, y)
            wrong = np.mean(np.where(model.predict(new), 1 - true, true))
            error.append((np.abs(model.predict_proba(new)[:, 1] - true).mean(), wrong))
    ours, theirs = (np.mean(error, axis=0) for error in errors.values())
    assert (ours < theirs).all()


@pytest.mark.parametrize("criterion", ["squared_error", "misclassification"])
@pytest.mark.parametrize("n_bases", [7, 100])
def test_weighing_equals_repeating(criterion, n_bases):
    rng = np.random.RandomState(0)
    rows, y = rng.normal(size=(60, 2)).round(1), rng.randint(0, 3, 60)
    rows[:10] = rows[10:20]  # alike, of other classes
    times = rng.randint(0, 5, 60)
    model = LSPClassifier(n_bases=n_bases, criterion=criterion, random_state=0)
    weighted = clone(model).fit(rows, y, sample_weight=times)
    order = rng.permutation(times.sum())
    repeated = clone(model).fit(rows.repeat(times, axis=0)[order], y.repeat(times)[order])
    for name in FITTED:
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8, atol=1e-12)
    new = rng.normal(size=(50, 2))
    assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new), atol=1e-8)
    scaled = clone(model).fit(rows, y, sample_weight=4.0 * times)
    assert_array_equal(scaled.predict_proba(new), weighted.predict_proba(new))


def test_the_order_of_rows_is_nothing():
    order = np.random.RandomState(0).permutation(len(X_ALL))
    again = fit(rows=X_ALL[order], y=Y[order], sample_domain=SAMPLE_DOMAIN[order])
    for name in FITTED:
        assert_array_equal(getattr(again, name), getattr(fit(), name))


def test_copies_of_a_row_do_not_leak_between_folds():
    """Labels by chance, every row four times: no candidate may look better than chance."""
    rng = np.random.RandomState(0)
    rows, y = rng.normal(size=(100, 2)), rng.randint(0, 2, 100)
    model = LSPClassifier(criterion="misclassification", random_state=0)
    model.fit(np.tile(rows, (4, 1)), np.tile(y, 4))
    assert model.score_table_.min() > 0.35


def few_bases_under_shift(seed):
    rng = np.random.RandomState(seed)
    source, target = rng.normal(size=(1000, 1)), rng.normal(1.2, 0.5, (1000, 1))
    y = rng.uniform(size=1000) < expit(3 * np.sin(2.2 * source[:, 0]))
    return source, y, target, expit(3 * np.sin(2.2 * target[:, 0]))


@pytest.mark.parametrize("seed", range(3))
def test_importance_weighted_fit_is_better_where_it_must_be(seed):
    """Three wide bases cannot follow the posterior everywhere; weights say where they should.

    Over 20 seeds the mean error fell from .32 to .07, on every one of them.
    """
    source, y, target, true = few_bases_under_shift(seed)
    model = LSPClassifier(bases=[[-2.0], [0.0], [2.0]], sigmas=1.5, random_state=0)
    stacked, labels, sample_domain = stack_domains(source, y, target)
    errors = []
    for adapter in (None, ULSIFWeights(random_state=0)):
        adapted = AdaptedClassifier(adapter, model).fit(
            stacked, labels, sample_domain=sample_domain
        )
        errors.append(np.abs(adapted.predict_proba(target)[:, 1] - true).mean())
    assert errors[1] < 0.12
    assert errors[0] > 0.25


def test_behind_weights_it_is_the_weighted_fit():
    weights = RuLSIFWeights(random_state=0).fit(X_ALL, sample_domain=SAMPLE_DOMAIN).weights_
    ours = fit(AdaptedClassifier(RuLSIFWeights(random_state=0), LSPClassifier(random_state=0)))
    by_hand = LSPClassifier(random_state=0).fit(X_ALL[SOURCE], Y[SOURCE], sample_weight=weights)
    assert_allclose(ours.predict_proba(X_NEW), by_hand.predict_proba(X_NEW), rtol=1e-9)
    assert not np.allclose(fit().predict_proba(X_NEW), by_hand.predict_proba(X_NEW))


def test_bases():
    target = fit(LSPClassifier(n_bases=12, bases="target", random_state=0))
    assert target.bases_.shape == (12, 3)
    assert set(map(tuple, target.bases_)) <= set(map(tuple, X_ALL[~SOURCE]))
    given = fit(LSPClassifier(n_bases=2, bases=X_NEW.tolist()))
    assert_array_equal(given.bases_, X_NEW)
    with pytest.raises(ValueError, match=r"bases='target' needs target rows .* bases=X_target"):
        fit(AdaptedClassifier(None, LSPClassifier(bases="target")))


@pytest.mark.parametrize("sigmas", [1e-9, 1e-160, [1e-9, 1e-3]])
def test_bandwidths_far_too_small(sigmas):
    """Where nothing is within reach, the class shares."""
    model = fit(LSPClassifier(sigmas=sigmas, random_state=0))
    assert_allclose(model.predict_proba(X_NEW), np.tile(model.class_shares_, (len(X_NEW), 1)))
    assert np.isfinite(model.score_table_).all()


def test_each_basis_by_itself():
    """So narrow that no basis meets another row, wide enough to meet its own."""
    model = fit(LSPClassifier(sigmas=1e-5, random_state=0))
    assert_array_equal(model.predict(X_ALL[SOURCE]), Y[SOURCE])
    assert_array_equal(model.predict_proba(X_NEW)[0], model.class_shares_)


def test_no_basis_within_reach_is_a_warning():
    far = LSPClassifier(bases=X_NEW + 1e6, random_state=0)
    with pytest.warns(UserWarning, match="larger sigmas, or other bases"):
        model = fit(far)
    assert_allclose(model.predict_proba(X_NEW), np.tile(model.class_shares_, (len(X_NEW), 1)))
    assert_array_equal(model.score_table_, model.score_table_[0, 0])


def test_logarithms_of_zero_probabilities(recwarn):
    model = fit()
    p, logarithms = model.predict_proba(X_ALL), model.predict_log_proba(X_ALL)
    assert (p == 0).any()
    assert_array_equal(np.isneginf(logarithms), p == 0)
    assert_allclose(np.exp(logarithms), p)
    assert not recwarn.list


@pytest.mark.parametrize("names", [["no", "yes", "maybe"], [False, True, True], [-1, 1, 7]])
def test_labels_of_any_type(names):
    names = np.array(names)
    model = fit(y=names[Y])
    assert_array_equal(model.classes_, np.unique(names))
    assert model.predict(X_NEW).dtype == names.dtype
    assert model.score(X_ALL[SOURCE], names[Y[SOURCE]], sample_domain=0) > 0.8


def test_single_precision():
    rows = X_ALL.astype(np.float32)
    p = fit(rows=rows).predict_proba(X_NEW.astype(np.float32))
    assert p.dtype == fit(rows=rows).predict_log_proba(X_NEW.astype(np.float32)).dtype == np.float32
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
    assert_allclose(p, fit().predict_proba(X_NEW), atol=1e-2)


def test_a_class_without_weight_is_never_predicted():
    model = fit(sample_weight=(Y != 1).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert_array_equal(model.predict_proba(X_ALL)[:, 1], 0)
    only = fit(sample_weight=(Y == 1).astype(float))
    assert_array_equal(only.predict(X_ALL), 1)


@pytest.mark.parametrize("scale", [2.0**1020, 2.0**-1000])
def test_only_ratios_of_weights_matter(scale):
    weights = np.random.RandomState(0).uniform(1, 2, len(X_ALL))
    ours, theirs = fit(sample_weight=weights), fit(sample_weight=scale * weights)
    assert_array_equal(ours.coefficients_, theirs.coefficients_)


def test_a_row_that_has_all_the_weight():
    weights = np.ones(len(X_ALL))
    weights[np.flatnonzero(SOURCE)[3]] = 1e20
    model = fit(sample_weight=weights)
    assert np.isfinite(model.score_table_).all()
    assert np.isfinite(model.predict_proba(X_ALL)).all()


def test_weights_of_unlabeled_rows_have_no_effect():
    weights = np.where(SOURCE, 1.0, 5.0)
    assert_array_equal(fit(sample_weight=weights).coefficients_, fit().coefficients_)


def test_rows_that_are_all_alike():
    rows, y = np.ones((6, 2)), [0, 0, 0, 1, 1, 0]
    model = LSPClassifier().fit(rows, y)
    assert_array_equal(model.score_table_, 0)  # one distinct row: nothing can be held out
    assert_allclose(model.predict_proba([[1.0, 1.0]]), [[4 / 6, 2 / 6]])
    assert_allclose(model.predict_proba([[50.0, 50.0]]), [[4 / 6, 2 / 6]])


def test_in_pipelines_and_searches():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), LSPClassifier(random_state=0))
        grid = {"lspclassifier__n_bases": [3, 20], "lspclassifier__lambdas": [1e-3, 10.0]}
        search = GridSearchCV(pipeline, grid, cv=SourceOnlySplit(3), error_score="raise")
        search.fit(X_ALL, Y, sample_domain=SAMPLE_DOMAIN)
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all()
        assert len(np.unique(scores)) > 1
        assert set(search.predict(X_NEW)) <= {0, 1, 2}


def test_unlabeled_rows_are_not_scored():
    with pytest.raises(ValueError, match="placeholder"):
        fit().score(X_ALL, np.where(SOURCE, Y, -1), sample_domain=SAMPLE_DOMAIN)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_bases": 0}, "n_bases"),
        ({"n_bases": 2.5}, "n_bases"),
        ({"sigmas": []}, "sigmas must hold positive"),
        ({"sigmas": [1.0, -1.0]}, "sigmas must hold positive"),
        ({"sigmas": "median"}, "sigmas must hold positive"),
        ({"lambdas": 0.0}, "lambdas must hold positive"),
        ({"lambdas": None}, "lambdas must hold positive"),
        ({"cv": 1}, "cv"),
        ({"cv": 2.5}, "cv"),
        ({"cv": True}, "cv"),
        ({"cv": None}, "number of folds"),
        ({"cv": ShuffleSplit()}, r"cv=list\(splitter.split\(X, y\)\)"),
        ({"cv": []}, "number of folds"),
        ({"cv": "folds"}, "positions among the 80 rows"),
        ({"cv": [([0, 1], [80])]}, "positions among the 80 rows"),
        ({"cv": [([0, 1], [-1])]}, "positions among the 80 rows"),
        ({"cv": [([0, 1], [0.5])]}, "positions among the 80 rows"),
        ({"cv": [([0, 1], [])]}, "positions among the 80 rows"),
        ({"bases": "source"}, "'labelled', 'target'"),
        ({"bases": np.ones((4, 2))}, "bases has 2 features, but X has 3"),
        ({"bases": np.full((4, 3), np.nan)}, "bases contains NaN"),
        ({"bases": None}, "'labelled', 'target' or an array of centers"),
        ({"bases": [1.0, 2.0, 3.0]}, "rows by features"),
        ({"criterion": "log"}, "'squared_error', 'misclassification'"),
        ({"random_state": "seed"}, "seed"),
    ],
)
def test_bad_parameters(params, match):
    model = LSPClassifier(**params)
    before = set(vars(model))
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(X_ALL, Y, sample_domain=SAMPLE_DOMAIN)
    assert set(vars(model)) == before


@pytest.mark.parametrize(
    ("sample_weight", "match"),
    [
        (np.ones(79), "one number per row"),
        (-np.ones(80), "must not be negative"),
        (np.full(80, np.nan), "NaN"),
        (np.zeros(80), "must not all be zero"),
        (np.where(SOURCE, 0.0, 1.0), "zero for every labeled row"),
    ],
)
def test_bad_weights(sample_weight, match):
    with pytest.raises(ValueError, match=match):
        fit(sample_weight=sample_weight)


def test_magnitudes_that_overflow():
    with pytest.raises(ValueError, match="Scale the features"):
        fit(rows=1e150 * X_ALL)
    with pytest.raises(ValueError, match="Scale the features"):
        fit().predict(1e150 * X_ALL)
