"""`AutoAdaptedClassifier` and `AutoAdaptedRegressor`: every adapter tried, the best of them vote.

Their base comes first. Steps that depend on the label are in the two classes and in
`covshift.selection.label_tasks`.
"""

import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import (
    ScoredClassifier,
    ScoredRegressor,
    all_or_nothing,
    check_count,
    check_flag,
    check_number,
    check_option,
    register_target,
    warn_nothing_to_adapt,
)
from covshift.domains import (
    FitDomains,
    check_fit_domains,
    check_new_domains,
    encode_classes,
    known_labels,
)
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.probabilities import reweigh_probabilities
from covshift.predictors import AdaptedClassifier
from covshift.predictors.adapter_steps import check_rowwise
from covshift.predictors.class_proportions import (
    SHARE_PRIOR,
    TARGET,
    ratios_by_domain,
    ratios_of_rows,
    share_ratios,
)
from covshift.predictors.fit_and_predict import problem_size
from covshift.predictors.held_out_rows import HeldOutRows, draw_held_out_rows
from covshift.predictors.objectives import (
    ACCURACY,
    MAE,
    R2,
    Metric,
    decide_classes,
    is_balanced,
    metric_of_objective,
    number_metric_of_objective,
)
from covshift.predictors.prediction_sets import IntervalPredictor, SetPredictor
from covshift.row_checks import check_magnitude, validate_rows
from covshift.selection.assessment import MAX_RISK, MIN_GAIN, Assessment
from covshift.selection.assessment_words import name_candidate, say_advice
from covshift.selection.bench import Bench, Problem
from covshift.selection.candidates import (
    Candidate,
    candidates_around,
    check_candidates,
    default_candidates,
)
from covshift.selection.choice import Choice, choose
from covshift.selection.label_tasks import CLASSES, ClassTask, NumberTask, number_task
from covshift.selection.leaderboard import Leaderboard
from covshift.selection.score_files import read_scores
from covshift.selection.vote import (
    FewerMembersWarning,
    FitData,
    Member,
    adapt_members,
    fit_members,
    mean_probabilities,
    mix_probabilities,
)
from covshift.shared_docs import documented_like
from covshift.streams import bring_home, is_streamed, map_rows
from covshift.streams.rows import draw_in_memory
from covshift.warning_filters import ignored_warnings


class Labels(NamedTuple):
    """Known labels of all rows, as the selection needs them; rows without one have code -1.

    ``codes`` are class numbers or, where the label is a number, groups by the label; ``values``
    are the numbers in units of the source.
    """

    codes: IntArray
    n_classes: int
    metric: Metric
    values: FloatArray | None = None
    task: ClassTask | NumberTask = CLASSES


class AutoAdapted(BaseEstimator):
    """Score all candidates, fit the best of them and the plain model, and assess them.

    A subclass reads the labels (``_read_labels``), has the parameters that are used here, and
    predicts from ``members_``.
    """

    estimator: Any
    candidates: Any
    vote: int
    objective: Any
    min_gain: float
    max_risk: float
    max_rows: int
    time_budget: float | None
    n_jobs: int | None
    random_state: Any
    verbose: int
    scores_from: Any
    keep_rows: bool
    members_: list[Member]
    plain_member_: Member | None
    assessment_: Assessment | None
    # Held-out rows, of models that keep some: see `covshift.predictors.held_out_rows`.
    held_out_rows_: FloatArray | None = None
    held_out_labels_: Any = None
    held_out_domain_: IntArray | None = None
    held_out_scores_: dict[str, FloatArray] | None = None

    def fit(self, X: Any, y: Any, *, sample_domain: Any = None, label_mask: Any = None) -> Self:
        """Score all candidates and fit the members of the ensemble.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows of all domains. Of a Dask array, or a memory map of more than 256 MB, as many rows
            as fit into 256 MB are drawn, with a warning; predictions take all, in blocks.
        y : array-like of shape (n_samples,)
            Labels; what rows without a known label hold is never read.
        sample_domain : array-like of shape (n_samples,), default=None
            Domain of each row: an integer, ``>= 0`` source, ``< 0`` target. None: one source
            domain and nothing to adapt to, so that unadapted candidates vote, with a warning.
        label_mask : array-like of bool of shape (n_samples,), default=None
            Where the label is known; default: source rows.

        Returns
        -------
        self : object
        """
        y, sample_domain, label_mask = map(bring_home, (y, sample_domain, label_mask))
        if is_streamed(X):
            X, y, sample_domain, label_mask, _ = draw_in_memory(
                X, y, sample_domain, label_mask, what=f"{type(self).__name__} is fitted"
            )
        with all_or_nothing(self):
            bench, data, problem = self._prepare(X, y, sample_domain, label_mask)
            choice = self._choose(bench, data)
            # Said once, above; convergence and weights are told in the leaderboard.
            with ignored_warnings(Warning):
                fitted = fit_members(
                    bench, choice.recommended, data, self.n_jobs, also=[choice.plain]
                )
            plain = bench.candidates[choice.plain]
            self.members_ = [member for member in fitted if member.weight > 0]
            self.plain_member_ = next(one for one in fitted if one.candidate is plain)
            self.leaderboard_ = Leaderboard.of(choice.table, choice.gains, choice.recommended)
            self.score_kind_, self.assessment_ = choice.score_kind, choice.assessment
            self.chosen_ = [member.candidate.name for member in self.members_]
            self.decision_ = self._decision()
            self.domain_names_: dict[int, str] = {}
            self._learn_from(problem)
            if self.keep_rows:
                self._keep_held_out(bench, fitted)
        return self

    def _prepare(
        self, X: Any, y: Any, sample_domain: Any, label_mask: Any
    ) -> tuple[Bench, FitData, Problem]:
        """Validate rows in memory; return the bench, all rows, and the problem that they are.

        `covshift.diagnose` uses it too, so that ``fit`` follows its advice.
        """
        if isinstance(X, list | tuple) and not X:
            raise ValueError("X is empty: it needs rows of source and target.")
        validate_data(self, X, y, skip_check_array=True)
        X = self._validate_rows(X, reset=True)
        self._check_parameters()
        self.objective_ = self._resolve_objective()
        domains = check_fit_domains(sample_domain, label_mask, X.shape[0])
        if domains.given and not domains.has_target:
            raise ValueError(
                "sample_domain has no target rows (negative entries) to adapt to. Add the "
                "rows of the target, or leave sample_domain out to fit without adapting."
            )
        if not domains.given:
            warn_nothing_to_adapt(self, "the ensemble has unadapted candidates only", stacklevel=4)
        self.domains_ = domains.domains
        labels = self._read_labels(y, domains)
        problem = self._problem(X, labels, domains)
        rng = check_random_state(self.random_state)
        bench = Bench(
            self._list_candidates(X, labels, domains),
            problem.thinned(self.max_rows, rng),
            labels.metric,
            seed=int(rng.randint(2**31 - 1)),
            n_jobs=self.n_jobs,
        )
        if self.scores_from is not None:
            read_scores(bench, self.scores_from)
        where = domains.sample_domain if domains.given else None
        data = FitData(X, labels.codes, where, domains.label_mask, labels.values)
        return bench, data, problem

    def _choose(
        self, bench: Bench, data: FitData, progress: Callable[[str, int, int], object] | None = None
    ) -> Choice:
        """Score the candidates and choose; labels of target rows in ``data`` count."""
        labeled = None
        if data.sample_domain is not None:
            rows = (data.sample_domain < 0) & data.label_mask
            labeled = (data.X[rows], data.sample_domain[rows], data.labels[rows])
        return choose(
            bench,
            "source CV" if data.sample_domain is None else "rehearsals",
            n_members=self.vote,
            min_gain=self.min_gain,
            max_risk=self.max_risk,
            labeled=labeled,
            time_budget=self.time_budget,
            progress=progress or (self._print if self.verbose else None),
            **self._settings_of_choice(),
        )

    @property
    def plain_(self) -> Self | None:
        """The best unadapted candidate alone, as a model; None if an old file has none."""
        check_is_fitted(self)
        if self.plain_member_ is None:
            return None
        plain = copy(self)
        plain.members_ = [self.plain_member_._replace(weight=1.0)]
        plain.chosen_ = [self.plain_member_.candidate.name]
        plain.decision_ = f"The plain model, {name_candidate(plain.chosen_[0])}."
        plain._strip_to_plain()
        return plain

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target domain without the training data.

        Members that cannot leave the vote, for all targets, with a ``FewerMembersWarning``; the
        others share their weight. If these have less than half of it, it is an error: refit.
        Otherwise the candidates stay those that were chosen for the target of the fit:
        whether this choice is right for another target is not tested.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the new target.
        domain : int, str or None, default=None
            A negative integer or a name, by which ``predict`` will know it; None: it becomes the
            target of rows without ``sample_domain``.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        X = self._validate_rows(X)
        with all_or_nothing(self):
            unit = register_target(self, domain)
            members = adapt_members(self.members_, X, None if domain is None else unit)
            self.members_, left = members
            self.chosen_ = [member.candidate.name for member in self.members_]
            self._learn_target(X, None if domain is None else unit)
        if left:
            warnings.warn(
                "These candidates left the ensemble, because they cannot learn a new target: "
                f"{', '.join(one.candidate.name for one in left)}. Refit to include them.",
                FewerMembersWarning,
                stacklevel=2,
            )
        return self

    def _read_labels(self, y: Any, domains: FitDomains) -> Labels:
        """Validate the known labels, keep what predictions need of them, resolve the metric."""
        raise NotImplementedError

    def _settings_of_choice(self) -> dict[str, Any]:
        """Return the arguments of `choose` that depend on the label."""
        return {}

    @property
    def held_out_(self) -> HeldOutRows | None:
        """Source rows that the model keeps, with held-out predictions; None: it keeps none."""
        check_is_fitted(self)
        if self.held_out_rows_ is None or not self.held_out_scores_:
            return None
        known = self.held_out_scores_
        said = [known.get(member.candidate.name) for member in self.members_]
        if all(one is None for one in said):
            return None
        weights = np.array([member.weight for member in self.members_])
        adapts = np.array([member.candidate.adapts for member in self.members_])
        assert self.held_out_domain_ is not None
        labels, scores = self._held_out_units(
            self.held_out_labels_, mix_probabilities(said, weights, adapts)
        )
        return HeldOutRows(self.held_out_rows_, labels, self.held_out_domain_, scores)

    def _keep_held_out(self, bench: Bench, fitted: list[Member]) -> None:
        """Keep source rows of the bench, with what members say of them that left them out."""
        problem, said = bench.problem, bench.probabilities_left_out()
        names = [one.name for one in bench.candidates]
        by_domain = np.unique(problem.source_domain, return_inverse=True)[1].ravel()
        kept = draw_held_out_rows(by_domain * problem.n_classes + problem.codes)
        self.held_out_rows_ = problem.X_source[kept]
        self.held_out_labels_ = problem.truth[kept]
        self.held_out_domain_ = problem.source_domain[kept]
        of_members = {one.candidate.name: said[names.index(one.candidate.name)] for one in fitted}
        self.held_out_scores_ = {
            name: one[kept] for name, one in of_members.items() if one is not None
        }

    def _held_out_units(self, labels: Any, scores: FloatArray) -> tuple[Any, FloatArray]:
        """Return labels and scores of held-out rows as `HeldOutRows` has them."""
        return labels, scores

    def _learn_from(self, problem: Problem) -> None:
        """Keep what predictions need beside the members."""

    def _strip_to_plain(self) -> None:
        """Forget what the plain model does not use."""

    def _learn_target(self, X: FloatArray, unit: Any) -> None:
        """Keep what predictions of a new target need beside the members."""

    def _resolve_objective(self) -> Any:
        return self.objective

    def _validate_rows(self, X: Any, *, reset: bool = False) -> FloatArray:
        X = validate_rows(self, X, reset=reset, dtype=(np.float64, np.float32))
        if X.dtype == np.float64:  # scores and moves square; float32 rows are small enough
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        rows: FloatArray = X
        return rows

    def _by_rows(self, method: str, X: Any, sample_domain: Any) -> Any:
        """Return the output of one of our methods for rows of any kind."""
        check_is_fitted(self)
        if is_streamed(X):
            for member in self.members_:
                check_rowwise(member.model.adapter_)
            return map_rows(self, method, X, sample_domain=sample_domain)
        X = self._validate_rows(X)
        return self._by_checked_rows(method, X, self._domains_of(sample_domain, X.shape[0]))

    def _by_checked_rows(self, method: str, X: FloatArray, domain: Any) -> Any:
        """Return the output of one of our methods for rows in memory."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        if self.estimator is not None and self.candidates is not None:
            raise ValueError("Give estimator or candidates, not both.")
        check_count("vote", self.vote, minimum=1)
        check_flag("keep_rows", self.keep_rows)
        check_count("max_rows", self.max_rows, minimum=50)
        check_number("min_gain", self.min_gain, minimum=0.0)
        check_number("max_risk", self.max_risk, minimum=0.0)
        if self.max_risk > 1:
            raise ValueError(f"max_risk is a probability, from 0 to 1; got {self.max_risk!r}.")
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, minimum=0.0)

    def _problem(self, X: FloatArray, labels: Labels, domains: FitDomains) -> Problem:
        codes = labels.codes
        source = domains.source & domains.label_mask & (codes >= 0)
        # Without a target the source is used: unadapted candidates only compare with it.
        target = domains.target if domains.has_target else source
        target_domain = np.where(domains.target, domains.sample_domain, -1)[target]
        return Problem(
            X[source], codes[source], domains.sample_domain[source], X[target], target_domain,
            labels.n_classes, None if labels.values is None else labels.values[source], labels.task,
        )  # fmt: skip

    def _list_candidates(
        self, X: FloatArray, labels: Labels, domains: FitDomains
    ) -> list[Candidate]:
        # Of all rows, unlabeled source rows included: what a name means in AdaptedClassifier.
        n_classes = labels.n_classes if labels.values is None else 1
        size = problem_size(X, n_classes, domains.sample_domain)
        if self.candidates is not None:
            candidates = check_candidates(self.candidates, size, labels.task.label)
        elif self.estimator is not None:
            candidates = candidates_around(self.estimator, size, labels.task.label)
        else:
            candidates = default_candidates(size, labels.task.label)
        if domains.given:
            return candidates
        return [one for one in candidates if not one.adapts]

    def _decision(self) -> str:
        if self.assessment_ is not None:
            return say_advice(self.assessment_)
        return (
            f"An ensemble of {len(self.chosen_)} models, led by {name_candidate(self.chosen_[0])}."
        )

    def _print(self, name: str, number: int, total: int) -> None:
        print(f"[{type(self).__name__}] score {number + 1} of {total}: {name}")

    def _domains_of(self, sample_domain: Any, n_samples: int) -> Any:
        """Return the domains of rows to predict; None leaves the choice to the adapters."""
        if sample_domain is None:
            return None
        return check_new_domains(
            sample_domain, n_samples, has_target=True, domain_names=self.domain_names_
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")


# --- Classes as labels ---


class AutoAdaptedClassifier(SetPredictor, ScoredClassifier, AutoAdapted):
    """Classifier that tries every adapter, scores it without target labels, averages the best.

    Candidates are pairs of an adapter and a model, "no adaptation" among them. Tests score each
    candidate on source rows that are taken as the target, with hidden labels: source rows left
    out, source rows moved like the target, source rows with the class proportions estimated for
    the target, and left-out source domains (`covshift.selection.rehearsals`). These scores, and
    how far candidates agree on the target, give the expected gain of each over the plain model
    (`covshift.selection.expected_gains`). The best candidates and the plain model form an
    ensemble: a weighted average of their probabilities, which are calibrated on the source.

    Parameters
    ----------
    estimator : classifier, default=None
        Your own model: every adapter is tried around it. None: linear and kernel models, forests
        and joint alignment.
    candidates : list, default=None
        Your own list of pairs (adapter, estimator), triples (name, adapter, estimator) or
        `AdaptedClassifier`; the adapter is an object, a name of `covshift.registry`, or None for
        the rows as they are. The registry's "none" is added for each estimator that comes with an
        adapter only. None: a default list, from the registry.
    vote : int, default=7
        Number of candidates in the ensemble beside the plain model, which has at least .3 of the
        weight; 1 picks the best alone.
    objective : {"accuracy", "balanced_accuracy"} or callable, default="accuracy"
        Objective that is maximized, by the choice of candidates and by ``predict``. "accuracy": the
        share of rows predicted correctly; ``predict`` returns the most probable class.
        "balanced_accuracy": the mean of the recalls of the classes, so that rare classes count as
        much as frequent ones; ``predict`` returns the class whose probability is largest compared
        with its share. A callable gets true and predicted labels and drives the choice;
        ``predict`` then returns the most probable class.
    min_gain : float, default=0.0075
        Least expected gain for which the ensemble replaces the plain model. 0 uses the ensemble
        wherever a gain is expected, which gains most on average and loses more often.
    max_risk : float, default=0.5
        Accepted probability that the ensemble loses more than .01 against the plain model. Where it
        is larger, the plain model is used. Without target labels that probability is how often real
        tasks like this one lost: for accuracy it depends on how far the candidates differ, for
        balanced accuracy it is the same for all.
    class_shares : {"auto", "source", "estimated"}, default="auto"
        Class proportions that ``predict_proba`` is made for. "source": those of the source.
        "estimated": those of the target, estimated by expectation and maximization, which assumes
        that only class proportions still differ. "auto": estimated for each target
        domain with a prior that keeps them near the source's, and for the members that adapt
        only; the source's for ``objective="balanced_accuracy"``, whose decision does not depend on
        them.
    max_rows : int, default=600
        Rows of each role that scores are computed on, drawn in proportion to domains and
        classes. The members of the ensemble are fitted to all rows.
    time_budget : float, default=None
        Seconds for the scores: those not begun by then are left out, and ``leaderboard_`` has no
        column for them. Fitting the members takes additional time.
    n_jobs : int, default=None
        Processes, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all random draws.
    verbose : int, default=0
        1 prints a line for each score as it begins.
    scores_from : str or path, default=None
        File of ``covshift.selection.score_files.write_scores`` with the outputs of the candidates
        in all tests on source rows, such as ``covshift diagnose --save-scores`` writes. They
        are used instead of fitting the candidates again; the result is the same to the bit. A
        file of other rows, settings or versions is an error.
    keep_rows : bool, default=True
        Whether to keep the labeled source rows of the scores, at most 1,000, with predictions by
        fits without them, for ``predict_set`` and `covshift.estimate_performance`. They are a part
        of the model and of its file.
    scoring : {"accuracy", "balanced_accuracy", "f1_macro"} or callable
        The former name of ``objective``.

        .. deprecated:: 0.2
            Use ``objective``.

    Attributes
    ----------
    leaderboard_ : Leaderboard
        Every candidate with its scores, combined score, weight, time, warnings, and the reason
        if it was disqualified; the best first. ``leaderboard_.to_frame()`` for pandas.
    chosen_ : list of str
        Names of the members of the ensemble, the heaviest first.
    members_ : list of Member
        The fitted members with their weights.
    plain_ : AutoAdaptedClassifier or None
        The plain model beside the chosen one: the best unadapted candidate by validation on the
        source, on left-out domains if there are several, else on left-out rows. None in models
        saved by version 0.1.
    objective_ : str or callable
        The objective used.
    score_kind_ : {"rehearsals", "source CV"}
        Basis of the expected gains: tests of all kinds on source rows taken as the target; or,
        without a target, cross-validation on the source.
    assessment_ : Assessment or None
        Expected scores of the plain model and of this model, and the confidence
        (`covshift.selection.assessment`); None without a target, and in older model files.
    decision_ : str
        The advice that was followed, in words.
    class_shares_ : ndarray of shape (n_classes,)
        Class proportions that ``predict_proba`` is made for, over all target domains.
    held_out_ : HeldOutRows or None
        Source rows that are kept (``keep_rows``), as in `AdaptedClassifier`.
    classes_, domains_, n_features_in_, feature_names_in_
        As in `AdaptedClassifier`.

    Notes
    -----
    Labels of target rows that ``label_mask`` declares known are used twice: to score candidates,
    which are fitted without them for that, and to fit the members. Which structure continues in
    the target cannot always be determined from rows without labels; the ensemble only spreads the
    risk. Probabilities are calibrated on the source; how far that carries to the target is unknown.

    **Cost**: each candidate is fitted once for every test on source rows, on at most ``max_rows``
    rows of each role, and each member of the ensemble once on all rows. Seconds for some sizes:
    docs/results/selection.md.

    Examples
    --------
    >>> from covshift import AutoAdaptedClassifier, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AutoAdaptedClassifier(max_rows=200, random_state=0)
    >>> model = model.fit(X, y, sample_domain=sample_domain)
    >>> bool(model.score(data.X_test, data.y_test) > 0.85)
    True
    >>> len(model.chosen_)  # seven models and the plain one
    8
    """

    class_shares_: FloatArray
    _source_shares: FloatArray
    _share_ratios: dict[str, FloatArray]

    def __init__(
        self,
        estimator: Any = None,
        candidates: Any = None,
        *,
        vote: int = 7,
        objective: Any = "accuracy",
        min_gain: float = MIN_GAIN,
        max_risk: float = MAX_RISK,
        class_shares: str = "auto",
        max_rows: int = 600,
        time_budget: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        scores_from: Any = None,
        keep_rows: bool = True,
        scoring: Any = "deprecated",
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.vote = vote
        self.objective = objective
        self.min_gain = min_gain
        self.max_risk = max_risk
        self.class_shares = class_shares
        self.max_rows = max_rows
        self.time_budget = time_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.scores_from = scores_from
        self.keep_rows = keep_rows
        self.scoring = scoring

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "objective" not in state:  # saved by version 0.1
            objective = {"objective": state["scoring"], "objective_": state["scoring"]}
            state = {**state, **objective, "scoring": "deprecated", "plain_member_": None}
        if "max_risk" not in state:  # saved before there was an assessment
            state = {key: value for key, value in state.items() if key != "guard"}
            state |= {"max_risk": MAX_RISK, "assessment_": None}
        if isinstance(state.get("_share_ratios"), np.ndarray):  # saved by version 0.1
            state = {**state, "_share_ratios": {TARGET: state["_share_ratios"]}}
        super().__setstate__({"scores_from": None, "min_gain": 0.0, "keep_rows": False, **state})

    @documented_like(AdaptedClassifier.predict)
    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict rows, each as a row of its domain.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows.
        """
        return self._by_rows("predict", X, sample_domain)

    @documented_like(AdaptedClassifier.decide)
    def decide(self, P: Any) -> Any:
        """Return the classes that ``predict`` chooses for rows with these probabilities."""
        check_is_fitted(self)
        P = np.asarray(P, dtype=np.float64)
        return self.classes_[decide_classes(P, self.objective_, self.class_shares_)]

    @documented_like(predict)
    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return class probabilities, calibrated on the source.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        P: FloatArray = self._by_rows("predict_proba", X, sample_domain)
        return P

    @documented_like(predict_proba)
    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities."""
        log_p: FloatArray = self._by_rows("predict_log_proba", X, sample_domain)
        return log_p

    def _by_checked_rows(self, method: str, X: FloatArray, domain: Any) -> Any:
        P = self._probabilities(X, domain)
        if method == "predict":
            return self.decide(P)
        return P if method == "predict_proba" else np.log(np.maximum(P, np.finfo(P.dtype).tiny))

    def _probabilities(self, X: FloatArray, domain: Any) -> FloatArray:
        ratios = self._ratios_of(domain, X.shape[0])
        if self.class_shares == "auto":
            return mean_probabilities(self.members_, X, len(self.classes_), domain, ratios)
        P = mean_probabilities(self.members_, X, len(self.classes_), domain)
        return P if ratios is None else reweigh_probabilities(P, ratios)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("class_shares", self.class_shares, ("auto", "source", "estimated"))

    def _read_labels(self, y: Any, domains: FitDomains) -> Labels:
        self.classes_, codes = encode_classes(y, domains.label_mask)
        if len(self.classes_) < 2:
            raise ValueError(
                f"AutoAdaptedClassifier can't train when only one class is present: the known "
                f"labels are all {self.classes_[0]!r}."
            )
        return Labels(
            codes, len(self.classes_), metric_of_objective(self.objective_, self.classes_)
        )

    def _settings_of_choice(self) -> dict[str, Any]:
        return {
            "objective": self.objective_ if isinstance(self.objective_, str) else ACCURACY,
            "reweighed": self.class_shares == "auto" and not is_balanced(self.objective_),
        }

    def _learn_from(self, problem: Problem) -> None:
        self._set_class_shares(problem)

    def _strip_to_plain(self) -> None:
        self.class_shares_ = self._source_shares
        self._share_ratios = {}

    def _learn_target(self, X: FloatArray, unit: Any) -> None:
        if self.class_shares == "auto" and self._share_ratios:
            known = TARGET if unit is None else str(unit)
            where = None if unit is None else np.full(X.shape[0], unit)
            self._share_ratios = {**self._share_ratios, known: self._estimate_ratios(X, where)}
            self.class_shares_ = self._share_ratios[TARGET] * self._source_shares

    def _resolve_objective(self) -> Any:
        if isinstance(self.scoring, str) and self.scoring == "deprecated":
            return self.objective
        warnings.warn(
            "AutoAdaptedClassifier(scoring=...) is deprecated: use objective=...",
            FutureWarning,
            stacklevel=4,
        )
        if isinstance(self.scoring, str) and self.scoring == "f1_macro":
            return partial(f1_score, average="macro")
        return self.scoring

    def _set_class_shares(self, problem: Problem) -> None:
        shares = problem.class_shares
        self.class_shares_ = shares
        self._source_shares = shares
        # Shares of each target domain, by number, over those of the source; TARGET: of all.
        self._share_ratios = {}
        X, domain = problem.X_target, problem.target_domain
        if self.class_shares == "estimated":
            P = mean_probabilities(self.members_, X, problem.n_classes, domain)
            self._share_ratios = {TARGET: share_ratios(P, shares)}
        elif self.class_shares == "auto" and self._shares_matter:
            self._share_ratios = ratios_by_domain(
                domain, lambda rows: self._estimate_ratios(X[rows], domain[rows])
            )
        self.class_shares_ = self._share_ratios.get(TARGET, 1.0) * shares

    @property
    def _shares_matter(self) -> bool:
        adapts = any(member.candidate.adapts for member in self.members_)
        return adapts and not is_balanced(self.objective_)

    def _estimate_ratios(self, X: FloatArray, domain: Any) -> FloatArray:
        """Return class shares of target rows, estimated with a prior, over those of the source."""
        adapting = [member for member in self.members_ if member.candidate.adapts]
        if not adapting:
            return np.ones(len(self.classes_))
        P = mean_probabilities(adapting, X, len(self.classes_), domain)
        return share_ratios(P, self._source_shares, SHARE_PRIOR)

    def _ratios_of(self, domain: Any, n_samples: int) -> FloatArray | None:
        """Ratios of class shares for each row, or one set for all; None: those of the source."""
        where = None if self.class_shares == "estimated" else domain
        return ratios_of_rows(self._share_ratios, where, n_samples, len(self.classes_))

    def _set_probabilities(self, X: Any, sample_domain: Any) -> FloatArray:
        """Probabilities for the class proportions of the source, as held-out rows have them."""
        X = self._validate_rows(X)
        domain = self._domains_of(sample_domain, X.shape[0])
        return mean_probabilities(self.members_, X, len(self.classes_), domain)


# --- Numbers as labels ---


@documented_like(AutoAdaptedClassifier)
class AutoAdaptedRegressor(IntervalPredictor, ScoredRegressor, AutoAdapted):
    """Regressor that tries every adapter, scores it without target labels, averages the best.

    As `AutoAdaptedClassifier`, for a number as label. Candidates are pairs of an adapter and a
    model, "no adaptation" among them. Tests score each candidate on source rows that are taken as
    the target, with hidden labels: source rows left out, source rows moved like the target, source
    rows with the label shares estimated for the target, and left-out source domains
    (`covshift.selection.rehearsals`). These scores give the expected gain of each over the plain
    model (`covshift.selection.expected_gains`). The prediction is the weighted mean of the best,
    each kept within the range of the known labels, extended by a tenth of it on either side.

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
    keep_rows : bool, default=True
        Whether to keep at most 1,000 labeled source rows, with predictions by fits without
        them, for ``predict_interval``. They are a part of the model and of its file.

    Attributes
    ----------
    leaderboard_ : Leaderboard
        Every candidate with its scores, expected gain in R², weight, time, warnings, and the reason
        if it was disqualified; the best first.
    chosen_, members_, plain_, objective_, score_kind_, assessment_, decision_
        As in `AutoAdaptedClassifier`.
    label_range_ : tuple of float
        Smallest and largest value that ``predict`` returns.
    held_out_ : HeldOutRows or None
        Source rows that are kept (``keep_rows``), as in `AdaptedRegressor`.
    domains_, n_features_in_, feature_names_in_
        As in `AdaptedRegressor`.

    Notes
    -----
    Known labels of target rows are used as in `AutoAdaptedClassifier`.

    **Cost**: as `AutoAdaptedClassifier`.

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

    @documented_like(AdaptedClassifier.predict)
    def predict(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Predict rows, each as a row of its domain.

        Parameters
        ----------
        X : {array-like, Dask array} of shape (n_samples, n_features)
            Rows.
        """
        return self._by_rows("predict", X, sample_domain)

    def _by_checked_rows(self, method: str, X: FloatArray, domain: Any) -> Any:
        task = self._label_task
        P: list[FloatArray | None] = [
            task.apply(member.numbers(X, domain)) for member in self.members_
        ]
        weights = np.array([member.weight for member in self.members_])
        return task.restore(mix_probabilities(P, weights, np.zeros(len(P), dtype=bool))[:, 0])

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
        metric = number_metric_of_objective(self.objective_, task.restore)
        return Labels(codes, len(task.edges) + 1, metric, values, task)

    def _held_out_units(self, labels: Any, scores: FloatArray) -> tuple[Any, FloatArray]:
        task = self._label_task
        return task.restore(labels), task.restore(scores[:, 0])

    def _settings_of_choice(self) -> dict[str, Any]:
        named = isinstance(self.objective_, str) and self.objective_ in (R2, MAE)
        return {"objective": self.objective_ if named else R2}
