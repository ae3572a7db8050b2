"""Output of `covshift demo` and `covshift reproduce synthetic`."""

import csv
import io
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from rich.console import Console

from covshift import __version__, cli, report
from covshift.cli import main, study
from covshift.cli import study as module
from covshift.cli.study import trial_progress
from covshift.paper.synthetic import figures as synthetic_figures
from covshift.paper.synthetic import study as synthetic_study
from covshift.paper.synthetic.study import declare
from covshift.paper.synthetic.systems import DATA_SETS, SYSTEMS
from covshift.studies import runner, store
from tests.cli.user_files import assert_one_line, run
from tests.paper.synthetic import made_records
from tests.paper.synthetic.made_records import failing_trials, instant_trials, interrupted_trials

COMMANDS = {"demo": ["demo", "--jobs", "1"], "reproduce": ["reproduce", "synthetic"]}


def declare_radial(n_trials, seed=0):
    return [task for task in declare(n_trials, seed) if task[0].settings["data_set"] == "radial"]


@pytest.fixture
def whole(instant, monkeypatch):
    """All data sets."""
    monkeypatch.setattr(synthetic_study, "declare", declare)


@pytest.fixture(autouse=True)
def instant(monkeypatch):
    """Results at once, of one data set, and no pictures."""
    made_records.calls.clear()
    monkeypatch.setattr(synthetic_study, "declare", declare_radial)
    monkeypatch.setattr(synthetic_study, "run_synthetic_trials", instant_trials)
    monkeypatch.setattr(synthetic_figures, "draw_figures", lambda seed: [])
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(params=COMMANDS.values(), ids=COMMANDS)
def command(request):
    return request.param


# What it prints and writes


def test_ends_with_the_report(command, whole, tmp_path):
    folder = tmp_path / "new" / "out [bold] [/x] [1]"
    result = run(*command, "--trials", 2, "--out", folder)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1] == f"Report: {folder / 'report.html'}"
    assert str(folder / "trials.sqlite") in result.stdout.splitlines()[0]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "18 of the 18 accuracies" in page
    names = os.listdir(folder)
    assert {"report.html", "report.json", "trials.csv", "trials.sqlite"} <= set(names)
    assert not [name for name in names if name.startswith(".")]  # no scraps


def test_prints_a_table_and_neither_colors_nor_a_bar_into_a_pipe(command, whole, tmp_path):
    result = run(*command, "--trials", 3, "--out", tmp_path)
    for name in (*DATA_SETS, *SYSTEMS, "printed", "0.342 → 0.779"):
        assert name in result.stdout
    assert "\x1b" not in result.output
    assert "left:" not in result.output
    assert "…" not in result.stdout
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == len(DATA_SETS) * len(SYSTEMS)
    assert "0.342 → 0.799 ↑" in rows[0]
    assert "0.894 → 0.382 ↓" in rows[10]
    assert "0.342 → 0.342 " in rows[3]


def test_one_trial_claims_nothing(whole, tmp_path):
    result = run(*COMMANDS["demo"], "--trials", 1, "--out", tmp_path)
    table = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert not [line for line in table if "↑" in line or "↓" in line]
    assert "for 15 there are too few trials to decide" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


def test_csv_holds_every_trial(tmp_path):
    run(*COMMANDS["demo"], "--trials", 2, "--seed", 3, "--out", tmp_path)
    with (tmp_path / "trials.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(map(len, declare_radial(2)))
    assert {row["seed"] for row in rows} == {"3", "4"}


@pytest.mark.parametrize(
    ("arguments", "n_trials"),
    [
        (["demo", "--jobs", "1"], 3),
        (["reproduce", "synthetic"], 30),
        (["reproduce", "synthetic", "--quick"], 3),
        (["reproduce", "synthetic", "--quick", "--trials", "7"], 3),
    ],
)
def test_number_of_draws(arguments, n_trials, tmp_path):
    assert run(*arguments, "--out", tmp_path).exit_code == 0
    assert {trial.seed for trial in made_records.calls} == set(range(n_trials))


def test_jobs_are_handed_on(monkeypatch, tmp_path):
    seen = []

    def run_in_one(*arguments, n_jobs, **options):
        seen.append(n_jobs)
        return runner.run_experiment(*arguments, n_jobs=1, **options)

    monkeypatch.setattr(study, "run_experiment", run_in_one)
    for number, arguments in enumerate(
        (["demo"], ["reproduce", "synthetic"], ["reproduce", "synthetic", "--jobs", "2"])
    ):
        run(*arguments, "--trials", 1, "--out", tmp_path / str(number))
    assert seen == [-1, 1, 2]


# Going on


def test_a_second_run_does_no_work(command, tmp_path):
    for _ in range(2):
        assert run(*command, "--trials", 2, "--out", tmp_path).exit_code == 0
    assert len(made_records.calls) == sum(map(len, declare_radial(2)))


def test_fresh_starts_over(command, tmp_path):
    for options in ([], ["--fresh"]):
        assert run(*command, "--trials", 1, "--out", tmp_path, *options).exit_code == 0
    assert len(made_records.calls) == 2 * len(declare_radial(1))


def test_ctrl_c_and_on(command, monkeypatch, tmp_path):
    monkeypatch.setattr(synthetic_study, "run_synthetic_trials", interrupted_trials)
    result = run(*command, "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "Interrupted. Run the same command again to resume.\n"
    assert not (tmp_path / "report.html").exists()
    monkeypatch.setattr(synthetic_study, "run_synthetic_trials", instant_trials)
    assert run(*command, "--trials", 1, "--out", tmp_path).exit_code == 0
    assert len(made_records.calls) == len(set(made_records.calls)) == len(declare_radial(1))


def test_failures_are_told_and_the_report_is_written(command, monkeypatch, tmp_path):
    monkeypatch.setattr(synthetic_study, "run_synthetic_trials", failing_trials)
    result = run(*command, "--trials", 2, "--out", tmp_path)
    assert result.exit_code == 1
    head, *lines = result.stderr.splitlines()
    assert "4 trials failed; the same command tries them again:" in head
    first = "radial, as released, SF, reconstructed, seeds 0, 1: ZeroDivisionError: no luck"
    assert lines[0] == first
    assert all(len(line) < 120 for line in lines)
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path / 'report.html'}"
    assert "failed" in result.stdout
    assert (tmp_path / "report.html").exists()
    monkeypatch.setattr(synthetic_study, "run_synthetic_trials", instant_trials)
    assert run(*command, "--trials", 2, "--out", tmp_path).exit_code == 0


def test_results_of_another_version_are_refused(command, tmp_path):
    run(*command, "--trials", 1, "--out", tmp_path)
    with closing(sqlite3.connect(tmp_path / "trials.sqlite")) as connection, connection:
        connection.execute("UPDATE meta SET value = '0.0.1' WHERE name = 'covshift'")
    result = run(*command, "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    for words in ("covshift 0.0.1", f"covshift {__version__}", "--fresh", "trials.sqlite"):
        assert words in result.stderr
    assert run(*command, "--trials", 1, "--out", tmp_path, "--fresh").exit_code == 0


def test_results_in_use(tmp_path):
    folder = tmp_path / "out"
    run(*COMMANDS["demo"], "--trials", 1, "--out", folder)
    with closing(sqlite3.connect(folder / "trials.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        result = run(*COMMANDS["demo"], "--trials", 1, "--out", folder)
    assert result.exit_code == 1
    assert "is in use" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_worker_that_died_is_one_line(monkeypatch, tmp_path):
    def die(*arguments, **options):
        raise runner.WorkerDiedError("a worker process died: run the same again.")

    monkeypatch.setattr(study, "run_experiment", die)
    result = run(*COMMANDS["demo"], "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == "covshift demo: a worker process died: run the same again.\n"


# Bad arguments


@pytest.mark.parametrize("trials", [0, -3])
def test_no_trials(command, trials, tmp_path):
    result = run(*command, "--trials", trials, "--out", tmp_path)
    assert_one_line(result, f"covshift {command[0]}:", "--trials", str(trials))


@pytest.mark.parametrize("seed", [-1, 2**32 - 9])
def test_seed_out_of_range(command, seed, tmp_path):
    result = run(*command, "--trials", 10, "--seed", seed, "--out", tmp_path)
    assert_one_line(result, "--seed", str(seed))


def test_largest_seed(tmp_path):
    result = run(*COMMANDS["demo"], "--trials", 1, "--seed", 2**32 - 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("jobs", [0, -2])
def test_bad_jobs(jobs, tmp_path):
    for name in (["demo"], ["reproduce", "synthetic"]):
        assert_one_line(run(*name, "--jobs", jobs, "--out", tmp_path), "--jobs", str(jobs))


@pytest.mark.parametrize("out", ["", ".", " "])
def test_out_names_no_folder(command, out):
    assert_one_line(run(*command, "--out", out), "--out")


def test_out_is_a_file(command, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    assert_one_line(run(*command, "--out", file), str(file), "not a folder")
    assert file.read_text() == "mine"


def test_out_below_a_file(command, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert_one_line(run(*command, "--out", tmp_path / "file" / "out"), "cannot write", "--out")


def test_unwritable_folder_is_found_before_the_work(command, monkeypatch, tmp_path):
    # Permissions do not bind root, who may run these tests: the system's answer is feigned.
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert_one_line(run(*command, "--out", tmp_path), "Permission denied", str(tmp_path))
    assert made_records.calls == []


def test_a_full_disk_leaves_the_old_report_and_no_scraps(monkeypatch, tmp_path):
    run(*COMMANDS["demo"], "--trials", 1, "--out", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fill_the_disk(rows, file):
        file.write(b"half a ")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_write_csv", fill_the_disk)
    result = run(*COMMANDS["demo"], "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"covshift demo: cannot write to --out {tmp_path}: No space left on device."
    ]
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    del before["trials.sqlite"], after["trials.sqlite"]  # it notes the run
    assert after == before


def test_readings_have_a_report_of_their_own(tmp_path):
    result = run("reproduce", "readings", "--trials", 2, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == f"Report: {tmp_path / 'report.html'}"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for reading in ("as drawn", "printed loss", "published, H summed", "text, tied"):
        assert reading in page


def test_unknown_study(tmp_path):
    result = run("reproduce", "speeches", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "No such command 'speeches'" in result.stderr
    assert "--help" in result.stderr
    assert not (tmp_path / "out").exists()


def test_reproduce_alone_lists_the_studies():
    result = run("reproduce")
    assert result.exit_code == 2
    for name in ("synthetic", "readings"):
        assert name in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [["reproduce", "synthetic"], ["demo", "--trials", "many"], ["demo", "--wrong"]],
)
def test_usage_errors(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert "Traceback" not in result.output


# Extras


@pytest.mark.parametrize(
    ("package", "modules"),
    [("matplotlib", ["figures"]), ("jinja2", ["files", "page"])],
)
def test_missing_report_extra_is_found_before_the_work(package, modules, monkeypatch, tmp_path):
    for name in modules:
        monkeypatch.delattr(report, name, raising=False)
        monkeypatch.delitem(sys.modules, f"covshift.report.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    assert_one_line(run("demo", "--out", tmp_path), 'pip install "covshift[report]"', package)
    assert made_records.calls == []


def test_missing_pandas_is_found_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert_one_line(run("demo", "--out", tmp_path), 'pip install "covshift[cli]"', "pandas")
    assert made_records.calls == []


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_command_line_extra(package, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["covshift", *(["--help"] if package == "rich" else [])])
    parts = {(cli, "app"), (cli, "front_page")}
    own = {f"{parent.__name__}.{part}" for parent, part in parts}
    for name in list(sys.modules):
        if name.partition(".")[0] == "rich" or name in own:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    # The import that is expected to fail must not leave its traces in the packages.
    for parent, part in parts:
        monkeypatch.setattr(parent, part, getattr(parent, part, None), raising=False)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert package in output.err
    assert 'pip install "covshift[cli]"' in output.err


def test_other_import_errors_are_not_blamed_on_the_extra(monkeypatch):
    def broken():
        raise ModuleNotFoundError("No module named 'covshift.nonsense'", name="covshift.nonsense")

    monkeypatch.setattr(cli, "build_app", broken)
    with pytest.raises(ModuleNotFoundError, match="nonsense"):
        main()


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_main_runs_the_arguments_of_the_process(argument, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["covshift", argument])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    output = capsys.readouterr().out
    expected = [f"covshift {__version__}\n"] if argument == "--version" else ["demo", "reproduce"]
    assert all(words in output for words in expected)


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "covshift", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"covshift {__version__}\n")


def test_ctrl_c_while_it_starts(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build_app", interrupt)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 130


# The real thing


@pytest.mark.slow
def test_the_demo_itself(monkeypatch, tmp_path):
    monkeypatch.undo()
    result = run("demo", "--jobs", 1, "--trials", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Pictures of the first trial" in (tmp_path / "report.html").read_text(encoding="utf-8")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(file, *reports, **options):
    console = Console(file=file, width=100, **options)
    with trial_progress(console) as report:
        for numbers in reports:
            report(*numbers)
    return file.getvalue()


@pytest.mark.parametrize("options", [{}, {"force_terminal": True}])
def test_a_pipe_gets_nothing(options):
    assert shown(io.StringIO(), (0, 4, 0), (4, 4, 1), **options) == ""


def test_a_terminal_gets_a_bar_with_failures(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), (1, 4, 0), (4, 4, 2))
    assert "4/4" in text
    assert "2 failed" in text
    assert "left:" in text


def test_nothing_to_do_and_nothing_reported(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert "0/0" in shown(Terminal(), (0, 0, 0))
    shown(Terminal())


def test_earlier_work_says_nothing_of_the_speed(monkeypatch):
    """100 trials done before and 1 in 10 s: 9 more take 90 s."""
    monkeypatch.setenv("TERM", "xterm")
    time = 0.0
    bars = []

    class Bar(module.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, get_time=lambda: time, auto_refresh=False, **options)
            bars.append(self)

    monkeypatch.setattr(module, "Progress", Bar)
    with trial_progress(Console(file=Terminal())) as report:
        report(100, 111, 0)
        for done in (101, 102):
            time += 10.0
            report(done, 111, 0)
        assert bars[0].tasks[0].time_remaining == pytest.approx(90.0)
