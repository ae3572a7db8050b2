"""The whole diagnosis: right verdicts, words, rows to label, and no label of the target read."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from covshift import AdaptedClassifier, AutoAdaptedClassifier, diagnose
from covshift.adapters import SourceStandardScaler
from covshift.diagnosis.hypotheses import NONE, SHARED, all_hypotheses, hypothesis_of
from covshift.registry import Size, find_record, records
from covshift.selection.candidates import check_candidates
from covshift.tables.adapting import check_choice
from tests.diagnosis.made_domains import alone, other_frequencies, shifted_sites

SHIFT = next(i for i, one in enumerate(all_hypotheses()) if one.name == "shift and scale")


def run(data, **options):
    return diagnose(data.X, data.y, sample_domain=data.sample_domain, **options)


@pytest.fixture(scope="module")
def shifted():
    return run(shifted_sites()[0])


@pytest.fixture(scope="module")
def undecided():
    return run(alone()[0])


def test_source_domains_show_that_standardising_helps(shifted):
    assert shifted.verdict.kind == "adapt"
    assert shifted.verdict.decided_by == "source domains"
    assert shifted.leading == "shift and scale"
    assert NONE not in shifted.surviving
    low, high = shifted.verdict.gain_interval
    assert 0 < low < shifted.verdict.gain < high
    data, y_target = shifted_sites()
    model = shifted.recommended.fit(data.X, data.y, sample_domain=data.sample_domain)
    assert model.score(data.X[data.sample_domain < 0], y_target) > 0.85


def test_on_a_common_support_nothing_is_adapted():
    found = run(other_frequencies()[0])
    assert found.decidability.by_overlap
    assert found.verdict.kind == "no adaptation"
    assert found.verdict.decided_by == "common support"
    assert isinstance(found.recommended, AdaptedClassifier)
    # The scaler is part of what was judged.
    assert isinstance(found.recommended.adapter, SourceStandardScaler)


def test_the_hypotheses_of_this_package_and_their_remedies():
    built_in = (
        "same rule", "same rule where both have rows", "shift and scale", "rotated axes", "radial",
        "periodic", "low-dimensional",
    )  # fmt: skip
    assert tuple(one.name for one in all_hypotheses())[: len(SHARED)] == built_in == tuple(SHARED)
    assert {record.hypothesis for record in records()} >= set(built_in)
    remedies = {one.name: one.remedy for one in all_hypotheses()}
    assert remedies["shift and scale"] == "standardize, standardize-domains, coral, monge or ranks"
    assert remedies["rotated axes"] == "sa-8 or sa"
    for names in remedies.values():
        assert all(find_record(name) for name in re.split(r", | or ", names))


def test_nothing_moved():
    rng = np.random.RandomState(0)
    X, domain = rng.standard_normal((200, 3)), np.repeat([0, -1], 100)
    found = diagnose(X, (X[:, 0] > 0).astype(int), sample_domain=domain)
    assert found.verdict.kind == "not moved"
    assert "No adaptation is needed" in repr(found)


def test_one_source_domain_and_a_target_elsewhere_is_undecidable(undecided):
    assert undecided.verdict.kind == "undecidable"
    assert undecided.leading is None
    assert len(undecided.surviving) == len(all_hypotheses())
    assert "Undecidable" in repr(undecided)
    assert "nothing here tests that" in repr(undecided)
    assert isinstance(undecided.recommended, AdaptedClassifier)


def test_labels_of_the_rows_it_asks_for_decide(undecided):
    data, y_target = alone()
    rows = undecided.rows_to_label(40)
    assert (data.sample_domain[rows] < 0).all()
    first_target = np.flatnonzero(data.sample_domain < 0)[0]
    labels = y_target[rows - first_target]
    assert undecided.update(rows[:20], labels[:20]).leading == "shift and scale"
    updated = undecided.update(rows, labels)
    assert updated.verdict.decided_by == "labels"
    assert updated.verdict.kind == "adapt"
    assert updated.leading == "shift and scale"
    assert undecided.verdict.kind == "undecidable"  # the first one stays as it was
    assert not set(updated.rows_to_label(5)) & set(rows)


def test_labels_may_come_one_after_the_other(undecided):
    data, y_target = alone()
    first_target = np.flatnonzero(data.sample_domain < 0)[0]
    rows = undecided.rows_to_label(20)
    labels = y_target[rows - first_target]
    at_once = undecided.update(rows, labels)
    in_parts = undecided.update(rows[:8], labels[:8]).update(rows[8:], labels[8:])
    assert at_once.verdict == in_parts.verdict


def test_labels_in_the_mask_are_used(undecided):
    data, y_target = alone()
    y = data.y.copy()
    target = np.flatnonzero(data.sample_domain < 0)
    rows = undecided.rows_to_label(20)
    y[rows] = y_target[rows - target[0]]
    mask = data.sample_domain >= 0
    mask[rows] = True
    found = diagnose(data.X, y, sample_domain=data.sample_domain, label_mask=mask)
    assert found.verdict.decided_by == "labels"
    assert found.leading == "shift and scale"


@pytest.mark.parametrize("filled", [0, 1, 7])
def test_labels_of_target_rows_are_not_read(shifted, filled):
    data, _ = shifted_sites()
    y = np.where(data.sample_domain < 0, filled, data.y)
    found = diagnose(data.X, y, sample_domain=data.sample_domain)
    assert json.dumps(found.to_dict()) == json.dumps(shifted.to_dict())


def test_the_same_with_two_processes(shifted):
    found = run(shifted_sites()[0], n_jobs=2)
    assert json.dumps(found.to_dict()) == json.dumps(shifted.to_dict())


def test_everything_is_plain(shifted, undecided):
    for one in (shifted, undecided):
        plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        assert plain["verdict"]["kind"] == one.verdict.kind
        assert [row["hypothesis"] for row in plain["hypotheses"]] == [
            h.name for h in all_hypotheses()
        ]


def test_the_report_says_what_moved_what_holds_and_what_to_do(shifted, undecided, tmp_path):
    for one, words in ((shifted, "Adapt: shift and scale"), (undecided, "Undecidable")):
        page = one.to_html(tmp_path / "report.html", facts=[("made by", "a <test>")])
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
        assert words in page
        places = [page.index(f">{title}<") for title in ("What moved", "What holds", "What to do")]
        assert places == sorted(places)
        assert "a &lt;test&gt;" in page
        assert page.count("data:image/png") == 2


def test_a_notebook_shows_sentences_and_gains(shifted):
    shown = shifted._repr_html_()
    assert shown.count("<tr>") == 1 + len(all_hypotheses())
    assert "<li>Adapt: by the source domains" in shown


def test_the_figure_has_a_panel_for_each_kind_of_evidence(shifted):
    titles = [axes.get_title() for axes in shifted.plot().axes]
    assert titles == ["source domains", "common support", "rows moved"]


def test_a_vote_is_recommended_where_several_survive(shifted):
    verdict = shifted.verdict._replace(surviving=[SHIFT, SHIFT + 1], clearly=False)
    several = run(shifted_sites()[0], max_rows=50)
    several.verdict = verdict
    assert isinstance(several.recommended, AutoAdaptedClassifier)
    voters = check_candidates(several.recommended.candidates, Size(100, 100, 3))
    assert {"none + rbf", "standardize + rbf"} <= {one.name for one in voters}
    for one in voters:
        assert " + ".join(check_choice(one.name, None)) == one.name


def test_names_of_features_and_domains():
    data, _ = shifted_sites()
    X = pd.DataFrame(data.X, columns=["age", "mass", "length"])
    found = diagnose(X, data.y, sample_domain=data.sample_domain, domain_names=data.domain_names)
    assert found.movement.features[0].name in X.columns
    assert found.movement.domains[0].name == "new"


def test_labels_of_any_type():
    data, _ = shifted_sites()
    words = np.where(data.y == 1, "yes", "no").astype(object)
    words[data.sample_domain < 0] = None
    found = diagnose(data.X, words, sample_domain=data.sample_domain)
    assert found.leading == "shift and scale"
    updated = found.update(found.rows_to_label(3), ["yes", "no", "never seen"])
    assert updated.labels.n_labels == 3


def test_rows_outside_the_support(shifted):
    data, _ = shifted_sites()
    assert shifted.outside_support(np.full((2, 3), 100.0)).all()
    assert shifted.outside_support(data.X[data.sample_domain >= 0]).mean() < 0.05


def test_no_time_leaves_out_evidence_and_says_so():
    found = run(shifted_sites()[0], time_budget=0.0)
    assert found.skipped == ["source domains", "common support", "rows moved"]
    assert found.verdict.kind == "undecidable"
    assert "no time" in repr(found)


def test_progress(capsys):
    run(shifted_sites()[0], verbose=1, max_rows=50, time_budget=0.0)
    assert "[diagnose] has it moved?" in capsys.readouterr().out
    stages = []
    run(shifted_sites()[0], verbose=1, max_rows=50, time_budget=0.0, progress=stages.append)
    assert stages[0] == "has it moved?"
    assert stages[-1] == "rows moved"
    assert not capsys.readouterr().out


def test_rows_that_are_looked_at_are_limited():
    found = run(shifted_sites(n=200)[0], max_rows=60)
    assert len(found.target_rows) == 60
    assert found.movement.n_source <= 60
    assert found.n_rows_looked_at == (60, 60)
    assert "600 source and 200 target rows, of which 60 and 60" in repr(found)


def test_every_adapter_rests_on_a_hypothesis():
    names = [one.name for one in all_hypotheses()]
    tried = {names[hypothesis_of(one.name)] for one in records() if one.diagnosed}
    assert tried == set(names)
    assert hypothesis_of("sa-8") == hypothesis_of("SA-30")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sample_domain": np.zeros(400, dtype=int)}, "no target rows"),
        ({"max_rows": 10}, "max_rows"),
        ({"time_budget": -1.0}, "time_budget"),
    ],
)
def test_bad_input(change, words):
    data, _ = shifted_sites()
    options = {"sample_domain": data.sample_domain} | change
    with pytest.raises(ValueError, match=words):
        diagnose(data.X, data.y, **options)


def test_too_few_rows_and_one_class():
    data, _ = shifted_sites()
    few = np.r_[0:10, 300:400]
    with pytest.raises(ValueError, match="at least 20 of each"):
        diagnose(data.X[few], data.y[few], sample_domain=data.sample_domain[few])
    with pytest.raises(ValueError, match="at least two classes"):
        diagnose(data.X, np.zeros(400), sample_domain=data.sample_domain)


def test_bad_updates(shifted):
    with pytest.raises(ValueError, match="2 rows but 1 labels"):
        shifted.update([300, 301], [1])
    with pytest.raises(ValueError, match="Row 0 is no target row"):
        shifted.update([0], [1])
