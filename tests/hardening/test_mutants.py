"""Mutants: what is changed, what is left alone, and how a sample is drawn."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import mutate
import pytest
from mutants import find_mutants, sample_mutants

SOURCE = '''
"""A docstring with 1 < 2."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    LIMIT = 1 + 1


@decorated(3)
def f(x: "1 + 2", *, n=4) -> "5 + 6":
    """Compare 1 and 2."""
    if x < n and not (x == 0):
        raise ValueError(f"{x + 1} is é")
    values[0] = max(x, -n, key=abs)
    for a, b in zip(x, x, strict=True):
        continue
    return [é, x ** 2] if x else (x) >= (n)
'''


def changed_lines():
    found = {}
    for mutant in find_mutants("m.py", SOURCE):
        if mutant.is_another_program(SOURCE):
            text = mutant.apply(SOURCE)
            ast.parse(text)
            (line,) = set(text.splitlines()) - set(SOURCE.splitlines()) or {"pass"}
            found.setdefault(mutant.operator, []).append(line.strip())
    return found


def test_every_operator():
    found = changed_lines()
    assert "if x <= n and not (x == 0):" in [" ".join(one.split()) for one in found["comparison"]]
    assert "if x < n or not (x == 0):" in found["and-or"]
    assert "if x < n and (x == 0):" in found["not"]
    assert "values[0] = min(x, -n, key=abs)" in found["opposite"]
    assert "values[0] = max(x, (n), key=abs)" in found["sign"]
    assert "values[1] = max(x, -n, key=abs)" in found["number"]
    assert "values[0] = max(x, -n, )" in found["keyword"]
    assert "return [é, x * 2] if x else (x) >= (n)" in found["arithmetic"]
    assert "return [é, x ** 2] if (not (x)) else (x) >= (n)" in found["condition"]
    assert "return [é, x ** 2] if x else (x) > (n)" in [
        " ".join(one.split()) for one in found["comparison"]
    ]
    assert len(found["statement"]) == 3  # the error, the assignment to an entry, continue


def test_texts_annotations_and_decorators_are_left_alone():
    for mutant in find_mutants("m.py", SOURCE):
        text = SOURCE.splitlines()[mutant.line - 1]
        assert "docstring" not in text
        assert "@decorated" not in text
        assert mutant.before not in ("strict=True", "True")
        if "def f" in text:
            assert mutant.before == "4"
        if "raise" in text:
            assert mutant.operator == "statement"


def test_samples_are_the_same_again_and_take_turns(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(SOURCE, encoding="utf-8")
    draw = [sample_mutants(tmp_path, ["one", "two"], count, seed=1) for count in (6, 6, 4)]
    assert draw[0] == draw[1]
    assert draw[0][:4] == draw[2]
    assert [one.module for one in draw[0]] == ["one/m.py", "two/m.py"] * 3
    assert sample_mutants(tmp_path, ["one", "two"], 6, seed=2) != draw[0]
    assert len({one.key for one in draw[0]}) == 6
    assert not sample_mutants(tmp_path, ["one"], 6, seed=1, left_out=["one/m.py"])


MODULE = '''
def larger(a, b):
    """Return the larger number."""
    return a if a > b else b


def never_tested(a):
    return a + 1
'''
TEST = """
from covshift.kernels.made import larger

def test_larger():
    assert larger(1, 2) == larger(2, 1) == 2
"""


# In a process of its own: children are copies of it, and must not have imported the package.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import hypothesis, mutate
hypothesis.settings.register_profile("mutants")
mutate.ROOT, mutate.COPIED = Path(sys.argv[2]), ("src", "tests")
mutate.load_libraries = lambda: None
sys.exit(mutate.main(sys.argv[3:]))
"""


@pytest.fixture
def project(tmp_path):
    """A project of one module and one test."""
    package = tmp_path / "src" / "covshift" / "kernels"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "made.py").write_text(MODULE)
    tests = tmp_path / "tests" / "kernels"
    tests.mkdir(parents=True)
    (tests / "test_made.py").write_text(TEST)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path


def run_mutate(project, *options):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", DRIVER, str(Path(mutate.__file__).parent), str(project)]
    command += ["--packages", "kernels", "--tests", "tests/kernels", "--count", "100"]
    command += ["--out", str(project / "out"), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", [[], ["--by-name"]], ids=["by coverage", "by name"])
def test_a_run_notices_what_tests_notice_and_can_be_resumed(project, way):
    before = {path: path.read_bytes() for path in (project / "src").rglob("*.py")}
    ended = run_mutate(project, "--at-least", "0.99", *way)
    assert ended.returncode == 1, ended.stderr  # one function has no test
    path = project / "out" / "results.jsonl"
    results = list(mutate.read_results(path).values())
    status = {(one["line"], one["after"].strip()): one["status"] for one in results}
    assert status[4, "<="] == "killed"
    assert status[4, ">="] == "survived"  # of equal numbers either is the larger
    assert status[8, "-"] == "survived"
    assert "made.py:8" in ended.stdout
    path.write_text("\n".join(map(json.dumps, results[:-1])) + '\n{"key": "cut')
    # As a run that was killed leaves the copy.
    copy = project / "out" / "tree-0" / "src" / "covshift" / "kernels" / "made.py"
    copy.write_text("raise SystemError")
    again = run_mutate(project, "--at-least", "0.2", "--jobs", "2", *way)
    assert again.returncode == 0, again.stderr
    last = json.loads(path.read_text().splitlines()[-1])  # the one that was missing
    assert [last[name] for name in ("key", "status")] == [
        results[-1][name] for name in ("key", "status")
    ]
    assert list(mutate.read_results(path)) == [one["key"] for one in results]
    assert {path: path.read_bytes() for path in (project / "src").rglob("*.py")} == before
    # Where no test can run, mutants are not noticed: the run ends.
    path.unlink()
    (project / "out" / "source" / "tests" / "conftest.py").write_text("raise ImportError")
    broken = run_mutate(project, *way)
    assert broken.returncode == 1
    assert "Tests fail without a mutant" in broken.stderr
    assert not mutate.read_results(path)


def test_the_score_and_its_interval():
    known = [
        {"module": "kernels/a.py", "operator": "sign", "text": "t", "before": "b", "after": "a"}
    ]
    made = {**known[0], "line": 1}
    results = [{**made, "status": "killed"}] * 8 + [{**made, "status": "survived"}]
    results += [{**made, "text": "other", "status": "survived"}]
    text, share = mutate.summarize(results, known)
    assert share == pytest.approx(8 / 9)
    assert "8 of 10 noticed, 80.0% (49.0% to 94.3%)" in text  # Wilson's, by hand
    assert text.count("survived: kernels/a.py:1") == 1
