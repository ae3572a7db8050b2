"""Tests mirror the source: the folder of a file's tests is named as the folder of the file."""

import ast
import re
from pathlib import Path

import pytest

import covshift

ROOT = Path(covshift.__file__).parent
TESTS = Path(__file__).parent
NO_MIRROR = {"benchmarks", "fixtures", "hardening", "twins"}  # not of the package's folders
# Files without a test that names them: what they do shows only through others.
THROUGH = {
    "kernels/gaussian_kernels.py": "weights/test_kmm.py",
    "measures/sample_checks.py": "test_bad_input.py",
    "paper/commands.py": "paper/speech/test_command.py",
    "paper/command_runs.py": "paper/speech/test_command.py",
    "predictors/_gaussian_classifier.py": "predictors/test_lsp_classifier.py",
    "predictors/gaussian_kernel_ridge.py": "selection/test_label_tasks.py",
    "tables/model_updates.py": "cli/test_monitor.py",
    "tables/monitoring_words.py": "cli/test_monitor.py",
}


def folders_of(root):
    return {path.parent.relative_to(root).as_posix() for path in root.rglob("*.py")} - {"."}


def public_names(path):
    """Functions, classes and constants of a file that others may use."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for one in targets if isinstance(one, ast.Name))


def uses(path, test):
    """Whether a test names a file, or something in it."""
    text = test.read_text(encoding="utf-8")
    name = ".".join(("covshift", *path.relative_to(ROOT).with_suffix("").parts))
    names = [one for one in public_names(path) if not one.startswith("_")]
    return re.search(rf"\b({'|'.join(map(re.escape, [name, *names]))})\b", text) is not None


def mirrored_tests(path):
    """Test files in the folder that mirrors that of a source file."""
    folder = TESTS / path.parent.relative_to(ROOT)
    return sorted(folder.glob("test_*.py")) if folder.is_dir() else []


FILES = {
    path.relative_to(ROOT).as_posix(): path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py", "_version.py")
}


def test_folders_are_the_same():
    known = {one for one in folders_of(TESTS) if one.split("/")[0] not in NO_MIRROR}
    assert known <= folders_of(ROOT)


@pytest.mark.parametrize("name", sorted(FILES.keys() - THROUGH.keys()))
def test_a_file_has_tests_in_its_folder(name):
    path = FILES[name]
    if path.parent.name == "commands":  # they run as programs, by their names
        command = path.stem.replace("_", "-")
        texts = [test.read_text(encoding="utf-8") for test in (TESTS / "cli").glob("test_*.py")]
        assert any(f'"{command}"' in text for text in texts), f"nothing runs covshift {command}"
        return
    tests = mirrored_tests(path)
    own = [one for one in tests if one.stem == f"test_{path.stem}"]
    assert own or any(uses(path, one) for one in tests), f"no test of {name}"


@pytest.mark.parametrize("name", THROUGH)
def test_exceptions_are_needed(name):
    assert not any(uses(FILES[name], one) for one in mirrored_tests(FILES[name]))
    assert (TESTS / THROUGH[name]).is_file()
