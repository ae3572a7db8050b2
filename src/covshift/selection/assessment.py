r"""One assessment of a problem: the advice, expected scores, and the confidence.

It is computed from one bench of candidates, and everything that speaks of the advice reads it:
`AutoAdaptedClassifier`, `diagnose`, the commands, model cards and reports.

**Action.** The vote is recommended where its expected gain is at least ``min_gain`` and the
probability that it loses more than .01 against the plain model is at most ``max_risk``; else the
plain model. Smaller expected gains come true on average, too, but they are small, and losses among
them nearly as frequent: asking for .0075 halves the harm and costs less than a twentieth of the
gain where domains differ (docs/results/assessment.md).

**Known labels** of m target rows are a direct sample of the scores. With a prediction of mean
:math:`\mu` and standard deviation :math:`\sigma`, and a score a on the labeled rows whose sampling
variance is v, the estimate is

.. math::

    \frac{\mu / \sigma^2 + a / v}{1 / \sigma^2 + 1 / v} \quad \text{with variance} \quad
    \frac{1}{1 / \sigma^2 + 1 / v} + \frac{v m}{n} ,

the last term being the noise of the score on the n rows of the target. For classes, intervals are
those of a normal distribution, stretched as `covshift.selection.expected_scores` says. The labels
choose the vote, too, so that its score on them would flatter it: each half of the labels scores the
vote that the other half chooses.

**Confidence** is in the probability that the action is right: that the vote does not lose where it
is recommended, that it does not gain more than .01 where it is not. High from .9, moderate from
.75. Without labels both this and the probability of a loss come from how often real tasks like this
one lost or gained (`covshift.selection.expected_scores.chances`).

**Whether the data can show which model is right.** Source rows show what continues in the target in
two ways: the target lies where the source has rows, or several source domains differ from each
other about as far as the target differs from them. Where neither holds, two rules may fit the
source alike and differ in the target. The estimates are then those of real tasks in that situation.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.feature_scales import feature_variances
from covshift.measures import SourceSupport
from covshift.predictors.objectives import ACCURACY, BALANCED_ACCURACY, MAE, decide_classes
from covshift.selection.assessment_words import assessment_text
from covshift.selection.bench import Bench, Problem
from covshift.selection.expected_scores import (
    ADAPTED,
    ADAPTED_ERROR,
    DISAGREEMENT,
    ERROR,
    GAIN,
    MARGIN,
    NUMBER_MARGIN,
    PLAIN,
    SMALLEST,
    Estimate,
    Predictive,
    Views,
    chances,
    expect,
    expect_numbers,
    in_label_units,
    label_stretch,
    number_chances,
    number_quantities,
    quantities_of,
    vote_probabilities,
)
from covshift.selection.label_tasks import NumberTask
from covshift.selection.leaderboard import ScoreTable
from covshift.selection.rehearsals import kinds_of

Action: TypeAlias = Literal["adapt", "combine", "keep"]
Confidence: TypeAlias = Literal["high", "moderate", "low"]

# Both were chosen on real tasks (docs/results/assessment.md).
MIN_GAIN = 0.0075  # expected gain from which the vote is recommended
MAX_RISK = 0.5  # a vote that more likely than not loses is not recommended
HIGH, MODERATE = 0.9, 0.75  # probability that the action is right
MIN_OVERLAP = 0.8  # share of the target rows inside the support of the source
MIN_DOMAINS = 3  # source domains
MIN_RATIO = 0.3  # shift between source domains, relative to the target's shift
MIN_ROWS = 10  # of each role, to measure their overlap


class Determinability(NamedTuple):
    """Whether source rows can show what continues in the target.

    Shifts are in standard deviations within domains: root mean squares over the features.
    """

    by_overlap: bool
    by_domains: bool
    overlap: float  # share of the target rows inside the support of the source; NaN: too few rows
    n_domains: int
    domain_shift: float  # median over the source domains, each from the others; NaN: one domain
    target_shift: float

    @property
    def determinable(self) -> bool:
        """Whether overlap or domains show what continues in the target."""
        return self.by_overlap or self.by_domains


class Assessment(NamedTuple):
    """Advice, expected scores and confidence.

    Attributes
    ----------
    objective : str
        Metric of the scores: "accuracy", "balanced_accuracy", "r2" or "mae".
    action : {"adapt", "combine", "keep"}
        "adapt": use the vote. "combine": use the vote, none of whose members adapts. "keep": use
        the plain model.
    plain, recommended : Estimate
        Expected score on the target of the plain model and of the model that is recommended, each
        with a 90 % interval for the score on the rows of the target.
    gain : Estimate
        Expected gain of the recommended model over the plain model; zeros where that is kept.
    loss_probability : float
        Probability that the recommended model loses more than .01 against the plain model.
    vote : Estimate
        Expected score of the vote, recommended or not.
    vote_gain : Estimate
        Expected gain of the vote over the plain model.
    vote_loss_probability : float
        Probability that the vote loses more than .01 against the plain model.
    confidence : {"high", "moderate", "low"}
        In the action.
    certainty : float
        The probability behind ``confidence``.
    determinability : Determinability
        Whether source rows can show what continues in the target.
    plain_name, members : str, list of tuple
        The plain model; names and weights of the recommended model's members.
    rehearsals : list of dict
        Scores of the plain model and of the vote in each kind of rehearsal.
    disagreement : float
        Share of the target rows on which the plain model and the vote differ.
    n_labels : int
        Known target labels that the estimates use.
    max_risk : float
        Accepted probability of a loss.
    min_gain : float
        Expected gain that was asked for.
    plain_error, recommended_error : Estimate or None
        Where the label is a number: expected mean absolute error of the plain model and of the
        recommended one on the target, in units of the label.

    Notes
    -----
    Where the label is a number, scores and gains are R², and a loss counts above .02. With the
    objective "mae", scores are mean absolute errors in units of the label, smaller being better,
    and a gain is how much the error falls. ``disagreement`` is the root mean square difference
    between plain model and vote on the target, over the standard deviation of the source labels.
    """

    objective: str
    action: Action
    plain: Estimate
    recommended: Estimate
    gain: Estimate
    loss_probability: float
    vote: Estimate
    vote_gain: Estimate
    vote_loss_probability: float
    confidence: Confidence
    certainty: float
    determinability: Determinability
    plain_name: str
    members: list[tuple[str, float]]
    rehearsals: list[dict[str, Any]]
    disagreement: float
    n_labels: int
    max_risk: float
    min_gain: float
    plain_error: Estimate | None = None
    recommended_error: Estimate | None = None

    def __str__(self) -> str:
        """Return the advice and the expected scores in sentences, one on each line."""
        return assessment_text(self)


class LabeledRows(NamedTuple):
    """Target rows whose labels are known.

    ``weights`` (rows, candidates) are those of the vote that other labels have chosen.
    """

    P: list[FloatArray | None]  # probabilities by each candidate; None: it has none
    codes: Any  # class numbers, or numbers
    weights: FloatArray

    def views(self, bench: Bench, plain: int, *, reweighed: bool) -> Views:
        """Return the probabilities by the plain model and by the vote of each row's weights."""
        of_plain = self.P[plain]
        assert of_plain is not None  # the plain model was chosen among those that could be fitted
        of_vote = np.empty_like(of_plain)
        distinct, of_row = np.unique(self.weights, axis=0, return_inverse=True)
        for number, weights in enumerate(distinct):
            rows = of_row.ravel() == number
            some = [None if one is None else one[rows] for one in self.P]
            of_vote[rows] = vote_probabilities(some, bench, weights, reweighed=reweighed)
        return Views(of_plain, of_vote)


class LabelScores(NamedTuple):
    """Scores on labeled target rows, with their sampling variances."""

    plain: tuple[float, float]
    vote: tuple[float, float]
    gain: tuple[float, float]
    n_labels: int


def assess(
    bench: Bench,
    table: ScoreTable,
    weights: FloatArray,
    plain: int,
    *,
    objective: str = ACCURACY,
    reweighed: bool = False,
    max_risk: float = MAX_RISK,
    min_gain: float = MIN_GAIN,
    labeled: "LabeledRows | None" = None,
) -> Assessment:
    """Assess the plain model and the vote on the target.

    Parameters
    ----------
    bench : Bench
        Candidates, with the outputs of the scenes.
    table : ScoreTable
        Their scores.
    weights : ndarray of shape (n_candidates,)
        Of the vote.
    plain : int
        Number of the plain model.
    objective : {"accuracy", "balanced_accuracy"}, default="accuracy"
        Metric of the scores.
    reweighed : bool, default=False
        Whether the vote estimates class shares of the target.
    max_risk : float, default=MAX_RISK
        Accepted probability that the recommended model loses more than .01.
    min_gain : float, default=MIN_GAIN
        Expected gain from which the vote is recommended; it must be positive in any case.
    labeled : LabeledRows, default=None
        Target rows whose labels are known.
    """
    problem, task = bench.problem, bench.task
    if isinstance(task, NumberTask):
        quantities = number_quantities(bench, weights, plain, table.allowed)
        expected = expect_numbers(quantities)
        least, margin, stretch = -np.inf, NUMBER_MARGIN, dict[str, float]()
    else:
        quantities = quantities_of(
            bench, objective, weights, plain, table.allowed, reweighed=reweighed
        )
        expected = expect(quantities, objective)
        least, margin, stretch = 0.0, MARGIN, label_stretch(objective)
    n_labels = 0
    if labeled is not None and len(labeled.codes):
        views = labeled.views(bench, plain, reweighed=reweighed)
        if isinstance(task, NumberTask):
            found = score_labeled_numbers(views, labeled.codes)
        else:
            found = score_labels(views, labeled.codes, objective, problem.class_shares)
        n_labels = found.n_labels
        n_rows = len(problem.X_target)
        for name, sampled in zip((PLAIN, ADAPTED, GAIN), found[:3], strict=True):
            expected[name] = with_labels(
                expected[name], sampled, n_labels, n_rows, stretch.get(name, 1.0)
            )
    same = np.count_nonzero(weights) == 1 and weights[plain] > 0
    of_plain = expected[PLAIN].interval().clipped(least, 1)
    vote_gain = expected[GAIN].interval().clipped(least - of_plain.value, 1 - of_plain.value)
    of_vote = _moved(expected[ADAPTED].interval(), of_plain.value + vote_gain.value, least)
    enough = vote_gain.value > 0 and vote_gain.value >= min_gain
    if isinstance(task, NumberTask):
        likely = number_chances(enough)
    else:
        likely = chances(quantities, vote_gain.value, objective)
    loss = likely.loss
    if n_labels:
        loss = expected[GAIN].below(-margin)
    if same:
        of_vote, vote_gain, loss = of_plain, Estimate(0.0, 0.0, 0.0), 0.0
    follow = not same and enough and loss <= max_risk
    adapts = np.array([one.adapts for one in bench.candidates])
    action: Action = "keep"
    if follow:
        action = "adapt" if weights[adapts].any() else "combine"
    used = weights if follow else np.eye(len(weights))[plain]
    certainty = likely.adapt if follow else likely.keep
    if n_labels:
        certainty = 1 - expected[GAIN].below(0.0) if follow else expected[GAIN].below(margin)
    determinability = judge_determinability(problem)
    # Where every candidate is degenerate on the target, their agreement has no meaning.
    tells = determinability.determinable and bool(table.allowed.any())
    assessment = Assessment(
        objective=objective,
        action=action,
        plain=of_plain,
        recommended=of_vote if follow else of_plain,
        gain=vote_gain if follow else Estimate(0.0, 0.0, 0.0),
        loss_probability=loss if follow else 0.0,
        vote=of_vote,
        vote_gain=vote_gain,
        vote_loss_probability=loss,
        confidence=grade(1.0 if same else certainty, tells or n_labels > 0),
        certainty=1.0 if same else certainty,
        determinability=determinability,
        plain_name=bench.candidates[plain].name,
        members=[
            (bench.candidates[i].name, float(used[i]))
            for i in np.argsort(-used, kind="stable")
            if used[i] > 0
        ],
        rehearsals=_rehearsals(quantities, kinds_of(bench)),
        disagreement=quantities[DISAGREEMENT],
        n_labels=n_labels,
        max_risk=max_risk,
        min_gain=min_gain,
    )
    if isinstance(task, NumberTask):
        return _with_errors(assessment, quantities, expected, task.scale)
    return assessment


def _with_errors(
    assessment: Assessment,
    quantities: dict[str, float],
    expected: dict[str, Predictive],
    scale: float,
) -> Assessment:
    """Add the expected absolute errors; for the objective "mae" these are the scores."""
    of_plain, of_vote = (in_label_units(expected[one], scale) for one in (ERROR, ADAPTED_ERROR))
    if assessment.vote == assessment.plain:
        of_vote = of_plain
    kept = assessment.action == "keep"
    assessment = assessment._replace(
        plain_error=of_plain, recommended_error=of_plain if kept else of_vote
    )
    if assessment.objective != MAE:
        return assessment
    # The error is taken to shrink as the root of 1 - R² does, which the gain is an estimate of.
    unexplained = max(1 - assessment.plain.value, SMALLEST)
    gain = Estimate(
        *(
            of_plain.value * (1 - float(np.sqrt(max(1 - one / unexplained, 0.0))))
            for one in assessment.vote_gain
        )
    )
    of_vote = _moved(of_vote, of_plain.value - gain.value, 0.0, np.inf)
    rehearsals = [
        {
            "rehearsal": row["rehearsal"],
            "plain": scale * quantities[f"{row['rehearsal']}, plain error"],
            "vote": scale * quantities[f"{row['rehearsal']}, vote error"],
        }
        for row in assessment.rehearsals
    ]
    nothing = Estimate(0.0, 0.0, 0.0)
    return assessment._replace(
        plain=of_plain,
        vote=of_vote,
        recommended=of_plain if kept else of_vote,
        recommended_error=of_plain if kept else of_vote,
        vote_gain=gain,
        gain=nothing if kept else gain,
        rehearsals=rehearsals,
    )


def grade(certainty: float, determinable: bool) -> Confidence:
    """Grade the confidence of an assessment; it is low where the data cannot tell."""
    if not determinable or certainty < MODERATE:
        return "low"
    return "high" if certainty >= HIGH else "moderate"


def _moved(estimate: Estimate, value: float, least: float = 0.0, most: float = 1.0) -> Estimate:
    """Return an estimate about another value, its interval as wide, within bounds."""
    shift = value - estimate.value
    return Estimate(value, estimate.low + shift, estimate.high + shift).clipped(least, most)


def _rehearsals(quantities: dict[str, float], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return the scores of plain model and vote by kind of rehearsal."""
    return [
        {
            "rehearsal": kind,
            "plain": quantities[f"{kind}, plain"],
            "vote": quantities[f"{kind}, vote"],
        }
        for kind in kinds
        if f"{kind}, plain" in quantities
    ]


def score_labels(views: Views, codes: IntArray, objective: str, shares: FloatArray) -> LabelScores:
    """Assess on labeled rows: scores of plain model and vote with probabilities ``views``.

    Parameters
    ----------
    views : Views
        Probabilities of the labeled rows.
    codes : ndarray of shape (m,)
        Their classes.
    objective : {"accuracy", "balanced_accuracy"}
        Metric of the scores.
    shares : ndarray of shape (n_classes,)
        Class shares of the source, for the decision.
    """
    right = np.array([decide_classes(P, objective, shares) == codes for P in views], dtype=float)
    plain, vote = right
    return LabelScores(
        sample_score(plain, codes, objective, 0.0),
        sample_score(vote, codes, objective, 0.0),
        sample_score(vote - plain, codes, objective, -1.0),
        len(codes),
    )


def score_labeled_numbers(views: Views, values: FloatArray) -> LabelScores:
    """Assess on labeled rows: R² of plain model and vote, and its difference, with variances.

    Each sample counts two rows more, without an error and with one as large as the spread of the
    labels, so that few small errors are not taken for certainty.
    """
    spread = max(float(values.var()), np.finfo(np.float64).tiny)
    plain, vote = (np.square(values - one[:, 0]) / spread for one in views)
    padding = [0.0, 1.0]
    of_plain, of_vote = (np.append(one, padding).var() / len(values) for one in (plain, vote))
    of_gain = np.append(plain - vote, [-1.0, 1.0]).var() / len(values)
    return LabelScores(
        (float(1 - plain.mean()), float(of_plain)),
        (float(1 - vote.mean()), float(of_vote)),
        (float((plain - vote).mean()), float(of_gain)),
        len(values),
    )


def sample_score(
    values: FloatArray, codes: IntArray, objective: str, least: float
) -> tuple[float, float]:
    """Assess the mean of values, ``least`` to 1, over rows or over classes, and its variance.

    Each group counts one row more at either end, so that few equal values are not taken for
    certainty.
    """
    groups = codes if objective == BALANCED_ACCURACY else np.zeros(len(codes), dtype=int)
    means, variances = [], []
    for k in np.unique(groups):
        of_group = values[groups == k]
        padded = np.concatenate([of_group, [least, 1.0]])
        means.append(of_group.mean())
        variances.append(padded.var() / len(of_group))
    return float(np.mean(means)), float(np.sum(variances)) / len(means) ** 2


def with_labels(
    prior: Predictive,
    sampled: tuple[float, float],
    n_labels: int,
    n_rows: int,
    stretch: float = 1.0,
) -> Predictive:
    """Combine a prediction of the assessment with the score on labeled rows.

    See the module.
    """
    value, variance = sampled
    precision = 1 / prior.deviation**2 + 1 / variance
    mean = (prior.value / prior.deviation**2 + value / variance) / precision
    total = 1 / precision + variance * n_labels / max(n_rows, n_labels)
    quantiles = mean + stretch * np.sqrt(total) * ndtri(prior.probabilities)
    return Predictive(float(mean), prior.probabilities, quantiles)


def judge_determinability(problem: Problem) -> Determinability:
    """Assess whether source rows can show what continues in the target."""
    X, domain, domains = problem.X_source, problem.source_domain, problem.source_domains
    within = np.sqrt(np.mean([feature_variances(X[domain == one]) for one in domains], axis=0))
    scale = np.where(within > 0, within, 1.0)
    target_shift = _shift_between(X, problem.X_target, scale)
    domain_shift = np.nan
    if len(domains) > 1:
        shifts = [_shift_between(X[domain != one], X[domain == one], scale) for one in domains]
        domain_shift = float(np.median(shifts))
    overlap = np.nan
    if min(len(X), len(problem.X_target)) >= MIN_ROWS:
        overlap = float(1 - SourceSupport().fit(X).outside(problem.X_target).mean())
    return Determinability(
        by_overlap=overlap >= MIN_OVERLAP,
        by_domains=len(domains) >= MIN_DOMAINS and domain_shift >= MIN_RATIO * target_shift,
        overlap=overlap,
        n_domains=len(domains),
        domain_shift=domain_shift,
        target_shift=target_shift,
    )


def _shift_between(A: FloatArray, B: FloatArray, scale: FloatArray) -> float:
    """Return root mean square, over the features, of the differences of means and of spreads."""
    means = (B.mean(axis=0) - A.mean(axis=0)) / scale
    spreads = (B.std(axis=0) - A.std(axis=0)) / scale
    return float(np.sqrt(np.mean(means**2 + spreads**2)))
