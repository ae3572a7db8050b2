"""The whole diagnosis: advice, rows to label, pages, and no label of the target read."""

import json

import numpy as np
import pandas as pd
import pytest

from covshift import AutoAdaptedClassifier, diagnose
from tests.diagnosis.made_domains import CANDIDATES, alone, few_candidates, shifted_sites


@pytest.fixture(scope="module", autouse=True)
def cheap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CANDIDATES, few_candidates)
        yield


def run(data, **options):
    return diagnose(data.X, data.y, sample_domain=data.sample_domain, **options)


def sites():
    return shifted_sites(n=40)


def same(a, b):
    return repr(a) == repr(b)  # a NaN equals no other


@pytest.fixture(scope="module")
def shifted():
    return run(sites()[0])


@pytest.fixture(scope="module")
def elsewhere():
    return run(alone(n=60)[0])


def test_the_recommended_model_is_the_advised_one(shifted):
    data, _ = sites()
    assert isinstance(shifted.recommended, AutoAdaptedClassifier)
    assert shifted.recommended is not shifted.recommended  # no fit is shared
    model = shifted.recommended.fit(data.X, data.y, sample_domain=data.sample_domain)
    assert same(model.assessment_, shifted.assessment)
    assert [(one.candidate.name, one.weight) for one in model.members_] == (
        shifted.assessment.members
    )
    for ours, theirs in zip(shifted.leaderboard, model.leaderboard_, strict=True):
        assert same(ours | {"seconds": 0}, theirs | {"seconds": 0})


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(4)])
def test_the_recommended_model_has_the_seed_that_was_drawn(random_state):
    data, _ = alone(n=60)
    found = run(data, random_state=random_state)
    model = found.recommended.fit(data.X, data.y, sample_domain=data.sample_domain)
    assert same(model.assessment_, found.assessment)


def test_one_source_domain_and_a_target_elsewhere_cannot_be_determined(elsewhere):
    assert not elsewhere.assessment.determinability.determinable
    assert elsewhere.assessment.confidence == "low"
    assert "cannot be determined from these data" in repr(elsewhere)


def test_rows_to_label_are_a_random_sample_of_the_target(elsewhere):
    data, y_target = alone(n=60)
    target = np.flatnonzero(data.sample_domain < 0)
    rows = elsewhere.rows_to_label(25)
    assert len(set(rows.tolist())) == 25
    assert set(rows) <= set(target)
    np.testing.assert_array_equal(elsewhere.rows_to_label(15), rows[:15])
    assert sorted(elsewhere.rows_to_label(10**6).tolist()) == target.tolist()
    # Every row has the same chance: each seed draws its own.
    counts = np.zeros(len(target))
    bench = elsewhere._bench
    seed = bench.seed
    for number in range(400):
        bench.seed = number
        counts[elsewhere.rows_to_label(15) - target[0]] += 1
    bench.seed = seed
    expected = 400 * 15 / len(target)
    chi_squared = np.sum((counts - expected) ** 2 / expected) / (1 - 15 / len(target))
    assert abs(chi_squared - (len(target) - 1)) < 4 * np.sqrt(2 * (len(target) - 1))
    updated = elsewhere.update(rows, y_target[rows - target[0]])
    assert not set(updated.rows_to_label(25)) & set(rows)


def test_labels_enter_as_those_of_a_mask(elsewhere):
    data, y_target = alone(n=60)
    target = np.flatnonzero(data.sample_domain < 0)
    rows = elsewhere.rows_to_label(20)
    labels = y_target[rows - target[0]]
    updated = elsewhere.update(rows, labels)
    assert updated.assessment.n_labels == 20
    assert elsewhere.assessment.n_labels == 0  # the first one stays as it was
    in_parts = elsewhere.update(rows[:8], labels[:8]).update(rows[8:], labels[8:])
    assert same(in_parts.assessment, updated.assessment)
    y, mask = data.y.copy(), data.sample_domain >= 0
    y[rows], mask[rows] = labels, True
    where = {"sample_domain": data.sample_domain, "label_mask": mask}
    assert same(diagnose(data.X, y, **where).assessment, updated.assessment)
    model = updated.recommended.fit(data.X, y, **where)
    assert same(model.assessment_, updated.assessment)
    assert "20 known target labels" in repr(updated)


def test_labels_of_target_rows_are_not_read(shifted):
    data, _ = sites()
    y = np.where(data.sample_domain < 0, 7, data.y)
    found = diagnose(data.X, y, sample_domain=data.sample_domain)
    assert same(found.assessment, shifted.assessment)
    np.testing.assert_array_equal(found.rows_to_label(), shifted.rows_to_label())


def test_everything_is_plain(shifted, elsewhere):
    for one in (shifted, elsewhere):
        plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
        assert plain["assessment"]["action"] == one.assessment.action
        assert plain["assessment"]["plain"]["value"] == one.assessment.plain.value
        assert [row["adapter"] for row in plain["adapters"]] == [r["adapter"] for r in one.table]


def test_the_report_says_what_moved_and_what_to_do(shifted, elsewhere, tmp_path):
    for one in (shifted, elsewhere):
        page = one.to_html(
            tmp_path / "report.html", facts=[("made by", "a <test>")], how_to_label="ask <Ada>"
        )
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
        places = [page.index(f">{title}<") for title in ("What moved", "Evidence", "Advice")]
        assert places == sorted(places)
        assert "a &lt;test&gt;" in page
        assert ("ask &lt;Ada&gt;" in page) == (one.assessment.confidence != "high")
        assert page.count("data:image/png") == 2


def test_a_notebook_shows_sentences_scores_and_adapters(shifted):
    shown = shifted._repr_html_()
    assert shown.count("<tr>") == 2 + 2 + len(shifted.table)
    assert "<li>Advice: " in shown


def test_names_of_features_and_domains():
    data, _ = sites()
    X = pd.DataFrame(data.X, columns=["age", "mass", "length"])
    found = diagnose(X, data.y, sample_domain=data.sample_domain, domain_names=data.domain_names)
    assert found.movement.features[0].name in X.columns
    assert found.movement.domains[0].name == "new"


def test_labels_of_any_type():
    data, _ = sites()
    words = np.where(data.y == 1, "yes", "no").astype(object)
    words[data.sample_domain < 0] = None
    found = diagnose(data.X, words, sample_domain=data.sample_domain)
    rows = found.rows_to_label(3)
    assert found.update(rows, ["yes", "no", "yes"]).assessment.n_labels == 3
    with pytest.raises(ValueError, match="Label 'never seen' is new"):
        found.update(rows, ["yes", "no", "never seen"])


def test_rows_outside_the_support(shifted):
    data, _ = sites()
    assert shifted.outside_support(np.full((2, 3), 100.0)).all()
    assert shifted.outside_support(data.X[data.sample_domain >= 0]).mean() < 0.05


def test_no_time_leaves_out_scores_and_says_so(capsys):
    stages = []
    found = run(sites()[0], time_budget=0.0, verbose=1, progress=stages.append)
    assert found.skipped
    assert f"for lack of time: {', '.join(found.skipped)}" in repr(found)
    assert stages[0].startswith("scores: ")
    assert "what moved" in stages
    assert not capsys.readouterr().out
    run(alone(n=30)[0], time_budget=0.0, verbose=1)
    assert "[diagnose] what moved" in capsys.readouterr().out


def test_rows_that_are_looked_at_are_limited():
    found = run(shifted_sites(n=200)[0], max_rows=60)
    assert found.movement.n_source <= 60
    assert found.n_rows_looked_at == (60, 60)
    assert "600 source and 200 target rows; 60 and 60 of them, drawn at random" in repr(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sample_domain": np.zeros(160, dtype=int)}, "no target rows"),
        ({"sample_domain": None}, "needs sample_domain"),
        ({"max_rows": 10}, "max_rows"),
        ({"max_risk": 1.5}, "max_risk"),
        ({"objective": "f1"}, "objective"),
        ({"time_budget": -1.0}, "time_budget"),
    ],
)
def test_bad_input(change, words):
    data, _ = sites()
    options = {"sample_domain": data.sample_domain} | change
    with pytest.raises(ValueError, match=words):
        diagnose(data.X, data.y, **options)


def test_one_class():
    data, _ = sites()
    with pytest.raises(ValueError, match="only one class"):
        diagnose(data.X, np.zeros(160), sample_domain=data.sample_domain)


def test_bad_updates(shifted):
    with pytest.raises(ValueError, match="1 labels for 2 rows"):
        shifted.update([120, 121], [1])
    for row in (0, 10**6):
        with pytest.raises(ValueError, match=f"Row {row} is not a target row"):
            shifted.update([row], [1])
    with pytest.raises(ValueError, match="n_rows"):
        shifted.rows_to_label(0)
