"""`Diagnosis`: what was found, the advice that follows, and the rows whose labels would help."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _get_feature_names

from covshift.base import check_count, check_option
from covshift.diagnosis.diagnosis_words import describe, describe_html, summarize
from covshift.diagnosis.movement import Movement, measure_movement
from covshift.diagnosis.report import draw_expected, make_report
from covshift.diagnosis.stability import Stability, measure_stability
from covshift.diagnosis.weighting import Weighting, measure_weighting
from covshift.domains import check_fit_domains, known_labels
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.output_files import write_whole
from covshift.predictors.objectives import ACCURACY, NUMBER_METRICS, OBJECTIVES, R2
from covshift.report.document import to_plain
from covshift.row_checks import check_readable
from covshift.selection.assessment import MAX_RISK, Assessment
from covshift.selection.assessment_words import HOW_TO_LABEL, adapter_rows
from covshift.selection.auto_adapted import AutoAdapted, AutoAdaptedClassifier, AutoAdaptedRegressor
from covshift.selection.bench import Bench
from covshift.selection.choice import Choice
from covshift.selection.label_tasks import NumberTask
from covshift.selection.leaderboard import Leaderboard
from covshift.selection.score_files import write_scores
from covshift.selection.vote import FitData
from covshift.streams import bring_home, is_streamed
from covshift.streams.rows import draw_in_memory


class Findings(NamedTuple):
    """Findings beside the advice."""

    movement: Movement
    weighting: Weighting
    stability: Stability


class Rows(NamedTuple):
    """The rows that a diagnosis is of."""

    data: FitData
    numbers: IntArray  # positions in X, of which a sample may have been drawn into memory
    n_rows: tuple[int, int]  # labeled source rows and target rows
    feature_names: list[str] | None


class Diagnosis:
    """Result of `diagnose`: what moved, the advice, expected scores, and the confidence.

    Attributes
    ----------
    assessment : Assessment or None
        The advice with its numbers (`covshift.selection.assessment`); None where the plain model
        could not be fitted.
    movement, weighting, stability
        Findings: shift, use of weights, whether P(y | x) is the same in all source domains.
    leaderboard : Leaderboard
        Every candidate with its scores and its weight in the recommended model.
    table : list of dict
        A row for each adapter: ``adapter``, ``assumption``, ``candidate`` (its best one),
        ``expected gain`` of that, and ``weight`` in the recommended model.
    recommended : AutoAdaptedClassifier or AutoAdaptedRegressor
        Unfitted, with the same settings and seed: fitted to the same rows, with the same known
        labels, it is the advised model.
    objective : str
        Metric of the scores.
    task : {"classification", "regression"}
        Whether the label is a class or a number.
    classes : ndarray
        Class labels; none where the label is a number.
    n_rows, n_rows_looked_at : tuple of int
        Source rows and target rows; those that scores are from.
    skipped : list of str
        Kinds of tests on source rows (rehearsals) for which there was no time.
    """

    def __init__(
        self,
        choice: Choice,
        findings: Findings,
        rows: Rows,
        bench: Bench,
        model: AutoAdapted,
        recommended: AutoAdapted,
    ) -> None:
        self.assessment: Assessment | None = choice.assessment
        self.movement, self.weighting, self.stability = findings
        self.leaderboard = Leaderboard.of(choice.table, choice.gains, choice.recommended)
        self.table: list[dict[str, Any]] = adapter_rows(self.leaderboard)
        self.objective: str = model.objective_
        is_number = isinstance(bench.task, NumberTask)
        self.task = "regression" if is_number else "classification"
        self.classes = np.array([]) if is_number else model.classes_
        self.n_rows, self.feature_names = rows.n_rows, rows.feature_names
        self.n_rows_looked_at = (len(bench.problem.X_source), len(bench.problem.X_target))
        self.skipped = list(choice.table.skipped)
        self._findings, self._rows, self._bench = findings, rows, bench
        self._model, self._recommended = model, recommended
        self._weights = choice.recommended  # weights of the candidates in the recommended model

    @property
    def recommended(self) -> Any:
        """An unfitted model: fit it with ``fit(X, y, sample_domain=..., label_mask=...)``."""
        return clone(self._recommended)

    def rows_to_label(self, n_rows: int = 20) -> IntArray:
        """Return positions in X of target rows to label, drawn at random.

        Labels of rows drawn at random are a fair sample of the target: the score on them estimates
        the score on all its rows. Rules that ask for rows on which candidates disagree did not find
        the better model with fewer labels, and their labels are not such a sample.

        Parameters
        ----------
        n_rows : int, default=20
            Number of rows; fewer come back where there are fewer without a label. A shorter list
            is the beginning of a longer one.

        Returns
        -------
        ndarray of int
        """
        check_count("n_rows", n_rows, minimum=1)
        data = self._rows.data
        order = self._bench.rng("rows to label").permutation(np.flatnonzero(self._of_target))
        positions: IntArray = self._rows.numbers[order[~data.label_mask[order]][:n_rows]]
        return positions

    def update(self, rows: Any, labels: Any) -> "Diagnosis":
        """Return a diagnosis that uses the labels of some target rows, too.

        The same as `diagnose` with these labels and a ``label_mask``, without scoring the
        candidates again.

        Parameters
        ----------
        rows : array-like of int
            Rows of X, source rows included, as `rows_to_label` returns them: the first target
            row has the number of source rows before it, not 0.
        labels : array-like
            Their labels.

        Returns
        -------
        Diagnosis
        """
        places = self._locate(rows)
        codes, mask = self._rows.data.codes.copy(), self._rows.data.label_mask.copy()
        values, task = self._rows.data.values, self._bench.task
        if isinstance(task, NumberTask) and values is not None:
            values = values.copy()
            values[places] = task.standardize(_check_numbers(labels, len(places)))
            codes[places] = task.group(values[places])
        else:
            codes[places] = self._encode(labels, len(places))
        mask[places] = True
        data = self._rows.data._replace(codes=codes, label_mask=mask, values=values)
        return Diagnosis(
            self._model._choose(self._bench, data),
            self._findings,
            self._rows._replace(data=data),
            self._bench,
            self._model,
            self._recommended,
        )

    def outside_support(self, X: Any) -> BoolArray:
        """Return which rows lie where the source has none: predictions there extrapolate."""
        support = self.weighting.support
        if support is None:
            return np.zeros(len(X), dtype=bool)
        rows: FloatArray = np.asarray(X, dtype=np.float64)
        return support.outside(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts and lists."""
        return {
            "summary": summarize(self),
            "task": self.task,
            "objective": self.objective,
            "assessment": to_plain(self.assessment),
            "rows": list(self.n_rows),
            "rows looked at": list(self.n_rows_looked_at),
            "adapters": to_plain(self.table),
            "leaderboard": to_plain(list(self.leaderboard)),
            "movement": self.movement.to_dict(),
            "weighting": self.weighting.to_dict(),
            "stability": self.stability.to_dict(),
            "skipped": list(self.skipped),
        }

    def plot(self) -> Any:
        """Return a matplotlib figure of expected scores and gains. Needs the extra ``report``."""
        return draw_expected(self)

    def save_scores(self, path: Any) -> None:
        """Write what the candidates said, so that fitting ``recommended`` need not ask them again.

        ``AutoAdaptedClassifier(scores_from=path)`` with the same settings and rows reads the file.
        """
        write_scores(self._bench, path)

    def to_html(
        self,
        path: Any = None,
        *,
        facts: Sequence[tuple[str, str]] = (),
        how_to_label: str = HOW_TO_LABEL,
    ) -> str:
        """Return the report as one self-contained page. Needs the extra ``report``.

        Parameters
        ----------
        path : path or None, default=None
            File to write the page to.
        facts : sequence of (name, text)
            Shown at the head.
        how_to_label : str
            How the reader can bring in labels.

        Returns
        -------
        str
        """
        from covshift.report.page import render_page  # needs an extra

        page = render_page(make_report(self, facts, how_to_label))
        if path is not None:
            write_whole(Path(path), lambda file: file.write(page.encode()))
        return page

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        """Return the sentences and the table of adapters, for notebooks."""
        return describe_html(self)

    @property
    def _of_target(self) -> BoolArray:
        domain = self._rows.data.sample_domain
        assert domain is not None  # `diagnose` needs it
        of_target: BoolArray = domain < 0
        return of_target

    def _locate(self, rows: Any) -> IntArray:
        """Return the places, among the rows in memory, of target rows by position in X."""
        rows, numbers = np.atleast_1d(rows).astype(int), self._rows.numbers
        places: IntArray = np.searchsorted(numbers, rows).clip(max=len(numbers) - 1)
        wrong = (numbers[places] != rows) | ~self._of_target[places]
        if wrong.any():
            raise ValueError(
                f"Row {rows[wrong][0]} is not a target row of this diagnosis. Rows are counted in "
                "X, source rows included; rows_to_label() returns such numbers."
            )
        return places

    def _encode(self, labels: Any, n_rows: int) -> IntArray:
        labels = np.atleast_1d(labels)
        if labels.shape != (n_rows,):
            raise ValueError(f"Got {len(labels)} labels for {n_rows} rows: give one for each.")
        number_of = {label: number for number, label in enumerate(self.classes.tolist())}
        unknown = [label for label in labels.tolist() if label not in number_of]
        if unknown:
            raise ValueError(
                f"Label {unknown[0]!r} is new. Call diagnose again and give all labels by "
                "label_mask: a new class changes the scores of all candidates."
            )
        return np.array([number_of[label] for label in labels.tolist()], dtype=np.int64)


def _check_numbers(labels: Any, n_rows: int) -> FloatArray:
    """Return finite numbers, one for each row."""
    numbers: FloatArray = np.atleast_1d(np.asarray(labels, dtype=np.float64))
    if numbers.shape != (n_rows,):
        raise ValueError(f"Got {len(numbers)} labels for {n_rows} rows: give one for each.")
    if not np.isfinite(numbers).all():
        raise ValueError("Labels must be finite numbers.")
    return numbers


# --- `diagnose`: from rows of all domains to a `Diagnosis` ---
#
# The advice comes from the code that `AutoAdaptedClassifier` runs before it fits anything, or
# `AutoAdaptedRegressor` where the label is a number: the same bench of candidates, choice and
# assessment for the same rows, settings and seed.


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
    """Report what moved between source and target, which model to use and its expected score.

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
        Accepted probability that the recommended model loses more than .01 against the plain model.
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
    y, sample_domain, label_mask = map(bring_home, (y, sample_domain, label_mask))
    numbers = None
    if is_streamed(X):
        X, y, sample_domain, label_mask, numbers = draw_in_memory(
            X, y, sample_domain, label_mask, what="The diagnosis is made"
        )
    else:
        check_readable(X)
    names = _get_feature_names(X)
    if task == "auto":
        task = _recognize_task(y, sample_domain, label_mask)
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
    tell("whether the label depends on the features alike in all source domains")
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


def _recognize_task(y: Any, sample_domain: Any, label_mask: Any = None) -> str:
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
