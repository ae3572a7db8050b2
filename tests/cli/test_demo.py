"""What a person sees of `covshift demo`: output, files, messages, exit codes."""

import csv
import os
import sys

import pytest
from typer.testing import CliRunner

from covshift import __version__, cli, report
from covshift.cli import build_app, main
from covshift.cli import demo as command
from covshift.experiments.demo import DATA_SETS, NO_ADAPTATION, SYSTEMS, Trial

FILES = {"data-sets.png", "filters.png", "results.csv"}


def invoke(*arguments):
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


def fake_trials(n_trials, seed):
    """Instant results: SF helps on radial and harms on smooth, the rest does not change."""
    effect = {("radial", "SF"): 0.25, ("smooth", "SF"): -0.25}
    for data_set in DATA_SETS:
        for trial in range(seed, seed + n_trials):
            for system in SYSTEMS:
                yield Trial(data_set, system, trial, 0.5 + effect.get((data_set, system), 0.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "new" / "out [1]"


@pytest.fixture(scope="module")
def result(folder):
    return invoke("demo", "--trials", 1, "--seed", 3, "--out", folder)


def test_succeeds_and_names_the_folder_last(result, folder):
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1].endswith(str(folder))
    assert result.stderr == ""


def test_prints_a_table_and_no_progress_bar_into_a_pipe(result):
    for name in (*DATA_SETS, *SYSTEMS, "in the paper", "0.779 ± 0.03"):
        assert name in result.stdout
    assert "\x1b" not in result.stdout
    assert "%" not in result.stdout


def test_one_trial_claims_nothing(result):
    assert "single trial" in result.stdout
    assert "helps on" not in result.stdout


def test_writes_two_pngs_and_a_csv_and_nothing_else(result, folder):
    assert set(os.listdir(folder)) == FILES
    for name in FILES - {"results.csv"}:
        assert (folder / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_csv_holds_every_trial(result, folder):
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert list(rows[0]) == ["data_set", "system", "seed", "accuracy"]
    assert {(row["data_set"], row["system"]) for row in rows} == {
        (data_set, system) for data_set in DATA_SETS for system in SYSTEMS
    }
    assert {row["seed"] for row in rows} == {"3"}
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(command, "run_trials", fake_trials)
    monkeypatch.setattr(command, "FILTERS_SHOWN", (("radial", "SF"),))
    monkeypatch.setattr("covshift.report.figures.DPI", 20)


def test_reading_follows_from_the_numbers(quick, tmp_path):
    stdout = invoke("demo", "--trials", 3, "--out", tmp_path).stdout
    assert "SF: helps on radial; harms on smooth; no clear change on periodic, diagonal" in stdout
    assert "PSF: no clear change on radial, periodic, smooth, diagonal" in stdout


def test_marks_every_best_cell(quick, tmp_path):
    stdout = invoke("demo", "--trials", 3, "--out", tmp_path).stdout
    rows = {line.split()[1]: line for line in stdout.splitlines() if line.startswith("│")}
    stars = {name: [cell.count("*") for cell in rows[name].split("│")[2:5]] for name in DATA_SETS}
    assert stars["radial"] == [0, 1, 0]
    assert stars["periodic"] == [1, 1, 1]
    assert stars["smooth"] == [1, 0, 1]


def test_runs_again_over_its_own_output(quick, tmp_path):
    for _ in range(2):
        assert invoke("demo", "--trials", 1, "--out", tmp_path).exit_code == 0
    assert set(os.listdir(tmp_path)) == FILES


def assert_one_line(result, *words):
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize("trials", [0, -3])
def test_no_trials(trials, tmp_path):
    assert_one_line(invoke("demo", "--trials", trials, "--out", tmp_path), "--trials", str(trials))


@pytest.mark.parametrize("seed", [-1, 2**32 - 9])
def test_seed_out_of_range(seed, tmp_path):
    assert_one_line(invoke("demo", "--seed", seed, "--out", tmp_path), "--seed", str(seed))


def test_largest_seed(quick, tmp_path):
    result = invoke("demo", "--trials", 1, "--seed", 2**32 - 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output


def test_out_is_a_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    assert_one_line(invoke("demo", "--out", file), str(file), "not a folder")
    assert file.read_text() == "mine"


def test_out_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    assert_one_line(invoke("demo", "--out", tmp_path / "file" / "out"), "cannot write", "--out")


def test_unwritable_folder_is_found_before_the_work(monkeypatch, tmp_path):
    # Permissions do not bind root, who may run these tests: the system's answer is feigned.
    def refuse(dir):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert_one_line(invoke("demo", "--out", tmp_path), "Permission denied", str(tmp_path))


def test_failed_write_leaves_the_old_file_and_no_scraps(quick, monkeypatch, tmp_path):
    (tmp_path / "results.csv").write_text("old")

    def fail(results, file):
        file.write(b"half a ")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command, "_write_csv", fail)
    result = invoke("demo", "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"covshift demo: cannot write to --out {tmp_path}: No space left on device."
    ]
    assert os.listdir(tmp_path) == ["results.csv"]
    assert (tmp_path / "results.csv").read_text() == "old"


def test_ctrl_c(monkeypatch, tmp_path):
    def interrupt(n_trials, seed):
        yield Trial("radial", NO_ADAPTATION, 0, 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_trials", interrupt)
    result = invoke("demo", "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"
    assert os.listdir(tmp_path) == []


def test_missing_matplotlib_is_found_before_the_work(monkeypatch, tmp_path):
    monkeypatch.delattr(report, "figures", raising=False)
    monkeypatch.delitem(sys.modules, "covshift.report.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_one_line(invoke("demo", "--out", tmp_path), 'pip install "covshift[report]"')


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_extra(package, monkeypatch, capsys):
    for name in list(sys.modules):
        if (
            name in ("covshift.cli.demo", "covshift.cli.progress")
            or name.partition(".")[0] == "rich"
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    # The import that is expected to fail must not leave its traces in the package.
    monkeypatch.setattr(cli, "demo", command, raising=False)
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
    expected = f"covshift {__version__}\n" if argument == "--version" else "demo"
    assert expected in capsys.readouterr().out
