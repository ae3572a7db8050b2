"""Fitting many filters and auto-encoders at once."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from covshift.adapters._filter_minimization import minimize_filters
from covshift.adapters.denoising_autoencoder import DenoisingAutoencoder, fit_stacked, stacking_key
from covshift.adapters.sparse_filtering import SparseFilter


def fit_many(
    estimators: Iterable[Any],
    X: Any,
    y: Any = None,
    *,
    sample_domain: Any = None,
    label_mask: Any = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Fit several filters or auto-encoders to the same data, in one go.

    Those of the same shape are evaluated together, whatever their rewards, penalties, learning
    rates, seeds and numbers of restarts; the others run beside them. That is several times
    faster than fitting them one after the other, above all for small problems.

    Parameters
    ----------
    estimators : iterable of `SparseFiltering`, `PeriodicSparseFiltering`, `DenoisingAutoencoder`
        Settings. They are not changed: clones of them are fitted.
    X, y, sample_domain, label_mask
        As in their ``fit``; shared by all.
    n_jobs : int, default=None
        Threads for the filters; the result does not depend on it. The estimators' own
        ``n_jobs`` are not used.

    Returns
    -------
    list
        Fitted clones, in the order of ``estimators``. Each equals the result of its own ``fit``,
        up to rounding in sums of another order.

    See Also
    --------
    fit_each : The same for estimators that have their own data each.

    Notes
    -----
    **Cost**: the time of all fits in one thread, but that small problems of one shape share
    their calls; memory as of the largest group that is evaluated together (docs/engine.md).

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import PeriodicSparseFiltering, fit_many
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y, sample_domain = X[:, 0] > 0, np.repeat([0, -1], [60, 30])
    >>> settings = [
    ...     PeriodicSparseFiltering(8, label_reward=reward, max_iter=500, random_state=0)
    ...     for reward in (0.5, 1.0, 2.0)
    ... ]
    >>> fitted = fit_many(settings, X, y, sample_domain=sample_domain)
    >>> [filter_.label_reward for filter_ in fitted]
    [0.5, 1.0, 2.0]
    """
    estimators = list(estimators)
    data = {"X": X, "y": y, "sample_domain": sample_domain, "label_mask": label_mask}
    return _fit_clones(estimators, [data] * len(estimators), n_jobs)


def fit_each(
    estimators: Iterable[Any], data: Sequence[Any], *, n_jobs: int | None = None
) -> list[Any]:
    """Fit several filters or auto-encoders in one go, each to its own data.

    Data of the same shape are evaluated together: trials of an experiment, resamples, folds.

    Parameters
    ----------
    estimators : iterable of `SparseFiltering`, `PeriodicSparseFiltering`, `DenoisingAutoencoder`
        Settings. They are not changed: clones of them are fitted.
    data : sequence of StackedDomains or of tuples (X, y, sample_domain)
        Data that each is fitted to, as `stack_domains` returns them.
    n_jobs : int, default=None
        Threads for the filters; the result does not depend on it.

    Returns
    -------
    list
        Fitted clones, in the order of ``estimators``.

    See Also
    --------
    fit_many : The same for estimators that share their data.

    Notes
    -----
    **Cost**: as `fit_many`; the data of all problems are held at once.

    Examples
    --------
    >>> from covshift import SparseFiltering, fit_each, stack_domains
    >>> from covshift.datasets import make_radial_shift
    >>> draws = [make_radial_shift(random_state=seed) for seed in range(3)]
    >>> data = [stack_domains(draw.X_source, draw.y_source, draw.X_target) for draw in draws]
    >>> filters = [SparseFiltering(2, random_state=seed) for seed in range(3)]
    >>> [fitted.components_.shape for fitted in fit_each(filters, data)]
    [(2, 2), (2, 2), (2, 2)]
    """
    estimators = list(estimators)
    if len(estimators) != len(data):
        raise ValueError(
            f"Got {len(estimators)} estimators and {len(data)} data sets: give one data set for "
            "each estimator."
        )
    named = [dict(zip(("X", "y", "sample_domain"), one, strict=True)) for one in data]
    return _fit_clones(estimators, named, n_jobs)


def _fit_clones(estimators: list[Any], data: list[dict[str, Any]], n_jobs: int | None) -> list[Any]:
    fitted = [clone(estimator) for estimator in estimators]
    filters, encoders = [], []
    for pair in zip(fitted, data, strict=True):
        if isinstance(pair[0], SparseFilter):
            filters.append(pair)
        elif isinstance(pair[0], DenoisingAutoencoder):
            encoders.append(pair)
        else:
            raise TypeError(
                "Only SparseFiltering, PeriodicSparseFiltering and DenoisingAutoencoder can be "
                f"fitted together, not {type(pair[0]).__name__}: fit it by itself."
            )
    _fit_filters(filters, n_jobs)
    _fit_encoders(encoders)
    return fitted


def _fit_filters(pairs: list[tuple[Any, dict[str, Any]]], n_jobs: int | None) -> None:
    problems: list[Any] = []
    for filter_, data in pairs:
        same_data = bool(problems) and data is pairs[0][1]
        problems.append(filter_._state_problem(**data, like=problems[0] if same_data else None))
    # Validating makes an array of each list or frame; one for all is evaluated together.
    problems = [problem.on_rows_of(problems[0]) for problem in problems]
    all_paths = minimize_filters(problems, n_jobs)
    for (filter_, _), problem, paths in zip(pairs, problems, all_paths, strict=True):
        filter_._keep_best(problem, paths)
        filter_._warn_unless_converged(stacklevel=5)  # the caller of fit_many or fit_each


def _fit_encoders(pairs: list[tuple[Any, dict[str, Any]]]) -> None:
    stacks: dict[Any, list[tuple[Any, dict[str, Any]]]] = {}
    for encoder, data in pairs:
        key = stacking_key(encoder, np.asarray(data["X"]))
        stacks.setdefault(key, []).append((encoder, data))
    for stack in stacks.values():
        encoders, several = zip(*stack, strict=True)
        fit_stacked(
            encoders,
            [data["X"] for data in several],
            [data.get("sample_domain") for data in several],
            [data.get("label_mask") for data in several],
        )
