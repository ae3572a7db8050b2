"""The regressor that tries every adapter and averages the best of them."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from covshift.base import DomainRequests
from covshift.domains import FitDomains, check_no_placeholders, known_labels
from covshift.kernels.arrays import FloatArray
from covshift.predictors.objective import MAE, R2
from covshift.predictors.prediction_sets import IntervalPredictor
from covshift.selection.assessment import MAX_RISK
from covshift.selection.auto_adapted import AutoAdapted, Labels
from covshift.selection.label_tasks import NumberTask, number_task
from covshift.selection.members import mix_probabilities
from covshift.selection.metrics import resolve_number_metric
from covshift.streams import bring_home, is_streamed


class AutoAdaptedRegressor(IntervalPredictor, RegressorMixin, DomainRequests, AutoAdapted):
    """Regressor that tries every adapter, scores them without target labels, and averages.

    As `AutoAdaptedClassifier`, for a number as label. Candidates are pairs of an adapter and a
    model, "no adaptation" among them. Each is scored where source rows play the target, so that
    their labels are known: source rows left out, source rows moved like the target, source rows
    with the label shares estimated for the target, and source domains
    (`covshift.selection.rehearsals`). From these scores follows the expected gain of each over the
    plain model (`covshift.selection.gains`). The prediction is the weighted mean of the best, each
    kept within the range of the known labels, extended by a tenth of it on either side.

    Parameters
    ----------
    estimator : regressor, default=None
        Your own model: every adapter is tried around it. None: ridge regression, kernel ridge
        regression and extremely randomized trees.
    candidates : list, default=None
        Your own list of pairs (adapter, estimator), triples (name, adapter, estimator) or
        `AdaptedRegressor`; as in `AutoAdaptedClassifier`. None: a default list, from the registry.
    vote : int, default=7
        Number of candidates that are averaged, beside the plain model, which has at least .3 of the
        weight; 1 picks the best alone.
    objective : {"r2", "mae"}, scorer or callable, default="r2"
        Objective of the choice of candidates: R², the mean absolute error, a scorer of
        scikit-learn or its name, or a function of true and predicted labels, where larger is
        better.
    min_gain : float, default=0.0
        Expected gain in R² from which the average is used in place of the plain model; it must be
        positive in any case.
    max_risk : float, default=0.5
        Accepted probability that the average loses more than .02 in R² against the plain model.
        Where it is larger, the plain model is used.
    max_rows : int, default=600
        Rows of each role that scores are computed on, drawn in proportion to domains and quantiles
        of the label. The members are fitted to all rows.
    time_budget : float, default=None
        Seconds for the scores: those not begun by then are left out, and ``leaderboard_`` has no
        column for them. Fitting the members comes on top.
    n_jobs : int, default=None
        Processes, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all random draws.
    verbose : int, default=0
        1 prints a line for each score as it begins.
    scores_from : str or path, default=None
        File of scores, as in `AutoAdaptedClassifier`.
    keep_rows : bool, default=True
        Whether to keep at most 1,000 labeled source rows, with what fits that left them out say of
        them, for ``predict_interval``. They are a part of the model and of its file.

    Attributes
    ----------
    leaderboard_ : Leaderboard
        Every candidate with its scores, expected gain in R², weight, time, warnings, and the reason
        if it was disqualified; the best first.
    chosen_ : list of str
        Names of the members, the heaviest first.
    members_ : list of Member
        The fitted members with their weights.
    plain_ : AutoAdaptedRegressor
        The plain model beside the chosen one: the best unadapted candidate by validation on the
        source, on left-out domains if there are several, else on left-out rows.
    objective_ : str or callable
        The objective used.
    score_kind_ : {"rehearsals", "source CV"}
        Basis of the expected gains: rehearsals of all kinds; or, without a target,
        cross-validation on the source.
    assessment_ : Assessment or None
        What to expect of the plain model and of this one, and how sure that is
        (`covshift.selection.assessment`); None without a target.
    decision_ : str
        The advice that was followed, in words.
    label_range_ : tuple of float
        Smallest and largest value that ``predict`` returns.
    held_out_ : HeldOutRows or None
        Source rows that are kept (``keep_rows``), as in `AdaptedRegressor`.
    domains_, n_features_in_, feature_names_in_
        As in `AdaptedRegressor`.

    Notes
    -----
    Labels of target rows that ``label_mask`` declares known are used twice: to score candidates,
    which are fitted without them for that, and to fit the members.

    **Cost**: each candidate is fitted once for every scene in which source rows play the target, on
    at most ``max_rows`` rows of each role, and each member once on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from covshift import AutoAdaptedRegressor, stack_domains
    >>> rng = np.random.RandomState(0)
    >>> X_source, X_new = rng.standard_normal((200, 3)), rng.standard_normal((100, 3))
    >>> y = X_source[:, 0] + X_source[:, 1] ** 2
    >>> X, y, sample_domain = stack_domains(X_source, y, X_new * 2 + 3)
    >>> model = AutoAdaptedRegressor(max_rows=100, random_state=0)
    >>> model = model.fit(X, y, sample_domain=sample_domain)
    >>> model.predict(X_new * 2 + 3).shape
    (100,)
    """

    _label_task: NumberTask

    def __init__(
        self,
        estimator: Any = None,
        candidates: Any = None,
        *,
        vote: int = 7,
        objective: Any = R2,
        min_gain: float = 0.0,
        max_risk: float = MAX_RISK,
        max_rows: int = 600,
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        scores_from: Any = None,
        keep_rows: bool = True,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.vote = vote
        self.objective = objective
        self.min_gain = min_gain
        self.max_risk = max_risk
        self.max_rows = max_rows
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.scores_from = scores_from
        self.keep_rows = keep_rows

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"keep_rows": False, **state})  # older models do not have it

    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict rows, each as a row of its domain.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        sample_domain : array-like of shape (n_samples,), int or str, default=None
            Domain of each row, or the one of all rows. None: the target (the source, if the fit
            saw no target).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if is_streamed(X):
            return self._in_blocks("predict", X, sample_domain)
        X = self._validate_rows(X)
        domain = self._domains_of(sample_domain, X.shape[0])
        task = self._label_task
        P: list[FloatArray | None] = [
            task.apply(member.numbers(X, domain)) for member in self.members_
        ]
        weights = np.array([member.weight for member in self.members_])
        return task.restore(mix_probabilities(P, weights, np.zeros(len(P), dtype=bool))[:, 0])

    def score(
        self, X: Any, y: Any, *, sample_domain: Any = None, sample_weight: Any = None
    ) -> float:
        """Return the coefficient of determination R² on labeled rows; parameters as in ``predict``.

        The placeholders of unlabeled rows are an error.
        """
        y, sample_domain = bring_home(y), bring_home(sample_domain)
        prediction = bring_home(self.predict(X, sample_domain=sample_domain))
        y = check_no_placeholders(y, self._domains_of(sample_domain, len(prediction)), None)
        return float(r2_score(y, prediction, sample_weight=sample_weight))

    @property
    def label_range_(self) -> tuple[float, float]:
        """Smallest and largest value that ``predict`` returns."""
        check_is_fitted(self)
        task = self._label_task
        low, high = task.restore(np.array([task.low, task.high]))
        return float(low), float(high)

    def _read_labels(self, y: Any, domains: FitDomains) -> Labels:
        known = known_labels(y, domains.label_mask, kind="number").astype(np.float64)
        mask = domains.label_mask
        of_source = known[domains.source[mask]]
        if not len(of_source):
            raise ValueError("No source row has a known label.")
        task = number_task(of_source)
        values = np.full(len(mask), np.nan)
        values[mask] = task.standardize(known)
        codes = np.full(len(mask), -1, dtype=np.int64)
        codes[mask] = task.group(values[mask])
        self._label_task = task
        metric = resolve_number_metric(self.objective_, task.restore)
        return Labels(codes, len(task.edges) + 1, metric, values, task)

    def _held_out_units(self, labels: Any, scores: FloatArray) -> tuple[Any, FloatArray]:
        task = self._label_task
        return task.restore(labels), task.restore(scores[:, 0])

    def _settings_of_choice(self) -> dict[str, Any]:
        named = isinstance(self.objective_, str) and self.objective_ in (R2, MAE)
        return {"objective": self.objective_ if named else R2}
