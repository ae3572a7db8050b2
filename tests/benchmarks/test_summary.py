"""Summaries of results, against versions written without care for speed."""

import csv
import math

import numpy as np
import pandas as pd
import pytest
from covshift_bench.results import decode_codes, encode_codes, encode_probabilities
from covshift_bench.summary import (
    LEADER,
    PLAIN,
    cluster_mean,
    compare_paired,
    complete_lines,
    cost_table,
    log_loss,
    run_text,
    score,
    score_results,
    summarize,
    summarize_all,
    summary_markdown,
    task_table,
)
from covshift_bench.tasks import Task

METRICS = list(PLAIN)


def naive_score(truth, predicted, metric):
    if metric == "accuracy":
        return sum(t == p for t, p in zip(truth, predicted, strict=True)) / len(truth)
    recalls = []
    for k in sorted(set(truth)):
        answers = [p for t, p in zip(truth, predicted, strict=True) if t == k]
        recalls.append(answers.count(k) / len(answers))
    return sum(recalls) / len(recalls)


def naive_variance(values):
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def naive_error(truth, predicted, plain, metric):
    differences = [(p == t) - (q == t) for t, p, q in zip(truth, predicted, plain, strict=True)]
    if metric == "accuracy":
        return math.sqrt(naive_variance(differences) / len(truth))
    total, classes = 0.0, sorted(set(truth))
    for k in classes:
        own = [d for d, t in zip(differences, truth, strict=True) if t == k]
        total += 0.25 if len(own) == 1 else naive_variance(own) / len(own)
    return math.sqrt(total) / len(classes)


def made_up_results(seed=0, n_tasks=14):
    """Tasks of several clusters and sizes, and lines of three methods of different skill."""
    rng = np.random.default_rng(seed)
    tasks, lines = [], []
    for number in range(n_tasks):
        cluster, n_classes = f"cluster {number % 5}", int(rng.integers(2, 5))
        mark = "control" if number % 3 == 0 else "shift"
        tasks.append(Task(f"task {number}", "c", "", cluster, "pair", (0,), 1, mark))
        n_test = int(rng.integers(30, 500))
        truth = rng.choice(n_classes, size=n_test, p=rng.dirichlet(np.full(n_classes, 5.0)))
        truth[:n_classes] = np.arange(n_classes)
        skills = {PLAIN["accuracy"]: 0.7, PLAIN["balanced accuracy"]: 0.68, "mine": 0.66}
        for method, skill in skills.items():
            right = rng.uniform(size=n_test) < skill
            predicted = np.where(right, truth, rng.integers(n_classes, size=n_test))
            failed = method == "mine" and number == 4
            lines.append(
                {
                    "task": f"task {number}",
                    "method": method,
                    "seed": 0,
                    "status": "timeout" if failed else "ok",
                    "truth": encode_codes(truth),
                    "predicted": None if failed else encode_codes(predicted),
                    "seconds": None if failed else float(number),
                    "megabytes": 100.0 + number,
                }
            )
    return tasks, lines


@pytest.mark.parametrize("metric", METRICS)
def test_scores_and_paired_differences(metric):
    rng = np.random.default_rng(1)
    for n in (5, 40, 300):
        truth, predicted, plain = rng.integers(4, size=(3, n))
        lists = truth.tolist(), predicted.tolist(), plain.tolist()
        assert score(truth, predicted, metric) == pytest.approx(naive_score(*lists[:2], metric))
        paired = compare_paired(truth, predicted, plain, metric)
        gain = naive_score(lists[0], lists[1], metric) - naive_score(lists[0], lists[2], metric)
        half = 1.959964 * naive_error(*lists, metric)
        assert paired == pytest.approx((gain, max(-1, gain - half), min(1, gain + half)))
        assert paired.harm == (gain < -0.01)
        assert paired.sure_harm == (gain < -0.01 and gain + half < 0)


def test_equal_predictions_are_no_harm_and_a_clear_loss_is_sure():
    truth = np.repeat([0, 1], 200)
    same = compare_paired(truth, truth, truth, "accuracy")
    assert (*same, same.harm, same.sure_harm) == (0, 0, 0, False, False)
    worse = np.where(np.arange(400) % 5 == 0, 1 - truth, truth)
    for metric in METRICS:
        loss = compare_paired(truth, worse, truth, metric)
        assert loss.gain == pytest.approx(-0.2)
        assert loss.harm
        assert loss.sure_harm
    # Twelve rows lost and seven won: chance explains such a loss.
    slightly = truth.copy()
    slightly[:12] = 1
    plain = truth.copy()
    plain[20:27] = 1
    by_chance = compare_paired(truth, slightly, plain, "accuracy")
    assert by_chance.gain == pytest.approx(-0.0125)
    assert by_chance.harm
    assert not by_chance.sure_harm


def test_seeds_are_averaged_and_compared_with_the_plain_model_of_their_seed():
    tasks, lines = made_up_results(n_tasks=3)
    rng = np.random.default_rng(7)
    again = []
    for line in lines:
        if line["method"] == PLAIN["accuracy"] or line["method"] == "mine":
            shuffled = "".join(rng.permutation(list(line["predicted"])))
            again.append(line | {"seed": 1, "predicted": shuffled})
    scored = score_results([*lines, *again], tasks)
    assert len(scored) == len(score_results(lines, tasks))
    separate = [
        score_results(part, tasks).set_index(["task", "method", "metric"])
        for part in (
            lines,
            [*again, *(x for x in lines if x["method"] == PLAIN["balanced accuracy"])],
        )
    ]
    for row in scored[scored["metric"] == "accuracy"].itertuples():
        key = row.task, row.method, row.metric
        n_seeds = 1 if row.method == PLAIN["balanced accuracy"] else 2
        assert row.seeds == n_seeds
        if n_seeds == 2:
            assert row.score == pytest.approx(np.mean([one.loc[key].score for one in separate]))
            assert row.gain == pytest.approx(np.mean([one.loc[key].gain for one in separate]))
            assert row.harm == pytest.approx(np.mean([one.loc[key].harm for one in separate]))
    best = scored.groupby(["task", "metric"])["score"].max()
    for row in scored.itertuples():
        assert row.regret == pytest.approx(best[row.task, row.metric] - row.score)


def test_methods_that_lack_a_task_are_left_out_with_what_comes_with_them():
    lines = made_up_results(n_tasks=4)[1]
    more = []
    for line in lines:
        if line["method"] == "mine" and line["task"] != "task 2":
            extra = line | {"status": "ok", "predicted": line["truth"]}
            more.append(extra | {"method": "by the way", "seconds": None})
            more.append(extra | {"method": "not on every task", "seconds": 1.0})
    kept = complete_lines([*lines, *more])
    assert kept == lines
    everywhere = [line | {"task": "task 2"} for line in more[:2]]
    assert len(complete_lines([*lines, *more, *everywhere])) == len(lines) + 8


def test_log_loss_of_probabilities_that_are_stored_in_half_precision():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3), size=50)
    P[0] = [0.0, 0.4, 0.6]
    truth = np.r_[0, rng.integers(3, size=49)]
    naive = [-math.log(max(p[t] / sum(p), 1e-4)) for p, t in zip(P, truth, strict=True)]
    assert log_loss(truth, P) == pytest.approx(sum(naive) / 50)
    tasks, lines = made_up_results(n_tasks=1)
    truth = decode_codes(lines[0]["truth"])
    P = rng.dirichlet(np.ones(truth.max() + 1), size=len(truth))
    lines[-1]["probabilities"] = encode_probabilities(P)
    scored = score_results(lines, tasks).set_index(["method", "metric"])["log_loss"]
    for metric in METRICS:
        assert scored["mine", metric] == pytest.approx(log_loss(truth, P), rel=1e-3)
        assert np.isnan(scored[PLAIN["accuracy"], metric])


def test_scores_of_each_task():
    tasks, lines = made_up_results()
    scored = score_results(lines, tasks)
    assert len(scored) == len(lines) * len(METRICS)
    known = {(line["task"], line["method"]): line for line in lines}
    for row in scored.itertuples():
        line = known[row.task, row.method]
        plain = known[row.task, PLAIN[row.metric]]
        predicted = plain["predicted"] if row.failed else line["predicted"]
        expected = naive_score(line["truth"], predicted, row.metric)
        assert row.score == pytest.approx(expected)
        of_plain = naive_score(line["truth"], plain["predicted"], row.metric)
        assert row.gain == pytest.approx(expected - of_plain, abs=1e-12)
        assert row.n_test == len(line["truth"])
    assert scored[scored["failed"]]["gain"].tolist() == [0, 0]


@pytest.mark.parametrize("metric", METRICS)
def test_summary_averages_tasks_then_clusters(metric):
    tasks, lines = made_up_results()
    scored = score_results(lines, tasks)
    summary = summarize(scored, metric).set_index("method")
    clusters = {task.name: task.cluster for task in tasks}
    for method in summary.index:
        rows = [
            row
            for row in scored.to_dict("records")
            if row["method"] == method and row["metric"] == metric
        ]

        def mean_over_clusters(column, rows=rows, at_least=0):
            means = []
            for cluster in sorted(set(clusters.values())):
                values = [
                    row[column]
                    for row in rows
                    if clusters[row["task"]] == cluster and row["n_test"] >= at_least
                ]
                if values:
                    means.append(sum(values) / len(values))
            return sum(means) / len(means)

        found = summary.loc[method]
        assert found["score"] == pytest.approx(mean_over_clusters("score"))
        assert found["gain"] == pytest.approx(mean_over_clusters("gain"))
        assert found["sure_harm"] == pytest.approx(mean_over_clusters("sure_harm"))
        assert found["harm"] == pytest.approx(mean_over_clusters("harm", at_least=200))
        assert found["large_tasks"] == sum(row["n_test"] >= 200 for row in rows)
        assert found["low"] <= found["gain"] <= found["high"]
        large = [row["gain"] for row in rows if row["n_test"] >= 200]
        assert found["worst"] == pytest.approx(max(0, -min(large)))
        assert (found["tasks"], found["clusters"]) == (len(tasks), 5)
        assert found["failed"] == (method == "mine")
        times = sorted(row["seconds"] for row in rows if not row["failed"])
        assert found["total_hours"] == pytest.approx(sum(times) / 3600)
        assert found["most_megabytes"] == 100 + len(tasks) - 1
    assert summary["score"].is_monotonic_decreasing


def test_predictions_that_are_made_together_cost_what_their_method_costs():
    tasks, lines = made_up_results()
    costs = {"auto": 7.0, "auto, accuracy": None, "vote, accuracy": None, "none + forest": None}
    for line in lines:
        if line["method"].startswith("plain best"):
            line.update(seconds=None, megabytes=None)
    lines += [
        {**line, "method": name, "seconds": seconds, "megabytes": seconds}
        for line in lines
        if line["method"] == PLAIN["accuracy"]
        for name, seconds in costs.items()
    ]
    columns = ["seconds", "total_hours", "megabytes", "most_megabytes"]
    summary = summarize(score_results(lines, tasks), "accuracy").set_index("method")[columns]
    shared = [7.0, 7.0 * len(tasks) / 3600, 7.0, 7.0]
    for name in ("auto", "auto, accuracy", "vote, accuracy", *PLAIN.values()):
        assert summary.loc[name].tolist() == pytest.approx(shared)
    assert summary.loc["none + forest"].isna().all()
    assert summary.loc["mine", "total_hours"] == pytest.approx((sum(range(14)) - 4) / 3600)


def test_the_cost_of_a_run_has_all_seeds_and_each_method_once():
    tasks, lines = made_up_results(n_tasks=6)
    for line in lines:
        if line["seconds"] is not None:
            line["seconds"] *= 100
    again = [line | {"seed": 1} for line in lines if line["method"] == PLAIN["accuracy"]]
    seconds = [line["seconds"] for line in [*lines, *again] if line["seconds"] is not None]
    text = run_text(score_results([*lines, *again], tasks))
    assert text == (
        f"3 methods on 6 tasks in 5 clusters: {sum(seconds) / 3600:.2f} processor hours"
    )


def test_costs_are_of_all_calls():
    lines = made_up_results(n_tasks=6)[1]
    again = [line | {"seed": 1, "seconds": 9.0} for line in lines if line["method"] == "mine"]
    costs = cost_table([*lines, *again, lines[0] | {"method": "made together", "seconds": None}])
    assert set(costs["method"]) == {"mine", *PLAIN.values()}
    for row in costs.itertuples():
        calls = [x for x in [*lines, *again] if x["method"] == row.method]
        known = [x["seconds"] for x in calls if x["seconds"] is not None]
        assert row.calls == len(known)
        assert row.mean_seconds == pytest.approx(sum(known) / len(known))
        assert row.most_seconds == max(known)
        assert row.most_megabytes == max(x["megabytes"] for x in calls if x["seconds"] is not None)


def test_the_lead_of_the_automatic_choice_is_paired():
    tasks, lines = made_up_results()
    assert summarize(score_results(lines, tasks), "accuracy")["lead"].isna().all()
    own = {"mine": LEADER["accuracy"], PLAIN["accuracy"]: LEADER["balanced accuracy"]}
    lines += [line | {"method": own[line["method"]]} for line in lines if line["method"] in own]
    scored = score_results(lines, tasks)
    clusters = {task.name: task.cluster for task in tasks}
    for metric in METRICS:
        summary = summarize(scored, metric).set_index("method")
        score_of = scored[scored["metric"] == metric].set_index(["method", "task"])["score"]
        for method, row in summary.iterrows():
            leads = {}
            for name, cluster in clusters.items():
                difference = score_of[LEADER[metric], name] - score_of[method, name]
                leads.setdefault(cluster, []).append(difference)
            means = [sum(one) / len(one) for one in leads.values()]
            assert row["lead"] == pytest.approx(sum(means) / len(means))
            assert row["lead_low"] <= row["lead"] <= row["lead_high"]
            same = all(lead == 0 for one in leads.values() for lead in one)
            assert (row["lead_low"] == row["lead_high"]) == same
        # Of one method over another it is the other way round, with its interval.
        over_plain = summary.loc[PLAIN[metric], ["lead", "lead_low", "lead_high"]]
        gain = summary.loc[LEADER[metric], ["gain", "low", "high"]]
        assert over_plain.tolist() == pytest.approx(gain.tolist())


def test_intervals_resample_clusters():
    """With all tasks of a cluster equal, copies of tasks must not make an interval shorter."""
    tasks, lines = made_up_results(n_tasks=5)
    scored = score_results(lines, tasks)
    tripled = pd.concat(
        [scored, *(scored.assign(task=scored["task"] + f" copy {i}") for i in range(2))]
    )
    once, thrice = (summarize(frame, "accuracy") for frame in (scored, tripled))
    for column in ("score", "gain", "low", "high", "harm", "sure_harm"):
        np.testing.assert_allclose(once[column], thrice[column], atol=1e-12)
    mine = once.set_index("method").loc["mine"]
    gains = scored[(scored["method"] == "mine") & (scored["metric"] == "accuracy")]["gain"]
    rng = np.random.default_rng(3)
    means = [rng.choice(gains, size=len(gains)).mean() for _ in range(4000)]
    assert mine["low"] <= np.quantile(means, 0.025) + 0.01
    assert mine["high"] >= np.quantile(means, 0.975) - 0.01


def test_shift_and_controls_apart():
    tasks, lines = made_up_results()
    scored = score_results(lines, tasks)
    summaries = summarize_all(scored)
    assert summaries["part"].unique().tolist() == [
        "all real tasks",
        "tasks with a shift",
        "controls",
    ]
    for part, mark in (("tasks with a shift", "shift"), ("controls", "control")):
        for metric in METRICS:
            chosen = scored[
                (scored["mark"] == mark)
                & (scored["metric"] == metric)
                & (scored["method"] == "mine")
            ]
            row = summaries[
                (summaries["part"] == part)
                & (summaries["metric"] == metric)
                & (summaries["method"] == "mine")
            ].iloc[0]
            assert row["tasks"] == sum(task.mark == mark for task in tasks)
            assert row["gain"] == pytest.approx(cluster_mean(chosen, "gain"))


def test_tasks_without_a_result_of_every_method_are_left_out():
    tasks, lines = made_up_results()
    kept = [line for line in lines if (line["task"], line["method"]) != ("task 3", "mine")]
    scored = score_results(kept, tasks)
    assert "task 3" not in set(scored["task"])
    assert scored["task"].nunique() == len(tasks) - 1
    for line in kept:
        if (line["task"], line["method"]) == ("task 5", PLAIN["accuracy"]):
            line.update(status="failed", predicted=None)
    scored = score_results(kept, tasks[:-1])
    assert set(scored["task"]) == {t.name for t in tasks} - {"task 3", "task 5", "task 13"}


def test_a_prediction_that_comes_with_a_method_may_be_missing():
    tasks, lines = made_up_results()
    extra = [
        {**line, "method": "candidate", "seconds": None}
        for line in lines
        if line["method"] == PLAIN["accuracy"] and line["task"] != "task 3"
    ]
    scored = score_results(lines + extra, tasks)
    assert scored["task"].nunique() == len(tasks)
    candidate = scored[(scored["method"] == "candidate") & (scored["metric"] == "accuracy")]
    assert candidate.set_index("task")["failed"].to_dict() == {
        task.name: task.name == "task 3" for task in tasks
    }
    assert candidate["gain"].abs().max() == 0


def test_the_table_of_tasks_has_every_score_once():
    tasks, lines = made_up_results()
    scored = score_results(lines, tasks)
    table = task_table(scored).set_index(["metric", "task"])
    methods = list(dict.fromkeys(scored["method"]))
    assert list(table.columns) == ["cluster", "mark", "n_test", *methods]
    assert len(table) * len(methods) == len(scored)
    for row in scored.itertuples():
        found = table.loc[row.metric, row.task]
        assert (found["cluster"], found["n_test"]) == (row.cluster, row.n_test)
        assert found[row.method] == row.score


def test_one_cluster_has_no_interval_and_small_tasks_no_share_of_harm():
    tasks, lines = made_up_results(n_tasks=1)
    lines = [{**line, "truth": line["truth"][:50]} for line in lines]
    for line in lines:
        line["predicted"] = line["predicted"][:50]
    summary = summarize(score_results(lines, tasks), "accuracy")
    assert summary[["low", "high", "harm", "worst"]].isna().all(axis=None)
    assert "| mine |" in summary_markdown(summarize_all(score_results(lines, tasks)))


def test_markdown_and_csv(tmp_path):
    tasks, lines = made_up_results()
    summaries = summarize_all(score_results(lines, tasks))
    text = summary_markdown(summaries)
    assert text.count("| method | score |") == 6
    assert "Balanced accuracy, controls: 5 tasks in 5 clusters" in text
    path = tmp_path / "summary.csv"
    summaries.to_csv(path, index=False)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(summaries)
    assert float(rows[0]["gain"]) == pytest.approx(summaries["gain"].iloc[0])
