"""Kills, environments, extremes, licenses and releases: the parts that need no long run."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import environments
import extremes
import kill_and_resume
import kill_monitors
import pytest
import release_check
import supply_chain
import thread_storm

from covshift.studies.store import open_store
from covshift.studies.trial import TaskOutcome, Trial

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# A study of 20 results that takes up its work again; a flaw is a result that depends on the kill.
STUDY = """
import pathlib, sqlite3, sys, time
out, flawed = pathlib.Path(sys.argv[1]), sys.argv[2] == "flawed"
out.mkdir(exist_ok=True)
store = sqlite3.connect(out / "trials.sqlite")
store.execute("CREATE TABLE IF NOT EXISTS trials (key INTEGER PRIMARY KEY, run INTEGER)")
run = store.execute("SELECT COALESCE(MAX(run), 0) + 1 FROM trials").fetchone()[0]
for key in range(20):
    if not store.execute("SELECT 1 FROM trials WHERE key = ?", (key,)).fetchone():
        store.execute("INSERT INTO trials VALUES (?, ?)", (key, run))
        store.commit()
        time.sleep(0.02)
rows = store.execute("SELECT key, run FROM trials ORDER BY key").fetchall()
text = "".join(f"{key},{run if flawed else 0}\\n" for key, run in rows)
(out / "trials.csv").write_text(text)
"""


@pytest.mark.parametrize(("kind", "code"), [("good", 0), ("flawed", 1)])
def test_tables_after_kills_are_compared(kind, code, monkeypatch, capsys):
    def command_line(out, options):
        return [sys.executable, "-c", STUDY, str(out), kind]

    monkeypatch.setattr(kill_and_resume, "command_line", command_line)
    assert kill_and_resume.main(["--kills", "2"]) == code
    out = capsys.readouterr().out
    assert f"2 kills with results missing, 20 results, 1 tables, {code} of them differ." in out


def test_stored_results_are_counted(tmp_path):
    assert kill_and_resume.count_stored(tmp_path) == 0
    with closing(sqlite3.connect(tmp_path / "trials.sqlite")) as store:
        assert kill_and_resume.count_stored(tmp_path) == 0
        store.execute("CREATE TABLE trials (key TEXT)")
        store.execute("INSERT INTO trials VALUES ('a')")
        store.commit()
    assert kill_and_resume.count_stored(tmp_path) == 1


def test_results_are_counted_while_a_study_holds_its_file(tmp_path):
    assert kill_and_resume.count_stored(tmp_path) == 0
    with open_store(tmp_path / "trials.sqlite") as store:
        trials = [Trial("an experiment", {"number": number}, 0) for number in range(2)]
        store.save(trials, TaskOutcome(0, ["{}", "{}"], None, None, [], 1.0))
        assert kill_and_resume.count_stored(tmp_path) == 2


def test_the_command_is_one_of_covshift(tmp_path):
    options = argparse.Namespace(trials=3, seed=0, jobs=2)
    command = kill_and_resume.command_line(tmp_path, options)
    assert command[1:5] == ["-m", "covshift", "reproduce", "synthetic"]


def test_lowest_versions_are_those_declared():
    lowest = environments.lowest_versions(PROJECT)
    assert {"numpy==1.26", "scipy==1.13", "scikit-learn==1.6", "pandas==2.2"} <= set(lowest)
    assert all(one.count("==") == 1 and "[" not in one for one in lowest)
    with pytest.raises(SystemExit, match="numpy<3"):
        environments.lowest_versions({**PROJECT, "dependencies": ["numpy<3"]})


def test_tools_that_do_not_allow_the_lowest_versions_are_left_out():
    tools = environments.tools_beside_floors(PROJECT)
    assert any(text.startswith("pytest>=") for text in tools)
    assert not any(text.startswith(("covshift", "skada")) for text in tools)


@pytest.mark.parametrize("optional", [True, False])
def test_a_machine_without_pytorch(optional, tmp_path, monkeypatch, capsys):
    def fails(*args):
        raise subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(environments, "make_environment", fails)
    command = ["torch", "--place", str(tmp_path)]
    if optional:
        assert environments.main([*command, "--if-available"]) == 0
        assert "its tests are not run" in capsys.readouterr().out
    else:
        with pytest.raises(subprocess.CalledProcessError):
            environments.main(command)


def test_suites_find_the_benchmarks_in_child_processes(monkeypatch):
    def run(command, **options):
        places = options["env"]["PYTHONPATH"].split(os.pathsep)
        found = all(
            (Path(place) / name).is_dir() for place, name in zip(places, packages, strict=True)
        )
        return subprocess.CompletedProcess(command, int(not found))

    packages = ("covshift", "covshift_bench")
    monkeypatch.setattr(environments.subprocess, "run", run)
    assert environments.run_suite(Path(sys.executable), "this one", [])


def test_this_python_is_found():
    found = environments.find_pythons()
    assert all(path.exists() for path in found.values())
    assert set(found) <= set(environments.VERSIONS)


@pytest.mark.parametrize(
    ("code", "errors", "refusal", "good"),
    [
        (0, "", "", True),
        (0, "", "holds bytes", False),
        (1, "covshift predict: a.csv: holds bytes.\n", "holds bytes", True),
        (1, "covshift predict: a.csv: holds bytes.\n", "", False),
        (1, "covshift: needs rich, which is not installed\n", "holds bytes", False),
        (1, "Traceback (most recent call last)\nholds bytes\n", "holds bytes", False),
        (-9, "", "holds bytes", False),
    ],
)
def test_ends_of_extreme_cases(code, errors, refusal, good):
    words, found = extremes.describe(extremes.Ended(code, "", errors, 0.0, 0.0), refusal)
    assert found == good
    assert words


def test_threads_that_agree_and_threads_that_do_not(tmp_path, monkeypatch):
    from covshift import DomainStandardScaler

    assert thread_storm.storm(DomainStandardScaler(), 2, tmp_path) == []
    calls = []

    def differ(model, X_new):
        calls.append(1)
        return [bytes(len(calls))]

    monkeypatch.setattr(thread_storm, "outputs", differ)
    assert len(thread_storm.storm(DomainStandardScaler(), 2, tmp_path)) == 2


def test_the_bill_of_materials_names_every_dependency():
    packages = supply_chain.closure("covshift", set())
    bill = json.loads(json.dumps(supply_chain.as_sbom(packages)))
    assert bill["bomFormat"] == "CycloneDX"
    names = {one["name"] for one in bill["components"]}
    assert {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"} <= names
    assert "pandas" not in names  # of an extra
    references = {one["bom-ref"] for one in bill["components"]}
    own = bill["metadata"]["component"]
    assert own["name"] == "covshift"
    (depends,) = [one for one in bill["dependencies"] if one["ref"] == own["bom-ref"]]
    assert set(depends["dependsOn"]) <= references
    assert all(one["licenses"][0]["license"]["name"] != "not stated" for one in bill["components"])


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("BSD-3-Clause", True),
        ("MIT License", True),
        ("Apache-2.0 OR BSD-2-Clause", True),
        ("PSF-2.0", True),
        ("GPL-3.0-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("BSD-3-Clause AND GPL-2.0", False),
        ("not stated", False),
    ],
)
def test_licenses(text, good):
    assert supply_chain.is_permissive(text) == good


def test_a_release_needs_its_version_in_every_file():
    changelog, citation = "## 1.2.0 - 2026-11-18\n", "version: 1.2.0\n"
    recipe = '  version: "1.2.0"\n'
    assert release_check.missing_statements("1.2.0", changelog, citation, recipe) == []
    assert len(release_check.missing_statements("1.3.0", changelog, citation, recipe)) == 3
    assert release_check.version_of('__version__ = "1.2.0"') == "1.2.0"


def test_the_recipe_has_the_requirements_of_the_package():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    needed = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["models"]
    needed += [
        one for one in PROJECT["optional-dependencies"]["cli"] if not one.startswith("covshift[")
    ]
    for requirement in needed:
        name, _, version = requirement.partition(">=")
        assert f"    - {name} >={version}\n" in recipe
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe


JUDGED = {
    "no access": [{"name": "a", "skip_reason": "Dependency not found on PyPI"}],
    "clean": [{"name": "a", "version": "1", "vulns": []}],
    "vulnerable": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-0"}]}],
}


@pytest.mark.parametrize(
    ("control", "packages", "code", "says"),
    [
        ("no access", "no access", 1, "Not audited: pip-audit could not judge 1 of 1."),
        ("clean", "clean", 1, "Not audited: pip-audit finds nothing in jinja2"),
        ("vulnerable", "no access", 1, "Not audited"),
        ("vulnerable", "vulnerable", 1, "known vulnerabilities in 1: a 1"),
        ("vulnerable", "clean", 0, "1 packages, known vulnerabilities in 0"),
        ("nothing", "clean", 1, "Not audited: pip-audit fails: no output"),
    ],
)
def test_an_audit_counts_only_with_access(control, packages, code, says, monkeypatch, capsys):
    def run(command, **options):
        about = control if "jinja2" in Path(command[-1]).read_text() else packages
        found = json.dumps({"dependencies": JUDGED[about]}) if about in JUDGED else ""
        return subprocess.CompletedProcess(command, 0, found, "")

    monkeypatch.setattr(supply_chain.subprocess, "run", run)
    monkeypatch.setattr(
        supply_chain, "closure", lambda *given: {"covshift": None, "a": SimpleNamespace(version=1)}
    )
    assert supply_chain.main(["audit"]) == code
    assert says in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_histories_survive_kills(tmp_path):
    options = argparse.Namespace(batches=200, processes=2, kills=4, seed=0)
    path = tmp_path / "history.jsonl"
    # On a fast machine a process may end before its turn to be killed.
    assert 1 <= kill_monitors.run(options, path) <= 4
    assert kill_monitors.check(path, 200) == []
    text = path.read_text(encoding="utf-8")
    first, *rest = text.splitlines(keepends=True)
    path.write_text(first + text, encoding="utf-8")
    assert kill_monitors.check(path, 200) == ["1 lines are doubled."]
    path.write_text("".join(rest), encoding="utf-8")
    assert kill_monitors.check(path, 60) == ["1 batches are lost."]
    path.write_text(text[:-5], encoding="utf-8")
    assert kill_monitors.check(path, 60) == ["A line is torn."]
