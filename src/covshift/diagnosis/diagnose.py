"""`diagnose`: from rows of all domains to a `Diagnosis`.

The advice comes from the code that `AutoAdaptedClassifier` runs before it fits anything, or
`AutoAdaptedRegressor` where the label is a number: the same bench of candidates, choice and
assessment for the same rows, settings and seed.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _get_feature_names

from covshift.base import check_option
from covshift.diagnosis.diagnosis import Diagnosis, Findings, Rows
from covshift.diagnosis.movement import measure_movement
from covshift.diagnosis.stability import measure_stability
from covshift.diagnosis.weighting import measure_weighting
from covshift.domains import check_fit_domains, known_labels
from covshift.predictors.objective import ACCURACY, OBJECTIVES
from covshift.rows import check_readable
from covshift.selection.assessment import MAX_RISK
from covshift.selection.auto_adapted_classifier import AutoAdaptedClassifier
from covshift.selection.auto_adapted_regressor import AutoAdaptedRegressor
from covshift.selection.metrics import NUMBER_METRICS, R2
from covshift.streams import bring_home, is_streamed
from covshift.streams.sampling import draw_in_memory

CLASSIFICATION, REGRESSION = "classification", "regression"


def diagnose(
    X: Any,
    y: Any,
    *,
    sample_domain: Any,
    label_mask: Any = None,
    domain_names: dict[int, str] | None = None,
    objective: str | None = None,
    min_gain: float | None = None,
    max_risk: float = MAX_RISK,
    max_rows: int = 600,
    time_budget: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    progress: Callable[[str], object] | None = None,
    task: str = "auto",
) -> Diagnosis:
    """Say what moved between source and target, what to do, how good it will be, how sure that is.

    Parameters
    ----------
    X : {array-like, Dask array} of shape (n_samples, n_features)
        Rows of all domains, numbers only. Of a Dask array, or a memory map of more than 256 MB, as
        many rows as fit into 256 MB are drawn first, with a warning.
    y : array-like of shape (n_samples,)
        Classes or numbers; what rows without a known label hold is never read.
    sample_domain : array-like of shape (n_samples,)
        Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. Several source domains show
        what carries over from one to the other.
    label_mask : array-like of bool of shape (n_samples,), default=None
        Where the label is known; default: source rows. Labels of target rows narrow the intervals.
    domain_names : dict of int to str, default=None
        Names of the domains, for the report.
    objective : {"accuracy", "balanced_accuracy", "r2", "mae"}, default=None
        Metric of the scores, which the recommended model optimizes: the first two for
        classes, R² and the mean absolute error for numbers. None: "accuracy" or "r2".
    min_gain : float or None, default=None
        Expected gain over the plain model from which adapting is recommended; None: that of the
        recommended model's class.
    max_risk : float, default=MAX_RISK
        Accepted probability that the recommended model loses more than .01 against the plain one.
    max_rows : int, default=600
        Rows of each role that are examined, drawn in proportion to domains and classes.
    time_budget : float, default=None
        Seconds for the scores of candidates: those not begun by then are left out.
    n_jobs : int, default=None
        Processes, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of all random draws.
    verbose : int, default=0
        1 prints a line for each stage as it begins.
    progress : callable or None, default=None
        Called with the name of each stage as it begins; in place of the lines of ``verbose``.
    task : {"auto", "classification", "regression"}, default="auto"
        Kind of the label. "auto": a number where scikit-learn's ``type_of_target`` calls the known
        labels "continuous" (floats that are not all whole), else a class.

    Returns
    -------
    Diagnosis
        Its ``assessment`` equals ``assessment_`` of an `AutoAdaptedClassifier`, or
        `AutoAdaptedRegressor`, with the same ``objective``, ``min_gain``, ``max_risk``,
        ``max_rows`` and ``random_state`` that is fitted to these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import diagnose, stack_domains
    >>> rng = np.random.RandomState(0)
    >>> y = np.arange(100) % 2
    >>> sites = {
    ...     name: (rng.standard_normal((100, 3)) + 2 * y[:, None] + move, y)
    ...     for name, move in (("A", 0), ("B", 4), ("C", -4))
    ... }
    >>> X_new = rng.standard_normal((100, 3)) + 2 * y[:, None] + 8
    >>> data = stack_domains(sites, target={"D": X_new})
    >>> diagnosis = diagnose(data.X, data.y, sample_domain=data.sample_domain, max_rows=100)
    >>> diagnosis.assessment.determinability.determinable
    True
    >>> diagnosis.assessment.recommended.value >= diagnosis.assessment.plain.value
    True
    """
    check_option("task", task, ("auto", CLASSIFICATION, REGRESSION))
    if sample_domain is None:
        raise ValueError("diagnose needs sample_domain. See covshift.stack_domains.")
    tell = progress or (_print if verbose else _say_nothing)
    if random_state is None:  # so that the recommended model has the same seed
        random_state = int(check_random_state(None).randint(2**31 - 1))
    if not is_streamed(X):
        check_readable(X)
    names = _get_feature_names(X)
    y, sample_domain, label_mask = map(bring_home, (y, sample_domain, label_mask))
    numbers = None
    if is_streamed(X):
        X, y, sample_domain, label_mask, numbers = draw_in_memory(
            X, y, sample_domain, label_mask, what="The diagnosis is made"
        )
    if task == "auto":
        task = recognize_task(y, sample_domain, label_mask)
    if objective is None:
        objective = ACCURACY if task == CLASSIFICATION else R2
    known = OBJECTIVES if task == CLASSIFICATION else tuple(NUMBER_METRICS)
    check_option("objective", objective, known)
    kind = AutoAdaptedClassifier if task == CLASSIFICATION else AutoAdaptedRegressor
    recommended = kind(
        objective=objective,
        max_risk=max_risk,
        max_rows=max_rows,
        time_budget=time_budget,
        n_jobs=n_jobs,
        random_state=deepcopy(random_state),
    )
    if min_gain is not None:
        recommended.set_params(min_gain=min_gain)
    model = clone(recommended)
    bench, data, problem = model._prepare(X, y, sample_domain, label_mask)
    choice = model._choose(bench, data, lambda kind, number, total: tell(f"scores: {kind}"))
    tell("what moved")
    movement = measure_movement(bench, names, domain_names)
    tell("whether weights could work")
    weighting = measure_weighting(bench)
    tell("whether P(y | x) is the same in all source domains")
    stability = measure_stability(bench)
    return Diagnosis(
        choice,
        Findings(movement, weighting, stability),
        Rows(
            data,
            np.arange(len(data.X)) if numbers is None else numbers,
            (len(problem.X_source), len(problem.X_target)),
            None if names is None else [str(name) for name in names],
        ),
        bench,
        model,
        recommended,
    )


def recognize_task(y: Any, sample_domain: Any, label_mask: Any = None) -> str:
    """Return "regression" where the known labels are numbers of many values, else "classification".

    As scikit-learn's ``type_of_target``: floats that are not all whole are "continuous".
    """
    domains = check_fit_domains(sample_domain, label_mask, len(y))
    labels = known_labels(y, domains.label_mask, kind="any")
    is_number = labels.dtype.kind == "f" and type_of_target(labels) == "continuous"
    return REGRESSION if is_number else CLASSIFICATION


def _print(stage: str) -> None:
    print(f"[diagnose] {stage}")


def _say_nothing(stage: str) -> None:
    return None
