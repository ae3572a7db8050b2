import os
import pickle
import re
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from covshift.studies import runner
from covshift.studies.runner import MAX_KINDS, OTHERS, recorded_warnings, run_experiment
from covshift.studies.store import StoreError, load_results, write_records
from covshift.studies.trial import Trial
from tests.studies import measuring
from tests.studies.measuring import declaration, measure


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


def table(path):
    written = path.with_suffix(".csv")
    write_records(load_results(path), written)
    return written.read_bytes()


def tables_of(function, tasks, folder, runs):
    """The table after each way of running: options of the run and of joblib's backend."""
    tables = []
    for number, (options, backend) in enumerate(runs):
        path = folder / f"{number}.sqlite"
        with parallel_config(**backend):
            outcome = run_experiment(tasks, function, path, **options)
        assert outcome.failures == []
        tables.append(table(path))
    return tables


def test_records_in_the_order_of_the_declaration(path):
    tasks = declaration()[::-1]
    outcome = run_experiment(tasks, measure, path)
    assert [record.trial for record in outcome.records] == [t for task in tasks for t in task]
    for record in outcome.records:
        assert [record.result] == measure([record.trial])
        assert record.error is None
        assert record.seconds > 0
    assert outcome.n_resumed == 0
    assert outcome.summary() == "16 trials, 0 of them done before; none failed."


def test_what_is_done_is_not_run_again(path, tmp_path):
    calls = tmp_path / "calls"
    calls.mkdir()
    function = partial(measuring.note_the_process, str(calls))
    first = run_experiment(declaration(3), function, path)
    assert len(os.listdir(calls)) == 3
    second = run_experiment(declaration(5), function, path)
    assert len(os.listdir(calls)) == 5
    assert second.n_resumed == 6
    assert second.records[:6] == first.records
    run_experiment(declaration(5), function, path, fresh=True)
    assert len(os.listdir(calls)) == 10


def test_other_batches_are_other_tasks(path, tmp_path):
    """A stored trial of another batch could differ in its last bits: its task runs as a whole."""
    calls = tmp_path / "calls"
    calls.mkdir()
    function = partial(measuring.note_the_process, str(calls))
    run_experiment(declaration(2), function, path)
    one_by_one = [[trial] for task in declaration(2) for trial in task]
    assert run_experiment(one_by_one, function, path).n_resumed == 0
    assert len(os.listdir(calls)) == 6
    assert run_experiment(one_by_one, function, path).n_resumed == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress(path, n_jobs):
    seen = []
    run_experiment(declaration(2), measure, path)
    function = partial(measuring.fail_for_seed, 3)
    with parallel_config(backend="threading"):
        run_experiment(
            declaration(4), function, path, n_jobs=n_jobs, progress=lambda *n: seen.append(n)
        )
    assert seen[0] == (4, 8, 0)
    assert [done for done, _, _ in seen] == [4, 6, 8]
    assert seen[-1] == (8, 8, 2)


def test_results_do_not_depend_on_n_jobs_or_the_backend(tmp_path):
    tasks = declaration(4)
    runs = [
        ({"n_jobs": 1}, {"backend": "loky"}),
        ({"n_jobs": 2}, {"backend": "loky"}),
        ({"n_jobs": None}, {"backend": "threading", "n_jobs": 2}),
        ({"n_jobs": 2}, {"backend": "multiprocessing"}),
    ]
    # Outside, BLAS may use two threads; inside it would make another sum of it.
    with threadpool_limits(limits=2, user_api="blas"):
        before = threadpool_info()
        tables = tables_of(measuring.measure_products, tasks, tmp_path, runs)
        assert sorted(map(str, threadpool_info())) == sorted(map(str, before))
    assert len(set(tables)) == 1
    assert tables[0].count(b"\n") == 9


def test_results_do_not_depend_on_the_order_of_completion(tmp_path):
    seen = []
    runs = [
        ({"n_jobs": 1}, {}),
        ({"n_jobs": 4, "progress": lambda *n: seen.append(n)}, {"backend": "threading"}),
    ]
    tables = tables_of(measuring.measure_first_ones_last, declaration(4), tmp_path, runs)
    assert tables[0] == tables[1]
    assert len(seen) == 5


def count_threads(trials):
    info = threadpool_info()
    return [{"threads": [pool["num_threads"] for pool in info]} for _ in trials]


@pytest.mark.parametrize("backend", ["sequential", "loky", "threading", "multiprocessing"])
def test_one_thread_inside_a_task(path, backend):
    with threadpool_limits(limits=2), parallel_config(backend=backend, n_jobs=2):
        outcome = run_experiment(declaration(2), count_threads, path)
    threads = {n for record in outcome.records for n in record.result["threads"]}
    assert threads == {1}


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_stored_as_they_come(path, backend):
    """A stop after the first results leaves them in the file, whatever the backend."""

    def stop(done, total, failed):
        if done >= 4:
            raise LookupError

    with parallel_config(backend=backend, n_jobs=2), pytest.raises(LookupError):
        run_experiment(declaration(30), measuring.measure_slowly, path, progress=stop)
    assert len(load_results(path)) == 4
    assert run_experiment(declaration(3), measure, path).failures == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failing_task_among_good_ones(path, n_jobs):
    function = partial(measuring.fail_for_seed, 1)
    with parallel_config(backend="threading"):
        outcome = run_experiment(declaration(4), function, path, n_jobs=n_jobs)
    assert [record.trial for record in outcome.failures] == declaration(4)[1]
    for record in outcome.failures:
        assert record.result is None
        assert record.error == "ZeroDivisionError: no luck\nwith 1"
        assert "in fail_for_seed" in record.traceback
    assert sum(record.result is not None for record in outcome.records) == 6
    assert outcome.summary().splitlines() == [
        "8 trials, 0 of them done before; 2 failed (run the same again to retry them):",
        'study {"C":0.1,"system":"SF"} seed 1: ZeroDivisionError: no luck',
        'study {"C":0.1,"system":"PSF"} seed 1: ZeroDivisionError: no luck',
    ]
    assert load_results(path) == sorted(outcome.records, key=lambda r: r.trial.settings_json)


def test_failed_tasks_are_tried_again(path, tmp_path):
    function = partial(measuring.fail_unless_there, str(tmp_path / "sign"))
    assert len(run_experiment(declaration(3), function, path).failures) == 2
    assert len(run_experiment(declaration(3), function, path).failures) == 2
    (tmp_path / "sign").touch()
    outcome = run_experiment(declaration(3), function, path)
    assert outcome.failures == []
    assert outcome.n_resumed == 4
    run_experiment(declaration(3), measure, tmp_path / "undisturbed.sqlite")
    assert table(path) == table(tmp_path / "undisturbed.sqlite")


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (measuring.one_result_too_few, "ValueError: .* must return a list of 2 results, got 1"),
        (measuring.no_list, "ValueError: .* must return a list of 2 results, got dict"),
        (measuring.no_dicts, "TypeError: result 0 must be a dict, got float"),
        (measuring.an_array, r"TypeError: result 0: value\['accuracy'\]\['all'\] is a numpy.nd"),
        (measuring.unreadable_error, r"SilentError: \(its message cannot be shown\)"),
        (measuring.half_a_character, r"ValueError: no file \\udce9t"),
    ],
)
def test_faults_of_the_function_are_failures(path, function, error):
    outcome = run_experiment(declaration(1), function, path)
    assert len(outcome.failures) == 2
    for record in load_results(path):
        assert re.match(error, record.error)


def test_warnings_are_counted_and_not_shown(path, recwarn):
    for n_jobs, backend in ((1, "loky"), (2, "multiprocessing"), (2, "threading")):
        with parallel_config(backend=backend):
            outcome = run_experiment(
                declaration(3), measuring.warn_often, path, n_jobs=n_jobs, fresh=True
            )
        for record in outcome.records:
            assert record.error is None
            assert record.warnings == [
                ("ConvergenceWarning", "did not converge", 3),
                ("RuntimeWarning", "divide by zero encountered in scalar divide", 1),
            ]
    # From Python 3.12 on, forks warn; the backend "multiprocessing" forks.
    shown = [str(one.message) for one in recwarn if "use of fork()" not in str(one.message)]
    assert shown == []


def test_what_is_not_finite_survives(path):
    run_experiment(declaration(1), measuring.not_finite, path)
    for record in load_results(path):
        assert np.isnan(record.result["a"])
        assert record.result["b"] == np.inf
        assert record.result["c"] == [-np.inf, None, 0.1 + 0.2]


def test_nothing_declared(path):
    seen = []
    outcome = run_experiment([], measure, path, progress=lambda *n: seen.append(n), n_jobs=2)
    assert outcome.records == []
    assert seen == [(0, 0, 0)]
    assert load_results(path) == []


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        ([*declaration(3), declaration(3)[1]], ValueError, "declared twice, in the tasks 1 and 3"),
        ([declaration(1)[0] * 2], ValueError, "declared twice, in the tasks 0 and 0"),
        ([declaration(1)[0], []], ValueError, "task 1 has no trials: leave it out"),
        (declaration(1)[0], TypeError, "task 0 must be a list of Trial, got Trial"),
        ([["study"]], TypeError, "task 0 must be a list of Trial"),
    ],
)
def test_bad_declarations(path, tasks, error, message):
    with pytest.raises(error, match=message):
        run_experiment(tasks, measure, path)
    assert not path.exists()


@pytest.mark.parametrize("function", [lambda trials: [], partial(measure, threading.Lock())])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_function_that_cannot_be_sent(path, function, n_jobs):
    with pytest.raises(TypeError, match=r"cannot be sent to worker processes.*top level of a mod"):
        run_experiment(declaration(1), function, path, n_jobs=n_jobs)
    assert not path.exists()


def test_no_function(path):
    with pytest.raises(TypeError, match="function must be callable, got 3"):
        run_experiment(declaration(1), 3, path)


def test_interrupted_run_goes_on(path, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_experiment(declaration(4), measuring.interrupt, path)
    assert len(load_results(path)) == 4
    outcome = run_experiment(declaration(4), measure, path)
    assert outcome.n_resumed == 4
    run_experiment(declaration(4), measure, tmp_path / "undisturbed.sqlite")
    assert table(path) == table(tmp_path / "undisturbed.sqlite")


def test_an_interrupt_while_saving_does_not_lose_what_was_computed(path, monkeypatch):
    save, calls = runner.Store.save, []

    def interrupted(self, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        save(self, *arguments)

    monkeypatch.setattr(runner.Store, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(declaration(4), measure, path)
    assert len(load_results(path)) == 4


def test_a_worker_that_dies(path):
    run_experiment(declaration(2), measure, path)
    message = "a worker process died.* 4 of 8 trials are done and stay in"
    with parallel_config(backend="loky"), pytest.raises(RuntimeError, match=message):
        run_experiment(declaration(4), measuring.die, path, n_jobs=2)
    assert len(load_results(path)) == 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_full_disk_stops_the_run(path, monkeypatch, n_jobs):
    def open_small(*arguments, **options):
        store = open_store(*arguments, **options)
        (pages,) = store.connection.execute("PRAGMA page_count").fetchone()
        store.connection.execute(f"PRAGMA max_page_count = {pages + 8}")
        return store

    open_store = runner.open_store
    monkeypatch.setattr(runner, "open_store", open_small)
    tasks = declaration(40, long="x" * 1000)
    with (
        parallel_config(backend="threading"),
        pytest.raises(StoreError, match="the disk is full: what was stored stays"),
    ):
        run_experiment(tasks, measure, path, n_jobs=n_jobs)
    n_stored = len(load_results(path))
    assert 0 < n_stored < 80
    monkeypatch.undo()
    assert run_experiment(tasks, measure, path).n_resumed == n_stored


def test_outcomes_travel_as_plain_data():
    outcome = runner.call_task(measure, 3, tuple(declaration(1)[0]))
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert outcome.number == 3


def test_two_experiments_in_one_file(path):
    other = [[Trial("another", {}, 0)]]
    run_experiment(declaration(1), measure, path)
    outcome = run_experiment(other, measure, path)
    assert [record.trial for record in outcome.records] == other[0]
    assert len(load_results(path)) == 3


# The warnings of a task


def test_counts_each_kind_and_restores_what_was():
    before = warnings.showwarning, list(warnings.filters)
    with recorded_warnings() as counts:
        for _ in range(3):
            warnings.warn("same", UserWarning, stacklevel=1)
        warnings.warn("same", RuntimeWarning, stacklevel=1)
    assert counts == {("UserWarning", "same"): 3, ("RuntimeWarning", "same"): 1}
    assert (warnings.showwarning, list(warnings.filters)) == before
    with pytest.warns(UserWarning, match="seen"):  # and they come through again
        warnings.warn("seen", UserWarning, stacklevel=1)


def test_blocks_in_several_threads_keep_their_own():
    before = warnings.showwarning, list(warnings.filters)
    both = threading.Barrier(2, timeout=10)
    found = {}

    def task(name, first_out):
        with recorded_warnings() as counts:
            both.wait()
            for _ in range(50):
                warnings.warn(name, UserWarning, stacklevel=1)
            both.wait()
            if not first_out:
                leaver.join(10)
                warnings.warn("late", UserWarning, stacklevel=1)
        found[name] = counts

    leaver = threading.Thread(target=task, args=("a", True))
    stayer = threading.Thread(target=task, args=("b", False))
    for thread in (leaver, stayer):
        thread.start()
    for thread in (leaver, stayer):
        thread.join(10)
    assert found["a"] == {("UserWarning", "a"): 50}
    assert found["b"] == {("UserWarning", "b"): 50, ("UserWarning", "late"): 1}
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_threads_of_a_task_count_for_it():
    with recorded_warnings() as counts:
        thread = threading.Thread(target=warnings.warn, args=("inner",))
        thread.start()
        thread.join(10)
    assert counts == {("UserWarning", "inner"): 1}


def test_the_list_stays_short():
    with recorded_warnings() as counts:
        for number in range(100):
            warnings.warn(f"{number} " * 1000, UserWarning, stacklevel=1)
    assert len(counts) == MAX_KINDS + 1
    assert counts[OTHERS] == 100 - MAX_KINDS
    assert max(len(message) for _, message in counts) <= 300
