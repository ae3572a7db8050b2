"""`diagnose`: from rows of all domains to a `Diagnosis`, stage by stage."""

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _get_feature_names, check_array

from covshift.base import check_count, check_magnitude, check_number, check_option
from covshift.diagnosis.decidability import judge_decidability
from covshift.diagnosis.diagnosis import Diagnosis, Stages
from covshift.diagnosis.evidence import gather_evidence
from covshift.diagnosis.hypotheses import hypothesis_candidates
from covshift.diagnosis.movement import measure_movement
from covshift.diagnosis.reliance import measure_agreement
from covshift.diagnosis.stability import measure_stability
from covshift.diagnosis.verdict import reach_verdict
from covshift.diagnosis.weighting import measure_weighting
from covshift.domains import check_fit_domains, encode_classes
from covshift.predictors.fitting import problem_size
from covshift.predictors.objective import ACCURACY, OBJECTIVES
from covshift.selection.bench import Bench
from covshift.selection.metrics import METRICS
from covshift.selection.problem import Problem
from covshift.streams import bring_home, is_streamed
from covshift.streams.sampling import draw_in_memory

MIN_ROWS = 20  # of either role: with fewer nothing can be told apart from chance


def diagnose(
    X: Any,
    y: Any,
    *,
    sample_domain: Any,
    label_mask: Any = None,
    domain_names: dict[int, str] | None = None,
    objective: str = ACCURACY,
    max_rows: int = 1000,
    time_budget: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    progress: Callable[[str], object] | None = None,
) -> Diagnosis:
    """Tell what moved between source and target, which assumption the data meet, and what to do.

    Parameters
    ----------
    X : {array-like, Dask array} of shape (n_samples, n_features)
        Rows of all domains, numbers only. Of a Dask array, or a memory map of more than 256 MB, as
        many rows as fit into 256 MB are drawn first, with a warning.
    y : array-like of shape (n_samples,)
        Class labels; what rows without a known label hold is never read.
    sample_domain : array-like of shape (n_samples,)
        Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. Several source domains are
        what most of the evidence comes from.
    label_mask : array-like of bool of shape (n_samples,), default=None
        Where the label is known; default: source rows. Labels of target rows are used as
        `Diagnosis.update` uses them.
    domain_names : dict of int to str, default=None
        Names of the domains, for the report.
    objective : {"accuracy", "balanced_accuracy"}, default="accuracy"
        What gains are measured in, and what the recommended model maximizes.
    max_rows : int, default=1000
        Rows of each role that are looked at, drawn in proportion to domains and classes.
    time_budget : float, default=None
        Seconds: stages that have not begun by then are left out and named in ``skipped``.
    n_jobs : int, default=None
        Processes, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of everything that is drawn.
    verbose : int, default=0
        1 prints a line for each stage as it begins.
    progress : callable or None, default=None
        Called with the name of each stage as it begins; in place of the lines of ``verbose``.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import diagnose, stack_domains
    >>> rng = np.random.RandomState(0)
    >>> y = np.arange(200) % 2
    >>> sites = {
    ...     name: (rng.standard_normal((200, 3)) + 2 * y[:, None] + move, y)
    ...     for name, move in (("A", 0), ("B", 4), ("C", -4))
    ... }
    >>> X_new = rng.standard_normal((200, 3)) + 2 * y[:, None] + 8
    >>> data = stack_domains(sites, target={"D": X_new})
    >>> diagnosis = diagnose(data.X, data.y, sample_domain=data.sample_domain)
    >>> diagnosis.verdict.kind, diagnosis.leading
    ('adapt', 'shift and scale')
    """
    check_option("objective", objective, OBJECTIVES)
    check_count("max_rows", max_rows, minimum=50)
    if time_budget is not None:
        check_number("time_budget", time_budget, minimum=0.0)
    names = _get_feature_names(X)
    y, sample_domain, label_mask = map(bring_home, (y, sample_domain, label_mask))
    rows_of = None
    if is_streamed(X):
        X, y, sample_domain, label_mask, rows_of = draw_in_memory(
            X, y, sample_domain, label_mask, what="The diagnosis is made"
        )
    X = check_array(X, dtype=np.float64)
    check_magnitude(X, names)
    rng = check_random_state(random_state)
    domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
    if not domains.given or not domains.has_target:
        raise ValueError(
            "sample_domain has no target rows (negative entries): there is nothing to compare the "
            "source with. See covshift.stack_domains."
        )
    classes, codes = encode_classes(y, domains.label_mask)
    source = np.flatnonzero(domains.source & domains.label_mask & (codes >= 0))
    target = np.flatnonzero(domains.target)
    _check_enough(len(source), len(target), classes)
    whole = Problem(
        X[source],
        codes[source],
        domains.sample_domain[source],
        X[target],
        domains.sample_domain[target],
        len(classes),
    )
    drawn, drawn_target = whole.draw_rows(max_rows, rng)
    # Labelled target rows are among the rows that are looked at, whatever is drawn.
    labelled = np.flatnonzero(domains.label_mask[target] & (codes[target] >= 0))
    drawn_target = np.union1d(drawn_target, labelled)
    problem = whole.take(drawn, drawn_target)
    # Settings are for all rows, as those of the model that is fitted to them.
    size = problem_size(X, len(classes), domains.sample_domain)
    candidates, hypothesis_of = hypothesis_candidates(size)
    bench = Bench(
        candidates, problem, METRICS[objective], seed=int(rng.randint(2**31 - 1)), n_jobs=n_jobs
    )
    stages = run_stages(
        bench,
        hypothesis_of,
        names=None if names is None else list(names),
        domain_names=domain_names or {},
        deadline=None if time_budget is None else monotonic() + time_budget,
        tell=progress or (_print if verbose else _say_nothing),
    )
    numbers = np.arange(len(X)) if rows_of is None else rows_of
    diagnosis = Diagnosis(
        stages,
        bench,
        hypothesis_of,
        classes=classes,
        target_rows=numbers[target[drawn_target]],
        n_rows=(len(source), len(target)),
        feature_names=None if names is None else list(names),
        domain_names=domain_names or {},
        objective=objective,
    )
    if len(labelled):
        rows = target[labelled]
        diagnosis = diagnosis.update(numbers[rows], classes[codes[rows]])
    return diagnosis


def run_stages(
    bench: Bench,
    hypothesis_of: Any,
    *,
    names: list[str] | None,
    domain_names: dict[int, str],
    deadline: float | None,
    tell: Callable[[str], object],
) -> Stages:
    """Movement, weighting, stability, evidence, verdict."""
    skipped: list[str] = []

    def out_of_time(stage: str) -> bool:
        tell(stage)
        late = deadline is not None and monotonic() > deadline
        if late:
            skipped.append(stage)
        return late

    tell("has it moved?")
    movement = measure_movement(bench, names, domain_names)
    tell("can weighting work?")
    weighting = measure_weighting(bench)
    tell("is P(y | x) the same in all source domains?")
    stability = measure_stability(bench)
    evidence = gather_evidence(bench, hypothesis_of, out_of_time)
    n_played = 0 if evidence.source_domains is None else len(evidence.source_domains.by_scene)
    decidability = judge_decidability(bench.problem, n_played, weighting)
    verdict = reach_verdict(movement, decidability, evidence, partial(measure_agreement, bench))
    return Stages(movement, weighting, stability, decidability, evidence, verdict, None, skipped)


def _check_enough(n_source: int, n_target: int, classes: Any) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"The known labels are all {classes[0]!r}: a diagnosis needs at least two classes."
        )
    if min(n_source, n_target) < MIN_ROWS:
        raise ValueError(
            f"There are {n_source} labelled source rows and {n_target} target rows; at least "
            f"{MIN_ROWS} of each are needed to tell a movement from chance."
        )


def _print(stage: str) -> None:
    print(f"[diagnose] {stage}")


def _say_nothing(stage: str) -> None:
    return None
