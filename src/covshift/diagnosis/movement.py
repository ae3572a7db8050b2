r"""Shift between source and target: as a whole, by feature, class shares and target domain.

The kernel distance sees any movement, the classifier says how well it separates
source rows from target rows. For a person to read, MMD² is put in relation to its largest value,

.. math::

    \text{share lost} = \frac{\mathrm{MMD}^2}{\mathbb{E}\,k(a, a') + \mathbb{E}\,k(b, b')}
        = 1 - \frac{2\,\mathbb{E}\,k(a, b)}{\mathbb{E}\,k(a, a') + \mathbb{E}\,k(b, b')}:

the share of the closeness of rows of one role that is lost between the roles; 0 where nothing
moved (below it by chance), 1 where no target row is near a source row. Its bandwidth is the median
distance between source rows: that of the test, over all rows, grows with the movement and would
keep the share from 1. With many features all rows are far apart, and the share is small.

How much of a movement is due to **class shares** is *not identifiable*: rows that moved may look
like classes that became more frequent. The figures here say what class shares alone would explain,
not that they do. Where the label is a number, its classes are groups between its quantiles.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import feature_scales, feature_variances
from covshift.kernels.gaussian_kernels import rbf_kernel
from covshift.measures import (
    classifier_two_sample_test,
    holm,
    ks_test,
    median_bandwidth,
    mmd,
    mmd_test,
)
from covshift.measures.weights_and_overlap import fit_support
from covshift.report.document import to_plain
from covshift.selection.bench import Bench, Problem
from covshift.selection.importance_weights import (
    MIN_ROLE_ROWS,
    class_share_weights,
    left_unexplained,
)
from covshift.warning_filters import ignored_warnings

LEVEL = 0.05  # of the tests, with Holm's correction over tests, features, domains
MAX_TESTED_ROWS = 1000  # of a role; more rows make no test sharper
N_PERMUTATIONS = 299
MAX_LISTED_FEATURES = 10  # listed
# Source rows for each row of a small target domain: more of them make no test sharper.
SOURCE_ROWS_FOR_EACH, MIN_SOURCE_ROWS = 5, 200


class FeatureMovement(NamedTuple):
    """How one feature moved. Means are in units of its standard deviation over the source."""

    feature: int
    name: str
    distance: float  # Kolmogorov-Smirnov, 0 to 1
    pvalue: float  # Holm, over all features
    mean_before: float
    mean_after: float
    spread_ratio: float  # standard deviation in the target over that in the source; NaN: 0 there


class DomainMovement(NamedTuple):
    """How far one target domain is from the source; NaN: too few rows to determine it."""

    domain: int
    name: str
    n_rows: int
    effect_size: float  # 2 AUC - 1
    pvalue: float  # Holm, over the domains that have enough rows
    overlap: float  # share of its rows inside the support of the source


class Movement(NamedTuple):
    """Result of `measure_movement`; NaN where there are too few rows to determine it."""

    moved: bool
    n_source: int
    n_target: int
    mmd: float  # MMD², features in units of the source
    mmd_pvalue: float
    share_lost: float  # the distance scaled to 0 to 1: see the module
    auc: float
    auc_interval: tuple[float, float]
    auc_pvalue: float
    n_features: int
    n_features_moved: int
    features: list[FeatureMovement]  # the features that moved most, at most 10
    source_shares: FloatArray
    target_shares: FloatArray  # if class shares alone had changed
    auc_left_by_shares: float
    share_explained: float  # of AUC - .5, by class shares alone; NaN: no effect to explain
    domains: list[DomainMovement]

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers, texts and lists."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def measure_movement(
    bench: Bench,
    feature_names: Sequence[str] | None = None,
    domain_names: dict[int, str] | None = None,
) -> Movement:
    """Measure how source and target of the bench's problem differ.

    Parameters
    ----------
    bench : Bench
        Its first unadapted candidate estimates the class proportions.
    feature_names : sequence of str, default=None
        None: x0, x1, ...
    domain_names : dict of int to str, default=None
        Names of target domains; one that has none is called by its number.

    Returns
    -------
    Movement
    """
    problem = bench.problem.thinned(MAX_TESTED_ROWS, bench.rng("movement: rows"))
    X, T = problem.X_source, problem.X_target
    with ignored_warnings(ConvergenceWarning):  # expected where rows separate easily
        squared, mmd_pvalue, share_lost = _kernel_distance(X, T, bench.rng("movement: MMD"))
        auc, interval, auc_pvalue = _tell_apart(X, T, bench.rng("movement: C2ST"))
        source_shares, target_shares, auc_left = _class_shares(bench)
        domains = _domains(problem, domain_names or {}, bench.rng("movement: domains"))
    features, n_moved = _features(X, T, feature_names)
    pvalues = [p for p in (mmd_pvalue, auc_pvalue) if not np.isnan(p)]
    return Movement(
        moved=bool(pvalues and holm(pvalues).min() <= LEVEL),
        n_source=len(bench.problem.X_source),
        n_target=len(bench.problem.X_target),
        mmd=squared,
        mmd_pvalue=mmd_pvalue,
        share_lost=share_lost,
        auc=auc,
        auc_interval=interval,
        auc_pvalue=auc_pvalue,
        n_features=X.shape[1],
        n_features_moved=n_moved,
        features=features,
        source_shares=source_shares,
        target_shares=target_shares,
        auc_left_by_shares=auc_left,
        share_explained=_share_explained(auc, auc_pvalue, auc_left),
        domains=domains,
    )


def _share_explained(auc: float, pvalue: float, auc_left: float) -> float:
    """Share of AUC - .5 that an explanation takes away; NaN where there is no effect to explain."""
    if np.isnan(auc_left) or not (pvalue <= LEVEL and auc > 0.5):
        return np.nan
    return float(np.clip((auc - auc_left) / (auc - 0.5), 0, 1))


def _kernel_distance(
    X: FloatArray, T: FloatArray, rng: np.random.RandomState
) -> tuple[float, float, float]:
    """MMD², its p-value and the share lost, with features in units of the source."""
    if min(len(X), len(T)) < 2:
        return np.nan, np.nan, np.nan
    center, scale = X.mean(axis=0), feature_scales(X)
    X, T = (X - center) / scale, (T - center) / scale
    test = mmd_test(X, T, n_permutations=N_PERMUTATIONS, random_state=rng)
    own = median_bandwidth(X[::2], X[1::2])
    squared = mmd(X, T, bandwidth=own)
    within = squared + 2 * float(rbf_kernel(np.array([own]))(X, T).mean())
    return test.statistic, test.pvalue, squared / within if within > 0 else np.nan


def _tell_apart(
    X: FloatArray, T: FloatArray, rng: np.random.RandomState
) -> tuple[float, tuple[float, float], float]:
    """Return the AUC of a classifier of source against target, its interval and p-value."""
    if min(len(X), len(T)) < MIN_ROLE_ROWS:
        return np.nan, (np.nan, np.nan), np.nan
    test = classifier_two_sample_test(X, T, random_state=rng, n_importance_repeats=0)
    return test.statistic, test.interval, test.pvalue


def _features(
    X: FloatArray, T: FloatArray, names: Sequence[str] | None
) -> tuple[list[FeatureMovement], int]:
    """Return the features that moved most, and how many moved."""
    test = ks_test(X, T)
    scale = feature_scales(X)
    before, after = X.mean(axis=0) / scale, T.mean(axis=0) / scale
    ratios = np.where(feature_variances(X) > 0, T.std(axis=0) / scale, np.nan)
    # Of equal distances the one with the larger movement of the mean, then the first.
    order = np.lexsort((-np.abs(after - before), -test.statistics))[:MAX_LISTED_FEATURES]
    listed = [
        FeatureMovement(
            int(j),
            f"x{j}" if names is None else str(names[j]),
            float(test.statistics[j]),
            float(test.adjusted_pvalues[j]),
            float(before[j]),
            float(after[j]),
            float(ratios[j]),
        )
        for j in order
    ]
    return listed, int((test.adjusted_pvalues <= LEVEL).sum())


def _class_shares(bench: Bench) -> tuple[FloatArray, FloatArray, float]:
    """Return shares of the source, those estimated for the target, and the AUC that they leave."""
    codes, n_classes = bench.problem.codes, bench.problem.n_classes
    weights = class_share_weights(bench)
    shares = np.bincount(codes, minlength=n_classes) / len(codes)
    target = np.bincount(codes, weights=weights, minlength=n_classes) / len(codes)
    if np.isnan(weights).any():
        target = np.full(n_classes, np.nan)
    return shares, target, left_unexplained(bench, weights)


def _domains(
    problem: Problem, names: dict[int, str], rng: np.random.RandomState
) -> list[DomainMovement]:
    """Return one row for each target domain."""
    outside = np.full(len(problem.X_target), np.nan)
    support = fit_support(problem.X_source)
    if support is not None:
        outside = support.outside(problem.X_target).astype(float)
    rows_of = {
        int(domain): np.flatnonzero(problem.target_domain == domain)
        for domain in np.unique(problem.target_domain)[::-1]  # -1, -2, ...: as they were given
    }
    effects = {domain: _domain_effect(problem, rows, rng) for domain, rows in rows_of.items()}
    told = [domain for domain, (_, pvalue) in effects.items() if not np.isnan(pvalue)]
    adjusted = dict(zip(told, holm([effects[domain][1] for domain in told]), strict=True))
    return [
        DomainMovement(
            domain,
            names.get(domain, str(domain)),
            len(rows),
            effects[domain][0],
            float(adjusted.get(domain, np.nan)),
            float(1 - outside[rows].mean()),
        )
        for domain, rows in rows_of.items()
    ]


def _domain_effect(
    problem: Problem, rows: IntArray, rng: np.random.RandomState
) -> tuple[float, float]:
    X = problem.X_source
    n_source = max(MIN_SOURCE_ROWS, SOURCE_ROWS_FOR_EACH * len(rows))
    if len(X) > n_source:
        X = X[rng.permutation(len(X))[:n_source]]
    auc, _, pvalue = _tell_apart(X, problem.X_target[rows], rng)
    return 2 * auc - 1, pvalue
