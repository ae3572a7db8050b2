import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from covshift.measures.classifier_two_sample_test import _placements, classifier_two_sample_test
from tests.measures.test_ks import SYNTHETIC
from tests.twins import naive


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of tiny products wait for each other when the cores are busy: five times slower."""
    with threadpool_limits(1):
        yield


class Recorder(ClassifierMixin, BaseEstimator):
    """Scores a row by its second feature and records which rows (first feature) it saw."""

    def __init__(self, log=None):
        self.log = log

    def __sklearn_clone__(self):
        return self  # a copy would have a log of its own

    def fit(self, X, y):
        self.log.append([X[:, 0].astype(int)])
        return self

    def decision_function(self, X):
        self.log[-1].append(X[:, 0].astype(int))
        return X[:, 1]


def numbered(n, k, n_features=2, seed=0, shift=0.5, decimals=None):
    """Two samples whose first feature numbers the rows of both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + k, n_features))
    X[n:] += shift
    X[:, 0] = np.arange(n + k)
    return (X[:n], X[n:]) if decimals is None else (X[:n].round(decimals), X[n:].round(decimals))


def recorded(A, B, **parameters):
    """The test, and for each fold its training rows and the scores held out of A and of B."""
    log = []
    test = classifier_two_sample_test(
        A, B, classifier=Recorder(log), n_importance_repeats=0, random_state=0, **parameters
    )
    X, n = np.concatenate([A, B]), len(A)
    folds = []
    for training, held_out in log:
        of_A, of_B = held_out[held_out < n], held_out[held_out >= n]
        folds.append((training, X[of_A, 1], X[of_B, 1], held_out))
    return test, folds


@pytest.mark.parametrize(("n", "k", "cv"), [(20, 20, 5), (13, 28, 4), (30, 11, 3), (10, 9, 2)])
@pytest.mark.parametrize("decimals", [None, 0])
def test_equals_the_naive_twin(n, k, cv, decimals):
    """The AUC of scikit-learn, variances pair by pair; rounded scores tie."""
    A, B = numbered(n, k, decimals=decimals)
    test, folds = recorded(A, B, cv=cv)
    pairs = np.array([len(a) * len(b) for _, a, b, _ in folds])
    aucs = [roc_auc_score(np.repeat([0, 1], [len(a), len(b)]), [*a, *b]) for _, a, b, _ in folds]
    np.testing.assert_allclose(aucs, [naive.auc(a, b) for _, a, b, _ in folds], rtol=1e-12)
    share = pairs / pairs.sum()
    auc = share @ aucs
    assert test.statistic == pytest.approx(auc, rel=1e-12)
    assert test.effect_size == pytest.approx(2 * auc - 1, abs=1e-12)
    null = [naive.mann_whitney_variance(len(a), len(b)) for _, a, b, _ in folds]
    assert test.pvalue == pytest.approx(
        norm.sf((auc - 0.5) / np.sqrt(2 * share**2 @ null)), rel=1e-9
    )
    delong = [naive.delong_variance(a, b) for _, a, b, _ in folds]
    error = np.sqrt(2 * share**2 @ delong)
    expected = np.clip([auc - 1.959964 * error, auc + 1.959964 * error], 0, 1)
    np.testing.assert_allclose(test.interval, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "k", "cv", "n_folds"), [(50, 30, 5, 5), (4, 30, 5, 2), (30, 7, 10, 3), (5, 4, 2, 2)]
)
def test_each_row_is_scored_once_by_a_classifier_that_has_not_seen_it(n, k, cv, n_folds):
    A, B = numbered(n, k)
    test, folds = recorded(A, B, cv=cv)
    assert len(folds) == n_folds
    everything = np.arange(n + k)
    for training, a, b, held_out in folds:
        np.testing.assert_array_equal(np.sort([*training, *held_out]), everything)
        assert n // n_folds <= len(a) <= -(-n // n_folds)
        assert k // n_folds <= len(b) <= -(-k // n_folds)
    np.testing.assert_array_equal(np.sort(np.concatenate([fold[-1] for fold in folds])), everything)
    np.testing.assert_array_equal(test.scores_A, A[:, 1])
    np.testing.assert_array_equal(test.scores_B, B[:, 1])
    # Shuffled: the first fold is not a run of rows.
    assert (np.diff(folds[0][-1]) > 1).sum() > 1 or n + k < 20


def test_importances_are_the_mean_drops_of_the_auc():
    A, B = numbered(200, 200, n_features=3, shift=6)
    test = classifier_two_sample_test(
        A, B, classifier=Recorder([]), random_state=0, n_importance_repeats=20
    )
    # Only the second feature is read. It separates perfectly; permuted, it does not.
    assert test.importances[0] == test.importances[2] == 0
    assert test.importances[1] == pytest.approx(0.5, abs=0.02)
    np.testing.assert_array_equal(test.ranking, [1, 0, 2])


def test_the_features_that_moved_most_rank_first():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 300, 5))
    B = B + np.array([0, 1.5, 0, 0.7, 0])
    test = classifier_two_sample_test(A, B, random_state=0)
    assert list(test.ranking[:2]) == [1, 3]
    assert test.importances[1] > test.importances[3] > 0.02
    assert np.abs(test.importances[[0, 2, 4]]).max() < 0.02
    order = [4, 3, 2, 1, 0]
    reversed_test = classifier_two_sample_test(A[:, order], B[:, order], random_state=0)
    assert list(reversed_test.ranking[:2]) == [3, 1]
    assert reversed_test.statistic == pytest.approx(test.statistic, abs=1e-6)
    without = classifier_two_sample_test(A, B, random_state=0, n_importance_repeats=0)
    assert without.importances is None
    assert without.ranking is None
    assert without.pvalue == test.pvalue


@pytest.mark.parametrize(
    "classifier",
    [
        LinearSVC(random_state=0),
        KNeighborsClassifier(5),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_any_classifier_that_scores(classifier):
    A, B = np.random.default_rng(0).normal(size=(2, 100, 3))
    before = classifier.get_params()
    test = classifier_two_sample_test(
        A, B + np.eye(3)[0] * 2, classifier=classifier, random_state=0
    )
    assert test.pvalue < 1e-6
    assert test.ranking[0] == 0
    assert test.interval[0] < test.statistic < test.interval[1]
    assert test.scores_B.mean() > test.scores_A.mean()
    assert not hasattr(classifier, "classes_")  # it was cloned
    assert classifier.get_params() == before


def test_scores_are_probabilities_of_the_second_sample():
    A, B = np.random.default_rng(0).normal(size=(2, 150, 2))
    test = classifier_two_sample_test(A, B + 1, random_state=0)
    scores = np.concatenate([test.scores_A, test.scores_B])
    assert ((scores > 0) & (scores < 1)).all()
    assert scores.mean() == pytest.approx(0.5, abs=0.02)
    # Logistic regression is calibrated: where it says .8, about .8 of the rows are B's.
    assert (test.scores_B > 0.7).sum() > 2 * (test.scores_A > 0.7).sum()


def test_swapped_samples_and_other_units_tell_the_same():
    A, B = np.random.default_rng(0).normal(size=(2, 200, 3))
    B = B[:120] + 0.5
    test = classifier_two_sample_test(A, B, random_state=0)
    width = test.interval[1] - test.interval[0]
    swapped = classifier_two_sample_test(B, A, random_state=0)
    assert swapped.statistic == pytest.approx(test.statistic, abs=width / 4)  # other folds
    units = classifier_two_sample_test(1000 * A - 7, 1000 * B - 7, random_state=0)
    assert units.statistic == pytest.approx(test.statistic, abs=1e-3)
    assert units.pvalue == pytest.approx(test.pvalue, rel=0.05)


def test_the_seed_decides_the_folds_and_the_permutations():
    A, B = np.random.default_rng(0).normal(size=(2, 40, 3))
    A.setflags(write=False)
    B.setflags(write=False)
    test = classifier_two_sample_test(A, B, random_state=3)
    again = classifier_two_sample_test(A, B, random_state=np.random.RandomState(3))
    with joblib.parallel_config(backend="threading"):
        parallel = classifier_two_sample_test(A, B, random_state=3, n_jobs=2)
    for same in (again, parallel):
        assert same.pvalue == test.pvalue
        np.testing.assert_array_equal(same.importances, test.importances)
    assert classifier_two_sample_test(A, B, random_state=4).statistic != test.statistic


def test_samples_told_apart_perfectly():
    A, B = np.random.default_rng(0).normal(size=(2, 30, 2))
    test = classifier_two_sample_test(A, B + 50, random_state=0)
    assert test.statistic == test.effect_size == 1
    assert test.pvalue < 1e-4
    assert 0.9 < test.interval[0] < 0.99  # 30 rows cannot show an AUC of exactly 1
    assert test.interval[1] == 1


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    n=st.integers(4, 9),
    k=st.integers(4, 9),
    width=st.integers(1, 3),
    values=st.sampled_from([1, 2, 5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_ties_and_constants_give_numbers(n, k, width, values, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.integers(values, size=(n, width)), rng.integers(values, size=(k, width))
    test = classifier_two_sample_test(A, B, random_state=0, n_importance_repeats=2)
    assert 0 <= test.interval[0] <= test.statistic <= test.interval[1] <= 1
    assert 0 < test.pvalue < 1
    assert np.isfinite(test.importances).all()
    np.testing.assert_array_equal(np.sort(test.ranking), np.arange(width))
    if values == 1:
        assert test.statistic == 0.5
        assert test.pvalue == 0.5


def test_the_interval_covers_the_mean_auc():
    aucs, intervals = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A, B = rng.normal(size=(50, 3)), rng.normal(size=(50, 3)) + 0.4
        test = classifier_two_sample_test(A, B, random_state=seed, n_importance_repeats=0)
        aucs.append(test.statistic)
        intervals.append(test.interval)
    low, high = np.transpose(intervals)
    covered = (low < np.mean(aucs)) & (np.mean(aucs) < high)
    assert covered.mean() >= 0.92


def test_single_precision():
    A, B = np.random.default_rng(0).normal(size=(2, 60, 2))
    single = classifier_two_sample_test(
        A.astype(np.float32), B.astype(np.float32) + 1, random_state=0
    )
    double = classifier_two_sample_test(A, B + 1, random_state=0)
    assert single.statistic == pytest.approx(double.statistic, abs=0.005)


def test_bad_input_is_a_clear_error():
    A, B = np.random.default_rng(0).normal(size=(2, 10, 2))
    with pytest.raises(ValueError, match="minimum of 4"):
        classifier_two_sample_test(A[:3], B)
    with pytest.raises(ValueError, match="same features"):
        classifier_two_sample_test(A, B[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        classifier_two_sample_test(np.where(A > 0, A, np.nan), B)
    with pytest.raises(ValueError, match="cv must be at least 2"):
        classifier_two_sample_test(A, B, cv=1)
    with pytest.raises(ValueError, match="n_importance_repeats must not be negative"):
        classifier_two_sample_test(A, B, n_importance_repeats=-1)
    with pytest.raises(
        TypeError, match="with predict_proba or decision_function, got LinearRegression"
    ):
        classifier_two_sample_test(A, B, classifier=LinearRegression())


@pytest.mark.parametrize("make_shift", SYNTHETIC)
def test_power_on_the_synthetic_data(make_shift):
    data = make_shift(n_source=1000, n_test=500, random_state=0)
    first, second = data.X_source[:500], data.X_source[500:]
    moved = classifier_two_sample_test(first, data.X_test, random_state=0)
    unmoved = classifier_two_sample_test(first, second, random_state=0)
    assert moved.pvalue < 1e-10
    assert moved.effect_size > 0.5
    assert unmoved.pvalue > 0.05
    assert unmoved.interval[0] < 0.5 < unmoved.interval[1]


def test_placements_are_shares_of_pairs():
    scores = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 2.0, 0.0])
    of_B = np.array([True, False, False, True, True, False, True])
    A, B = scores[~of_B], scores[of_B]
    below, above = _placements(scores, of_B)
    assert below.tolist() == [np.mean((b > A) + 0.5 * (b == A)) for b in B]
    assert above.tolist() == pytest.approx([np.mean((a < B) + 0.5 * (a == B)) for a in A])


@pytest.mark.parametrize("classifier", [[], True, "svm", LinearSVC, LinearRegression()])
def test_what_is_no_classifier(classifier):
    A, B = np.random.default_rng(0).normal(size=(2, 20, 2))
    with pytest.raises(TypeError, match="must be a scikit-learn classifier with predict_proba"):
        classifier_two_sample_test(A, B, classifier=classifier)
