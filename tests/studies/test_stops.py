"""Runs that are killed or interrupted, in processes of their own, and then gone on with."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from covshift.studies.runner import run_experiment
from covshift.studies.store import load_results, write_records
from tests.studies.measuring import declaration, measure_slowly

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals")


def start(path, n_jobs, function="measure_slowly", kill_when="never 0"):
    module = "tests.studies.measuring"
    arguments = ["-m", module, str(path), str(n_jobs), function, kill_when]
    return subprocess.Popen(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # signals to its group reach its workers, and not this process
    )


def end_group(process):
    """End what a killed run left behind: its workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def tables(path):
    for ending in ("csv", "json"):
        written = path.with_suffix(f".{ending}")
        write_records(load_results(path), written)
        yield written.read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "study.sqlite"
    run_experiment(declaration(), measure_slowly, path)
    return list(tables(path))


def finish(path, n_stored, undisturbed):
    """Run the rest, in this process, and compare."""
    assert run_experiment(declaration(), measure_slowly, path).n_resumed == n_stored
    assert list(tables(path)) == undisturbed


# When the process kills itself, and the trials that must be there then. The traced statements
# come before they are run: "INSERT 4" is in the second transaction, its first row written.
@pytest.mark.parametrize(
    ("kill_when", "n_stored"),
    [
        ("PROGRESS 1", 0),
        ("PROGRESS 4", 6),
        ("BEGIN 3", 4),
        ("INSERT 4", 2),
        ("COMMIT 3", 4),
        ("PROGRESS 9", 16),
    ],
)
def test_killed_runs_go_on(tmp_path, undisturbed, kill_when, n_stored):
    path = tmp_path / "study.sqlite"
    with start(path, 1, kill_when=kill_when) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    assert len(load_results(path)) == n_stored
    finish(path, n_stored, undisturbed)


def test_killed_with_workers(tmp_path, undisturbed):
    """Its workers may outlive the process: they do not hold the file."""
    path = tmp_path / "study.sqlite"
    with start(path, 2, kill_when="PROGRESS 4") as process:
        process.wait(timeout=60)
        n_stored = len(load_results(path))
        end_group(process)
    assert n_stored == 6
    finish(path, n_stored, undisturbed)


@pytest.mark.parametrize(("n_jobs", "whole_group"), [(1, False), (2, True)])
def test_ctrl_c(tmp_path, undisturbed, n_jobs, whole_group):
    """A terminal sends Ctrl-C to the workers as well."""
    path = tmp_path / "study.sqlite"
    with start(path, n_jobs, "measure_until_stopped") as process:
        while process.stdout.readline().strip() != "8":
            assert process.poll() is None, process.stderr.read()
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        end_group(process)
    assert process.returncode == 130, errors
    assert output.splitlines()[-1] == "interrupted"
    assert len(load_results(path)) == 8
    finish(path, 8, undisturbed)
