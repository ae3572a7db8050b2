"""Fitting many filters at once."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from covshift.adapters._filter import SparseFilter
from covshift.adapters._filter_fit import minimize_filters


def fit_many(
    estimators: Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    sample_domain: Any = None,
    label_mask: Any = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Fit several filters to the same data, in one go.

    Filters of the same shape and activation are evaluated together, whatever their rewards,
    penalties, seeds and numbers of restarts; the others run beside them. That is several times
    faster than fitting them one after the other, above all for small problems.

    Parameters
    ----------
    estimators : iterable of `SparseFiltering` and `PeriodicSparseFiltering`
        Settings. They are not changed: clones of them are fitted.
    X, y, sample_domain, label_mask
        As in their ``fit``; shared by all.
    n_jobs : int, default=None
        Threads; the result does not depend on it. The estimators' own ``n_jobs`` are not used.

    Returns
    -------
    list
        Fitted clones, in the order of ``estimators``. Each is what its own ``fit`` would give,
        up to rounding in sums of another order.

    Examples
    --------
    >>> from covshift import PeriodicSparseFiltering, fit_many, stack_domains
    >>> from covshift.datasets import make_periodic_shift
    >>> data = make_periodic_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> settings = [
    ...     PeriodicSparseFiltering(8, label_reward=reward, max_iter=500, random_state=0)
    ...     for reward in (0.5, 1.0, 2.0)
    ... ]
    >>> fitted = fit_many(settings, X, y, sample_domain=sample_domain)
    >>> [filter_.label_reward for filter_ in fitted]
    [0.5, 1.0, 2.0]
    """
    filters = [clone(estimator) for estimator in estimators]
    for filter_ in filters:
        if not isinstance(filter_, SparseFilter):
            raise TypeError(
                "fit_many takes SparseFiltering and PeriodicSparseFiltering, got "
                f"{type(filter_).__name__}: fit it by itself."
            )
    problems = [filter_._state_problem(X, y, sample_domain, label_mask) for filter_ in filters]
    # Validating made an array of each; one for all lets them be evaluated together.
    problems = [problem.on_rows_of(problems[0]) for problem in problems]
    all_paths = minimize_filters(problems, n_jobs)
    for filter_, problem, paths in zip(filters, problems, all_paths, strict=True):
        filter_._keep_best(problem, paths)
        filter_._warn_unless_converged()
    return filters
