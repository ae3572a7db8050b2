"""Votes, their members and the committee, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from covshift import AutoAdaptedClassifier
from covshift.kernels.probabilities import reweigh_probabilities
from covshift.selection import choice, label_free_scores
from covshift.selection.bench import Output
from covshift.selection.candidates import MODELS
from covshift.selection.expected_gains import number_agreement, number_voters
from covshift.selection.label_free_scores import _agree_with_committee
from covshift.selection.label_tasks import number_task
from covshift.selection.rehearsals import MAX_DOMAINS, SOURCE_DOMAINS, source_domains
from covshift.selection.vote import MIN_WEIGHT, TEMPERATURE, mix_probabilities, vote_weights
from tests.selection.made_problems import make_bench, make_moved, plain, standardized


def test_class_shares_change_the_members_that_adapt_alone():
    P = [np.array([[0.8, 0.2]]), np.array([[0.6, 0.4]]), np.array([[0.5, 0.5]])]
    weights, adapts = np.array([0.5, 0.25, 0.25]), np.array([False, True, True])
    ratios = np.array([0.5, 2.0])
    found = mix_probabilities(P, weights, adapts, ratios)
    adapted = reweigh_probabilities(P[1] / 4 + P[2] / 4, ratios)
    assert_allclose(found, P[0] / 2 + adapted / 2)
    assert_allclose(mix_probabilities(P, weights, adapts), P[0] / 2 + P[1] / 4 + P[2] / 4)


def test_small_powers_have_no_vote():
    """Weights are powers of e, of which those below a share of their sum are left out."""
    # The last one is below the share of the sum, 3.5, but above that of one over it.
    powers = np.array([1.0, 1.0, 0.9, 0.5, 0.1, 3.4 * MIN_WEIGHT])
    found = vote_weights(TEMPERATURE * np.log(powers), np.ones(6, dtype=bool), 6)
    assert_allclose(found[:5], powers[:5] / 3.5, rtol=1e-9)
    assert found[5] == 0


@pytest.mark.parametrize("second", ["1", "none"])
def test_an_adapter_has_one_vote_in_the_committee(monkeypatch, second):
    """Three candidates of one adapter count as much as the one of another."""
    names = ["one", "one", "one", second]
    candidates = [plain()._replace(adapter_name=name) for name in names]
    codes = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]])
    outputs = [Output(np.eye(2)[row]) for row in codes]
    bench = SimpleNamespace(
        candidates=candidates,
        target=outputs,
        problem=SimpleNamespace(n_classes=2, X_target=np.zeros((3, 1))),
    )
    shares = np.array([[0.5, 0.5], [1 / 3, 2 / 3], [0.0, 1.0]])  # of the classes, row by row
    expected = [np.mean(shares[np.arange(3), row]) for row in codes]
    assert_allclose(_agree_with_committee(bench), expected)


def numbers_bench(outputs, adapts):
    return SimpleNamespace(
        candidates=[SimpleNamespace(adapts=flag) for flag in adapts],
        target=None,
        calibrated=lambda _: [None if one is None else np.array(one)[:, None] for one in outputs],
    )


def test_candidates_without_evidence_do_not_vote_on_numbers():
    bench = numbers_bench([], [False, True, True, False, True])
    allowed = np.array([True, True, True, False, False])
    scores = {SOURCE_DOMAINS: np.array([0.5, 0.6, 0.4, 0.9, 0.9])}
    found = number_voters(bench, scores, allowed, 0)
    assert found.tolist() == [True, True, False, False, False]
    assert number_voters(bench, {}, allowed, 0).tolist() == [True, False, False, False, False]


def test_agreement_on_numbers():
    bench = numbers_bench([[0.0, 0.0], [2.0, 2.0], None, [4.0, 8.0]], [False, False, True, True])
    with_committee, with_plain = number_agreement(bench, np.array([True, True, True, False]))
    assert_allclose(with_committee, [-1, -1, np.nan, -np.sqrt((9 + 49) / 2)])
    distances = [np.sqrt((16 + 64) / 2), np.sqrt((4 + 36) / 2)]
    assert_allclose(with_plain, [-2, -2, np.nan, -np.mean(distances)])
    nothing = number_agreement(numbers_bench([None], [False]), np.array([True]))
    assert np.isnan(nothing).all()


def test_the_variance_of_the_unexplained_share():
    task = number_task(np.array([0.0, 1.0, 2.0, 5.0]))
    values, P = np.array([1.0, 3.0, 4.0]), np.array([[1.0], [2.0], [4.0]])
    errors = np.array([0.0, 1.0, 0.0]) / values.var()
    expected = np.var([*errors, 0.0, 1.0]) / 3
    assert task.variance(P, values) == pytest.approx(expected)


def test_class_shares_matter_where_a_member_adapts():
    def matter(objective, *adapts):
        members = [SimpleNamespace(candidate=SimpleNamespace(adapts=flag)) for flag in adapts]
        model = SimpleNamespace(members_=members, objective_=objective)
        return AutoAdaptedClassifier._shares_matter.fget(model)

    assert matter("accuracy", False, True)
    assert not matter("accuracy", False, False)
    assert not matter("balanced_accuracy", True, True)


def test_an_output_has_probabilities_row_by_row():
    found = Output(np.log([[1.0, 3.0], [2.0, 2.0]]))
    assert_allclose(found.probabilities, [[0.25, 0.75], [0.5, 0.5]])
    assert (found.seconds, found.codes.tolist()) == (0.0, [1, 0])


def test_models_give_the_same_result_again():
    for name in ("forest", "boosting", "joint", "joint-no-graph"):
        assert MODELS[name](200, 4).random_state == 0


def test_the_choice_hands_its_settings_to_the_assessment(monkeypatch):
    seen = {}

    def assess(*arguments, **options):
        seen.update(options)

    monkeypatch.setattr(choice, "assess", assess)
    bench = make_bench([plain(), standardized()])
    options = {"objective": "accuracy", "reweighed": True, "max_risk": 0.3, "min_gain": 0.02}
    choice.choose(bench, "rehearsals", n_members=2, **options)
    assert {name: seen[name] for name in options} == options


def test_at_most_four_source_domains_play_the_target():
    problem = make_moved(n=180, n_domains=6)[0]
    played = list(source_domains(problem, np.random.RandomState(0)))
    assert len(played) == MAX_DOMAINS == 4
    assert len(list(source_domains(make_moved(n=180, n_domains=3)[0], None))) == 3


def test_a_negative_smallest_gain_is_refused():
    with pytest.raises(ValueError, match="min_gain"):
        AutoAdaptedClassifier(min_gain=-0.01)._check_parameters()


def test_the_committee_of_nobody_has_no_preference():
    bench = SimpleNamespace(
        candidates=[plain()],
        target=[Output(None)],
        problem=SimpleNamespace(n_classes=4, X_target=np.zeros((2, 1))),
    )
    assert_array_equal(label_free_scores._committee(bench), np.full((2, 4), 0.25))
