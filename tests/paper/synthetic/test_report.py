"""Sentences about a cell, and the document, from records made by hand: no trial is run."""

import re

import pytest

from covshift.paper.synthetic.printed import PRINTED_ACCURACY, REBUILT_ACCURACY
from covshift.paper.synthetic.report import (
    Cell,
    _agree,
    _trial_values,
    _verdict,
    agreement_with_paper,
    agreement_with_rebuild,
    count_agreements,
    gather_trials,
    synthetic_document,
)
from covshift.paper.synthetic.systems import DATA_SETS, SYSTEMS
from covshift.report.document import validate_document
from covshift.report.files import write_document
from covshift.studies.result_tables import Figure, tidy
from covshift.studies.trial import Trial
from tests.paper.synthetic.made_records import cell_records, made_records, rebuilt_result
from tests.studies.made_records import record_of

RADIAL_SF = Cell("radial", "SF", "as released")


def trials_of(pairs, *where):
    return tidy(cell_records(pairs, *where))


def around(mean, spread=0.01):
    """Three accuracies of this mean, over a baseline of .5."""
    return [(0.5, mean - spread), (0.5, mean), (0.5, mean + spread)]


def test_gather_sorts_and_leaves_failures_out():
    records = made_records(3, seed=5, error=lambda trial: "no" if trial.seed == 6 else None)
    trials = gather_trials(reversed(records))
    assert {len(found) for found in trials.values()} == {2}
    for found in trials.values():
        assert found["seed"].tolist() == [5, 7]
    assert Cell("radial", "family") in trials
    assert Cell("periodic", "PSF", "used well", "printed", True) in trials
    assert sum(map(len, trials.values())) == 2 * len(records) / 3


def test_gather_nothing():
    assert gather_trials([]) == {}
    assert (
        gather_trials([record_of(Trial("synthetic", {"data_set": "radial"}, 0), None, "no")]) == {}
    )


def test_changes_are_those_of_each_trial():
    trials = trials_of([(0.5, 0.75), (0.8, 0.4)])
    assert _trial_values(trials, "change") == pytest.approx([50, -50])
    assert _trial_values(trials, "mmd_change") == []
    assert _trial_values(trials, "with") == [0.75, 0.4]
    assert _trial_values(trials, "nothing") == []


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
    assert _verdict(trials_of(pairs)) == expected


def test_agreement_is_three_standard_errors_of_the_difference():
    assert _agree(Figure(0.5, 0.03), Figure(0.64, 0.04))
    assert not _agree(Figure(0.5, 0.03), Figure(0.66, 0.04))
    assert _agree(Figure(0.5, 0.03), Figure(0.58))
    assert not _agree(Figure(0.5, 0.03), Figure(0.6))
    assert _agree(Figure(0.5, 0.0), Figure(0.5))


def test_agreement_with_the_paper():
    printed = PRINTED_ACCURACY["radial", "SF"][1]
    assert agreement_with_paper(RADIAL_SF, trials_of(around(printed.mean + 0.08))) == "agrees"
    assert agreement_with_paper(RADIAL_SF, trials_of(around(printed.mean + 0.2))) == "differs"
    assert agreement_with_paper(RADIAL_SF, None) is None
    supplement = Cell("radial", "SF with labels", "as released")
    assert agreement_with_paper(supplement, trials_of(around(0.5))) is None


@pytest.mark.parametrize("system", ["IW+LSPC", "SSA"])
def test_what_nobody_reproduced_is_not_called_agreement(system):
    cell = Cell("diagonal", system, "as released")
    printed = PRINTED_ACCURACY["diagonal", system][1].mean
    trials = trials_of(around(printed), "diagonal", system)
    assert agreement_with_paper(cell, trials) == "not reproduced"
    assert agreement_with_paper(cell, None) is None


def test_agreement_with_the_rebuild():
    rebuilt = REBUILT_ACCURACY["radial", "SF"].mean
    assert agreement_with_rebuild(RADIAL_SF, trials_of(around(rebuilt + 0.02))) == "agrees"
    assert agreement_with_rebuild(RADIAL_SF, trials_of(around(rebuilt - 0.2))) == "differs"
    assert agreement_with_rebuild(RADIAL_SF, None) is None
    supplement = Cell("radial", "SF with labels", "as released")
    assert agreement_with_rebuild(supplement, trials_of(around(0.5))) is None


def test_alignment_agrees_by_changing_nothing_at_all():
    cell = Cell("radial", "SSA", "as released")
    same = [(0.3, 0.3), (0.4, 0.4)]
    assert agreement_with_rebuild(cell, trials_of(same, "radial", "SSA")) == "agrees"
    nearly = [*same, (0.5, 0.502)]
    assert agreement_with_rebuild(cell, trials_of(nearly, "radial", "SSA")) == "differs"


def test_a_single_trial_claims_no_agreement():
    rebuilt = REBUILT_ACCURACY["radial", "SF"].mean
    one = trials_of([(0.3, rebuilt)])
    assert agreement_with_rebuild(RADIAL_SF, one) is None
    assert agreement_with_paper(RADIAL_SF, one) is None


# The document

FACTS = [("command", "covshift demo"), ("seeds", "0 to 2")]
SECTIONS = [
    *("accuracy", "controls", "variants", "identifiability"),
    *("change", "mmd", "supplement", "statements"),
]


def document_of(records):
    document = synthetic_document(gather_trials(records), FACTS)
    validate_document(document)
    return document


def table(document, name):
    tables = [one for section in document["sections"] for one in section["tables"]]
    return next(one for one in tables if one["id"] == name)


def row(document, name, **wanted):
    found = [
        one
        for one in table(document, name)["rows"]
        if all(one[key] == value for key, value in wanted.items())
    ]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def document():
    return document_of(made_records())


def test_sections_and_sizes(document):
    assert [section["id"] for section in document["sections"]] == SECTIONS
    n_cells = len(DATA_SETS) * len(SYSTEMS)
    sizes = {name: len(table(document, name)["rows"]) for name in SECTIONS}
    assert sizes == {
        "accuracy": n_cells,
        "controls": n_cells,
        "variants": 2 * (len(SYSTEMS) + 1),
        "identifiability": 2 * len(SYSTEMS),
        "change": n_cells,
        "mmd": 16,
        "supplement": 12,
        "statements": 2,
    }


def test_lead_counts_what_agrees(document):
    assert count_agreements(gather_trials(made_records())) == (18, 18, 18)
    assert document["lead"].startswith("18 of the 18 accuracies")
    assert "scores 0.980 ± 0.006" in document["lead"]
    assert "prints 0.568 ± 0.020" in document["lead"]
    assert "0.020 ± 0.006 on a variant" in document["lead"]


def test_lead_names_what_helps_here_and_harms_there(document):
    assert "SF, PSF, IW+LSPC, DAE as released and SF, PSF" in document["lead"]

    def unchanged(trial):
        result = rebuilt_result(trial)
        return {**result, "with": result.get("without", 0.5)}

    assert "harm" not in document_of(made_records(result=unchanged))["lead"]


def test_lead_counts_what_differs():
    def off(trial):
        result = rebuilt_result(trial)
        if trial.settings["data_set"] == "smooth" and trial.settings["system"] in ("SF", "SSA"):
            result["with"] += 0.3
        return result

    records = made_records(result=off)
    assert count_agreements(gather_trials(records)) == (16, 18, 18)
    document = document_of(records)
    assert document["lead"].startswith("16 of the 18 accuracies")
    assert row(document, "accuracy", data="smooth", system="SSA")["rebuild"]["mark"] == "differs"


def test_a_row_beside_the_paper(document):
    found = row(document, "accuracy", data="radial", system="SF")
    assert found["printed"]["text"] == "0.342 → 0.779 ± 0.030"
    assert found["rebuilt"]["text"] == "0.799 ± 0.009"
    assert found["released"]["text"] == "0.342 → 0.799 ± 0.006"
    assert found["released"]["mark"] == "helps"
    assert (found["paper"]["mark"], found["rebuild"]["mark"]) == ("agrees", "agrees")
    weighted = row(document, "accuracy", data="diagonal", system="IW+LSPC")
    assert weighted["rebuilt"]["text"] == "0.839 → 0.503 ± 0.031"
    assert weighted["released"]["mark"] == "harms"
    assert (weighted["paper"]["mark"], weighted["rebuild"]["mark"]) == ("not reproduced", "agrees")
    assert row(document, "accuracy", data="radial", system="SSA")["rebuilt"]["text"] == "no change"


def test_controls_stand_beside_each_reading(document):
    found = row(document, "controls", data="radial", system="SF")
    assert found["released_alone"]["text"] == found["well_alone"]["text"] == "0.500 ± 0.000"
    assert found["family"]["value"] == pytest.approx(0.99)
    alignment = row(document, "controls", data="radial", system="SSA")
    assert alignment["released_alone"] is None


def test_twins_sum_to_one(document):
    for found in table(document, "identifiability")["rows"]:
        if found["system"] != "SSA":  # made without a change: not twins
            assert found["sum"]["value"] == pytest.approx(1)
            assert found["apart"]["value"] == pytest.approx(0)


def test_statements_are_counted(document):
    held = [found["held"]["text"] for found in table(document, "statements")["rows"]]
    # Of 3 trials: both readings on the four data sets, on the two printed variants, on the twins.
    assert held == ["48 of 48", "0 of 48"]


def test_every_number_of_ours_links_to_its_trials(document):
    ours = {
        "accuracy": ["released"],
        "controls": ["released", "released_alone", "well", "well_alone", "family"],
        "change": ["released", "well"],
        "mmd": ["released", "well"],
        "supplement": ["released"],
        "identifiability": ["reconstructed", "printed"],
    }
    for name, keys in ours.items():
        for found in table(document, name)["rows"]:
            for key in keys:
                if found[key] is not None:
                    rows = document["evidence"][found[key]["evidence"]]["rows"]
                    assert [one["seed"] for one in rows] == [0, 1, 2]
    for found in table(document, "variants")["rows"]:
        assert all(found[key]["evidence"] for key in found if key not in ("data", "system"))


def test_evidence_names_the_trials_of_the_results_file(document):
    records = made_records()
    keys = {record.trial.key[:12] for record in records}
    shown = [one["trial"] for found in document["evidence"].values() for one in found["rows"]]
    assert set(shown) == keys
    assert len(shown) == len(records)
    titles = [found["title"] for found in document["evidence"].values()]
    assert len(set(titles)) == len(titles)


def test_one_trial_claims_little():
    document = document_of(made_records(1))
    assert document["lead"].startswith("3 of the 18")  # where SSA changes nothing
    assert "for 15 there are too few trials to decide" in document["lead"]
    found = row(document, "accuracy", data="radial", system="SF")
    assert "±" not in found["released"]["text"]
    assert found["released"]["mark"] == "unclear"
    assert (found["paper"], found["rebuild"]) == (None, None)


def test_failed_trials_leave_gaps():
    """Of one system all trials failed, of another one of three, of one twin one."""

    def error(trial):
        settings = trial.settings
        if settings["system"] == "SF" and settings["data_set"] == "radial":
            return "ValueError: no luck"
        if settings["system"] == "PSF" and trial.seed == 1 and settings["variant"] == "printed":
            return "ValueError: no luck"
        return None

    document = document_of(made_records(error=error))
    found = row(document, "accuracy", data="radial", system="SF")
    assert (found["released"], found["paper"], found["rebuild"]) == (None, None, None)
    assert document["lead"].startswith("17 of the 18")
    assert "for 1 there are too few trials to decide" in document["lead"]
    twins = row(document, "identifiability", system="PSF", reading="used well")
    assert twins["sum"]["value"] == pytest.approx(1)


def test_without_any_results():
    document = document_of(made_records(error=lambda trial: "ValueError: no luck"))
    assert document["lead"].startswith("0 of the 18")
    assert "?" not in document["lead"]
    assert document["evidence"] == {}


def test_is_written(document, tmp_path):
    page, *others = write_document(document, tmp_path, "report")
    text = page.read_text(encoding="utf-8")
    assert {path.name for path in others} == {
        "report.json",
        "report.md",
        *(f"report-{name}.csv" for name in SECTIONS),
    }
    assert not re.search(r"\bNone\b|\bnan\b", text)
    assert "18 of the 18" in text
