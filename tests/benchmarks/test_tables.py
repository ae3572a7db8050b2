"""Tables of the results pages, from results of the runner on small tasks."""

import json

import numpy as np
import pytest
import selection_tables
from candidate_results import CandidateResults, read_candidates
from covshift_bench.methods import all_methods
from covshift_bench.methods.picks import OURS
from covshift_bench.results import OK, encode_codes, encode_probabilities
from covshift_bench.tasks import made_up_tasks

from covshift.selection.candidates import default_candidates
from tests.benchmarks.fake_methods import small_task

FAMILIES = ("no_shift", "shift_and_scale")
METRIC = "balanced accuracy"


def write_lines(path, task, drawn, predictions, own):
    """Append the lines that the runner would."""
    classes = np.unique(drawn.y_source)
    with path.open("a", encoding="utf-8") as file:
        for name, one in predictions.items():
            P = one.probabilities
            line = {
                "task": task.name,
                "rows": task.rows,
                "size": "standard",
                "method": name,
                "version": "1",
                "seed": 0,
                "status": OK,
                "truth": encode_codes(np.searchsorted(classes, drawn.y_test)),
                "predicted": encode_codes(np.searchsorted(classes, one.labels)),
                "probabilities": None if P is None else encode_probabilities(P),
                "extras": one.extras or {},
                "seconds": 1.0 if name == own else None,
                "megabytes": 1.0 if name == own else None,
            }
            file.write(json.dumps(line, allow_nan=False) + "\n")


def tables_by_id(tables):
    return {table["id"]: table for table in tables}


SCORES = ("source CV", "kappa", "source domains")


def made_up_candidates(seed=0, n_tasks=24):
    """Candidates of random skill, with one score that knows it and two that do not."""
    rng = np.random.default_rng(seed)
    names = ["none + logistic", "none + rbf", "coral + logistic", "coral + rbf", "sa + rbf"]
    found = []
    for task in made_up_tasks(2)[:n_tasks]:
        truth, skills = rng.integers(3, size=200), rng.uniform(0.3, 0.9, size=len(names))
        by_method = {}
        for name, skill in list(zip(names, skills, strict=True))[:-1]:  # the last failed
            right = rng.uniform(size=200) < skill
            codes = np.where(right, truth, rng.integers(3, size=200))
            P = np.full((200, 3), 0.1) + 0.7 * np.eye(3)[codes]
            texts = {"predicted": encode_codes(codes), "probabilities": encode_probabilities(P)}
            by_method[name] = texts
        scores = {key: rng.uniform(size=len(names)).tolist() for key in SCORES}
        scores["source CV"] = [*(skills[:-1] + 0.01 * rng.standard_normal(4)), None]
        by_method["auto"] = {"truth": encode_codes(truth)}
        extras = {
            "candidates": names,
            "class_counts": [50, 50, 50],
            "reasons": [None] * 4 + ["failed"],
            "scores": scores,
        }
        by_method[OURS] = {"extras": extras}
        found.append(CandidateResults(task, by_method))
    return found


def test_true_scores_and_votes_of_candidates():
    tasks = made_up_candidates()
    one = tasks[0]
    truth = one.true_scores(METRIC)
    assert np.isnan(truth).tolist() == [False] * 4 + [True]
    alone = np.eye(5)[2]
    assert one.vote(alone, METRIC) == pytest.approx(truth[2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_regret_of_every_way_to_choose(tmp_path, monkeypatch):
    def some_candidates(size):
        return [one for one in default_candidates(size) if one.adapter_name in ("none", "coral")]

    monkeypatch.setattr("covshift_bench.methods.automatic.default_candidates", some_candidates)
    path = tmp_path / "results.jsonl"
    methods = all_methods()
    drawn_by_name, arrays_by_name = {}, {}
    for family in FAMILIES:
        task, drawn = small_task(family)
        drawn_by_name[task.name] = drawn
        for name in ("auto", OURS):
            found = methods[name].predict(drawn.without_target_labels(), 0)
            write_lines(path, task, drawn, found, name)
            if name == "auto":
                arrays = tmp_path / f"{family}.npz"
                np.savez(arrays, **found[name].arrays)
                arrays_by_name[task.name] = arrays
    monkeypatch.setattr(selection_tables, "draw_task", lambda task, data: drawn_by_name[task.name])
    monkeypatch.setattr(
        selection_tables, "arrays_path", lambda out, line: arrays_by_name[line["task"]]
    )
    candidates = read_candidates([path])
    assert [one.task.cluster for one in candidates] == list(FAMILIES)
    tables = tables_by_id(selection_tables.all_tables(None, path))
    rules = {row["method"]: row for row in tables["made-up-rules"]["rows"]}
    best = np.mean([np.nanmax(one.true_scores(METRIC)) for one in candidates])
    for name in ("auto", "none + logistic", "pick by source CV", "pick by DEV, accuracy"):
        total = rules[name]["score"]["value"] + rules[name]["regret"]["value"]
        assert total == pytest.approx(best)
    assert {row["cluster"] for row in tables["made-up-families"]["rows"]} == set(FAMILIES)
    labels = [row["made_up"]["value"] for row in tables["labels"]["rows"]]
    assert len(labels) == 6
    assert min(labels) > -0.1
