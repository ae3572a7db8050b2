"""Rules of choosing: each gives class numbers of a task's test rows, and has seen none of them."""

import numpy as np

from covshift.selection.score_table import UNTRAINED
from covshift.selection.vote import vote_weights

N_MEMBERS = 7
# A mean of pseudo-targets that an earlier pilot found best without learning.
GROUPS = ("source domains", "residual clusters")
OTHERS = ("target-like", "moved: mean and scale", "moved: quantiles")
SUBSPACES = ("SA 8", "SA 30")  # as they are called where there are features enough


def pick(task, combined):
    """What the best by a combined score says."""
    return task.predictions[int(np.argmax(np.where(task.allowed, combined, -np.inf)))]


def vote(task, combined, n_members=N_MEMBERS):
    """What the best say together, weighed as the package does."""
    return vote_with(task, vote_weights(combined, task.allowed, n_members))


def vote_with(task, weights):
    """The vote with these weights of the candidates, for balanced accuracy."""
    members = np.flatnonzero(weights)
    P = np.tensordot(weights[members], task.probabilities[members], axes=1)
    return (P / task.source_shares).argmax(axis=1)


def balanced(task, name):
    """One candidate by name, its calibrated probabilities divided by class shares likewise."""
    return vote_with(task, (np.array(task.candidates) == name) * 1.0)


def vote_guarded(task, combined, guard):
    """The vote, unless it leads the best unadapted candidate by less than the guard.

    As `covshift.selection.choice.guard_weights`, in units of the combined score.
    """
    weights = vote_weights(combined, task.allowed, N_MEMBERS)
    plain = np.where(task.allowed & task.unadapted, combined, -np.inf)
    if weights @ combined - plain.max() < guard:
        weights = (np.arange(len(weights)) == plain.argmax()) * 1.0
    return vote_with(task, weights)


def equal_vote(task):
    """Everyone who may be ranked, with the same weight."""
    return vote_with(task, task.allowed / task.allowed.sum())


def by_score(task, name):
    """A score as a rule ranks by it: one that cannot tell comes last."""
    return np.nan_to_num(task.scores[name], nan=-1e9)


def untrained(task):
    """The weighted mean that needs no learning."""
    return sum(w * by_score(task, name) for name, w in UNTRAINED.items()) / sum(UNTRAINED.values())


def four_pseudo_targets(task):
    """Mean of source domains (or clusters), target-like rows, and two ways of moving rows."""
    groups = next(name for name in GROUPS if not np.isnan(task.scores[name]).all())
    return np.nanmean([task.scores[name] for name in (groups, *OTHERS)], axis=0)


def unadapted_regression(task):
    """Logistic regression without adaptation."""
    return task.predictions[task.candidates.index("none + LR")]


def best_unadapted(task):
    """The best unadapted model by validation on the source, domain by domain where there are some.

    Without several domains: by plain cross-validation.
    """
    domains = task.scores["source domains"]
    scores = task.scores["source CV"] if np.isnan(domains).all() else domains
    return task.predictions[int(np.nanargmax(np.where(task.unadapted, scores, np.nan)))]


def fixed_methods(task):
    """Predictions by name of the method; subspaces too small for their names keep them."""
    sizes = list(dict.fromkeys(name for name in task.adapters if name.startswith("SA ")))
    renamed = dict(zip(sizes, SUBSPACES, strict=False))
    methods = {}
    for name, adapter, codes in zip(task.candidates, task.adapters, task.predictions, strict=True):
        methods[name.replace(adapter, renamed.get(adapter, adapter), 1)] = codes
    if len(sizes) == 1:  # both have all features
        for model in ("LR", "RBF SVM"):
            methods[f"{SUBSPACES[1]} + {model}"] = methods[f"{SUBSPACES[0]} + {model}"]
    return methods
