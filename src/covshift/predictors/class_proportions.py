"""Class proportions: of labeled rows, and of target domains over those of the source.

Those of a target are estimated from probabilities that are calibrated on held-out source rows. The
ratios of a model are a dictionary: `TARGET` has those of all target rows together; the number of a
target domain, as text, has those of a domain with shares of its own.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from covshift.domains import FitDomains
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.probabilities import Scaling, fit_scaling, shares_from_probabilities
from covshift.predictors.fit_and_predict import class_logits
from covshift.predictors.held_out_rows import cross_fit

TARGET = "target"
# Weight of the source's class shares in those estimated for a target, as a part of its rows.
# Without it, shares are mostly noise where classes hardly depend on the features
# (docs/design/0025-expected-gains.md).
SHARE_PRIOR = 0.3
MIN_SHARE_ROWS = 30  # in a target domain, for class proportions of its own


def share_ratios(P: FloatArray, shares: FloatArray, prior: float = 0.0) -> FloatArray:
    """Ratios (K,) of the class proportions of rows to ``shares`` (K,), which P (n, K) is for.

    1 for a class whose share is zero. See `covshift.kernels.probabilities` for ``prior``.
    """
    estimate = shares_from_probabilities(P, shares, prior)
    return np.divide(estimate, shares, out=np.ones_like(shares), where=shares > 0)


def ratios_by_domain(
    domain: IntArray, estimate: Callable[[BoolArray], FloatArray]
) -> dict[str, FloatArray]:
    """Return the ratios of class proportions of all target rows, and of domains with enough.

    Parameters
    ----------
    domain : (n,) domain of each target row.
    estimate : function of a mask (n,) of rows that returns their ratios.
    """
    ratios = {TARGET: estimate(np.ones(len(domain), dtype=bool))}
    for one, count in zip(*np.unique(domain, return_counts=True), strict=True):
        if MIN_SHARE_ROWS <= count < len(domain):
            ratios[str(one)] = estimate(domain == one)
    return ratios


def ratios_of_rows(
    ratios: Mapping[str, FloatArray], domain: Any, n_samples: int, n_classes: int
) -> FloatArray | None:
    """Return the ratios of class proportions (n, K) for rows of these domains, or (K,) for all.

    None, if there are none.

    Source rows have ratios of 1; ``domain`` None: all rows are of the target.
    """
    if not ratios:
        return None
    if domain is None:
        return ratios[TARGET]
    found = np.ones((n_samples, n_classes))
    found[domain < 0] = ratios[TARGET]
    for name, own in ratios.items():
        if name != TARGET:
            found[domain == int(name)] = own
    return found


def fit_proportion_scaling(
    adapter: Any, estimator: Any, X: Any, labels: Any, domains: FitDomains, weights: Any = None
) -> Scaling:
    """Fit the scaling of logits to probabilities by which class proportions are estimated.

    Labeled source rows are dealt into three folds, by class and with a fixed seed. A clone of the
    candidate is fitted without each fold, and to everything else. Parameters as in
    `fit_candidate`.
    """
    classes, known = np.unique(labels, return_inverse=True)
    codes = np.full(len(domains.label_mask), -1)
    codes[domains.label_mask] = known.ravel()
    held = np.flatnonzero(domains.label_mask & domains.source)
    if np.count_nonzero(np.bincount(codes[held], minlength=1) >= 2) < 2:
        raise ValueError(
            'class_shares="estimated" calibrates on source rows that are held out: at least two '
            "classes need two labeled source rows each."
        )
    logits = cross_fit(
        adapter,
        estimator,
        X,
        labels,
        domains,
        held,
        codes[held],
        lambda fitted, rows, domain: class_logits(fitted, rows, classes, domain),
        sample_weight=weights,
    )
    return fit_scaling(
        logits, codes[held], np.ones(len(held)) if weights is None else weights[held]
    )
