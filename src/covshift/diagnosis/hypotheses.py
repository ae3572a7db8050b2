"""What source and target may have in common: one hypothesis for each kind of adapter.

Each adapter works where its own assumption on P(y | x) holds, and harms elsewhere. So the question
which adapter to use is the question which of these hypotheses the data meet.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline

from covshift.adapters import DenoisingAutoencoder, PeriodicSparseFiltering
from covshift.kernels.arrays import IntArray
from covshift.selection.candidates import NO_ADAPTATION, Candidate, pair
from covshift.selection.default_candidates import (
    FILTERED_FEATURES,
    default_adapters,
    kernel_machine,
    linear_machine,
    logistic_regression,
)
from covshift.selection.problem import Problem
from covshift.selection.source_standard_scaler import SourceStandardScaler

PERIODIC_FEATURES = 40  # above which filters with labels take too long to be tried
N_RESTARTS = 10
MAX_ITER = 100
CODES = 20  # of the auto-encoder, at most
EPOCHS = 60
# Labels count for more than sparsity, and the more so the more rows have none: else the target's
# rows outvote them, and the filters settle out of step. On 20 tasks of `periodic_groups`
# (benchmarks/diagnosis) .86 so; with 4 whatever the rows .78, with 1 on 14 others .61.
LABEL_REWARD = 4.0


class Hypothesis(NamedTuple):
    """What is assumed, in words, and the names of the adapters that rest on it."""

    name: str
    assumption: str
    remedy: str
    adapters: tuple[str, ...]


NONE = "same rule"
HYPOTHESES = (
    Hypothesis(
        NONE,
        "the label depends on the features in the same way, and the model has learned that way "
        "wherever the target lies",
        "no adaptation",
        (NO_ADAPTATION,),
    ),
    Hypothesis(
        "same rule where both have rows",
        "the label depends on the features in the same way, and source rows like the target's "
        "are there to be weighed up",
        "importance weights",
        ("uLSIF",),
    ),
    Hypothesis(
        "shift and scale",
        "each domain has its own location and scale of the features, and what is left after "
        "taking them away means the same everywhere",
        "standardising, ranks, CORAL or Monge alignment",
        ("standardise", "standardise groups", "ranks", "CORAL", "Monge"),
    ),
    Hypothesis(
        "rotated axes",
        "the principal axes of the source are those of the target, turned",
        "subspace alignment",
        ("SA 8", "SA 30"),
    ),
    Hypothesis(
        "radial",
        "the label depends on the direction of a row, up to its sign, not on its length",
        "sparse filtering",
        ("SF",),
    ),
    Hypothesis(
        "periodic",
        "the label repeats itself periodically along some directions",
        "periodic sparse filtering",
        ("PSF", "PSF by class"),
    ),
    Hypothesis(
        "low-dimensional",
        "source and target rows lie near one low-dimensional surface, on which the label varies "
        "slowly",
        "a denoising auto-encoder",
        ("DAE",),
    ),
)


def hypothesis_candidates(problem: Problem, n_source: int) -> tuple[list[Candidate], IntArray]:
    """Candidates of all hypotheses, each with a linear and a kernel model; their hypotheses.

    ``n_source``: rows that a recommended model will be fitted to.
    """
    n_features = problem.X_source.shape[1]
    aligned, subspaces, filtered = default_adapters(
        len(problem.X_source), n_features, problem.n_classes
    )
    LR, kernel = ("LR", logistic_regression()), kernel_machine(n_source)
    linear = ("linear SVM", linear_machine(FILTERED_FEATURES))
    # A filter after standardising would be right where either hypothesis is.
    filtered = [(name, adapter) for name, adapter in filtered if name in ("SF", "PSF")]
    if n_features <= PERIODIC_FEATURES:
        filtered.append(("PSF by class", _periodic(problem)))
    candidates = [
        *pair([*aligned, *subspaces, ("DAE", _autoencoder(n_features))], [LR, kernel]),
        *pair(filtered, [linear, kernel]),
    ]
    return candidates, np.array([hypothesis_of(one.adapter_name) for one in candidates])


def hypothesis_of(adapter_name: str) -> int:
    """Number of the hypothesis that an adapter rests on."""
    kind = "SA 8" if adapter_name.startswith("SA ") else adapter_name
    return next(i for i, one in enumerate(HYPOTHESES) if kind in one.adapters)


def _periodic(problem: Problem) -> Any:
    """PSF as the paper has it, with labels; its start fits the spread within a domain."""
    spreads = [
        problem.X_source[problem.source_domain == domain].std(axis=0).mean()
        for domain in problem.source_domains
    ]
    spread = float(np.mean(spreads))
    return PeriodicSparseFiltering(
        label_reward=LABEL_REWARD * (1 + len(problem.X_target) / len(problem.X_source)),
        n_restarts=N_RESTARTS,
        max_iter=MAX_ITER,
        tol=1e-4,
        init_scale=1 / spread if spread > 0 else 1.0,
        random_state=0,
    )


def _autoencoder(n_features: int) -> Any:
    codes = min(CODES, max(2, n_features // 2))
    return make_pipeline(
        SourceStandardScaler(),
        DenoisingAutoencoder(codes, max_epochs=EPOCHS, random_state=0),
    )
