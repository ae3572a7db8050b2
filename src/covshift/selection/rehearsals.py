r"""Score candidates where source rows are taken as the target, so that their labels are known.

Four kinds of rehearsal, each with an assumption of its own:

==============  ==================================================================================
source CV       source rows left out: the target is like the source
moved           half of the source, moved by the shift seen in the rows (mean and covariance;
                quantiles): the target is the source, moved
class shares    half of the source, its classes drawn with the shares estimated for the target:
                only class proportions differ
source domains  one source domain at a time: the next shift is like those between source domains
==============  ==================================================================================

The score is the mean probability of the true class, which is the accuracy of a prediction drawn
from the probabilities. It ranks candidates by fewer rows than the share of correct predictions
does, because a row near the boundary counts for a part. For balanced accuracy, probabilities are
those for equal class proportions, and classes weigh the same. Probabilities are calibrated on
source rows left out (`covshift.kernels.probabilities`).

Where the label is a number, its shares are those of groups between its quantiles ("label shares"),
and the score is that of `covshift.selection.label_tasks`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.cluster import KMeans

from covshift.adapters.correlation_alignment import mean_and_covariance
from covshift.adapters.domain_quantile_transformer import feature_quantiles, quantile_ranks
from covshift.adapters.linear_monge_alignment import monge_matrix
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.drawn_rows import deal_folds
from covshift.kernels.feature_scales import feature_deviations, feature_scales
from covshift.measures import classifier_two_sample_test
from covshift.selection.bench import Bench, Problem, Scene, make_scene
from covshift.selection.importance_weights import class_share_weights

# --- Source rows taken as the target: their labels are known, so they can score candidates ---
#
# They replace labels of the target by an analogy, each with an assumption of its own: the next
# shift is like those between source domains (`source_domains`, `residual_clusters`), the target is
# like a part of the source (`target_like`), like the source with other rows more frequent
# (`resampled`), or like the source moved by the shift that is seen in the rows (`moved`).


MIN_PSEUDO_ROWS = 10  # rows of a pseudo-target, at least
MAX_DOMAINS = 4  # source domains that are taken as the target, one after the other
N_CLUSTERS = 3
TARGET_LIKE_SHARES = (0.3, 0.5)  # class proportions, one rehearsal each
N_QUANTILES = 100
PSEUDO_TARGET = -1

Move: TypeAlias = Callable[[Problem, FloatArray, IntArray], FloatArray]


class PseudoTarget(NamedTuple):
    """A scene whose rows to predict have known labels; ``values`` where these are numbers."""

    scene: Scene
    codes: IntArray
    values: FloatArray | None = None

    @property
    def truth(self) -> Any:
        """Labels that predictions are compared with: class numbers, or numbers."""
        return self.codes if self.values is None else self.values


def source_domains(
    problem: Problem, rng: np.random.RandomState, max_domains: int = MAX_DOMAINS
) -> Iterator[PseudoTarget]:
    """Yield as a rehearsal's target each source domain, or drawn ones; none if there is one."""
    domains = problem.source_domains
    usable = [domain for domain in domains if _can_play(problem, problem.source_domain == domain)]
    if len(usable) > max_domains:
        usable = sorted(rng.choice(usable, max_domains, replace=False))
    for domain in usable:
        yield _played_by(problem, problem.source_domain == domain)


def residual_clusters(problem: Problem, rng: np.random.RandomState) -> Iterator[PseudoTarget]:
    """Yield, to rehearse on, clusters of rows about their classes' means: groups without names."""
    means = np.stack([problem.X_source[problem.codes == k].mean(axis=0) for k in _classes(problem)])
    position = np.searchsorted(_classes(problem), problem.codes)
    # About the mean of its class, a row shows where it comes from rather than what it is: clusters
    # of the rows themselves would often be the classes.
    residuals = _standardized(problem.X_source) - _standardized(problem.X_source, means)[position]
    seed = rng.randint(2**31 - 1)
    n_clusters = min(N_CLUSTERS, len(np.unique(residuals, axis=0)))
    clusters = KMeans(n_clusters, n_init=3, random_state=seed).fit_predict(residuals)
    for cluster in range(n_clusters):
        if _can_play(problem, clusters == cluster):
            yield _played_by(problem, clusters == cluster)


def target_like(problem: Problem, rng: np.random.RandomState) -> Iterator[PseudoTarget]:
    """Yield, to rehearse on, each class's source rows that a classifier takes for target rows."""
    if min(len(problem.X_source), len(problem.X_target)) < MIN_PSEUDO_ROWS:
        return
    test = classifier_two_sample_test(
        problem.X_source, problem.X_target, random_state=rng, n_importance_repeats=0
    )
    for share in TARGET_LIKE_SHARES:
        chosen = np.zeros(len(problem.codes), dtype=bool)
        for k in _classes(problem):
            rows = np.flatnonzero(problem.codes == k)
            # Within each class, so that class proportions stay: these are another rehearsal.
            most_like_first = rows[np.argsort(-test.scores_A[rows], kind="stable")]
            chosen[most_like_first[: round(share * len(rows))]] = True
        if _can_play(problem, chosen):
            yield _played_by(problem, chosen)


def moved(
    problem: Problem, rng: np.random.RandomState, move: Move, halves: Sequence[int] = (0, 1)
) -> Iterator[PseudoTarget]:
    """Yield halves of the source to rehearse on, moved as the source must be toward the target."""
    # One half is moved and taken as the target; the other stays and is learned from. The same rows
    # on both sides would let a model know the labels that it is scored by.
    half_of = deal_folds(problem.codes, 2, rng)
    for half in halves:
        played = half_of == half
        if _can_play(problem, played):
            X = move(problem, problem.X_source[played], problem.codes[played])
            yield _played_by(problem, played, X=X)


def resampled(
    problem: Problem, rng: np.random.RandomState, weights: FloatArray
) -> Iterator[PseudoTarget]:
    """Yield halves of the source to rehearse on, drawn with replacement by their weights."""
    # There are no weights where class proportions of the target cannot be estimated.
    if np.isnan(weights).any():
        return
    halves = deal_folds(problem.codes, 2, rng)
    for half in range(2):
        rows = np.flatnonzero(halves == half)
        if weights[rows].sum() > 0 and _can_play(problem, halves == half):
            drawn = rng.choice(rows, size=len(rows), p=weights[rows] / weights[rows].sum())
            # One class alone would make every score a matter of that class.
            if len(np.unique(problem.codes[drawn])) > 1:
                yield _played_by(problem, halves == half, drawn)


def move_mean_and_scale(problem: Problem, X: FloatArray, codes: IntArray) -> FloatArray:
    """Give every feature of a rehearsal's rows the target's mean and standard deviation."""
    return _rescale(X, problem.X_source, problem.X_target)


def move_quantiles(problem: Problem, X: FloatArray, codes: IntArray) -> FloatArray:
    """Give every feature of a rehearsal's rows the target's distribution, in the same order."""
    n_quantiles = min(N_QUANTILES, len(problem.X_source), len(problem.X_target))
    if n_quantiles < 2:
        return X
    # A value keeps its rank and takes the value that has this rank in the target.
    ranks = quantile_ranks(X, feature_quantiles(problem.X_source, n_quantiles))
    wanted = feature_quantiles(problem.X_target, n_quantiles)
    references = np.linspace(0, 1, n_quantiles)
    columns = [np.interp(ranks[:, j], references, wanted[:, j]) for j in range(X.shape[1])]
    return np.column_stack(columns)


def move_gaussian(problem: Problem, X: FloatArray, codes: IntArray) -> FloatArray:
    """Give a rehearsal's rows the target's mean and covariance, by a Gaussian's least movement."""
    mean, covariance, _ = mean_and_covariance(problem.X_source, None)
    target_mean, target_covariance, _ = mean_and_covariance(problem.X_target, None)
    # Of all maps that give the covariance, the optimal transport between Gaussians moves rows the
    # least, so that labels are most likely to stay right.
    moved_rows: FloatArray = target_mean + (X - mean) @ monge_matrix(covariance, target_covariance)
    return moved_rows


def move_by_class(
    problem: Problem, X: FloatArray, codes: IntArray, *, target_codes: IntArray
) -> FloatArray:
    """Give each class of a rehearsal the means and spreads of rows that are taken for it.

    These are target rows.

    A class that is hardly found there is moved as all rows are.
    """
    result = move_mean_and_scale(problem, X, codes)
    for k in np.unique(codes):
        source, target = problem.X_source[problem.codes == k], problem.X_target[target_codes == k]
        if min(len(source), len(target)) >= MIN_PSEUDO_ROWS:
            result[codes == k] = _rescale(X[codes == k], source, target)
    return result


def _played_by(
    problem: Problem,
    played: BoolArray,
    rows: IntArray | None = None,
    X: FloatArray | None = None,
) -> PseudoTarget:
    """Return the scene in which some source rows are the target, and the others the source.

    The target gets the rows by number (None: all of them), or with other features X.
    """
    rows = np.flatnonzero(played) if rows is None else rows
    scene = make_scene(
        problem.X_source[~played],
        problem.codes[~played],
        problem.source_domain[~played],
        problem.X_source[rows] if X is None else X,
        # One domain for all of them: candidates must not learn from which sources they come.
        np.full(len(rows), PSEUDO_TARGET),
        values=None if problem.values is None else problem.values[~played],
    )
    values = None if problem.values is None else problem.values[rows]
    return PseudoTarget(scene, problem.codes[rows], values)


def _can_play(problem: Problem, played: BoolArray) -> bool:
    """Whether there is enough to score on, and something of every class left to learn from."""
    left, taken = problem.codes[~played], problem.codes[played]
    enough = len(taken) >= MIN_PSEUDO_ROWS and len(left) >= MIN_PSEUDO_ROWS
    if problem.values is not None:
        return enough and bool(np.ptp(problem.values[played]) > 0)
    return enough and len(np.unique(taken)) > 1 and len(np.unique(left)) == len(_classes(problem))


def _classes(problem: Problem) -> IntArray:
    return np.unique(problem.codes)


def _standardized(X: FloatArray, rows: FloatArray | None = None) -> FloatArray:
    scaled: FloatArray = (X if rows is None else rows) / feature_scales(X)
    return scaled


def _rescale(X: FloatArray, source: FloatArray, target: FloatArray) -> FloatArray:
    spread = feature_deviations(source)
    ratio = np.divide(target.std(axis=0), spread, out=np.ones_like(spread), where=spread > 0)
    rescaled: FloatArray = target.mean(axis=0) + ratio * (X - source.mean(axis=0))
    return rescaled


SOURCE_CV, MOVED = "source CV", "moved"
CLASS_SHARES, SOURCE_DOMAINS = "class shares", "source domains"
LABEL_SHARES = "label shares"  # what class shares are of a number: those of its quantile groups
KINDS = (SOURCE_CV, MOVED, CLASS_SHARES, SOURCE_DOMAINS)
NUMBER_KINDS = (SOURCE_CV, MOVED, LABEL_SHARES, SOURCE_DOMAINS)

# Of probabilities (n, K) and class numbers (n,), or of predictions (n, 1) and numbers (n,).
Credit = Callable[[FloatArray, Any], float]


def rehearse(bench: Bench, kind: str, credit: Credit | None = None) -> FloatArray:
    """Return the mean score of each candidate over the rehearsals of a kind; NaN: none could run.

    Parameters
    ----------
    bench : Bench
        Candidates and rows.
    kind : {"source CV", "moved", "class shares", "label shares", "source domains"}
        See the module.
    credit : callable, default=None
        Score of probabilities and true class numbers. None: `_mean_probability`.
    """
    credit = credit or _mean_probability(bench)
    if kind == SOURCE_CV:
        return _score(bench.probabilities_left_out(), bench.problem.truth, credit)
    played = dict(pseudo_targets(bench, kind))
    outputs = bench.run({name: one.scene for name, one in played.items()})
    scores = [
        _score(bench.calibrated(outputs[name]), one.truth, credit) for name, one in played.items()
    ]
    return np.mean(scores, axis=0) if scores else np.full(len(bench.candidates), np.nan)


def pseudo_targets(bench: Bench, kind: str) -> Iterator[tuple[str, PseudoTarget]]:
    """Names and scenes of a kind of rehearsals.

    One half is moved in each way: both would cost twice as much.
    """
    problem = bench.problem
    if kind == MOVED:
        # Each way has its own stream of numbers and its own half.
        for name, move, half in (
            ("moved: Gaussian", move_gaussian, 0),
            ("moved: quantiles", move_quantiles, 1),
        ):
            for one in moved(problem, bench.rng(name), move, halves=(half,)):
                yield f"{name} {half}", one
        return
    if kind in (CLASS_SHARES, LABEL_SHARES):
        name, weights = "resampled: class shares", class_share_weights(bench)
        played = resampled(problem, bench.rng(name), weights)
    else:
        name = "source domains"
        played = source_domains(problem, bench.rng(name))
    for number, one in enumerate(played):
        yield f"{name} {number}", one


def _score(P: list[FloatArray | None], truth: Any, credit: Credit) -> FloatArray:
    return np.array([np.nan if one is None else credit(one, truth) for one in P])


def _mean_probability(bench: Bench) -> Credit:
    """Return the score of the bench's objective that ranks: see `covshift.selection.label_tasks`.

    A user's own metric is taken of the predicted labels.
    """
    shares = bench.problem.class_shares
    return lambda P, truth: bench.task.credit(P, truth, bench.metric, shares)


def predicted_score(bench: Bench) -> Credit:
    """Return the score of the labels that a rehearsal predicts: the bench's metric."""
    return lambda P, truth: bench.metric(truth, decide(bench, P))


def decide(bench: Bench, P: FloatArray) -> Any:
    """Decide in a rehearsal: class numbers (n,) for probabilities (n, K), by the objective.

    Where the label is a number: the predictions.
    """
    return bench.task.decide(P, bench.metric, bench.problem.class_shares)


def kinds_of(bench: Bench) -> tuple[str, ...]:
    """Return the kinds of rehearsals of a bench, by what its label is."""
    return KINDS if bench.problem.values is None else NUMBER_KINDS
