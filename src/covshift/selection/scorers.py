r"""Other scores of candidates that read no label of the target, to compare with; larger is better.

The automatic choice uses those of `covshift.selection.rehearsals`.

Each is a function of a `Bench`, one number for each candidate, NaN where it cannot tell.
`SCORERS` lists them by name.

================  ==================================================================================
rehearsals        the mean score where source rows play the target (`pseudo_targets`)
source CV         the score on source rows left out, as source rows
weighted CV, DEV  the same, rows weighed by how much they are like target rows (`weighted_risk`)
reverse           the score on the source of what is learned back from the predicted target
committee, kappa, agreement with the others' predictions on target rows (`label_agreement`,
spectral          `spectral_weights`)
entropy, ...      how sure, diverse and clustered its own predictions are (`prediction_confidence`)
================  ==================================================================================

References
----------
E. Zhong, W. Fan, Q. Yang, O. Verscheure, J. Ren, "Cross validation framework to choose amongst
models and datasets for transfer learning", ECML PKDD 2010 (reverse validation). The others: in the
modules named.
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.label_agreement import committee_shares, pairwise_kappa
from covshift.kernels.prediction_confidence import (
    mean_entropy,
    mutual_information,
    soft_neighborhood_density,
)
from covshift.kernels.spectral_weights import spectral_weights
from covshift.kernels.weighted_risk import deep_embedded_validation, weighted_mean
from covshift.selection.bench import Bench
from covshift.selection.explanations import class_share_weights, importance_weights
from covshift.selection.problem import make_scene
from covshift.selection.pseudo_targets import (
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

TEMPERATURE = 0.05  # of the soft neighborhood density, as its authors set it


def rehearse(bench: Bench, name: str, make: Callable[..., Iterable[PseudoTarget]]) -> FloatArray:
    """Return the mean score over the pseudo-targets of a kind."""
    played = list(make(bench.problem, bench.rng(name)))
    scenes = {f"{name} {number}": one.scene for number, one in enumerate(played)}
    outputs = bench.run(scenes)
    scores = [
        bench.score(outputs[scene], one.codes) for scene, one in zip(scenes, played, strict=True)
    ]
    return np.mean(scores, axis=0) if scores else np.full(len(bench.candidates), np.nan)


def rehearse_moved_by_class(bench: Bench) -> FloatArray:
    """Return the source moved class by class; the committee says of which class target rows are."""
    move = partial(move_by_class, target_codes=_committee(bench).argmax(axis=1))
    return rehearse(bench, "moved: by class", partial(moved, move=move))


def rehearse_class_shares(bench: Bench) -> FloatArray:
    """Return the source with the class shares that the target is estimated to have."""
    make = partial(resampled, weights=class_share_weights(bench))
    return rehearse(bench, "resampled: class shares", make)


def rehearse_weighted(bench: Bench) -> FloatArray:
    """Return the source with rows like the target's more frequent."""
    make = partial(resampled, weights=importance_weights(bench))
    return rehearse(bench, "resampled: weights", make)


def validate_on_source(bench: Bench) -> FloatArray:
    """Score on source rows left out, each as a row of its own domain."""
    return _validate(bench, lambda codes, predicted: bench.metric(codes, predicted))


def validate_weighted(bench: Bench) -> FloatArray:
    """Recall on source rows left out, weighed like target rows, averaged over the classes."""
    weights = importance_weights(bench)

    def score(codes: IntArray, predicted: IntArray) -> float:
        recalls = [
            weighted_mean((predicted == codes)[codes == k].astype(float), weights[codes == k])
            for k in np.unique(codes)
        ]
        return float(np.nanmean(recalls)) if not np.all(np.isnan(recalls)) else np.nan

    return _validate(bench, score)


def validate_with_control_variate(bench: Bench) -> FloatArray:
    """Return one less the estimated risk, classes weighing the same, with DEV's control variate."""
    weights = importance_weights(bench)
    codes = bench.problem.codes
    shares = np.bincount(codes, minlength=bench.problem.n_classes) / len(codes)
    balance = 1 / (shares[codes] * len(np.unique(codes)))

    def score(codes: IntArray, predicted: IntArray) -> float:
        return 1 - deep_embedded_validation(balance * (predicted != codes), weights)

    return _validate(bench, score)


def validate_reverse(bench: Bench) -> FloatArray:
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


def agree_with_committee(bench: Bench) -> FloatArray:
    """Return the share of the committee, one vote for each adapter, that agrees on target rows."""
    shares = _committee(bench)
    rows = np.arange(len(shares))
    return _each(bench, lambda output: float(shares[rows, output.codes].mean()))


def agree_beyond_chance(bench: Bench) -> FloatArray:
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


def weigh_by_spectrum(bench: Bench) -> FloatArray:
    """Weight in the rank-one structure of the agreement on target rows."""
    able, predictions = _predictions(bench)
    scores = np.full(len(bench.candidates), np.nan)
    if len(able) > 2:  # two classes do not show a structure
        scores[able] = spectral_weights(predictions, bench.problem.n_classes)
    return scores


def be_sure(bench: Bench) -> FloatArray:
    """Return the negative mean entropy of the probabilities of target rows."""
    return _each(bench, lambda output: -mean_entropy(output.probabilities))


def be_sure_and_diverse(bench: Bench) -> FloatArray:
    """Return the information about the class in the probabilities of target rows."""
    return _each(bench, lambda output: mutual_information(output.probabilities))


def be_clustered(bench: Bench) -> FloatArray:
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
    return committee_shares(predictions, weights, bench.problem.n_classes)


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
    name: partial(rehearse, name=name, make=make) for name, make in PSEUDO_TARGETS.items()
}
SCORERS: dict[str, Callable[[Bench], FloatArray]] = {
    **REHEARSALS,
    "moved: by class": rehearse_moved_by_class,
    "resampled: class shares": rehearse_class_shares,
    "resampled: weights": rehearse_weighted,
    "source CV": validate_on_source,
    "weighted CV": validate_weighted,
    "DEV": validate_with_control_variate,
    "reverse": validate_reverse,
    "committee": agree_with_committee,
    "kappa": agree_beyond_chance,
    "spectral": weigh_by_spectrum,
    "entropy": be_sure,
    "information": be_sure_and_diverse,
    "density": be_clustered,
}
