"""Bootstrap interval of paired differences whose trials repeat groups (speakers, sites)."""

from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import t as student_t
from sklearn.utils import check_random_state

from covshift.measures.trials import block_sizes, cluster_means


def clustered_bootstrap_interval(
    differences: Any,
    groups: Any,
    *,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: Any = None,
) -> tuple[float, float]:
    r"""Bootstrap interval of the mean of cluster means, resampling whole clusters.

    Parameters
    ----------
    differences, groups : array-like of shape (n_trials,)
        As in `clustered_permutation_test`.
    confidence : float, default=0.95
        Nominal coverage, between 0 and 1.
    n_resamples : int, default=9999
        Resamples of the G clusters, with replacement.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Returns
    -------
    low, high : float
        Ends of the interval.

    Notes
    -----
    Quantiles of the resampled statistics make an interval that is too short for few
    clusters, as if a variance were divided by G, not G - 1, and a normal stood for Student's
    t. So the quantiles taken are those at

    .. math:: \Phi\left(\mp \sqrt{G / (G - 1)} \; t_{G - 1, \, (1 + \text{confidence}) / 2}\right)

    (Hesterberg's expanded percentile interval). For normal means and 95 % it
    covered 87 % with four clusters, 93 % with six and 94 to 95 % from ten on (plain
    quantiles: 81, 87 and 90 %): the resamples cannot leave the range of the cluster means.

    **Cost**: O(n log n + B G) time for G clusters and B resamples, in blocks of bounded
    memory.

    References
    ----------
    T. C. Hesterberg, "What teachers should know about the bootstrap", The American
    Statistician 69, 2015, section 5.3.

    Examples
    --------
    >>> from covshift.measures import clustered_bootstrap_interval
    >>> differences = [0.05, 0.07, 0.02, 0.04, 0.03, 0.06]
    >>> speakers = ["ann", "ann", "bob", "bob", "cem", "dee"]
    >>> low, high = clustered_bootstrap_interval(differences, speakers, random_state=0)
    >>> round(low, 3), round(high, 3)
    (0.03, 0.06)
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}.")
    means = cluster_means(differences, groups)
    n_clusters, random_state = len(means), check_random_state(random_state)
    resampled = np.concatenate(
        [
            means[random_state.randint(n_clusters, size=(size, n_clusters))].mean(axis=1)
            for size in block_sizes(n_resamples, n_clusters)
        ]
    )
    reach = student_t.ppf((1 + confidence) / 2, n_clusters - 1)
    tail = ndtr(-np.sqrt(n_clusters / (n_clusters - 1)) * reach)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
