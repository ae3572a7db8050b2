r"""Other scores of candidates that read no label of the target, to compare with; larger is better.

The automatic choice uses those of `covshift.selection.rehearsals`.

Each is a function of a `Bench`, one number for each candidate, NaN where it cannot tell.
`SCORERS` lists them by name.

================  ==================================================================================
rehearsals        the mean score where source rows are taken as the target (`pseudo_targets`)
source CV         the score on source rows left out, as source rows
weighted CV, DEV  the same, rows weighed by how much they are like target rows
reverse           the score on the source of what is learned back from the predicted target
committee, kappa, agreement with the others' predictions on target rows
spectral          (Cohen's kappa and spectral weights, below)
entropy, ...      how sure, diverse and clustered its own predictions are
================  ==================================================================================

References
----------
E. Zhong, W. Fan, Q. Yang, O. Verscheure, J. Ren, "Cross validation framework to choose among
models and datasets for transfer learning", ECML PKDD 2010 (reverse validation). The others: below.
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from scipy.special import entr

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.gaussian_kernels import TILE_ROWS
from covshift.selection.bench import Bench, make_scene
from covshift.selection.importance_weights import class_share_weights, importance_weights
from covshift.selection.rehearsals import (
    PseudoTarget,
    move_by_class,
    move_gaussian,
    move_mean_and_scale,
    move_quantiles,
    moved,
    resampled,
    residual_clusters,
    source_domains,
    target_like,
)

# --- How much the predictions of several classifiers agree, chance taken out ---
#
# Of two predictions a and b of the same n rows, with K classes, Cohen's
#
#     \kappa(a, b) = \frac{o - e}{1 - e}, \qquad
#     o = \tfrac{1}{n} \#\{i : a_i = b_i\}, \qquad
#     e = \sum_{k=1}^{K} \tfrac{1}{n} \#\{i : a_i = k\} \, \tfrac{1}{n} \#\{i : b_i = k\};
#
# where e = 1, both predict one and the same class for all rows, and the agreement means nothing:
# 0. The share of a committee that names each row's class is a vote of its members.
#
# References
# ----------
# J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
# Measurement 20(1), 1960.


def _one_hot(codes: IntArray, n_classes: int) -> FloatArray:
    """Return the indicators (..., n_classes) of class numbers (...)."""
    indicators: FloatArray = (codes[..., None] == np.arange(n_classes)).astype(np.float64)
    return indicators


def pairwise_kappa(predictions: IntArray, n_classes: int) -> FloatArray:
    """Score without labels: Cohen's kappa (c, c) of every two of c predictions (c, n)."""
    n_candidates, n_rows = predictions.shape
    H = _one_hot(predictions, n_classes)
    flat = H.reshape(n_candidates, -1)
    observed = flat @ flat.T / n_rows
    shares = H.mean(axis=1)
    expected = shares @ shares.T
    # Shares are whole numbers over n: sums of their products are one only up to rounding.
    possible = 1 - expected > n_rows * np.finfo(np.float64).eps
    kappa: FloatArray = np.divide(
        observed - expected, 1 - expected, out=np.zeros_like(observed), where=possible
    )
    return kappa


def _committee_shares(predictions: IntArray, weights: FloatArray, n_classes: int) -> FloatArray:
    """Return the share (n, n_classes) of the weight (c,) that votes for each class of each row."""
    H = _one_hot(predictions, n_classes)
    shares: FloatArray = np.einsum("c,cnk->nk", weights / weights.sum(), H)
    return shares


# --- Ranking classifiers by the structure of their agreement alone ---
#
# If classifiers err independently of each other given the class, the covariance of their
# predictions f_i \in \{-1, 1\} over the rows has off-diagonal entries
#
#     Q_{ij} = (1 - b^2)(2 \pi_i - 1)(2 \pi_j - 1),
#
# where \pi_i is the balanced accuracy of classifier i and b the imbalance of the classes: a matrix
# of rank one, whose leading eigenvector v orders the classifiers by balanced accuracy. The
# diagonal, which is not of that form, is found by repeated replacement,
#
#     Q \leftarrow Q - \operatorname{diag}(Q) + \operatorname{diag}(\lambda v v^\top),
#     \qquad v \text{ the leading eigenvector of } Q, \lambda \text{ its eigenvalue}.
#
# The sign of v is the one with which the classifiers are better than chance on the whole: its
# entries sum to zero or more. With K > 2 classes, the
# mean over the classes, each against the rest.
#
# References
# ----------
# F. Parisi, F. Strino, B. Nadler, Y. Kluger, "Ranking and combining multiple predictors without
# labeled data", PNAS 111(4), 2014.


MAX_REPLACEMENTS = 100
CONVERGED_DIAGONAL = 1e-10  # change of the diagonal, relative to its largest entry


def _spectral_weights(predictions: IntArray, n_classes: int) -> FloatArray:
    """Return weights (c,) of c predictions (c, n), larger for those that agree like better ones."""
    signs = 2 * _one_hot(predictions, n_classes) - 1
    columns = [1] if n_classes == 2 else range(n_classes)
    weights: FloatArray = np.mean([_leading(np.cov(signs[:, :, k])) for k in columns], axis=0)
    return weights


def _leading(Q: FloatArray) -> FloatArray:
    """sqrt(lambda) v of the rank-one matrix whose off-diagonal is that of Q (c, c)."""
    Q = np.atleast_2d(Q).copy()
    diagonal = np.zeros(len(Q))
    for _ in range(MAX_REPLACEMENTS):
        np.fill_diagonal(Q, diagonal)
        values, vectors = np.linalg.eigh(Q)
        v = vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
        change = np.abs(v**2 - diagonal).max()
        diagonal = v**2
        if change <= CONVERGED_DIAGONAL * max(diagonal.max(), np.finfo(np.float64).tiny):
            break
    leading: FloatArray = v if v.sum() >= 0 else -v
    return leading


# --- Scores of predicted probabilities without labels: confidence, diversity, clustering ---
#
# With probabilities p_i (K classes) of n rows and H the entropy in nats,
#
#     \text{entropy} = \tfrac{1}{n} \sum_i H(p_i), \qquad
#     \text{information} = H\bigl(\tfrac{1}{n} \textstyle\sum_i p_i\bigr)
#         - \tfrac{1}{n} \sum_i H(p_i), \qquad
#     \text{density} = \tfrac{1}{n} \sum_i H(q_i),
#
# where q_{ij} \propto \exp(\langle \bar p_i, \bar p_j \rangle / \tau) over the other rows
# j \ne i, with \bar p the probabilities at unit length: rows that share their
# prediction with many others spread q_i over these.
#
# References
# ----------
# J. S. Bridle, A. J. R. Heading, D. J. C. MacKay, "Unsupervised classifiers, mutual information and
# 'phantom targets'", NIPS 1991. K. Saito et al., "Tune it the right way: unsupervised validation of
# domain adaptation via soft neighborhood density", ICCV 2021.


def _mean_entropy(P: FloatArray) -> float:
    """Return the mean entropy of the rows of P (n, K)."""
    return float(entr(P).sum(axis=1).mean())


def mutual_information(P: FloatArray) -> float:
    """Score without labels: the entropy of the mean row of P (n, K), less the rows' mean one."""
    return float(entr(P.mean(axis=0)).sum()) - _mean_entropy(P)


def soft_neighborhood_density(P: FloatArray, temperature: float) -> float:
    """Score without labels: mean entropy of rows' similarities to other rows; 0 for one row.

    The rows are those of P (n, K).
    """
    n = len(P)
    if n < 2:
        return 0.0
    lengths = np.sqrt(np.einsum("ik,ik->i", P, P))
    unit = P / np.maximum(lengths, np.finfo(P.dtype).tiny)[:, None]
    total = 0.0
    for start in range(0, n, TILE_ROWS):
        stop = min(start + TILE_ROWS, n)
        logits = unit[start:stop] @ unit.T / temperature
        logits[np.arange(stop - start), np.arange(start, stop)] = -np.inf  # not to itself
        logits -= logits.max(axis=1, keepdims=True)
        q = np.exp(logits)
        q /= q.sum(axis=1, keepdims=True)
        total += float(entr(q).sum())
    return total / n


# --- Risk on the target estimated from weighted losses on the source ---
#
# Losses \ell_i of source rows that took no part in the fit, importance weights
# w_i = p_{target}(x_i) / p_{source}(x_i):
#
#     \text{weighted} = \frac{\sum_i w_i \ell_i}{\sum_i w_i}, \qquad
#     \text{DEV} = \tfrac{1}{n} \sum_i w_i \ell_i + \eta \bigl(\tfrac{1}{n} \sum_i w_i - 1\bigr),
#     \qquad \eta = - \frac{\operatorname{cov}(w \ell, w)}{\operatorname{var}(w)}.
#
# Both are means of the losses where all weights are one. DEV's control variate, whose mean is known
# to be one, takes out what the weights' own spread adds to the estimate; weights that are all the
# same have none to take out, and \eta = 0.
#
# References
# ----------
# M. Sugiyama, M. Krauledat, K.-R. Müller, "Covariate shift adaptation by importance weighted cross
# validation", JMLR 8, 2007. K. You, X. Wang, M. Long, M. I. Jordan, "Towards accurate model
# selection in deep unsupervised domain adaptation", ICML 2019.


# Weights that differ by a smaller share are equal: a slope over rounding errors means nothing.
WEIGHT_ROUNDING = 1e-12


def _weighted_mean(losses: FloatArray, weights: FloatArray) -> float:
    """Return the mean of losses (n,) weighted by weights (n,); NaN, if no row has weight."""
    total = weights.sum()
    return float(weights @ losses / total) if total > 0 else np.nan


def deep_embedded_validation(losses: FloatArray, weights: FloatArray) -> float:
    """Score without target labels: the mean weighted loss with the weights' control variate."""
    products = weights * losses
    eta = 0.0
    if np.ptp(weights) > WEIGHT_ROUNDING * weights.max():
        covariance = np.mean((products - products.mean()) * (weights - weights.mean()))
        eta = -float(covariance / weights.var())
    return float(products.mean() + eta * (weights.mean() - 1))


TEMPERATURE = 0.05  # of the soft neighborhood density, as its authors set it


def _rehearse(bench: Bench, name: str, make: Callable[..., Iterable[PseudoTarget]]) -> FloatArray:
    """Return the mean score over the pseudo-targets of a kind."""
    played = list(make(bench.problem, bench.rng(name)))
    scenes = {f"{name} {number}": one.scene for number, one in enumerate(played)}
    outputs = bench.run(scenes)
    scores = [
        bench.score(outputs[scene], one.codes) for scene, one in zip(scenes, played, strict=True)
    ]
    return np.mean(scores, axis=0) if scores else np.full(len(bench.candidates), np.nan)


def _rehearse_moved_by_class(bench: Bench) -> FloatArray:
    """Return the source moved class by class; the committee says of which class target rows are."""
    move = partial(move_by_class, target_codes=_committee(bench).argmax(axis=1))
    return _rehearse(bench, "moved: by class", partial(moved, move=move))


def _rehearse_class_shares(bench: Bench) -> FloatArray:
    """Return the source with the class shares that the target is estimated to have."""
    make = partial(resampled, weights=class_share_weights(bench))
    return _rehearse(bench, "resampled: class shares", make)


def _rehearse_weighted(bench: Bench) -> FloatArray:
    """Return the source with rows like the target's more frequent."""
    make = partial(resampled, weights=importance_weights(bench))
    return _rehearse(bench, "resampled: weights", make)


def _validate_on_source(bench: Bench) -> FloatArray:
    """Score on source rows left out, each as a row of its own domain."""
    return _validate(bench, lambda codes, predicted: bench.metric(codes, predicted))


def _validate_weighted(bench: Bench) -> FloatArray:
    """Recall on source rows left out, weighed like target rows, averaged over the classes."""
    weights = importance_weights(bench)

    def score(codes: IntArray, predicted: IntArray) -> float:
        recalls = [
            _weighted_mean((predicted == codes)[codes == k].astype(float), weights[codes == k])
            for k in np.unique(codes)
        ]
        return float(np.nanmean(recalls)) if not np.all(np.isnan(recalls)) else np.nan

    return _validate(bench, score)


def _validate_with_control_variate(bench: Bench) -> FloatArray:
    """Return one less the estimated risk, classes weighing the same, with DEV's control variate."""
    weights = importance_weights(bench)
    codes = bench.problem.codes
    shares = np.bincount(codes, minlength=bench.problem.n_classes) / len(codes)
    balance = 1 / (shares[codes] * len(np.unique(codes)))

    def score(codes: IntArray, predicted: IntArray) -> float:
        return 1 - deep_embedded_validation(balance * (predicted != codes), weights)

    return _validate(bench, score)


def _validate_reverse(bench: Bench) -> FloatArray:
    """Score on the source of what was learned back from the target's predicted labels."""
    problem = bench.problem
    as_source = np.abs(problem.target_domain) - 1  # -1, -2, ... become 0, 1, ...
    as_target = -1 - problem.source_domain
    tasks = [
        (
            [number],
            make_scene(problem.X_target, output.codes, as_source, problem.X_source, as_target),
        )
        for number, output in enumerate(bench.target)
        if output.logits is not None and len(np.unique(output.codes)) > 1
    ]
    scores = np.full(len(bench.candidates), np.nan)
    for (numbers, _), outputs in zip(tasks, bench.run_tasks(tasks), strict=True):
        scores[numbers] = bench.score(outputs, problem.codes)
    return scores


def _agree_with_committee(bench: Bench) -> FloatArray:
    """Return the share of the committee, one vote for each adapter, that agrees on target rows."""
    shares = _committee(bench)
    rows = np.arange(len(shares))
    return _each(bench, lambda output: float(shares[rows, output.codes].mean()))


def _agree_beyond_chance(bench: Bench) -> FloatArray:
    """Return the mean kappa with the predictions of the other adapters on target rows."""
    able, predictions = _predictions(bench)
    scores = np.full(len(bench.candidates), np.nan)
    if len(able):
        kappa = pairwise_kappa(predictions, bench.problem.n_classes)
        names = np.array([bench.candidates[i].adapter_name for i in able])
        other = names[:, None] != names
        counts = other.sum(axis=1)
        totals = (kappa * other).sum(axis=1)
        scores[able] = np.divide(totals, counts, out=np.full(len(able), np.nan), where=counts > 0)
    return scores


def _weigh_by_spectrum(bench: Bench) -> FloatArray:
    """Weight in the rank-one structure of the agreement on target rows."""
    able, predictions = _predictions(bench)
    scores = np.full(len(bench.candidates), np.nan)
    if len(able) > 2:  # two classes do not show a structure
        scores[able] = _spectral_weights(predictions, bench.problem.n_classes)
    return scores


def _be_sure(bench: Bench) -> FloatArray:
    """Return the negative mean entropy of the probabilities of target rows."""
    return _each(bench, lambda output: -_mean_entropy(output.probabilities))


def _be_sure_and_diverse(bench: Bench) -> FloatArray:
    """Return the information about the class in the probabilities of target rows."""
    return _each(bench, lambda output: mutual_information(output.probabilities))


def _be_clustered(bench: Bench) -> FloatArray:
    """Return the soft neighborhood density of the probabilities of target rows."""
    return _each(bench, lambda output: soft_neighborhood_density(output.probabilities, TEMPERATURE))


def _validate(bench: Bench, score: Callable[[IntArray, IntArray], float]) -> FloatArray:
    codes = bench.problem.codes
    return np.array(
        [
            np.nan if logits is None else score(codes, logits.argmax(axis=1))
            for logits in bench.outputs_left_out()
        ]
    )


def _committee(bench: Bench) -> FloatArray:
    """Return share of the votes for each class of each target row; every adapter has one vote."""
    able, predictions = _predictions(bench)
    if not len(able):
        return np.full(
            (len(bench.problem.X_target), bench.problem.n_classes), 1 / bench.problem.n_classes
        )
    names = [bench.candidates[i].adapter_name for i in able]
    weights = np.array([1 / names.count(name) for name in names])
    return _committee_shares(predictions, weights, bench.problem.n_classes)


def _predictions(bench: Bench) -> tuple[IntArray, IntArray]:
    """Return the numbers of the candidates that predict the target, and their predictions."""
    able = [i for i, output in enumerate(bench.target) if output.logits is not None]
    codes = [bench.target[i].codes for i in able]
    return np.array(able, dtype=int), np.array(codes, dtype=int)


def _each(bench: Bench, score: Callable[..., float]) -> FloatArray:
    return np.array([np.nan if output.logits is None else score(output) for output in bench.target])


PSEUDO_TARGETS: dict[str, Callable[..., Iterable[PseudoTarget]]] = {
    "source domains": source_domains,
    "residual clusters": residual_clusters,
    "target-like": target_like,
    "moved: mean and scale": partial(moved, move=move_mean_and_scale),
    "moved: quantiles": partial(moved, move=move_quantiles),
    "moved: Gaussian": partial(moved, move=move_gaussian),
}
REHEARSALS: dict[str, Callable[[Bench], FloatArray]] = {
    name: partial(_rehearse, name=name, make=make) for name, make in PSEUDO_TARGETS.items()
}
SCORERS: dict[str, Callable[[Bench], FloatArray]] = {
    **REHEARSALS,
    "moved: by class": _rehearse_moved_by_class,
    "resampled: class shares": _rehearse_class_shares,
    "resampled: weights": _rehearse_weighted,
    "source CV": _validate_on_source,
    "weighted CV": _validate_weighted,
    "DEV": _validate_with_control_variate,
    "reverse": _validate_reverse,
    "committee": _agree_with_committee,
    "kappa": _agree_beyond_chance,
    "spectral": _weigh_by_spectrum,
    "entropy": _be_sure,
    "information": _be_sure_and_diverse,
    "density": _be_clustered,
}
