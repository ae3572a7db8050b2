"""Candidates, disqualification, weights of the vote, the recommended model."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from covshift import AdaptedClassifier, CorrelationAlignment, DomainStandardScaler
from covshift.registry import Size, find_record
from covshift.selection.assessment_words import adapter_rows
from covshift.selection.bench import Output
from covshift.selection.candidates import check_candidates, forest
from covshift.selection.choice import NoRankedCandidateWarning, choose
from covshift.selection.leaderboard import disqualify, score_table
from covshift.selection.rehearsals import KINDS
from covshift.selection.vote import SCORE_ERROR, combine_with_labels, vote_weights
from tests.selection.made_problems import (
    Broken,
    Constant,
    make_bench,
    make_moved,
    plain,
    standardized,
)

NAN = np.nan


# Candidates

SIZE = Size(n_source=100, n_target=80, n_features=4)


def test_adapters_by_name():
    named = [("Coral", LogisticRegression()), ("mine", "standardise", LogisticRegression())]
    plain, coral, mine = check_candidates(named, SIZE)
    assert [one.name.partition(" ")[0] for one in (plain, coral, mine)] == ["none", "coral", "mine"]
    assert repr(coral.adapter) == repr(find_record("coral").build(SIZE))
    assert repr(mine.adapter) == "DomainStandardScaler()"


def test_a_users_list_in_every_form():
    LR = LogisticRegression()
    coral = CorrelationAlignment()
    found = check_candidates(
        [(None, LR), (coral, LR), ("mine", coral, SVC()), AdaptedClassifier(coral)], SIZE
    )
    assert [one.name for one in found] == [
        "none + rbf",
        "none + logistic",  # of the last entry, whose max_iter is another
        "raw + LogisticRegression",
        "CorrelationAlignment + LogisticRegression",
        "mine + rbf",
        "CorrelationAlignment + logistic",
    ]


def test_no_adaptation_is_added_once_for_each_estimator():
    coral, mean = CorrelationAlignment(), DomainStandardScaler()
    found = check_candidates([(coral, LogisticRegression()), (mean, LogisticRegression())], SIZE)
    assert [one.adapts for one in found] == [False, True, True]
    assert [one.name for one in check_candidates([("none", SVC()), (coral, SVC())], SIZE)] == [
        "none + rbf",
        "CorrelationAlignment + rbf",
    ]


def test_an_unfitted_ensemble_is_not_asked_for_its_length():
    forest = RandomForestClassifier(3)
    found = check_candidates([AdaptedClassifier("coral", forest)], SIZE)
    assert [one.name for one in found] == [
        "none + RandomForestClassifier", "coral + RandomForestClassifier",
    ]  # fmt: skip


def test_rows_as_they_are_count_as_unadapted_whatever_they_are_called():
    found = check_candidates([("mine", None, SVC()), (None, SVC(C=2.0))], SIZE)
    assert [(one.adapter_name, one.adapts) for one in found] == [("mine", False), ("raw", False)]


def test_names_tell_pipelines():
    adapter = make_pipeline(StandardScaler(), CorrelationAlignment())
    (_, found) = check_candidates([(adapter, LogisticRegression())], SIZE)
    assert found.name == "StandardScaler > CorrelationAlignment + LogisticRegression"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([], "at least one"),
        (3, "at least one"),
        ([LogisticRegression()], "candidates[0]"),
        ([(None, LinearRegression())], "not a classifier"),
        ([(None, "LR")], "not a classifier"),
        ([("magic", LogisticRegression())], "Unknown adapter 'magic'. Choose from: none,"),
        ([(None, LogisticRegression()), (1, 2, 3, 4)], "candidates[1]"),
    ],
)
def test_bad_candidates(bad, words):
    with pytest.raises((TypeError, ValueError)) as error:
        check_candidates(bad, SIZE)
    assert words in str(error.value)


# Disqualification


def test_degenerate_and_failed_candidates_are_named_with_the_reason():
    bench = make_bench([plain(), plain(Constant()), plain(Broken()), standardized()])
    table = score_table(bench, ["source CV"])
    assert table.reasons[3] is None
    assert table.reasons[1] == "predicts one class for all 120 target rows"
    assert table.reasons[2] == "failed: RuntimeError: out of luck"
    assert table.allowed[3]
    assert not table.allowed[1:3].any()


def test_collapsed_weights_are_disqualified():
    logits = np.array([[0.0, 1.0], [1.0, 0.0]])
    few, enough = Output(logits, n_effective=3.2), Output(logits, n_effective=50.0)
    reasons = disqualify([few, enough], 1000, 2)
    assert reasons == [
        "its weights rest on about 3 of 1000 source rows (at least 10 are needed)",
        None,
    ]
    assert disqualify([enough], 10_000, 2)[0] is not None  # half a percent


# The vote


def test_weights_are_those_of_the_formula():
    combined = np.array([0.10, 0.12, 0.14, NAN, 0.50])
    allowed = np.array([True, True, True, True, False])
    weights = vote_weights(combined, allowed, 2)
    expected = np.exp([(0.12 - 0.14) / 0.01, 0])
    np.testing.assert_allclose(weights, [0, *expected / expected.sum(), 0, 0])
    np.testing.assert_array_equal(vote_weights(combined, allowed, 1), [0, 0, 1, 0, 0])


def test_a_candidate_with_hardly_any_weight_does_not_vote():
    combined, allowed = np.array([0.0, 0.05, 0.09, 0.1]), np.ones(4, dtype=bool)
    weights = vote_weights(combined, allowed, 4)  # without the rule: .0000, .005, .27, .73
    expected = np.exp([-1, 0])
    np.testing.assert_allclose(weights, [0, 0, *expected / expected.sum()])


def test_the_plain_model_has_a_share_of_a_vote():
    combined, allowed = np.array([0.0, 0.12, 0.14]), np.ones(3, dtype=bool)
    alone = vote_weights(combined, allowed, 2)
    np.testing.assert_allclose(vote_weights(combined, allowed, 2, 0), 0.7 * alone + [0.3, 0, 0])
    np.testing.assert_allclose(vote_weights(combined, allowed, 2, 2), 0.7 * alone + [0, 0, 0.3])
    np.testing.assert_array_equal(vote_weights(combined, allowed, 1, 0), [0, 0, 1])


def test_ties_go_to_the_earlier_candidate():
    np.testing.assert_array_equal(vote_weights(np.ones(4), np.ones(4, dtype=bool), 1), [1, 0, 0, 0])


def test_nobody_to_rank_leaves_the_first():
    np.testing.assert_array_equal(vote_weights(np.zeros(3), np.zeros(3, dtype=bool), 3), [1, 0, 0])


def test_few_labels_hardly_count_and_many_decide():
    combined, labels = np.array([0.0, 0.1]), np.array([0.9, 0.5])
    everybody = np.ones(2, dtype=bool)
    assert combine_with_labels(combined, labels, 1, everybody).argmax() == 1
    assert combine_with_labels(combined, labels, 500, everybody).argmax() == 0
    np.testing.assert_array_equal(combine_with_labels(combined, labels, 0, everybody), combined)


def test_labels_and_score_are_averaged_by_precision():
    combined, labels, m = np.array([0.00, 0.06]), np.array([0.8, 0.7]), 10
    found = combine_with_labels(combined, labels, m, np.ones(2, dtype=bool))
    for c, s, a in ((0, -0.03, 0.05), (1, 0.03, -0.05)):
        p = (labels[c] * m + 1) / (m + 2)
        w, v = 1 / SCORE_ERROR**2, m / (p * (1 - p))
        assert found[c] == pytest.approx((w * s + v * a) / (w + v))


def test_labels_that_contradict_the_score_say_how_far_it_is_off():
    combined, labels, m = np.array([0.3, 0.0, 0.0]), np.array([0.2, 0.8, 0.8]), 40
    found = combine_with_labels(combined, labels, m, np.ones(3, dtype=bool))
    s, a = combined - combined.mean(), labels - labels.mean()
    p = (labels * m + 1) / (m + 2)
    v = p * (1 - p) / m
    sigma2 = np.mean((a - s) ** 2) - v.mean()
    assert sigma2 > SCORE_ERROR**2
    np.testing.assert_allclose(found, (s / sigma2 + a / v) / (1 / sigma2 + 1 / v))
    assert found.argmax() == 1


# All together


def test_choosing_prefers_what_undoes_the_shift():
    choice = choose(make_bench([plain(), standardized()]), "rehearsals", n_members=1, max_risk=1.0)
    assert choice.weights.tolist() == choice.recommended.tolist() == [0, 1]
    assert choice.assessment.action == "adapt"
    assert choice.assessment.members == [("standardise + LR", 1.0)]


def test_what_is_too_risky_is_not_recommended():
    choice = choose(make_bench([plain(), standardized()]), "rehearsals", n_members=1, max_risk=0.0)
    assert choice.weights.tolist() == [0, 1]
    assert choice.assessment.vote_loss_probability > 0
    assert choice.recommended.tolist() == [1, 0]
    assert choice.assessment.action == "keep"


def test_nothing_is_assessed_without_a_target():
    choice = choose(make_bench([plain(), standardized()]), "source CV", n_members=1)
    assert choice.assessment is None
    np.testing.assert_array_equal(choice.recommended, choice.weights)


def test_no_time_leaves_out_scores_and_still_chooses():
    choice = choose(
        make_bench([plain(), standardized()]), "rehearsals", n_members=2, time_budget=0.0
    )
    assert choice.table.scores == {}
    assert choice.table.skipped == list(KINDS[:3])  # there is one source domain
    assert choice.weights.sum() == pytest.approx(1)


def test_nobody_left_is_an_error_that_says_why():
    with pytest.raises(
        ValueError, match=r"No candidate could be fitted\. none \+ LR: failed: Runtime"
    ):
        choose(make_bench([plain(Broken())]), "rehearsals", n_members=1)


def test_only_degenerate_candidates_are_used_with_a_warning():
    with pytest.warns(NoRankedCandidateWarning, match="No candidate can be scored"):
        choice = choose(make_bench([plain(Constant())]), "rehearsals", n_members=3)
    assert choice.weights.tolist() == [1]


def test_adapters_come_in_the_order_of_their_gain_and_the_disqualified_last():
    def row(adapter, gain, disqualified=None, weight=0.25):
        return {
            "adapter": adapter, "candidate": f"{adapter} + {gain}", "expected gain": gain,
            "weight": weight, "disqualified": disqualified,
        }  # fmt: skip

    rows = adapter_rows([
        row("coral", 0.9, "failed"), row("none", 0.0), row("standardize", 0.1),
        row("monge", -0.1), row("standardize", 0.2), row("standardize", 0.3, "degenerate"),
    ])  # fmt: skip
    assert [one["adapter"] for one in rows] == ["standardize", "none", "monge", "coral"]
    assert rows[0]["candidate"] == "standardize + 0.2"
    assert rows[0]["weight"] == pytest.approx(0.75)
    assert rows[-1]["disqualified"] == "failed"


def test_leaves_of_forests_grow_with_the_rows():
    leaves = {n: forest(n).min_samples_leaf for n in (10, 3999, 4000, 50_000)}
    assert leaves == {10: 3, 3999: 3, 4000: 4, 50_000: 50}


def test_some_rows_keep_their_classes_and_domains():
    problem, _ = make_moved(n_domains=3)
    problem = problem._replace(target_domain=-1 - np.arange(len(problem.X_target)) % 2)
    source, target = np.array([5, 2, 70]), np.array([3, 0])
    part = problem.take(source, target)
    np.testing.assert_array_equal(part.X_source, problem.X_source[source])
    np.testing.assert_array_equal(part.X_target, problem.X_target[target])
    assert part.codes.tolist() == problem.codes[source].tolist()
    assert part.source_domain.tolist() == problem.source_domain[source].tolist()
    assert part.target_domain.tolist() == problem.target_domain[target].tolist()
