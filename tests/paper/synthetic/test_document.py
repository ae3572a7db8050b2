"""The study's document, from records made by hand: no trial is run."""

import re

import pytest

from covshift.paper.synthetic.document import count_agreements, synthetic_document
from covshift.paper.synthetic.summary import gather
from covshift.paper.synthetic.systems import DATA_SETS, SYSTEMS
from covshift.report.files import write_document
from covshift.report.validation import validate_document
from tests.paper.synthetic.made_records import made_records, rebuilt_result

FACTS = [("command", "covshift demo"), ("seeds", "0 to 2")]
SECTIONS = [
    *("accuracy", "controls", "variants", "identifiability"),
    *("change", "mmd", "supplement", "statements"),
]


def document_of(records):
    document = synthetic_document(gather(records), FACTS)
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
    assert count_agreements(gather(made_records())) == (18, 18, 18)
    assert document["lead"].startswith("18 of the 18 accuracies")
    assert "scores 0.980 ± 0.006" in document["lead"]
    assert "prints 0.568 ± 0.020" in document["lead"]
    assert "0.020 ± 0.006 on its twin" in document["lead"]


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
    assert count_agreements(gather(records)) == (16, 18, 18)
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
    assert "(too few trials to tell: 15)" in document["lead"]
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
    assert "(too few trials to tell: 1)" in document["lead"]
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
