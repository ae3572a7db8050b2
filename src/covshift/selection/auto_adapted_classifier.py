"""The classifier that tries every adapter and lets the best of them vote."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from sklearn.utils.validation import check_is_fitted

from covshift.base import ScoredClassifier, check_option
from covshift.domains import FitDomains, encode_classes
from covshift.kernels.arrays import FloatArray
from covshift.kernels.probabilities import reweigh_classes
from covshift.predictors.class_proportions import (
    SHARE_PRIOR,
    TARGET,
    ratios_by_domain,
    ratios_of_rows,
    share_ratios,
)
from covshift.predictors.objective import ACCURACY, decide_classes, is_balanced
from covshift.predictors.prediction_sets import SetPredictor
from covshift.selection.assessment import MAX_RISK, MIN_GAIN
from covshift.selection.auto_adapted import AutoAdapted, Labels
from covshift.selection.members import mean_probabilities
from covshift.selection.metrics import resolve_metric
from covshift.selection.problem import Problem
from covshift.streams import is_streamed


class AutoAdaptedClassifier(SetPredictor, ScoredClassifier, AutoAdapted):
    """Classifier that tries every adapter, scores them without target labels, and votes.

    Candidates are pairs of an adapter and a model, "no adaptation" among them. Each is scored where
    source rows play the target, so that their labels are known: source rows left out, source rows
    moved like the target, source rows with the class proportions estimated for the target, and
    source domains (`covshift.selection.rehearsals`). From these scores, and from how far candidates
    agree on the target, follows the expected gain of each over the plain model
    (`covshift.selection.gains`). The best vote, with probabilities calibrated on the source.

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
        Number of candidates that vote, beside the plain model, which has at least .3 of the
        weight; 1 picks the best alone.
    objective : {"accuracy", "balanced_accuracy"} or callable, default="accuracy"
        Objective that is maximized, by the choice of candidates and by ``predict``. "accuracy": the
        share of rows predicted correctly; ``predict`` returns the most probable class.
        "balanced_accuracy": the mean of the recalls of the classes, so that rare classes count as
        much as frequent ones; ``predict`` returns the class whose probability is largest compared
        with its share. A callable gets true and predicted labels and drives the choice;
        ``predict`` then returns the most probable class.
    min_gain : float, default=0.0075
        Expected gain from which the vote is used in place of the plain model. 0 uses the vote
        wherever a gain is expected, which gains most on average and loses more often.
    max_risk : float, default=0.5
        Accepted probability that the vote loses more than .01 against the plain model. Where it is
        larger, the plain model is used. Without target labels that probability is how often real
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
        classes. The members of the vote are fitted to all rows.
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
        File of ``covshift.selection.score_files.write_scores`` with the outputs of the candidates
        where source rows play the target, such as ``covshift diagnose --save-scores`` writes. They
        are used instead of fitting the candidates again; the result is the same to the bit. A
        file of other rows, settings or versions is an error.
    keep_rows : bool, default=True
        Whether to keep the labeled source rows of the scores, at most 1,000, with what fits without
        them say of them, for ``predict_set`` and `covshift.estimate_performance`. They are a part
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
        Names of the members of the vote, the heaviest first.
    members_ : list of Member
        The fitted members with their weights.
    plain_ : AutoAdaptedClassifier or None
        The plain model beside the chosen one: the best unadapted candidate by validation on the
        source, on left-out domains if there are several, else on left-out rows. None in models
        saved by version 0.1.
    objective_ : str or callable
        The objective used.
    score_kind_ : {"rehearsals", "source CV"}
        Basis of the expected gains: rehearsals of all kinds; or, without a target,
        cross-validation on the source.
    assessment_ : Assessment or None
        What to expect of the plain model and of this one, and how sure that is
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
    the target cannot always be determined from rows without labels; the vote hedges, no more.
    Probabilities are calibrated on the source; how far that carries to the target is unknown.

    **Cost**: each candidate is fitted once for every scene in which source rows play the
    target, on at most ``max_rows`` rows of each role, and each member of the vote once on all
    rows. Seconds for some sizes: docs/results/selection.md.

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
    _requests = {"sample_domain": True}
    __metadata_request__fit = {"sample_domain": True, "label_mask": True}
    __metadata_request__predict = _requests
    __metadata_request__predict_proba = _requests
    __metadata_request__predict_log_proba = _requests
    __metadata_request__score = _requests

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
        if is_streamed(X):
            return self._in_blocks("predict", X, sample_domain)
        return self.decide(self.predict_proba(X, sample_domain=sample_domain))

    def decide(self, P: Any) -> Any:
        """Return the classes that ``predict`` chooses for rows with these probabilities.

        Parameters
        ----------
        P : array-like of shape (n_samples, n_classes)
            From ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        P = np.asarray(P, dtype=np.float64)
        return self.classes_[decide_classes(P, self.objective_, self.class_shares_)]

    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return class probabilities, calibrated on the source; parameters as in ``predict``."""
        check_is_fitted(self)
        if is_streamed(X):
            return self._in_blocks("predict_proba", X, sample_domain)
        X = self._validate_rows(X)
        domain = self._domains_of(sample_domain, X.shape[0])
        ratios = self._ratios_of(domain, X.shape[0])
        if self.class_shares == "auto":
            return mean_probabilities(self.members_, X, len(self.classes_), domain, ratios)
        P = mean_probabilities(self.members_, X, len(self.classes_), domain)
        return P if ratios is None else reweigh_classes(P, ratios)

    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Return the logarithms of the class probabilities; parameters as in ``predict``."""
        if is_streamed(X):
            return self._in_blocks("predict_log_proba", X, sample_domain)
        P = self.predict_proba(X, sample_domain=sample_domain)
        log_p: FloatArray = np.log(np.maximum(P, np.finfo(P.dtype).tiny))
        return log_p

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
        return Labels(codes, len(self.classes_), resolve_metric(self.objective_, self.classes_))

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
