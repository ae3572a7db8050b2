"""Expected scores and the assessment made of them, beside naive twins of their formulas."""

import json
from importlib.resources import files
from math import exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score

import covshift.selection.assessment as assessing
from covshift.predictors.objectives import METRICS, OBJECTIVES
from covshift.selection.assessment import (
    MAX_RISK,
    MIN_GAIN,
    Determinability,
    assess,
    grade,
    judge_determinability,
    score_labeled_numbers,
    score_labels,
    with_labels,
)
from covshift.selection.assessment_words import _say_determinable, say_gain
from covshift.selection.bench import Problem
from covshift.selection.candidates import Candidate
from covshift.selection.choice import choose, held_out_weights
from covshift.selection.expected_scores import (
    MODELS,
    Estimate,
    Predictive,
    Views,
    _credited,
    chances,
    expect,
    label_stretch,
    quantities_of,
    score_coefficients,
)
from covshift.selection.leaderboard import score_table
from covshift.selection.rehearsals import KINDS, pseudo_targets
from tests.selection.made_problems import Broken, make_bench, make_moved, plain, standardized

WEIGHTS = np.array([0.1, 0.6, 0.3])
PROBABILITIES = np.array([0.05, 0.5, 0.95])


def make_candidates():
    forest = Candidate("none", "forest", None, ExtraTreesClassifier(20, random_state=0))
    return [plain(LogisticRegression(C=0.1)), standardized(), forest]


def run_bench(n_domains=3, n_classes=2, objective="accuracy", candidates=None, seed=0, far=False):
    """A bench of a target that is moved, a little or far, with all scenes run."""
    problem = make_moved(n=90, seed=seed, n_domains=n_domains, n_classes=n_classes)[0]
    if not far:
        problem = problem._replace(X_target=problem.X_target / [2, 1, 1] - [3.7, 3, 0])
    bench = make_bench(candidates or make_candidates(), problem, seed=seed)
    bench.metric = METRICS[objective]
    return bench, score_table(bench, KINDS)


# Naive twins


def naive_decide(row, objective, shares):
    values = [
        p / s if objective == "balanced_accuracy" else p for p, s in zip(row, shares, strict=True)
    ]
    return max(range(len(row)), key=lambda k: (values[k], -k))


def naive_score(predicted, codes, objective):
    if objective == "accuracy":
        return sum(p == c for p, c in zip(predicted, codes, strict=True)) / len(codes)
    recalls = []
    for k in sorted(set(codes)):
        of_class = [p == k for p, c in zip(predicted, codes, strict=True) if c == k]
        recalls.append(sum(of_class) / len(of_class))
    return sum(recalls) / len(recalls)


def naive_mix(P, weights):
    """Without class shares: a loop over rows and members."""
    able = [i for i in range(len(P)) if P[i] is not None and weights[i] > 0]
    total = sum(weights[i] for i in able)
    n, K = P[able[0]].shape
    return [
        [sum(weights[i] * P[i][r][k] for i in able) / total for k in range(K)] for r in range(n)
    ]


def naive_quantities(bench, objective, weights, number, allowed):
    """The quantities of `expectations`, row by row, without estimated class shares."""
    problem = bench.problem
    shares = [sum(problem.codes == k) / len(problem.codes) for k in range(problem.n_classes)]

    def decide(P):
        return [naive_decide(row, objective, shares) for row in P]

    def pair(P, codes):
        plain, vote = decide(P[number]), decide(naive_mix(P, weights))
        return naive_score(plain, codes, objective), naive_score(vote, codes, objective)

    target = bench.calibrated(bench.target)
    plain, vote = decide(target[number]), decide(naive_mix(target, weights))
    n = len(plain)
    changed = sum(a != b for a, b in zip(plain, vote, strict=True)) / n
    left_out = bench.probabilities_left_out()
    played = {"source CV": [pair(left_out, problem.codes)]}
    for kind in KINDS[1:]:
        scenes = dict(pseudo_targets(bench, kind))
        outputs = bench.run({name: one.scene for name, one in scenes.items()})
        found = [pair(bench.calibrated(outputs[name]), one.codes) for name, one in scenes.items()]
        if found:
            played[kind] = found
    result = {}
    for kind, found in played.items():
        a, b = (sum(one[j] for one in found) / len(found) for j in range(2))
        result[f"{kind}, plain"], result[f"{kind}, vote"] = a, b
    cv = result["source CV"] = result["source CV, plain"]
    for kind in played:
        if kind != "source CV":
            result[kind] = cv - result[f"{kind}, plain"]

    def credited(P):
        total = 0.0
        for r in range(n):
            row = list(P[r])
            if objective == "balanced_accuracy":
                row = [p / s for p, s in zip(row, shares, strict=True)]
                row = [p / sum(row) for p in row]
            total += row[vote[r]] - row[plain[r]]
        return total / n

    def calibrated(P):
        """The score of the plain model's classes, if the probabilities P were right."""
        if objective == "accuracy":
            return sum(P[r][plain[r]] for r in range(n)) / n
        recalls = []
        for k in range(problem.n_classes):
            of_class = sum(P[r][k] for r in range(n))
            if of_class >= 1:
                recalls.append(sum(P[r][k] for r in range(n) if plain[r] == k) / of_class)
        return sum(recalls) / len(recalls)

    equal = [float(one) for one in allowed]
    unadapted = [
        w if not one.adapts else 0.0 for one, w in zip(bench.candidates, equal, strict=True)
    ]
    result["by the vote"] = cv - calibrated(naive_mix(target, weights))
    result["by all"] = cv - calibrated(naive_mix(target, equal))
    result["by unadapted"] = cv - calibrated(naive_mix(target, unadapted))
    result["calibrated confidence"] = cv - calibrated(target[number])
    result["gain by the vote"] = credited(naive_mix(target, weights))
    result["gain by all"] = credited(naive_mix(target, equal))

    committee = [
        sum(a != b for a, b in zip(plain, decide(P), strict=True)) / n
        for P, may in zip(target, allowed, strict=True)
        if may
    ]
    result["log disagreement"] = log(changed + 0.02)
    result["log committee"] = log(sum(committee) / len(committee) + 0.02)
    result["separation"] = max(0, 2 * bench.separation_auc - 1) ** 2
    result["few rows"] = 1 / sqrt(len(problem.X_target))
    result["one domain"] = float(len(set(problem.source_domain)) == 1)
    return result


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("n_domains", "n_classes"), [(1, 2), (3, 3)])
def test_quantities_are_those_of_the_formulas(objective, n_domains, n_classes):
    bench, table = run_bench(n_domains, n_classes, objective)
    bench.separation_auc = 0.8
    found = quantities_of(bench, objective, WEIGHTS, 0, table.allowed, reweighed=False)
    for name, value in naive_quantities(bench, objective, WEIGHTS, 0, table.allowed).items():
        assert found[name] == pytest.approx(value, abs=1e-12), name
    assert found["disagreement"] > 0.05  # else nothing above is tested
    assert ("source domains" in found) == (n_domains > 1)


def test_scenes_without_the_plain_model_and_members_that_failed_do_not_count():
    candidates = [plain(), standardized(), Candidate("none", "broken", None, Broken())]
    bench, table = run_bench(candidates=candidates)
    with_failed = quantities_of(
        bench, "accuracy", np.array([0.0, 0.7, 0.3]), 0, table.allowed, reweighed=False
    )
    without = quantities_of(
        bench, "accuracy", np.array([0.0, 1.0, 0.0]), 0, table.allowed, reweighed=False
    )
    # Weights that are divided by their sum leave a difference of rounding in probabilities.
    assert with_failed == pytest.approx(without, rel=0, abs=1e-15)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_file_has_coefficients_of_quantities_that_exist(objective):
    bench, table = run_bench(objective=objective)
    known = quantities_of(bench, objective, WEIGHTS, 0, table.allowed, reweighed=False)
    for model in MODELS:
        fitted = score_coefficients()[objective][model]
        assert set(fitted.get("mean", {})) | set(fitted["log scale"]) <= set(known)
        assert len(fitted["quantiles"]) == len(score_coefficients()["probabilities"])
        assert (np.diff(fitted["quantiles"]) > 0).all()
    text = files("covshift.selection").joinpath("expected_scores.json").read_text()
    assert json.loads(text)["command"].startswith("python benchmarks/assessment.py")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_expected_scores_follow_the_formula(objective):
    bench, table = run_bench(objective=objective)
    quantities = quantities_of(bench, objective, WEIGHTS, 0, table.allowed, reweighed=False)
    found, fitted = expect(quantities, objective), score_coefficients()[objective]
    means = {}
    for name in ("plain", "gain"):
        means[name] = sum(quantities[q] * b for q, b in fitted[name]["mean"].items())
    means["adapted"] = means["plain"] + means["gain"]
    for name in MODELS:
        scale = exp(sum(quantities[q] * g for q, g in fitted[name]["log scale"].items()))
        quantiles = [means[name] + scale * one for one in fitted[name]["quantiles"]]
        assert found[name].value == pytest.approx(means[name], abs=1e-12)
        np.testing.assert_allclose(found[name].quantiles, quantiles, rtol=1e-12)


# Distributions and labels


def test_intervals_and_probabilities_of_a_predictive_distribution():
    one = Predictive(0.5, PROBABILITIES, np.array([0.2, 0.5, 0.7]))
    assert one.interval() == Estimate(0.5, 0.2, 0.7)
    assert one.below(0.5) == 0.5
    assert one.below(0.35) == pytest.approx(0.275)  # halfway from .05 to .5
    assert Estimate(1.2, -0.1, 1.5).clipped(0, 1) == Estimate(1.0, 0.0, 1.0)


def test_labels_are_combined_as_bayes_would():
    p = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
    prior = Predictive(0.6, p, 0.6 + 0.1 * norm.ppf(p))
    value, variance, m, n = 0.8, 0.004, 40, 400
    found = with_labels(prior, (value, variance), m, n)
    grid = np.linspace(-1, 2, 30001)
    density = norm.pdf(grid, 0.6, 0.1) * norm.pdf(value, grid, sqrt(variance))
    density /= density.sum()
    mean = (grid * density).sum()
    spread = sqrt(((grid - mean) ** 2 * density).sum() + variance * m / n)
    assert found.value == pytest.approx(mean, abs=1e-4)
    assert found.interval().high == pytest.approx(mean + 1.6449 * spread, abs=2e-4)
    stretched = with_labels(prior, (value, variance), m, n, 0.9)
    assert stretched.value == found.value
    assert stretched.deviation == pytest.approx(0.9 * found.deviation)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_assessment_with_labels_is_stretched_as_the_file_says(objective, monkeypatch):
    widths = {}
    for factor in (1.0, 2.0):
        stretch = dict.fromkeys(MODELS, factor)
        monkeypatch.setattr(assessing, "label_stretch", lambda _, stretch=stretch: stretch)
        found = assessed(labels=30, objective=objective)[0].assessment
        widths[factor] = found.plain.high - found.plain.low
    assert widths[2.0] > 1.3 * widths[1.0]  # scores end at 1
    assert set(label_stretch(objective)) == set(MODELS)
    assert all(0.5 < one < 1.5 for one in label_stretch(objective).values())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_scores_on_labeled_rows(objective):
    rng = np.random.RandomState(0)
    P = [rng.dirichlet(np.ones(3), size=60) for _ in range(2)]
    codes, shares = rng.randint(3, size=60), np.array([0.5, 0.3, 0.2])
    found = score_labels(Views(*P), codes, objective, shares)
    right = [
        [naive_decide(row, objective, shares) == c for row, c in zip(one, codes, strict=True)]
        for one in P
    ]
    groups = codes if objective == "balanced_accuracy" else np.zeros(60, dtype=int)
    for sampled, values, least in (
        (found.plain, right[0], 0),
        (found.vote, right[1], 0),
        (found.gain, [int(b) - int(a) for a, b in zip(*right, strict=True)], -1),
    ):
        means, variances = [], []
        for k in set(groups):
            mine = [float(v) for v, g in zip(values, groups, strict=True) if g == k]
            padded = [*mine, least, 1.0]
            center = sum(padded) / len(padded)
            means.append(sum(mine) / len(mine))
            variances.append(sum((v - center) ** 2 for v in padded) / len(padded) / len(mine))
        assert sampled[0] == pytest.approx(sum(means) / len(means))
        assert sampled[1] == pytest.approx(sum(variances) / len(means) ** 2)
    assert found.n_labels == 60


def test_scores_on_labeled_rows_of_numbers():
    rng = np.random.RandomState(0)
    values = rng.standard_normal(30)
    P = [values + 0.5 * rng.standard_normal(30), values + 0.2 * rng.standard_normal(30)]
    found = score_labeled_numbers(Views(*(one[:, None] for one in P)), values)
    total = sum((v - sum(values) / 30) ** 2 for v in values)
    errors = [[(v - p) ** 2 / (total / 30) for v, p in zip(values, one, strict=True)] for one in P]
    differences = [a - b for a, b in zip(*errors, strict=True)]
    for sampled, mean, padded in (
        (found.plain, r2_score(values, P[0]), [*errors[0], 0.0, 1.0]),
        (found.vote, r2_score(values, P[1]), [*errors[1], 0.0, 1.0]),
        (found.gain, r2_score(values, P[1]) - r2_score(values, P[0]), [*differences, -1.0, 1.0]),
    ):
        center = sum(padded) / 32
        assert sampled[0] == pytest.approx(mean)
        assert sampled[1] == pytest.approx(sum((v - center) ** 2 for v in padded) / 32 / 30)
    assert found.n_labels == 30


def test_one_right_label_is_not_certainty():
    found = score_labels(
        Views(np.array([[0.9, 0.1]]), np.array([[0.9, 0.1]])), np.array([0]), "accuracy", np.ones(2)
    )
    assert found.plain[0] == 1.0
    assert found.plain[1] > 0.1


# The assessment


def assessed(max_risk=MAX_RISK, labels=0, min_gain=MIN_GAIN, objective="accuracy", **options):
    bench, _ = run_bench(objective=objective, **options)
    problem = bench.problem
    known = None
    if labels:
        rows = np.arange(labels)
        known = problem.X_target[rows], problem.target_domain[rows], (rows % problem.n_classes)
    choice = choose(
        bench, "rehearsals", n_members=3, objective=objective, max_risk=max_risk,
        min_gain=min_gain, labeled=known,
    )  # fmt: skip
    return choice, bench


def test_no_risk_keeps_the_plain_model():
    choice, bench = assessed(max_risk=0.0)
    found = choice.assessment
    assert found.action == "keep"
    assert found.recommended == found.plain
    assert found.gain == Estimate(0, 0, 0)
    assert found.loss_probability == 0.0
    assert found.members == [(bench.candidates[choice.plain].name, 1.0)]
    np.testing.assert_array_equal(choice.recommended, np.eye(3)[choice.plain])


def test_a_printed_assessment_has_a_sentence_on_each_line():
    found = assessed()[0].assessment
    advice, *lines = str(found).splitlines()
    assert advice.startswith("Advice: ")
    assert lines[0].startswith("Expected accuracy (90 % interval), plain model: ")
    assert len(lines) >= 5
    assert all(line.endswith(".") for line in lines)


def test_the_vote_is_recommended_where_the_risk_is_accepted():
    found = assessed(max_risk=1.0, min_gain=0.0)[0].assessment
    assert found.action == ("adapt" if found.vote_gain.value > 0 else "keep")
    assert found.recommended == (found.vote if found.action == "adapt" else found.plain)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(4))
def test_numbers_agree_with_each_other(objective, seed):
    found = assessed(objective=objective, seed=seed)[0].assessment
    for one in (found.plain, found.recommended, found.vote):
        assert 0 <= one.low <= one.value <= one.high <= 1
    assert found.vote.value == pytest.approx(found.plain.value + found.vote_gain.value)
    assert found.recommended.value == pytest.approx(found.plain.value + found.gain.value)
    assert found.gain.low <= found.gain.value <= found.gain.high
    assert sum(weight for _, weight in found.members) == pytest.approx(1)
    assert found.loss_probability <= MAX_RISK
    followed = found.vote_gain.value >= MIN_GAIN and found.vote_loss_probability <= MAX_RISK
    assert (found.action != "keep") == followed


def test_the_expected_gain_must_reach_the_least_gain():
    gain = assessed(max_risk=1.0, far=True)[0].assessment.vote_gain.value
    assert gain > 0
    for min_gain, action in ((gain, "adapt"), (np.nextafter(gain, 1), "keep")):
        found = assessed(max_risk=1.0, min_gain=min_gain, far=True)[0].assessment
        assert found.action == action
        assert found.min_gain == min_gain
        assert ("below" in say_gain(found)) == (action == "keep")


def test_with_labels_a_loss_is_a_gain_below_minus_the_margin(monkeypatch):
    asked, below = [], Predictive.below

    def recorded(self, bound):
        asked.append((bound, below(self, bound)))
        return asked[-1][1]

    monkeypatch.setattr(Predictive, "below", recorded)
    found = assessed(labels=80, far=True)[0].assessment
    assert asked[0] == (-0.01, found.vote_loss_probability)
    assert asked[1][0] == (0.01 if found.action == "keep" else 0.0)


def test_labels_narrow_the_intervals_and_move_them_to_the_truth():
    # In the moved target, an unadapted model is wrong about as often as right.
    widths, errors = [], []
    for n_labels in (0, 20, 80):
        choice, bench = assessed(labels=n_labels, far=True)
        found = choice.assessment
        codes = np.arange(len(bench.problem.X_target)) % 2
        truth = np.mean(bench.target[choice.plain].codes == codes)
        widths.append(found.plain.high - found.plain.low)
        errors.append(abs(found.plain.value - truth))
        assert found.n_labels == n_labels
    assert widths[0] > widths[1] > widths[2]
    assert errors[2] < errors[0]


def test_a_vote_of_the_plain_model_alone_gains_nothing_for_sure():
    bench, table = run_bench()
    found = assess(bench, table, np.eye(3)[0], 0)
    assert found.action == "keep"
    assert found.certainty == 1.0
    assert found.vote == found.plain
    assert found.vote_loss_probability == 0.0


def test_a_plain_model_that_cannot_be_fitted_leaves_no_assessment():
    broken = Candidate("none", "broken", None, Broken())
    bench, _ = run_bench(candidates=[broken, standardized()])
    assert choose(bench, "rehearsals", n_members=1).assessment is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_labels_probabilities_are_chances(objective):
    choice, bench = assessed(objective=objective)
    found = choice.assessment
    quantities = {"one": 1.0} | naive_quantities(
        bench, objective, choice.weights, choice.plain, choice.table.allowed
    )
    likely = chances(quantities, found.vote_gain.value, objective)
    assert found.vote_loss_probability == pytest.approx(likely.loss)
    wanted = likely.keep if found.action == "keep" else likely.adapt
    assert found.certainty == pytest.approx(wanted)
    labeled = assessed(labels=40, objective=objective)[0].assessment
    assert labeled.vote_loss_probability != pytest.approx(likely.loss)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_chances_are_logistic(objective):
    quantities = {"one": 1.0, "log committee": -1.7}
    found = chances(quantities, 0.03, objective)._asdict()
    for name, terms in score_coefficients()[objective]["chances"].items():
        known = {**quantities, "expected gain": 0.03}
        total = sum(known[one] * beta for one, beta in terms.items())
        assert found[name] == pytest.approx(1 / (1 + exp(-total)))
    certain = chances({"one": 1.0, "log committee": np.log(0.02)}, 0.0, objective)
    assert certain.keep > found["keep"]  # models that agree have nothing to gain


def test_confidence_in_words():
    assert [grade(p, True) for p in (0.95, 0.9, 0.8, 0.75, 0.7)] == [
        "high", "high", "moderate", "moderate", "low",
    ]  # fmt: skip
    assert grade(0.99, False) == "low"


# Whether the data can show which model is right


def make_problem(shift, n_domains=1, between=0.0, n=200):
    rng = np.random.RandomState(0)
    domain = np.arange(n) % n_domains
    X = rng.standard_normal((n, 2)) + between * domain[:, None]
    return Problem(
        X, np.arange(n) // 2 % 2, domain, rng.standard_normal((n, 2)) + shift, np.full(n, -1), 2
    )


def test_overlap_can_tell():
    found = judge_determinability(make_problem(0.3))
    assert found.by_overlap
    assert found.determinable
    assert found.overlap > 0.9


def test_one_domain_and_a_target_elsewhere_cannot_tell():
    found = judge_determinability(make_problem(6.0))
    assert not found.determinable
    assert found.overlap == 0.0
    assert np.isnan(found.domain_shift)


def test_domains_that_differ_as_far_as_the_target_can_tell():
    apart, alike = (judge_determinability(make_problem(20.0, 3, b)) for b in (8.0, 0.5))
    assert apart.by_domains
    assert apart.determinable
    assert not apart.by_overlap
    assert not alike.determinable
    assert not judge_determinability(make_problem(20.0, 2, 15.0)).by_domains


def test_few_rows_have_no_overlap_to_speak_of():
    problem = make_problem(0.0, n=8)
    found = judge_determinability(problem)
    assert np.isnan(found.overlap)
    assert not found.by_overlap
    assert isinstance(found, Determinability)


def test_gains_under_equal_shares_weigh_the_rare_class_more():
    P = np.array([[0.8, 0.2], [0.6, 0.4]])
    shares = np.array([0.8, 0.2])
    plain_says, vote_says = np.array([0, 0]), np.array([1, 0])
    weighed = [0.8 / 0.8, 0.2 / 0.2]
    expected = (weighed[1] - weighed[0]) / sum(weighed) / 2
    assert _credited(P, [plain_says, vote_says], shares) == pytest.approx(expected)
    assert _credited(P, [plain_says, vote_says], None) == pytest.approx((0.2 - 0.8) / 2)
    # A class without source rows keeps no probability.
    assert _credited(P, [plain_says, vote_says], np.array([1.0, 0.0])) == pytest.approx(-0.5)


def test_the_vote_of_a_labeled_row_is_chosen_by_the_other_half_of_the_labels():
    bench, table = run_bench()
    outputs = bench.target
    codes = np.arange(len(bench.problem.X_target)) % 2
    gains, even = np.array([0.0, 0.02, 0.01]), np.arange(len(codes)) % 2 == 0

    def weigh(labels):
        return held_out_weights(bench, outputs, labels, gains, table.allowed, 2, 0)

    right, wrong = weigh(codes), weigh(np.where(even, 1 - codes, codes))
    np.testing.assert_array_equal(right[even], wrong[even])
    assert not np.array_equal(right[~even], wrong[~even])


@pytest.mark.parametrize(
    ("overlap", "said"),
    [
        (np.nan, "there is one source domain. "),
        (0.4, "one source domain, and only 40 % of the target rows lie where the source has rows."),
        (0.001, "one source domain, and no target row lies where the source has rows."),
    ],
)
def test_an_unknown_overlap_is_not_mentioned(overlap, said):
    found = Determinability(False, False, overlap, 1, np.nan, 2.0)
    assert said in _say_determinable(SimpleNamespace(determinability=found, n_labels=0))
