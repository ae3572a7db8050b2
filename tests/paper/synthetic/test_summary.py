"""What is said of a cell, from records made by hand."""

import math
import statistics

import pytest

from covshift.paper.synthetic.printed import PRINTED_ACCURACY, REBUILT_ACCURACY
from covshift.paper.synthetic.summary import (
    Cell,
    agree,
    agreement_with_paper,
    agreement_with_rebuild,
    gather,
    values,
    verdict,
)
from covshift.studies.report import Figure, estimate
from covshift.studies.trial import Trial
from tests.paper.synthetic.made_records import cell_records, made_records
from tests.studies.made_records import record_of

RADIAL_SF = Cell("radial", "SF", "as released")


def around(mean, spread=0.01):
    """Three accuracies of this mean, over a baseline of .5."""
    return [(0.5, mean - spread), (0.5, mean), (0.5, mean + spread)]


def test_gather_sorts_and_leaves_failures_out():
    records = made_records(3, seed=5, error=lambda trial: "no" if trial.seed == 6 else None)
    trials = gather(reversed(records))
    assert {len(found) for found in trials.values()} == {2}
    for found in trials.values():
        assert [record.trial.seed for record in found] == [5, 7]
    assert Cell("radial", "family") in trials
    assert Cell("periodic", "PSF", "used well", "printed", True) in trials
    assert sum(map(len, trials.values())) == 2 * len(records) / 3


def test_gather_nothing():
    assert gather([]) == {}
    assert gather([record_of(Trial("synthetic", {"data_set": "radial"}, 0), None, "no")]) == {}


def test_estimate_against_the_naive_computation():
    numbers = [0.25, 0.5, 0.8, 0.7]
    mean, error = estimate(numbers)
    assert mean == pytest.approx(statistics.mean(numbers))
    assert error == pytest.approx(statistics.stdev(numbers) / math.sqrt(4))
    assert estimate([0.3]) == (0.3, None)
    assert estimate([]) is None


def test_changes_are_those_of_each_trial():
    records = cell_records([(0.5, 0.75), (0.8, 0.4)])
    assert values(records, "change") == pytest.approx([50, -50])
    assert values(records, "mmd_change") == []
    assert values(records, "with") == [0.75, 0.4]
    assert values(records, "nothing") == []


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ([0.6, 0.71, 0.8], "helps"),
        ([0.4, 0.51, 0.6], "harms"),
        ([0.4, 0.7, 0.8], "unclear"),
        ([0.5, 0.6, 0.7], "unclear"),  # no difference at all
        ([0.75, 0.85, 0.95], "helps"),  # the same difference each time
        ([0.502, 0.602, 0.702], "unclear"),  # one row of 500 each time
        ([0.9], "unclear"),
        ([], "unclear"),
    ],
)
def test_verdict_compares_within_trials(accuracies, expected):
    # The baselines differ more from each other than from what they are compared with.
    pairs = zip([0.5, 0.6, 0.7], accuracies, strict=False)
    assert verdict(cell_records(pairs)) == expected


def test_agreement_is_three_standard_errors_of_the_difference():
    assert agree(Figure(0.5, 0.03), Figure(0.64, 0.04))
    assert not agree(Figure(0.5, 0.03), Figure(0.66, 0.04))
    assert agree(Figure(0.5, 0.03), Figure(0.58))
    assert not agree(Figure(0.5, 0.03), Figure(0.6))
    assert agree(Figure(0.5, 0.0), Figure(0.5))


def test_agreement_with_the_paper():
    printed = PRINTED_ACCURACY["radial", "SF"][1]
    assert agreement_with_paper(RADIAL_SF, cell_records(around(printed.mean + 0.08))) == "agrees"
    assert agreement_with_paper(RADIAL_SF, cell_records(around(printed.mean + 0.2))) == "differs"
    assert agreement_with_paper(RADIAL_SF, []) is None
    supplement = Cell("radial", "SF with labels", "as released")
    assert agreement_with_paper(supplement, cell_records(around(0.5))) is None


@pytest.mark.parametrize("system", ["IW+LSPC", "SSA"])
def test_what_nobody_reproduced_is_not_called_agreement(system):
    cell = Cell("diagonal", system, "as released")
    printed = PRINTED_ACCURACY["diagonal", system][1].mean
    records = cell_records(around(printed), "diagonal", system)
    assert agreement_with_paper(cell, records) == "not reproduced"
    assert agreement_with_paper(cell, []) is None


def test_agreement_with_the_rebuild():
    rebuilt = REBUILT_ACCURACY["radial", "SF"].mean
    assert agreement_with_rebuild(RADIAL_SF, cell_records(around(rebuilt + 0.02))) == "agrees"
    assert agreement_with_rebuild(RADIAL_SF, cell_records(around(rebuilt - 0.2))) == "differs"
    assert agreement_with_rebuild(RADIAL_SF, []) is None
    supplement = Cell("radial", "SF with labels", "as released")
    assert agreement_with_rebuild(supplement, cell_records(around(0.5))) is None


def test_alignment_agrees_by_changing_nothing_at_all():
    cell = Cell("radial", "SSA", "as released")
    same = [(0.3, 0.3), (0.4, 0.4)]
    assert agreement_with_rebuild(cell, cell_records(same, system="SSA")) == "agrees"
    nearly = [*same, (0.5, 0.502)]
    assert agreement_with_rebuild(cell, cell_records(nearly, system="SSA")) == "differs"


def test_a_single_trial_claims_no_agreement():
    rebuilt = REBUILT_ACCURACY["radial", "SF"].mean
    one = cell_records([(0.3, rebuilt)])
    assert agreement_with_rebuild(RADIAL_SF, one) is None
    assert agreement_with_paper(RADIAL_SF, one) is None
