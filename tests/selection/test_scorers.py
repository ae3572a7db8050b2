import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from covshift import CorrelationAlignment, DomainStandardScaler, ULSIFWeights
from covshift.kernels.distinct_rows import deal_folds
from covshift.selection.candidates import Candidate
from covshift.selection.explanations import (
    class_share_weights,
    importance_weights,
    left_unexplained,
)
from covshift.selection.problem import Problem
from covshift.selection.scorers import SCORERS
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
