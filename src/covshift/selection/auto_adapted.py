"""Base of `AutoAdaptedClassifier` and `AutoAdaptedRegressor`.

The parts that depend on the label are in the subclasses and in `covshift.selection.label_tasks`.
"""

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from covshift.base import (
    all_or_nothing,
    check_count,
    check_flag,
    check_number,
    register_target,
    warn_nothing_to_adapt,
)
from covshift.domains import FitDomains, check_fit_domains, check_new_domains
from covshift.kernels.arrays import FloatArray, IntArray
from covshift.predictors.fitting import check_rowwise, problem_size
from covshift.predictors.held_out import HeldOutRows, draw_kept
from covshift.row_checks import check_magnitude, validate_rows
from covshift.selection.assessment import Assessment
from covshift.selection.bench import Bench
from covshift.selection.candidates import (
    Candidate,
    candidates_around,
    check_candidates,
    default_candidates,
)
from covshift.selection.choice import Choice, choose
from covshift.selection.label_tasks import CLASSES, ClassTask, NumberTask
from covshift.selection.leaderboard import Leaderboard
from covshift.selection.members import (
    FewerMembersWarning,
    FitData,
    Member,
    adapt_members,
    fit_members,
    mix_probabilities,
)
from covshift.selection.metrics import Metric
from covshift.selection.problem import Problem
from covshift.selection.score_files import read_scores
from covshift.selection.words import say_advice
from covshift.streams import bring_home, is_streamed, map_rows
from covshift.streams.opening import draw_in_memory
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
    # Held-out rows, of models that keep some: see `covshift.predictors.held_out`.
    held_out_rows_: FloatArray | None = None
    held_out_labels_: Any = None
    held_out_domain_: IntArray | None = None
    held_out_scores_: dict[str, FloatArray] | None = None

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
            warn_nothing_to_adapt(self, "unadapted candidates vote", stacklevel=4)
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
        plain.decision_ = f"The plain model: {plain.chosen_[0]}."
        plain._strip_to_plain()
        return plain

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
            self._learn_target(X, None if domain is None else unit)
        if left:
            warnings.warn(
                "Left the ensemble, because they cannot learn a new target: "
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
        """Source rows that the model keeps, with what fits without them say; None: it has none."""
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
        kept = draw_kept(by_domain * problem.n_classes + problem.codes)
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

    def _in_blocks(self, method: str, X: Any, sample_domain: Any) -> Any:
        check_is_fitted(self)
        for member in self.members_:
            check_rowwise(member.model.adapter_)
        return map_rows(self, method, X, sample_domain=sample_domain)

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
        return f"{len(self.chosen_)} models vote, led by {self.chosen_[0]}."

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
