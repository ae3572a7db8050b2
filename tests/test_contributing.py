"""CONTRIBUTING.md says how to add an adapter: here somebody does what it says, in a copy."""

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from covshift import AdaptedClassifier, NothingToAdaptWarning, stack_domains
from tests.estimators import PAGE, TransferComponents, class_code, record_codes

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "docs", "README.md", "CONTRIBUTING.md", "pyproject.toml", "conftest.py")
BUILT = ("__pycache__", "_build", "gallery", "generated", "results")


class Checkout:
    """A copy of the repository, and the commands that run in it."""

    def __init__(self, folder):
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns(*BUILT)
                shutil.copytree(ROOT / name, folder / name, ignore=ignore)
            else:
                shutil.copy(ROOT / name, folder / name)

    def add(self, class_name, record_code):
        """Write the class to the file that the page names, and its record to the registry."""
        before = PAGE[: PAGE.index(class_code(class_name))]
        path = self.folder / re.findall(r"`(src/covshift/\w+/\w+\.py)`", before)[-1]
        assert not path.exists()
        path.write_text(class_code(class_name), encoding="utf-8")
        after = PAGE[PAGE.index(class_code(class_name)) :]
        place = r"goes to the end of `BUILT_IN` in `(src/covshift/registry\.py)`"
        registry = self.folder / re.search(place, after)[1]
        start, built_in, rest = registry.read_text().partition("\nBUILT_IN: ")
        records, end, rest = rest.partition("\n)\n")
        record = "".join(f"\n    {line}" for line in f"{record_code.strip()},".splitlines())
        registry.write_text(start + built_in + records + record + end + rest)

    def run(self, *arguments):
        """Run Python with the copy's package; return what it printed."""
        settings = {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "80",
        }
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_from_page(self, pattern):
        """Run the command of the page that matches."""
        (line,) = re.findall(rf"^    \.venv/bin/python (.*{pattern}.*)$", PAGE, flags=re.MULTILINE)
        return self.run(*shlex.split(line))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    copy = Checkout(tmp_path_factory.mktemp("checkout"))
    adapter, weights = record_codes()
    copy.add("TransferComponents", adapter)
    copy.add("GaussianWeights", weights)
    copy.run_from_page(r"docs/adapter_tables\.py")
    return copy


def count_passed(report):
    """Number of tests that passed; the others, if any, were skipped."""
    return int(re.search(r"(\d+) passed(, \d+ skipped)?, \d+ deselected in ", report)[1])


def test_the_adapter_passes_the_contract(checkout):
    assert count_passed(checkout.run_from_page("TransferComponents or tca")) > 100


def test_the_weight_estimator_passes_the_contract(checkout):
    assert count_passed(checkout.run_from_page("GaussianWeights or gaussian")) > 50


def test_the_documentation_has_the_adapter(checkout):
    for page in ("docs/guide/adapters.md", "docs/reference/adapter-names.md"):
        assert "| `tca` | " in (checkout.folder / page).read_text(encoding="utf-8")
    reference = (checkout.folder / "docs/reference/adapters.rst").read_text(encoding="utf-8")
    assert "\n   adapters.transfer_components.TransferComponents\n" in reference


def test_the_new_files_are_clean(checkout):
    pytest.importorskip("ruff")
    checkout.run("-m", "ruff", "check", "--no-cache", "src")
    checkout.run("-m", "ruff", "format", "--no-cache", "--check", "src")


def test_the_commands_know_the_adapter(checkout, tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("train", 0.0), ("new", 3.0)):
        rows = rng.normal(loc=[0, 0, shift], size=(60, 3))
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "y"])
            writer.writerows([*row.round(3), "yes" if row[0] > 0 else "no"] for row in rows)
    train, new, model, out = (
        tmp_path / name for name in ("train.csv", "new.csv", "m.skops", "p.csv")
    )
    commands = [
        ["adapt", "--help"],
        ["adapt", train, new, "--label", "y", "--adapter", "tca", "--out", model],
        ["predict", model, new, "--out", out],
    ]
    program = f"""
import sys
from covshift.cli import main
for command in {[[str(word) for word in command] for command in commands]!r}:
    sys.argv = ["covshift", *command]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""
    said = checkout.run("-c", program)
    shown = " ".join(said.replace("│", " ").split())
    assert re.search(r"Or one by name: none, .*, tca, gaussian-weights\.", shown)
    assert f"Model: {model}" in said
    assert "Rows predicted: 60" in said
    assert len(out.read_text().splitlines()) == 61


def test_leaderboard_and_diagnosis_have_the_adapter(checkout):
    program = """
import warnings
warnings.simplefilter("ignore")  # of small problems
from sklearn.linear_model import LogisticRegression
from covshift import AutoAdaptedClassifier, diagnose
from tests.shifted import make_problem
X, y, sample_domain, _ = make_problem(n=15)
quick = {"max_rows": 50, "time_budget": 0}  # candidates do not depend on scores and evidence
model = AutoAdaptedClassifier(random_state=0, **quick).fit(X, y, sample_domain=sample_domain)
scored = AutoAdaptedClassifier(candidates=[("tca", LogisticRegression())], max_rows=50)
scored.fit(X, y, sample_domain=sample_domain)  # in all scenes
(row,) = [row for row in scored.leaderboard_ if row["adapter"] == "tca"]
assert -1 < row["expected gain"] < 1, row
(row,) = [row for row in model.leaderboard_ if row["adapter"] == "tca"]
assert row["candidate"] == "tca + logistic", row
assert row["disqualified"] is None, row
found = diagnose(X, y, sample_domain=sample_domain, **quick)
assert "tca + logistic" in [one.name for one in found._bench.candidates]
(row,) = [row for row in found.table if row["adapter"] == "tca"]
print(row["assumption"])
"""
    assert checkout.run("-c", program) == (
        "The label depends on directions in which source and target have the same mean.\n"
    )


# The class that the page shows does what its docstring says.


def nuisance(n_rows, shift, rng):
    """Rows whose label is in one direction, with a shift in another one."""
    y = rng.integers(0, 2, n_rows)
    X = rng.normal(scale=0.5, size=(n_rows, 4))
    X[:, 0] += 2 * y - 1
    # In the source the shifted feature follows the label, so that a plain model relies on it.
    X[:, 1] += shift if shift else 2 * y - 1
    return X, y


def test_components_keep_variance_where_means_agree():
    rng = np.random.default_rng(0)
    X_source, y_source = nuisance(300, 0, rng)
    X_target, y_target = nuisance(300, 5, rng)
    X, y, sample_domain = stack_domains(X_source, y_source, X_target)
    adapter = TransferComponents().fit(X, sample_domain=sample_domain)
    Z_source, Z_target = adapter.transform(X_source), adapter.transform(X_target)
    assert Z_source.shape == (300, 2)
    moved = np.abs(Z_source.mean(axis=0) - Z_target.mean(axis=0)) / Z_source.std(axis=0)
    assert moved.max() < 0.1
    scores = [
        AdaptedClassifier(one, LogisticRegression())
        .fit(X, y, sample_domain=sample_domain)
        .score(X_target, y_target)
        for one in (None, TransferComponents())
    ]
    assert scores[0] < 0.6
    assert scores[1] > 0.9


def test_without_a_target_they_are_principal_components():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 3]
    with pytest.warns(NothingToAdaptWarning, match="principal components"):
        adapter = TransferComponents().fit(X)
    directions = np.linalg.svd(X - X.mean(axis=0))[2][:2]
    cosines = np.abs(np.sum(adapter.components_ * directions, axis=1))
    np.testing.assert_allclose(cosines, np.linalg.norm(adapter.components_, axis=1))


@pytest.mark.parametrize(("value", "match"), [(0, "n_components"), (4, "more than the 3 features")])
def test_bad_numbers_of_components(value, match):
    with pytest.raises(ValueError, match=match):
        TransferComponents(value).fit(np.eye(3), sample_domain=[0, 0, -1])
