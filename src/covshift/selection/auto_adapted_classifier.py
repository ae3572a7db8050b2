"""The classifier that tries every adapter and lets the best of them vote."""

import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import f1_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import (
    all_or_nothing,
    check_count,
    check_magnitude,
    check_number,
    check_option,
    register_target,
    warn_nothing_to_adapt,
)
from covshift.domains import FitDomains, check_fit_domains, check_new_domains, encode_classes
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.kernels.class_shares import reweigh_classes
from covshift.predictors.class_proportions import (
    SHARE_PRIOR,
    TARGET,
    ratios_by_domain,
    ratios_of_rows,
    share_ratios,
)
from covshift.predictors.fitting import check_rowwise, problem_size
from covshift.predictors.held_out import HeldOutRows, draw_kept
from covshift.predictors.objective import ACCURACY, decide_classes, is_balanced
from covshift.predictors.prediction_sets import SetPredictor
from covshift.predictors.scored_classifier import ScoredClassifier
from covshift.quiet import ignored_warnings
from covshift.rows import validate_rows
from covshift.selection.assessment import MAX_RISK
from covshift.selection.bench import Bench
from covshift.selection.candidates import (
    Candidate,
    candidates_around,
    check_candidates,
    default_candidates,
)
from covshift.selection.choice import Choice, choose
from covshift.selection.leaderboard import Leaderboard
from covshift.selection.members import (
    FewerMembersWarning,
    FitData,
    Member,
    adapt_members,
    fit_members,
    mean_probabilities,
    mix_probabilities,
)
from covshift.selection.metrics import resolve_metric
from covshift.selection.problem import Problem
from covshift.selection.score_files import read_scores
from covshift.selection.words import say_advice
from covshift.streams import bring_home, is_streamed, map_rows
from covshift.streams.sampling import draw_in_memory


class AutoAdaptedClassifier(SetPredictor, ScoredClassifier, BaseEstimator):
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
        What is maximized, by the choice of candidates and by ``predict``. "accuracy": the share
        of rows predicted correctly; ``predict`` returns the most probable class.
        "balanced_accuracy": the mean of the recalls of the classes, so that rare classes count as
        much as frequent ones; ``predict`` returns the class whose probability is largest compared
        with its share. A callable gets true and predicted labels and drives the choice;
        ``predict`` then returns the most probable class.
    max_risk : float, default=0.2
        Accepted probability that the vote loses more than .01 against the plain model. Where it is
        larger, the plain model is used. Without target labels that probability is a base rate
        (.13 for accuracy, .15 for balanced accuracy): nothing predicted losses better.
    class_shares : {"auto", "source", "estimated"}, default="auto"
        Class proportions that ``predict_proba`` is made for. "source": those of the source.
        "estimated": those of the target, estimated by expectation and maximization, which assumes
        that nothing but class proportions is left of the shift. "auto": estimated for each target
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
        Seed of everything that is drawn.
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
        What expected gains are based on: rehearsals of all kinds; or, without a target,
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
    the target cannot always be told from rows without labels; the vote hedges, no more.
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
    >>> len(model.chosen_)
    7
    """

    _share_ratios: dict[str, FloatArray]
    # Held-out rows, of models that keep some: see `covshift.predictors.held_out`.
    held_out_rows_: FloatArray | None = None
    held_out_labels_: IntArray | None = None
    held_out_domain_: IntArray | None = None
    held_out_scores_: dict[str, FloatArray] | None = None
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
        super().__setstate__({"scores_from": None, "keep_rows": False, **state})

    def fit(self, X: Any, y: Any, *, sample_domain: Any = None, label_mask: Any = None) -> Self:
        """Score all candidates and fit the members of the vote.

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
                X, y, sample_domain, label_mask, what="AutoAdaptedClassifier is fitted"
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
            self._set_class_shares(problem)
            if self.keep_rows:
                self._keep_held_out(bench, fitted)
        return self

    def _prepare(
        self, X: Any, y: Any, sample_domain: Any, label_mask: Any
    ) -> tuple[Bench, FitData, Problem]:
        """Validate rows in memory; return the bench, all rows, and the problem that they are.

        `covshift.diagnose` takes this way too, so that its advice is what ``fit`` follows.
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
            warn_nothing_to_adapt(self, "unadapted candidates vote", stacklevel=4)
        self.domains_ = domains.domains
        self.classes_, codes = encode_classes(y, domains.label_mask)
        problem = self._problem(X, codes, domains)
        rng = check_random_state(self.random_state)
        bench = Bench(
            self._list_candidates(X, domains),
            problem.thinned(self.max_rows, rng),
            resolve_metric(self.objective_, self.classes_),
            seed=int(rng.randint(2**31 - 1)),
            n_jobs=self.n_jobs,
        )
        if self.scores_from is not None:
            read_scores(bench, self.scores_from)
        data = FitData(
            X, codes, domains.sample_domain if domains.given else None, domains.label_mask
        )
        return bench, data, problem

    def _choose(
        self, bench: Bench, data: FitData, progress: Callable[[str, int, int], object] | None = None
    ) -> Choice:
        """Score the candidates and choose; labels of target rows in ``data`` count."""
        labelled = None
        if data.sample_domain is not None:
            rows = (data.sample_domain < 0) & data.label_mask
            labelled = (data.X[rows], data.sample_domain[rows], data.codes[rows])
        return choose(
            bench,
            "source CV" if data.sample_domain is None else "rehearsals",
            n_members=self.vote,
            objective=self.objective_ if isinstance(self.objective_, str) else ACCURACY,
            reweighed=self.class_shares == "auto" and not is_balanced(self.objective_),
            max_risk=self.max_risk,
            labelled=labelled,
            time_budget=self.time_budget,
            progress=progress or (self._print if self.verbose else None),
        )

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

    @property
    def plain_(self) -> "AutoAdaptedClassifier | None":
        """The best unadapted candidate alone, as a classifier; None if an old file has none."""
        check_is_fitted(self)
        if self.plain_member_ is None:
            return None
        plain = copy(self)
        plain.members_ = [self.plain_member_._replace(weight=1.0)]
        plain.chosen_ = [self.plain_member_.candidate.name]
        plain.decision_ = f"The plain model: {plain.chosen_[0]}."
        plain.class_shares_ = self._source_shares
        plain._share_ratios = {}
        return plain

    @property
    def held_out_(self) -> HeldOutRows | None:
        """Source rows that the model keeps, with what fits without them say; None: it has none."""
        check_is_fitted(self)
        if self.held_out_rows_ is None or not self.held_out_scores_:
            return None
        known = self.held_out_scores_
        P = [known.get(member.candidate.name) for member in self.members_]
        if all(one is None for one in P):
            return None
        weights = np.array([member.weight for member in self.members_])
        adapts = np.array([member.candidate.adapts for member in self.members_])
        assert self.held_out_labels_ is not None and self.held_out_domain_ is not None
        return HeldOutRows(
            self.held_out_rows_,
            self.held_out_labels_,
            self.held_out_domain_,
            mix_probabilities(P, weights, adapts),
        )

    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> FloatArray:
        """Class probabilities, calibrated on the source; parameters as in ``predict``."""
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
        """Logarithms of the class probabilities; parameters as in ``predict``."""
        if is_streamed(X):
            return self._in_blocks("predict_log_proba", X, sample_domain)
        P = self.predict_proba(X, sample_domain=sample_domain)
        log_p: FloatArray = np.log(np.maximum(P, np.finfo(P.dtype).tiny))
        return log_p

    def adapt_target(self, X: Any, domain: int | str | None = None) -> Self:
        """Learn a new target domain without the training data.

        Members that cannot leave the vote, for all targets, with a ``FewerMembersWarning``; the
        others share their weight. If these have less than half of it, it is an error: refit.
        Apart from that, which candidates vote stays as it was chosen for the target of the fit:
        how far that is right for another one, nothing here tells.

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
            if self.class_shares == "auto" and self._share_ratios:
                known = TARGET if domain is None else str(unit)
                where = None if domain is None else np.full(X.shape[0], unit)
                self._share_ratios = {**self._share_ratios, known: self._estimate_ratios(X, where)}
        if left:
            warnings.warn(
                "No longer in the vote, since they cannot learn a new target: "
                f"{', '.join(one.candidate.name for one in left)}. Refit to have them vote.",
                FewerMembersWarning,
                stacklevel=2,
            )
        return self

    def _validate_rows(self, X: Any, *, reset: bool = False) -> FloatArray:
        X = validate_rows(self, X, reset=reset, dtype=(np.float64, np.float32))
        if X.dtype == np.float64:  # scores and moves square; float32 rows are small enough
            check_magnitude(X, getattr(self, "feature_names_in_", None))
        rows: FloatArray = X
        return rows

    def _in_blocks(self, method: str, X: Any, sample_domain: Any) -> Any:
        check_is_fitted(self)
        for member in self.members_:
            check_rowwise(member.model.adapter_)
        return map_rows(self, method, X, sample_domain=sample_domain)

    def _check_parameters(self) -> None:
        if self.estimator is not None and self.candidates is not None:
            raise ValueError("Give estimator or candidates, not both.")
        check_count("vote", self.vote, minimum=1)
        check_count("max_rows", self.max_rows, minimum=50)
        check_number("max_risk", self.max_risk, minimum=0.0)
        if self.max_risk > 1:
            raise ValueError(f"max_risk is a probability, from 0 to 1; got {self.max_risk!r}.")
        check_option("class_shares", self.class_shares, ("auto", "source", "estimated"))
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, minimum=0.0)

    def _problem(self, X: FloatArray, codes: IntArray, domains: FitDomains) -> Problem:
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"AutoAdaptedClassifier can't train when only one class is present: the known "
                f"labels are all {self.classes_[0]!r}."
            )
        source = domains.source & domains.label_mask & (codes >= 0)
        # Without a target the source stands in: unadapted candidates look at it for nothing else.
        target = domains.target if domains.has_target else source
        target_domain = np.where(domains.target, domains.sample_domain, -1)[target]
        return Problem(
            X[source], codes[source], domains.sample_domain[source], X[target], target_domain,
            n_classes,
        )  # fmt: skip

    def _list_candidates(self, X: FloatArray, domains: FitDomains) -> list[Candidate]:
        # Of all rows, unlabeled source rows included: what a name means in AdaptedClassifier.
        size = problem_size(X, len(self.classes_), domains.sample_domain)
        if self.candidates is not None:
            candidates = check_candidates(self.candidates, size)
        elif self.estimator is not None:
            candidates = candidates_around(self.estimator, size)
        else:
            candidates = default_candidates(size)
        if domains.given:
            return candidates
        return [one for one in candidates if not one.adapts]

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

    def _decision(self) -> str:
        if self.assessment_ is not None:
            return say_advice(self.assessment_)
        return f"{len(self.chosen_)} models vote, led by {self.chosen_[0]}."

    def _print(self, name: str, number: int, total: int) -> None:
        print(f"[AutoAdaptedClassifier] score {number + 1} of {total}: {name}")

    def _set_class_shares(self, problem: Problem) -> None:
        shares = problem.class_shares
        self.class_shares_: FloatArray = shares
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
        """Class shares of target rows, estimated with a prior, over those of the source."""
        adapting = [member for member in self.members_ if member.candidate.adapts]
        if not adapting:
            return np.ones(len(self.classes_))
        P = mean_probabilities(adapting, X, len(self.classes_), domain)
        return share_ratios(P, self._source_shares, SHARE_PRIOR)

    def _ratios_of(self, domain: Any, n_samples: int) -> FloatArray | None:
        """Ratios of class shares for each row, or one set for all; None: those of the source."""
        where = None if self.class_shares == "estimated" else domain
        return ratios_of_rows(self._share_ratios, where, n_samples, len(self.classes_))

    def _keep_held_out(self, bench: Bench, fitted: list[Member]) -> None:
        """Keep source rows of the bench, with what members say of them that left them out."""
        problem, P = bench.problem, bench.probabilities_left_out()
        names = [one.name for one in bench.candidates]
        by_domain = np.unique(problem.source_domain, return_inverse=True)[1].ravel()
        kept = draw_kept(by_domain * problem.n_classes + problem.codes)
        self.held_out_rows_ = problem.X_source[kept]
        self.held_out_labels_ = problem.codes[kept]
        self.held_out_domain_ = problem.source_domain[kept]
        of_members = {one.candidate.name: P[names.index(one.candidate.name)] for one in fitted}
        self.held_out_scores_ = {
            name: one[kept] for name, one in of_members.items() if one is not None
        }

    def _set_probabilities(self, X: Any, sample_domain: Any) -> FloatArray:
        """Probabilities for the class proportions of the source, as held-out rows have them."""
        X = self._validate_rows(X)
        domain = self._domains_of(sample_domain, X.shape[0])
        return mean_probabilities(self.members_, X, len(self.classes_), domain)

    def _domains_of(self, sample_domain: Any, n_samples: int) -> Any:
        """Domains of rows to predict; None, where nothing was said, is for the adapters."""
        if sample_domain is None:
            return None
        return check_new_domains(
            sample_domain, n_samples, has_target=True, domain_names=self.domain_names_
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")
