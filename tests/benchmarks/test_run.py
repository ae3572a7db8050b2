"""The runner: every result is kept, whatever a method or a user does to its process."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import forkserver
from pathlib import Path

import numpy as np
import pytest
from covshift_bench.command import matching
from covshift_bench.methods import all_methods
from covshift_bench.results import (
    decode_codes,
    decode_probabilities,
    key_of,
    open_results,
    read_lines,
    read_results,
)
from covshift_bench.runner import (
    PRELOADED,
    THREADS,
    Progress,
    arrays_path,
    pending_jobs,
    run_jobs,
)
from covshift_bench.tasks import draw_task, made_up_tasks

import tests.benchmarks.fake_methods as fake
from covshift.selection.candidates import default_candidates

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")


@pytest.fixture(scope="module", autouse=True)
def workers_that_could_use_two_threads():
    """Start the process that workers are copies of so that one thread is the runner's doing."""
    with pytest.MonkeyPatch.context() as patch:
        for name in THREADS:
            patch.setenv(name, "2")
        forkserver.set_forkserver_preload(PRELOADED)
        forkserver.ensure_running()


def run_all(tasks, functions, out, version="1", **settings):
    jobs, _ = pending_jobs(tasks, [fake.method(one, version) for one in functions], out)
    run_jobs(jobs, None, out, **settings)
    return len(jobs)


def by_method(out):
    return {line["method"]: line for line in read_lines(out)}


def test_workers_import_the_command_before_they_start_and_no_package_that_changes_others():
    code = f"""
import sys, {", ".join(PRELOADED)}
before = set(sys.modules)
import covshift_bench.__main__
print(len(set(sys.modules) - before), *sys.modules)
"""
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    n_more, *names = shown.stdout.split()
    assert n_more == "1"  # `__main__` itself
    assert not {"skada", "ot", "adapt", "torch", "matplotlib"} & set(names)


def test_predictions_of_a_method_without_target_labels_in_one_thread(tmp_path):
    out = tmp_path / "results.jsonl"
    task = fake.some_tasks(1)[0]
    run_all([task], [fake.first_class, fake.look_around], out)
    lines = by_method(out)
    drawn = draw_task(task)
    classes = np.unique(drawn.y_source)
    for line in lines.values():
        assert (line["status"], line["error"], line["task"]) == ("ok", None, task.name)
        np.testing.assert_array_equal(classes[decode_codes(line["truth"])], drawn.y_test)
        assert line["seconds"] >= 0
        assert 10 < line["megabytes"] < 10_000
    assert set(lines["first_class"]["predicted"]) == {"0"}
    line = lines["look_around"]
    assert line["extras"]["labels"] == [False, False]
    assert line["extras"]["threads"] == 1
    assert line["extras"]["pid"] != os.getpid()
    P = decode_probabilities(line["probabilities"], len(drawn.y_test))
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=2e-3)
    np.testing.assert_array_equal(P.argmax(axis=1), decode_codes(line["predicted"]))


def test_failures_are_results_and_the_others_go_on(tmp_path):
    out = tmp_path / "results.jsonl"
    wrong = [fake.go_wrong, fake.leave, fake.kill_itself, fake.too_few, fake.unknown_class]
    wrong += [fake.nan_probabilities, fake.margins, fake.half_the_probabilities]
    wrong += [fake.column, fake.nan_labels, fake.not_plain]
    run_all(fake.some_tasks(1), [*wrong, fake.garbage, fake.first_class], out, n_jobs=2)
    lines = by_method(out)
    assert {name: line["status"] for name, line in lines.items()} == {
        "go_wrong": "failed",
        "leave": "died",
        "kill_itself": "died",
        "too_few": "failed",
        "unknown_class": "failed",
        "nan_probabilities": "failed",
        "margins": "failed",
        "half_the_probabilities": "failed",
        "column": "failed",
        "nan_labels": "failed",
        "not_plain": "failed",
        "garbage": "ok",
        "first_class": "ok",
    }
    assert "RuntimeError: out of luck" in lines["go_wrong"]["error"]
    assert "exit status 3" in lines["leave"]["error"]
    assert "SIGKILL" in lines["kill_itself"]["error"]
    assert "labels, got shape" in lines["too_few"]["error"]
    assert "not JSON serializable" in lines["not_plain"]["error"]
    assert "does not occur" in lines["unknown_class"]["error"]
    assert "does not occur" in lines["nan_labels"]["error"]
    assert "labels, got shape" in lines["column"]["error"]
    for name in ("nan_probabilities", "margins", "half_the_probabilities"):
        assert "must not be negative or NaN" in lines[name]["error"]
    assert all(line["predicted"] is None for line in lines.values() if line["status"] != "ok")


def test_limits_of_processor_time_and_of_the_clock(tmp_path):
    out = tmp_path / "results.jsonl"
    start = time.monotonic()
    run_all(
        fake.some_tasks(1),
        [fake.sleep, fake.compute, fake.first_class],
        out,
        n_jobs=3,
        limit=1,
        wall_limit=12,
    )
    assert time.monotonic() - start < 120
    lines = by_method(out)
    assert {name: line["status"] for name, line in lines.items()} == {
        "sleep": "timeout",
        "compute": "timeout",
        "first_class": "ok",
    }
    assert "wall clock" in lines["sleep"]["error"]
    assert "processor time" in lines["compute"]["error"]
    assert lines["compute"]["seconds"] == 1


def test_a_pipeline_of_skada(tmp_path):
    name = "SKADA CORAL + logistic"
    methods = all_methods()
    if name not in methods:
        pytest.skip("SKADA is not installed")
    out = tmp_path / "results.jsonl"
    task = next(one for one in made_up_tasks(1) if one.cluster == "no_shift")
    run_jobs(pending_jobs([task], [methods[name]], out)[0], None, out)
    (line,) = read_lines(out)
    assert (line["status"], line["error"]) == ("ok", None)
    truth, predicted = decode_codes(line["truth"]), decode_codes(line["predicted"])
    assert np.mean(truth == predicted) > 1.2 / (truth.max() + 1)


def test_only_what_is_new_or_changed_is_run_again(tmp_path):
    out = tmp_path / "results.jsonl"
    tasks = fake.some_tasks(2)
    assert run_all(tasks[:1], [fake.first_class, fake.go_wrong], out) == 2
    assert run_all(tasks[:1], [fake.first_class, fake.go_wrong], out) == 0
    assert run_all(tasks, [fake.first_class, fake.go_wrong], out) == 2
    assert run_all(tasks, [fake.first_class], out, version="2") == 2
    again = [fake.method(fake.first_class), fake.method(fake.go_wrong)]
    jobs, n_jobs = pending_jobs(tasks, again, out, retry=True)
    assert ([job.method.name for job in jobs], n_jobs) == (["go_wrong", "go_wrong"], 4)
    redrawn = [task._replace(rows="other rows") for task in tasks]
    assert len(pending_jobs(redrawn, again, out)[0]) == 4
    assert len(pending_jobs(tasks, again, out, size="large")[0]) == 4
    assert len(pending_jobs(tasks, again, out, seeds=(1,))[0]) == 4
    lines = read_lines(out)
    assert len({key_of(line) for line in lines}) == len(lines) == 6
    latest = read_results([out])
    versions = {line["version"] for line in latest if line["method"] == "first_class"}
    assert (len(latest), versions) == (4, {"2"})


def test_a_changed_method_is_not_mixed_with_its_earlier_results(tmp_path):
    out = tmp_path / "results.jsonl"
    tasks = fake.some_tasks(2)
    for version, chosen, seeds in (("1", tasks, (0, 1)), ("2", tasks[:1], (0,))):
        methods = [fake.method(one, version) for one in (fake.look_around, fake.several)]
        run_jobs(
            pending_jobs(chosen, [methods[0]._replace(random=True)], out, seeds=seeds)[0], None, out
        )
        run_jobs(pending_jobs(tasks, methods[1:], out)[0], None, out)
    kept = read_results([out], every_seed=True)
    found = [
        (one["task"], one["version"], one["seed"]) for one in kept if one["method"] == "look_around"
    ]
    assert found == [(tasks[0].name, "2", 0)]
    # `complete_lines` reads who made a prediction off the order: it ends what it was made with.
    names = [one["method"] for one in kept if one["method"] != "look_around"]
    assert names == ["the other", "several"] * 2


def test_a_result_that_is_run_again_stands_beside_what_is_made_with_it(tmp_path):
    line = {"task": "a", "rows": "", "size": "standard", "version": "1", "seed": 0}
    failed, others = line | {"method": "several"}, line | {"method": "first_class"}
    with open_results(tmp_path / "results.jsonl") as add:
        for one in (failed, others, line | {"method": "the other"}, failed):
            add(one)
    names = [one["method"] for one in read_results([tmp_path / "results.jsonl"])]
    assert names == ["first_class", "the other", "several"]


def start_run(out, n_jobs=2):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.fake_methods", str(out), str(n_jobs)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_lines(out, n, process):
    for _ in range(1200):
        if len(read_lines(out)) >= n:
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    raise AssertionError("no result in two minutes")


def group_is_gone(group):
    for _ in range(300):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_stop_loses_nothing_and_leaves_nothing_running(tmp_path, how):
    out = tmp_path / "results.jsonl"
    process = start_run(out)
    wait_for_lines(out, 1, process)
    process.send_signal(getattr(signal, how))
    shown, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "all run" not in shown
    assert group_is_gone(process.pid)  # workers too, and the process that starts them
    before = read_lines(out)
    assert 1 <= len(before) < 6
    with out.open("ab") as file:
        file.write(b'{"task": "a line that was being wri')
    assert read_lines(out) == before
    process = start_run(out)
    shown, errors = process.communicate(timeout=120)
    assert (process.returncode, shown.strip()) == (0, "all run"), errors
    lines = read_lines(out)
    assert lines[: len(before)] == before
    assert sorted(line["task"] for line in lines) == sorted(t.name for t in fake.some_tasks(6))
    assert {line["status"] for line in lines} == {"ok"}


def test_one_run_at_a_time_writes_a_file(tmp_path):
    out = tmp_path / "folder" / "results.jsonl"
    with open_results(out) as add:
        add({"task": "a"})
        with pytest.raises(OSError, match="in use by another run"), open_results(out):
            pass
    assert read_lines(out) == [{"task": "a"}]
    assert read_lines(tmp_path / "none.jsonl") == []


def test_tasks_take_turns_over_collections(tmp_path):
    tasks = [
        task._replace(name=f"{collection}{number}", collection=collection)
        for task in fake.some_tasks(1)
        for collection in "abc"
        for number in range(1 if collection == "b" else 2)
    ]
    methods = [fake.method(fake.first_class), fake.method(fake.go_wrong)]
    jobs, _ = pending_jobs(tasks, methods, tmp_path / "none.jsonl")
    assert [job.task.name for job in jobs[::2]] == ["a0", "b0", "c0", "a1", "c1"]
    assert [job.method for job in jobs[:2]] == methods


def test_patterns_choose_names():
    names = ["plain logistic", "auto", "auto, accuracy"]
    assert matching(names, ["auto*"]) == names[1:]
    assert matching(names, ["auto", "plain *"]) == names[:2]
    with pytest.raises(SystemExit, match="No name matches 'x'"):
        matching(names, ["auto", "x"])


def test_progress_tells_share_and_time_left(capsys):
    progress = Progress(10, 40, every=0)
    progress({"status": "ok"})
    assert progress.text(progress.start + 120) == "11 of 40 (27.5%), 0 failed, 0 h 58 min left"
    progress({"status": "timeout", "task": "t", "method": "m", "error": "Killed: out of time."})
    shown = capsys.readouterr().out
    assert "timeout: t, m: Killed: out of time." in shown
    assert "12 of 40 (30.0%), 1 failed" in shown


def test_several_predictions_of_one_method(tmp_path):
    out = tmp_path / "results.jsonl"
    assert run_all(fake.some_tasks(1), [fake.several], out) == 1
    assert run_all(fake.some_tasks(1), [fake.several], out) == 0
    lines = by_method(out)
    assert list(lines) == ["the other", "several"]
    assert lines["the other"]["seconds"] is None
    assert lines["several"]["seconds"] >= 0
    with np.load(arrays_path(out, lines["several"])) as arrays:
        np.testing.assert_array_equal(arrays["numbers"], [1, 2, 3])
        np.testing.assert_array_equal(arrays["large"], [-6e4, 0.5])


def test_the_prediction_under_the_method_s_own_name_must_be_there(tmp_path):
    out = tmp_path / "results.jsonl"
    run_all(fake.some_tasks(1), [fake.only_another], out)
    assert "returned no prediction named 'only_another'" in by_method(out)["only_another"]["error"]


def test_names_of_methods():
    methods = all_methods()
    assert all(name == method.name for name, method in methods.items())
    assert {"plain logistic", "auto", "kmm + logistic", "pick by source CV"} <= set(methods)
    assert "my centered logistic" not in methods


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "plain logistic",
        "plain boosted trees",
        "standardize-domains + logistic",
        "ulsif + rbf",
        "sf + logistic",
    ],
)
def test_methods_return_labels_of_the_source(name):
    _, drawn = fake.small_task("no_shift")
    small = drawn.without_target_labels()
    prediction = all_methods()[name].predict(small, 0)
    check_prediction(prediction, drawn)


def check_prediction(prediction, drawn):
    assert np.isin(prediction.labels, drawn.y_source).all()
    assert np.mean(prediction.labels == drawn.y_test) > 1.2 / len(np.unique(drawn.y_source))
    if prediction.probabilities is not None:
        np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_shared_bench_predicts_as_the_estimator_does(monkeypatch):
    def some_candidates(size, label="class"):
        return [one for one in default_candidates(size) if one.adapter_name in ("none", "coral")]

    for module in ("covshift_bench.methods.automatic", "covshift.selection.auto_adapted"):
        monkeypatch.setattr(f"{module}.default_candidates", some_candidates)
    _, drawn = fake.small_task("no_shift")
    small = drawn.without_target_labels()
    found = all_methods()["auto"].predict(small, 3)
    for name in ("plain best, accuracy", "plain best, balanced", "equal vote, balanced"):
        check_prediction(found[name], drawn)
    pairs = {"auto": "estimator, balanced", "auto, accuracy": "estimator, accuracy"}
    for shared, estimator in pairs.items():
        expected = all_methods()[estimator].predict(small, 3)
        np.testing.assert_array_equal(found[shared].labels, expected.labels)
        np.testing.assert_allclose(
            found[shared].probabilities, expected.probabilities, rtol=1e-9, atol=1e-12
        )
    arrays = found["auto"].arrays
    n_candidates = len(arrays["candidates"])
    assert {f"test {i}" for i in range(n_candidates)} <= set(arrays)
    assert {f"fold {k}, 0" for k in range(3)} <= set(arrays)
    for name in [name for name in arrays if name.startswith("truth ")]:
        assert len(arrays[name]) == len(arrays[f"{name.removeprefix('truth ')}, 0"])
