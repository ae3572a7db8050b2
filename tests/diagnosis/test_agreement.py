"""Advice, words, tables, leaderboard and model never disagree."""

import re
import sys
from functools import cache

import numpy as np
import pytest

from covshift import AutoAdaptedClassifier, diagnose
from covshift.diagnosis.diagnosis import Diagnosis
from covshift.diagnosis.diagnosis_words import say_title
from covshift.kernels.array_types import FloatArray
from covshift.selection import assessment as assessing
from covshift.selection.assessment import HIGH, MODERATE, Determinability, assess
from covshift.selection.assessment_words import (
    PLAIN_ROW,
    RECOMMENDED_ROW,
    VOTE_ROW,
    describe_assessment,
    name_candidate,
    say_advice,
    say_gain,
    score_rows,
)
from covshift.selection.choice import Choice
from covshift.selection.expected_scores import Chances, Predictive, score_coefficients
from covshift.selection.vote import fit_members, vote_weights
from tests.diagnosis.made_domains import (
    CANDIDATES,
    alone,
    few_candidates,
    other_frequencies,
    shifted_sites,
    unmoved,
)

N_RANDOM = 300
diagnose_module = sys.modules["covshift.diagnosis.diagnosis"]  # a function has its name
MADE_UP = {"alone": alone, "frequencies": other_frequencies, "sites": shifted_sites,
           "unmoved": unmoved}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def cheap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CANDIDATES, few_candidates)
        yield


@cache
def first_diagnosis():
    data, _ = shifted_sites(n=40)
    return diagnose(data.X, data.y, sample_domain=data.sample_domain)


@pytest.fixture(scope="module")
def random_diagnoses():
    """One bench, of which everything that decides is drawn at random, again and again."""
    first = first_diagnosis()
    bench, model = first._bench, first._model
    choice = model._choose(bench, first._rows.data)
    quantities = assessing.quantities_of(
        bench, "accuracy", choice.weights, choice.plain, choice.table.allowed,
        reweighed=False,
    )  # fmt: skip
    found = []
    for seed in range(N_RANDOM):
        rng = np.random.RandomState(seed)
        gains: FloatArray = rng.normal(0, 0.1, len(bench.candidates))
        gains[choice.plain] = 0.0
        if rng.uniform() < 0.2:  # nothing is better: the plain model votes alone
            gains = -np.abs(gains)
        allowed = rng.uniform(size=len(gains)) < 0.8
        allowed[choice.plain] = True
        table = choice.table._replace(reasons=[None if fine else "made up" for fine in allowed])
        weights = vote_weights(gains, allowed, int(rng.randint(1, 5)), choice.plain)
        objective = str(rng.choice(["accuracy", "balanced_accuracy"]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(assessing, "quantities_of", lambda *_, **__: dict(quantities))
            likely = Chances(*map(float, rng.uniform(size=3)))
            patch.setattr(assessing, "chances", lambda *_, likely=likely: likely)
            patch.setattr(assessing, "expect", lambda *_, rng=rng: draw_expected(rng))
            patch.setattr(
                assessing, "judge_determinability", lambda _, rng=rng: draw_determinability(rng)
            )
            said = assess(
                bench, table, weights, choice.plain,
                objective=objective, max_risk=float(rng.uniform(0, 1)),
                min_gain=float(rng.choice([0.0, 0.01, 0.05])),
            )  # fmt: skip
        model.objective_ = objective
        one = Choice(table, gains, weights, choice.plain, "rehearsals", said)
        rows = (first._findings, first._rows, bench, model, first._recommended)
        found.append((one, Diagnosis(one, *rows)))
    return found


def draw_determinability(rng):
    n_domains = int(rng.randint(1, 6))
    ways = [bool(one) for one in rng.uniform(size=2) < 0.4]
    shifts = rng.exponential(size=2) if n_domains > 1 else (np.nan, 1.0)
    return Determinability(*ways, float(rng.uniform()), n_domains, *map(float, shifts))


def draw_expected(rng):
    """Predictive distributions of any place and width."""
    probabilities = np.array(score_coefficients()["probabilities"])
    found = {}
    for name, middle, scale in (("plain", 0.75, 0.2), ("adapted", 0.75, 0.2), ("gain", 0.0, 0.08)):
        value = rng.normal(middle, scale)
        width = rng.exponential(scale) + 1e-3
        quantiles = value + width * np.linspace(-1, 1, len(probabilities))
        found[name] = Predictive(float(value), probabilities, quantiles)
    return found


def test_the_draws_reach_every_kind_of_advice(random_diagnoses):
    said = [one.assessment for one, _ in random_diagnoses]
    assert {one.action for one in said} == {"adapt", "combine", "keep"}
    assert {one.confidence for one in said} == {"high", "moderate", "low"}
    assert any(one.vote == one.plain for one in said)
    assert any(one.action == "keep" and one.vote != one.plain for one in said)


def test_to_keep_is_to_use_the_plain_model_alone_and_to_gain_nothing(random_diagnoses):
    for choice, diagnosis in random_diagnoses:
        said = choice.assessment
        keep = said.action == "keep"
        assert keep == (said.members == [(said.plain_name, 1.0)])
        assert keep == (tuple(said.gain) == (0.0, 0.0, 0.0))
        assert keep == ("keep the plain model" in say_advice(said))
        assert keep == say_title(diagnosis).startswith("Keep the plain model")
        assert keep == (said.recommended == said.plain)
        assert not (keep and said.loss_probability)
        assert keep or said.loss_probability <= said.max_risk
        assert keep or said.gain.value >= said.min_gain
        refused = keep and said.vote != said.plain
        assert refused == ("It is not recommended because" in say_gain(said))
        in_use = [row["adapter"] for row in diagnosis.table if row["weight"] > 0]
        assert not keep or in_use == [said.plain_name.partition(" + ")[0]]


def test_to_adapt_is_to_use_a_member_that_adapts(random_diagnoses):
    for choice, diagnosis in random_diagnoses:
        said = choice.assessment
        candidates = {one.name: one for one in diagnosis._bench.candidates}
        adapts = any(candidates[name].adapts for name, _ in said.members)
        assert adapts == (said.action == "adapt")
        assert ("Assumption of " in " ".join(describe_assessment(said))) == adapts


def test_leaderboard_table_and_members_have_the_same_weights(random_diagnoses):
    for choice, diagnosis in random_diagnoses:
        said = choice.assessment
        board = {row["candidate"]: row["weight"] for row in diagnosis.leaderboard}
        assert {name: weight for name, weight in board.items() if weight} == dict(said.members)
        for row in diagnosis.table:
            of_adapter = [w for name, w in board.items() if name.startswith(f"{row['adapter']} + ")]
            assert row["weight"] == pytest.approx(sum(of_adapter))
        assert sum(row["weight"] for row in diagnosis.table) == pytest.approx(1)
        # The advice names the heaviest member beside the plain model.
        others = [one for one in said.members if one[0] != said.plain_name]
        first = max(others or said.members, key=lambda one: one[1])[0]
        assert f" {name_candidate(first)} " in say_advice(said)


def test_the_printed_gain_is_the_difference_of_the_printed_scores(random_diagnoses):
    for choice, _ in random_diagnoses:
        said = choice.assessment
        rows = dict(score_rows(said))
        other = RECOMMENDED_ROW if said.action != "keep" else VOTE_ROW
        same = said.vote == said.plain
        assert set(rows) == ({PLAIN_ROW} if same else {PLAIN_ROW, other})
        for one in rows.values():
            assert 0 <= one.low <= one.value <= one.high <= 1
        if same:
            assert say_gain(said) == "No other model is expected to do better."
            continue
        value = re.search(r"(?:by|plain model:) (\S+|less than 0.01) \(90 %", say_gain(said))[1]
        shown = 0.0 if value == "less than 0.01" else float(value)
        assert shown == pytest.approx(rows[other].value - rows[PLAIN_ROW].value, abs=1e-9)
        assert abs(shown - said.vote_gain.value) < 0.0151  # of two rounded numbers
        low, high = map(float, re.search(r"interval (\S+) to (\S+?)\)", say_gain(said)).groups())
        assert low <= shown <= high


def test_a_probability_of_a_loss_is_printed_with_its_number(random_diagnoses):
    for choice, _ in random_diagnoses:
        said = choice.assessment
        sentence = say_gain(said)
        assert ("Probability of losing" in sentence) == (said.vote != said.plain)
        if said.vote != said.plain:
            shown = int(re.search(r"0\.01: (\d+) %", sentence)[1])
            assert shown == pytest.approx(100 * said.vote_loss_probability, abs=0.51)


def test_words_of_confidence_follow_from_the_numbers(random_diagnoses):
    for choice, diagnosis in random_diagnoses:
        said = choice.assessment
        known = said.determinability.determinable or said.n_labels > 0
        word = (
            "high" if said.certainty >= HIGH else "moderate" if said.certainty >= MODERATE else ""
        )
        assert said.confidence == ((word or "low") if known else "low")
        sentences = describe_assessment(said)
        assert f"({said.confidence} confidence)" in sentences[0]
        assert say_title(diagnosis).endswith(f": {said.confidence} confidence")
        undetermined = any("cannot be determined from these data" in one for one in sentences)
        assert undetermined == (not said.determinability.determinable)
        assert (said.confidence != "high") == any("To be more certain" in one for one in sentences)
        assert said.confidence != "high" or not undetermined or said.n_labels


def test_members_are_fitted_as_advised(random_diagnoses):
    for choice, diagnosis in random_diagnoses[:12]:
        fitted = fit_members(diagnosis._bench, choice.recommended, diagnosis._rows.data, None)
        assert [(one.candidate.name, one.weight) for one in fitted if one.weight > 0] == (
            choice.assessment.members
        )


@pytest.mark.parametrize(("objective", "seed"), [("accuracy", 0), ("balanced_accuracy", 1)])
@pytest.mark.parametrize("made_up", list(MADE_UP))
def test_diagnose_says_what_the_classifier_does(made_up, objective, seed, monkeypatch):
    for name in ("movement", "weighting", "stability"):  # beside the advice, and slow
        found = getattr(first_diagnosis(), name)
        monkeypatch.setattr(diagnose_module, f"measure_{name}", lambda *_, found=found: found)
    data, y_target = MADE_UP[made_up](seed, 40)
    y, mask = data.y.copy(), data.sample_domain >= 0
    if seed:  # some labels of the target are known
        rows = np.flatnonzero(~mask)[::5]
        y[rows], mask[rows] = y_target[::5], True
    where = {"sample_domain": data.sample_domain, "label_mask": mask}
    settings = {"objective": objective, "max_risk": 0.3, "max_rows": 60, "random_state": seed}
    found = diagnose(data.X, y, **where, **settings)
    model = AutoAdaptedClassifier(**settings).fit(data.X, y, **where)
    assert repr(found.assessment) == repr(model.assessment_)  # a NaN equals no other
    assert found.assessment.n_labels == (len(y_target[::5]) if seed else 0)
    assert [(one.candidate.name, one.weight) for one in model.members_] == found.assessment.members
    assert model.decision_ == say_advice(found.assessment)
    assert model.decision_ in repr(found)
