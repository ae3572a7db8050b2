import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from covshift import CorrelationAlignment, DomainStandardScaler, ULSIFWeights
from covshift.kernels.drawn_rows import deal_folds
from covshift.kernels.probabilities import (
    Scaling,
    fit_scaling,
    reweigh_probabilities,
    scaled_probabilities,
    shares_from_probabilities,
)
from covshift.selection.bench import Problem
from covshift.selection.candidates import Candidate
from covshift.selection.importance_weights import (
    class_share_weights,
    importance_weights,
    left_unexplained,
)
from covshift.selection.label_free_scores import (
    SCORERS,
    _committee_shares,
    _mean_entropy,
    _spectral_weights,
    _weighted_mean,
    deep_embedded_validation,
    mutual_information,
    pairwise_kappa,
    soft_neighborhood_density,
)
from tests.selection.made_problems import (
    Broken,
    Constant,
    Spy,
    make_bench,
    make_moved,
    plain,
    standardized,
)

# Those that say which of two candidates is better where one undoes the shift and one does not.
TELLING = [
    "moved: mean and scale",
    "moved: quantiles",
    "moved: Gaussian",
    "moved: by class",
]
GOOD = [
    standardized(),
    Candidate("CORAL", "LR", CorrelationAlignment(), LogisticRegression()),
    standardized(LinearSVC())._replace(estimator_name="SVM"),
]


@pytest.mark.parametrize("name", TELLING)
def test_pseudo_targets_prefer_what_undoes_the_shift(name):
    scores = SCORERS[name](make_bench([plain(), standardized()]))
    assert scores[1] > scores[0] + 0.2
    assert scores[1] > 0.85


@pytest.mark.parametrize("name", ["committee", "kappa", "spectral"])
def test_agreement_prefers_the_many_who_agree(name):
    scores = SCORERS[name](make_bench([plain(), *GOOD]))
    assert scores.argmin() == 0


def test_source_domains_prefer_what_undoes_the_shifts_between_them():
    problem, _ = make_moved(n_domains=3, n=240)
    offsets = np.array([[0.0, 0, 0], [6, 1, 0], [-6, 0, 1]])
    problem = problem._replace(X_source=problem.X_source + offsets[problem.source_domain])
    adapter = DomainStandardScaler(pooling="domain")
    each = Candidate("standardise groups", "LR", adapter, LogisticRegression())
    scores = SCORERS["source domains"](make_bench([plain(), each], problem))
    assert scores[1] > scores[0] + 0.2


def test_source_validation_is_that_of_scikit_learn():
    """Without an adapter it is plain cross-validation, on the same folds."""
    bench = make_bench([plain()])
    problem = bench.problem
    fold_of = deal_folds(problem.codes, 3, bench.rng("folds"))
    predicted = np.empty_like(problem.codes)
    for fold in range(3):
        train = fold_of != fold
        model = LogisticRegression().fit(problem.X_source[train], problem.codes[train])
        predicted[~train] = model.predict(problem.X_source[~train])
    recalls = [np.mean(predicted[problem.codes == k] == k) for k in (0, 1)]
    assert SCORERS["source CV"](bench)[0] == pytest.approx(np.mean(recalls), abs=1e-12)


def test_without_a_shift_weighted_and_plain_validation_agree():
    problem, _ = make_moved(n=600)
    problem = problem._replace(X_target=problem.X_source + 0.0)
    bench = make_bench([plain(), plain(KNeighborsClassifier(1))], problem)
    source, weighted, dev = (SCORERS[name](bench) for name in ("source CV", "weighted CV", "DEV"))
    np.testing.assert_allclose(weighted, source, atol=0.02)
    np.testing.assert_allclose(dev, source, atol=0.02)


def test_reverse_validation_prefers_labels_that_lead_back():
    scores = SCORERS["reverse"](make_bench([plain(), standardized()]))
    assert np.isnan(scores[0]) or scores[1] > scores[0]


@pytest.mark.parametrize("name", list(SCORERS))
def test_margins_and_probabilities_and_neither_take_part(name):
    estimators = [
        ("margin", LinearSVC()),
        ("several margins", SVC()),
        ("probability", LogisticRegression()),
        ("labels", _LabelsOnly()),
    ]
    candidates = [
        Candidate(adapter_name, name, adapter, estimator)
        for adapter_name, adapter in (("none", None), ("standardise", DomainStandardScaler()))
        for name, estimator in estimators
    ]
    problem, _ = make_moved(n=150, n_classes=3, n_domains=2)
    near = problem._replace(X_target=problem.X_target - [8, 3, 0])  # all classes can be found
    scores = SCORERS[name](make_bench(candidates, near))
    assert scores.shape == (8,)
    assert not np.isnan(scores[4:]).any()


class _LabelsOnly(KNeighborsClassifier):
    predict_proba = property()


@pytest.mark.parametrize("name", list(SCORERS))
def test_a_candidate_that_fails_is_not_scored_and_harms_no_other(name):
    problem, _ = make_moved(n_domains=2)
    with_failure = SCORERS[name](make_bench([plain(), standardized(Broken()), *GOOD], problem))
    without = SCORERS[name](make_bench([plain(), *GOOD], problem))
    assert np.isnan(with_failure[1])
    np.testing.assert_allclose(np.delete(with_failure, 1), without, rtol=1e-12)


@pytest.mark.parametrize("name", list(SCORERS))
def test_a_score_depends_on_nothing_but_the_seed(name):
    problem, _ = make_moved(n_domains=2)
    alone = SCORERS[name](make_bench([plain(), *GOOD], problem, seed=3))
    bench = make_bench([plain(), *GOOD], problem, seed=3, n_jobs=2)
    for other in ("source CV", "kappa", "moved: quantiles", "target-like"):
        SCORERS[other](bench)
    np.testing.assert_array_equal(SCORERS[name](bench), alone)


@pytest.mark.parametrize("name", list(SCORERS))
def test_labels_of_the_target_are_nowhere(name):
    """Nothing that any adapter is told holds the classes of target rows."""
    problem, _ = make_moved(n_domains=2)
    notes = []
    SCORERS[name](
        make_bench([plain(), Candidate("spy", "LR", Spy(notes), LogisticRegression())], problem)
    )
    fits = [note for note in notes if note[0] == "fit"]
    assert fits
    for _, y, sample_domain in fits:
        assert (y[sample_domain < 0] == -1).all()


def test_source_rows_are_represented_as_source_rows():
    problem, _ = make_moved(n_domains=2)
    notes = []
    spy = Candidate("spy", "LR", Spy(notes), LogisticRegression())
    SCORERS["source CV"](make_bench([spy], problem))
    source = {row.tobytes() for row in problem.X_source}
    seen = 0
    for kind, X, sample_domain in notes:
        if kind == "transform":
            for row, domain in zip(X, sample_domain, strict=True):
                assert (domain >= 0) == (row.tobytes() in source)
                seen += domain >= 0
    assert seen >= 2 * len(problem.X_source)


def test_weights_reach_the_estimator_and_one_that_takes_none_fails_by_name():
    candidates = [
        Candidate("uLSIF", "LR", ULSIFWeights(random_state=0), LogisticRegression()),
        Candidate("uLSIF", "kNN", ULSIFWeights(random_state=0), KNeighborsClassifier()),
    ]
    weighted, unable = make_bench(candidates).target
    assert weighted.n_effective is not None
    assert unable.logits is None
    assert "sample_weight" in unable.error


def test_kappa_is_the_mean_with_the_candidates_of_other_adapters():
    bench = make_bench([*GOOD, plain()])
    names = [one.adapter_name for one in bench.candidates]
    said = [output.codes for output in bench.target]
    for number, found in enumerate(SCORERS["kappa"](bench)):
        others = [i for i, name in enumerate(names) if name != names[number]]
        expected = np.mean([cohen_kappa_score(said[number], said[i]) for i in others])
        assert found == pytest.approx(expected)


def test_a_constant_candidate_has_no_kappa_with_anybody():
    bench = make_bench([plain(Constant()), *GOOD])
    assert SCORERS["kappa"](bench)[0] == 0
    assert np.isnan(SCORERS["reverse"](bench)[0])


def make_other_shares(n=400, seed=0):
    """The same classes, far more of the second in the target."""
    rng = np.random.RandomState(seed)
    codes = (rng.uniform(size=n) < 0.3).astype(int)
    target_codes = (rng.uniform(size=n) < 0.9).astype(int)
    X, T = (rng.standard_normal((n, 2)) + 3 * np.outer(c, [1, 0]) for c in (codes, target_codes))
    return Problem(X, codes, np.zeros(n, dtype=int), T, np.full(n, -1), 2)


def test_class_shares_are_estimated_and_explain_the_shift():
    bench = make_bench([plain(), standardized()], make_other_shares())
    weights = class_share_weights(bench)
    codes = bench.problem.codes
    shares = np.bincount(codes, weights) / weights.sum()
    assert shares[1] == pytest.approx(0.9, abs=0.04)
    assert left_unexplained(bench, np.ones(len(codes))) > 0.7
    assert left_unexplained(bench, weights) < 0.55


def test_class_shares_do_not_explain_a_movement():
    bench = make_bench([plain(), standardized()])
    assert left_unexplained(bench, class_share_weights(bench)) > 0.75


def test_weights_explain_what_depends_on_the_features():
    rng = np.random.RandomState(0)
    X, T = rng.standard_normal((2, 400, 2))
    T[:, 0] += 0.7
    problem = Problem(X, (X[:, 1] > 0).astype(int), np.zeros(400, int), T, np.full(400, -1), 2)
    bench = make_bench([plain()], problem)
    assert left_unexplained(bench, np.ones(400)) > 0.65
    assert left_unexplained(bench, importance_weights(bench)) < 0.55


def test_where_class_shares_explain_the_shift_nothing_is_adapted():
    bench = make_bench([plain(), standardized()], make_other_shares())
    scores = SCORERS["resampled: class shares"](bench)
    assert scores[0] > scores[1] + 0.05
    moved = SCORERS["moved: mean and scale"](bench)
    assert moved[0] < moved[1]  # what fooled the others


def test_without_an_unadapted_candidate_class_shares_cannot_be_told():
    bench = make_bench([standardized()])
    assert np.isnan(class_share_weights(bench)).all()
    assert np.isnan(SCORERS["resampled: class shares"](bench)).all()


# Kernels of scores that need no labels, against loops written from their formulas.


def random_probabilities(rng, n, k):
    return rng.dirichlet(np.ones(k), size=n)


# Agreement


def naive_kappa(a, b, n_classes):
    n = len(a)
    observed = sum(1 for x, y in zip(a, b, strict=True) if x == y) / n
    expected = sum((list(a).count(k) / n) * (list(b).count(k) / n) for k in range(n_classes))
    return 0.0 if math.isclose(expected, 1) else (observed - expected) / (1 - expected)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), n_classes=st.integers(2, 4))
def test_kappa_is_that_of_the_formula(seed, n, n_classes):
    predictions = np.random.RandomState(seed).randint(n_classes, size=(4, n))
    kappa = pairwise_kappa(predictions, n_classes)
    expected = [[naive_kappa(a, b, n_classes) for b in predictions] for a in predictions]
    np.testing.assert_allclose(kappa, expected, atol=1e-12)


def test_kappa_is_that_of_scikit_learn():
    predictions = np.random.RandomState(0).randint(3, size=(2, 50))
    expected = cohen_kappa_score(*predictions)
    assert pairwise_kappa(predictions, 3)[0, 1] == pytest.approx(expected, abs=1e-12)


def test_constant_predictions_agree_by_chance_only():
    predictions = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1]])
    kappa = pairwise_kappa(predictions, 2)
    assert kappa[0, 1] == 0
    assert kappa[0, 2] == 0
    assert kappa[2, 2] == 1


def test_committee_shares():
    predictions = np.array([[0, 1], [0, 2], [1, 2]])
    shares = _committee_shares(predictions, np.array([1.0, 1.0, 2.0]), 3)
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0], [0, 0.25, 0.75]])


# Spectral weights


def independent_predictions(rng, accuracies, n):
    truth = rng.randint(2, size=n)
    wrong = rng.uniform(size=(len(accuracies), n)) > np.array(accuracies)[:, None]
    return np.where(wrong, 1 - truth, truth)


def test_spectral_weights_order_independent_classifiers_by_accuracy():
    accuracies = [0.9, 0.6, 0.75, 0.52, 0.82]
    predictions = independent_predictions(np.random.RandomState(0), accuracies, 20_000)
    weights = _spectral_weights(predictions, 2)
    assert np.argsort(weights).tolist() == np.argsort(accuracies).tolist()
    # Theory: 2 accuracy - 1, times the spread of balanced classes, which is one.
    np.testing.assert_allclose(weights, 2 * np.array(accuracies) - 1, atol=0.03)


def test_spectral_weights_take_the_side_of_the_majority():
    predictions = independent_predictions(np.random.RandomState(1), [0.8, 0.8, 0.8, 0.2], 5000)
    assert (_spectral_weights(predictions, 2) > 0).tolist() == [True, True, True, False]


def test_spectral_weights_of_several_classes():
    rng = np.random.RandomState(2)
    truth = rng.randint(3, size=6000)
    noise = rng.randint(3, size=(3, 6000))
    kept = rng.uniform(size=(3, 6000)) < np.array([0.9, 0.5, 0.2])[:, None]
    weights = _spectral_weights(np.where(kept, truth, noise), 3)
    assert weights[0] > weights[1] > weights[2] > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_spectral_weights_of_constant_predictions_are_zero(n_classes):
    assert not _spectral_weights(np.ones((3, 10), dtype=int), n_classes).any()


# Confidence


def naive_entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), k=st.integers(2, 4))
def test_confidence_is_that_of_the_formulas(seed, n, k):
    P = random_probabilities(np.random.RandomState(seed), n, k)
    entropy = sum(naive_entropy(p) for p in P) / n
    mean = [sum(p[j] for p in P) / n for j in range(k)]
    assert _mean_entropy(P) == pytest.approx(entropy, abs=1e-12)
    assert mutual_information(P) == pytest.approx(naive_entropy(mean) - entropy, abs=1e-12)
    density = 0.0
    for i in range(n):
        if n > 1:
            cosines = [
                sum(P[i] * P[j]) / math.sqrt(sum(P[i] ** 2)) / math.sqrt(sum(P[j] ** 2))
                for j in range(n)
                if j != i
            ]
            powers = [math.exp(c / 0.5) for c in cosines]
            density += naive_entropy([x / sum(powers) for x in powers]) / n
    assert soft_neighborhood_density(P, 0.5) == pytest.approx(density, abs=1e-10)


def test_extremes_of_confidence():
    sure = np.eye(3)[np.arange(9) % 3]
    assert _mean_entropy(sure) == 0
    assert mutual_information(sure) == pytest.approx(math.log(3))
    assert mutual_information(sure[:1]) == 0
    assert soft_neighborhood_density(sure, 0.05) == pytest.approx(math.log(2), abs=1e-6)


def test_density_does_not_depend_on_the_tiles(monkeypatch):
    P = random_probabilities(np.random.RandomState(0), 23, 3)
    whole = soft_neighborhood_density(P, 0.05)
    monkeypatch.setattr("covshift.selection.label_free_scores.TILE_ROWS", 5)
    assert soft_neighborhood_density(P, 0.05) == pytest.approx(whole, rel=1e-12)


# Weighted risk


def test_equal_weights_give_the_mean():
    losses = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    assert _weighted_mean(losses, np.ones(5)) == pytest.approx(0.6)
    assert deep_embedded_validation(losses, np.ones(5)) == pytest.approx(0.6)


@pytest.mark.parametrize("n", [7, 10, 100])
@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7, 1.1])
def test_equal_weights_have_no_control_variate(n, weight):
    """The variance of equal numbers is rounding, and not always zero."""
    losses = np.random.RandomState(0).uniform(size=n)
    weights = np.full(n, weight)
    weights[0] = np.nextafter(weight, 2)
    for equal in (np.full(n, weight), weights):
        estimate = deep_embedded_validation(losses, equal)
        assert estimate == pytest.approx(weight * losses.mean(), rel=1e-12)


def test_no_weight_is_no_estimate():
    assert math.isnan(_weighted_mean(np.ones(3), np.zeros(3)))


def test_control_variate_is_the_formula():
    rng = np.random.RandomState(0)
    losses, weights = rng.uniform(size=50), rng.gamma(1.0, size=50)
    products = [w * loss for w, loss in zip(weights, losses, strict=True)]
    mean_w, mean_p = sum(weights) / 50, sum(products) / 50
    covariance = sum((p - mean_p) * (w - mean_w) for p, w in zip(products, weights, strict=True))
    variance = sum((w - mean_w) ** 2 for w in weights)
    expected = mean_p - covariance / variance * (mean_w - 1)
    assert deep_embedded_validation(losses, weights) == pytest.approx(expected, abs=1e-12)


def test_weights_correct_for_the_shift_and_the_control_variate_steadies_them():
    """Loss 1 where x > 0; source N(0, 1), target N(1, 1): the risk there is .841."""
    errors = {"weighted": [], "dev": [], "plain": []}
    for seed in range(200):
        x = np.random.RandomState(seed).standard_normal(300)
        weights, losses = np.exp(x - 0.5), (x > 0).astype(float)
        errors["plain"].append(losses.mean() - 0.8413)
        errors["weighted"].append(np.mean(weights * losses) - 0.8413)
        errors["dev"].append(deep_embedded_validation(losses, weights) - 0.8413)
    assert abs(np.mean(errors["plain"])) > 0.3
    assert abs(np.mean(errors["weighted"])) < 0.02
    assert abs(np.mean(errors["dev"])) < 0.02
    assert np.std(errors["dev"]) < 0.5 * np.std(errors["weighted"])


# Calibration


def test_scaling_finds_temperature_and_offsets():
    rng = np.random.RandomState(0)
    logits = rng.standard_normal((20_000, 3)) * 2
    P = np.exp(logits)
    P /= P.sum(axis=1, keepdims=True)
    codes = (P.cumsum(axis=1) < rng.uniform(size=(len(P), 1))).sum(axis=1)
    scores = (logits - [0.5, 0.0, -0.5]) * 7.0
    scaling = fit_scaling(scores, codes, np.ones(len(codes)))
    assert scaling.slope == pytest.approx(1 / 7, rel=0.05)
    np.testing.assert_allclose(scaling.offsets - scaling.offsets[1], [0.5, 0, -0.5], atol=0.06)
    assert np.abs(scaled_probabilities(scores, scaling) - P).mean() < 0.01


def test_scaling_is_the_minimum():
    rng = np.random.RandomState(1)
    codes, weights = rng.randint(2, size=2000), rng.uniform(size=2000)
    scores = rng.standard_normal((2000, 2))
    scores[:, 1] += codes

    def loss(slope, offsets):
        P = scaled_probabilities(scores, Scaling(slope, offsets))
        return -np.average(np.log(P[np.arange(2000), codes]), weights=weights)

    found = fit_scaling(scores, codes, weights)
    best = loss(*found)
    for change in (0.9, 1.1):
        assert best < loss(found.slope * change, found.offsets)
    for offset in (-0.1, 0.1):
        assert best < loss(found.slope, found.offsets + np.array([offset, 0]))


def test_scaling_of_separated_classes_stays_finite():
    scores = np.array([[-1.0, 1.0], [1.0, -1.0]] * 10)
    codes = np.array([1, 0] * 10)
    scaling = fit_scaling(scores, codes, np.ones(20))
    P = scaled_probabilities(scores, scaling)
    assert np.isfinite(scaling.slope)
    assert (P[np.arange(20), codes] > 0.9).all()


def test_scaling_without_offsets_keeps_the_order_of_classes():
    rng = np.random.RandomState(0)
    scores, codes = rng.standard_normal((200, 3)), rng.choice(3, size=200, p=[0.8, 0.1, 0.1])
    scores[np.arange(200), codes] += 1
    scaling = fit_scaling(scores, codes, np.ones(200), with_offsets=False)
    np.testing.assert_array_equal(scaling.offsets, 0)
    P = scaled_probabilities(scores, scaling)
    np.testing.assert_array_equal(P.argmax(axis=1), scores.argmax(axis=1))
    for change in (0.9, 1.1):
        other = scaled_probabilities(scores, Scaling(scaling.slope * change, scaling.offsets))
        assert np.log(other[np.arange(200), codes]).sum() < np.log(P[np.arange(200), codes]).sum()


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_scaling_of_scores_of_any_size(size):
    rng = np.random.RandomState(0)
    scores, codes = rng.standard_normal((200, 2)), rng.randint(2, size=200)
    scores[:, 1] += 2 * codes
    wanted = scaled_probabilities(scores, fit_scaling(scores, codes, np.ones(200)))
    found = scaled_probabilities(scores * size, fit_scaling(scores * size, codes, np.ones(200)))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_scaling_of_equal_scores_gives_the_shares():
    codes = np.array([0, 0, 0, 1] * 50)
    scaling = fit_scaling(np.zeros((200, 2)), codes, np.ones(200))
    np.testing.assert_allclose(
        scaled_probabilities(np.zeros((1, 2)), scaling), [[0.75, 0.25]], atol=0.01
    )


# Class shares


def test_shares_of_a_target_that_differs_in_shares_alone():
    rng = np.random.RandomState(0)
    codes = (rng.uniform(size=20_000) < 0.9).astype(int)
    x = rng.standard_normal(20_000) + 2 * codes
    positive = 1 / (1 + np.exp(-(2 * x - 2)))  # for equal shares
    P = np.column_stack([1 - positive, positive])
    shares = shares_from_probabilities(P, np.array([0.5, 0.5]))
    np.testing.assert_allclose(shares, [0.1, 0.9], atol=0.01)
    corrected = reweigh_probabilities(P, shares / 0.5)
    np.testing.assert_allclose(corrected.sum(axis=1), 1)
    assert np.mean(corrected.argmax(axis=1) == codes) > np.mean(P.argmax(axis=1) == codes)


@pytest.mark.parametrize("prior", [0.0, 0.3, 2.0])
def test_shares_are_a_fixed_point(prior):
    P = random_probabilities(np.random.RandomState(0), 100, 3)
    source = np.array([0.2, 0.3, 0.5])
    shares = shares_from_probabilities(P, source, prior)
    again = []
    for k in range(3):
        total = 0.0
        for p in P:
            total += p[k] * shares[k] / source[k] / sum(p * shares / source)
        again.append((total + prior * 100 * source[k]) / (100 + prior * 100))
    np.testing.assert_allclose(again, shares, atol=1e-6)


def test_a_prior_keeps_shares_where_probabilities_say_nothing():
    rng = np.random.RandomState(0)
    P = np.full((60, 4), 0.25) + 0.01 * rng.standard_normal((60, 4))
    source = np.full(4, 0.25)
    free, kept = shares_from_probabilities(P, source), shares_from_probabilities(P, source, 0.3)
    assert np.abs(free - source).max() > 0.3
    assert np.abs(kept - source).max() < 0.05


def test_a_row_that_no_class_explains_is_left_alone():
    np.testing.assert_array_equal(
        reweigh_probabilities(np.array([[1.0, 0.0]]), np.array([0.0, 2.0])), [[1, 0]]
    )
