"""Adapters of other packages: registered by an entry point, usable by name, harmless if broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import covshift
from covshift.registry import MODEL_NAMES
from tests.cli.user_files import make_tables

ADAPTER = '''
import numpy as np
from covshift.base import DomainTransformer
from covshift.registry import AdapterRecord


class RoleCentering(DomainTransformer):
    """Subtract from each row the mean of its role."""

    def fit(self, X, y=None, *, sample_domain=None, label_mask=None):
        X, target = np.asarray(X), np.asarray(sample_domain) < 0
        self.means_ = np.stack([X[~target].mean(axis=0), X[target].mean(axis=0)])
        return self

    def transform(self, X, *, sample_domain=None, allow_source=False):
        X = np.asarray(X)
        domain = np.full(len(X), -1) if sample_domain is None else np.asarray(sample_domain)
        return X - self.means_[(domain < 0).astype(int)]


def make_record(name, **more):
    described = {
        "path": "role_centering:RoleCentering",
        "title": "means of source and target subtracted",
        "assumption": "The rows of both roles have moved as a whole.",
        "fixes": "Offsets that differ between source and target.",
        "harms": "Class proportions differ between source and target.",
        "automatic": ("logistic",),
    }
    return AdapterRecord(name=name, **(described | more))


RECORD = make_record("role-centering")
'''
TRUST = "--trust role_centering.RoleCentering"
# Name of the entry point: its module, and what the warning says.
BROKEN = {
    "import-error": ("import no_such_module", "No module named 'no_such_module'"),
    "ends-the-process": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "two-lines": ("raise ValueError('one\\ntwo')", "ValueError: one two"),
    "no-record": ("", "has no attribute 'RECORD'"),
    "wrong-type": ("RECORD = dict(name='x')", "expected an AdapterRecord, got dict"),
    "taken": ("RECORD = make_record('coral')", "the adapter name 'coral' is already in use"),
    "taken-alias": (
        "RECORD = make_record('mine', aliases=('standardise',))",
        "'standardise' is already in use",
    ),
    "means-something-else": ("RECORD = make_record('auto')", "'auto' is already in use"),
    "means-rows": ("RECORD = make_record('raw')", "'raw' is already in use"),
    "upper-case": ("RECORD = make_record('Mine')", "name must be lower-case letters"),
    "candidate": ("RECORD = make_record('mine+rbf')", "name must be lower-case letters"),
    "odd-path": ("RECORD = make_record('mine', path='role_centering')", "got 'role_centering'"),
    "text-for-count": ("RECORD = make_record('mine', max_features='40')", "got '40'"),
    "no-count": ("RECORD = make_record('mine', n_outputs=0)", "n_outputs must be a whole number"),
    "text-for-tuple": ("RECORD = make_record('mine', aliases='abc')", "aliases must be a tuple"),
    "no-sentence": ("RECORD = make_record('mine', assumption='')", "assumption must be a text"),
    "no-bool": ("RECORD = make_record('mine', streams='no')", "streams must be True or False"),
    "no-mapping": ("RECORD = make_record('mine', settings=[1])", "settings must be a mapping, or"),
    "unknown-kind": ("RECORD = make_record('mine', kind='weight')", "got 'weight'"),
    "unknown-model": (
        "RECORD = make_record('mine', automatic=('deep',))",
        f"automatic must be a tuple of {', '.join(MODEL_NAMES)}, got ('deep',)",
    ),
    "no-tuple": ("RECORD = make_record('mine', automatic='rbf')", "got 'rbf'"),
    "bad-steps": ("RECORD = make_record('mine', before=('scaled',))", "got ('scaled',)"),
}

# The same for what shows when an adapter is first built: reading records imports no class.
BROKEN_AT_USE = {
    "no-module": ("path='no_such_module:Other'", "No module named 'no_such_module'"),
    "no-class": ("path='role_centering:Other'", "'Other'"),
    "no-adapter": ("path='fractions:Fraction'", "fractions:Fraction has no fit and transform"),
    "wrong-kind": ("kind='weights'", "no fit and score_weights"),
    "bad-settings": ("settings={'q': 1}", "takes no arguments"),
    "some-sizes": ("settings=lambda size: {} if size.n_source < 1 else 1 / 0", "division by zero"),
    "odd-settings": ("settings=lambda size: 1", "settings(size) must return a mapping, got 1"),
}


def install(folder, name, code):
    """Put a module into a folder on Python's path, with the metadata that pip would write."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[covshift.adapters]\n{name} = {module}:RECORD\n")


def run(folder, *arguments, code=0):
    """Run Python where the packages of a folder are installed."""
    paths = [str(folder), str(Path(covshift.__file__).parents[1])]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def run_commands(folder, *commands):
    """Run commands one after the other in one process; how each ends, and how many files of
    predictions there are then."""
    program = f"""
import contextlib, io, json, pathlib, sys
from covshift.cli import main
ends = []
for command in {[command.split() for command in commands]!r}:
    sys.argv, out, err, code = ["covshift", *command], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    n_files = len(list(pathlib.Path().glob("p.csv")))
    ends.append(dict(code=code, stdout=out.getvalue(), stderr=err.getvalue(), files=n_files))
print(json.dumps(ends))
"""
    return json.loads(run(folder, "-c", program).stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with one plug-in, two tables, and a model made with the plug-in."""
    folder = tmp_path_factory.mktemp("installed")
    install(folder, "role-centering", ADAPTER)
    tables = make_tables()
    tables["train"].drop(columns="site").to_csv(folder / "train.csv", index=False)
    tables["new"].drop(columns="site").to_csv(folder / "new.csv", index=False)
    adapt = "adapt train.csv new.csv --label churned --adapter role-centering --out model.skops"
    done = run(folder, "-m", "covshift", *adapt.split())
    assert done.stderr == ""
    assert done.stdout.endswith(
        "Model: model.skops\nThe model file holds types of other packages. "
        "Commands that read it need: "
        f"{TRUST}\n"
    )
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A folder with all broken plug-ins, and some that are well."""
    folder = tmp_path_factory.mktemp("broken")
    for name, (code, _) in BROKEN.items():
        install(folder, name, f"from role_centering import make_record\n{code}\n")
    for name, (options, _) in BROKEN_AT_USE.items():
        made = (
            f"from role_centering import make_record\nRECORD = make_record({name!r}, {options})\n"
        )
        install(folder, name, made)
    install(folder, "role-centering", ADAPTER)
    several = "[make_record('first'), make_record('coral'), make_record('last')]"
    install(folder, "several", f"from role_centering import make_record\nRECORD = {several}\n")
    make_tables()["train"].iloc[60:140].to_csv(folder / "train.csv", index=False)  # of both sites
    return folder


def test_a_plug_in_is_used_like_any_other_adapter(installed):
    program = """
import json, warnings
warnings.simplefilter("ignore")  # of small problems
from covshift import AdaptedClassifier, AutoAdaptedClassifier, diagnose
from covshift.registry import names
from tests.shifted import make_problem
X, y, sample_domain, X_new = make_problem(n=15)
where = {"sample_domain": sample_domain}
quick = {"max_rows": 50, "time_budget": 0}  # candidates do not depend on scores and evidence
named = AdaptedClassifier("role-centering").fit(X, y, **where)
model = AutoAdaptedClassifier(random_state=0, **quick).fit(X, y, **where)
found = diagnose(X, y, **quick, **where)
print(json.dumps({
    "names": names(),
    "classes": named.classes_.tolist(),
    "rows": [row for row in model.leaderboard_ if row["adapter"] == "role-centering"],
    "candidates": [one.name for one in found._bench.candidates],
    "assumptions": {row["adapter"]: row["assumption"] for row in found.table},
}))
"""
    root = Path(__file__).resolve().parent.parent
    done = run(installed, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{program}")
    said = json.loads(done.stdout)
    assert said["names"][-1] == "role-centering"
    assert said["classes"] == [0, 1, 2]
    (row,) = said["rows"]
    assert row["candidate"] == "role-centering + logistic"
    assert row["disqualified"] is None
    assert "role-centering + logistic" in said["candidates"]
    assumption = "The rows of both roles have moved as a whole."
    assert said["assumptions"]["role-centering"] == assumption


def test_the_command_line_lists_it(installed):
    done = run(installed, "-m", "covshift", "adapt", "--help")
    assert "role-centering." in done.stdout
    assert done.stderr == ""


def test_its_models_are_read_by_those_who_trust_it(installed):
    program = """
from covshift import load
from covshift.persistence import ModelFileError
try:
    load("model.skops")
except ModelFileError as error:
    print(error)
model = load("model.skops", trusted=["role_centering.RoleCentering"])
from covshift import registry
registry.plugin_records = lambda: ()  # fitted, it does not need its record
from sklearn.utils import get_tags
get_tags(model.estimator_)
print(type(model).__name__)
"""
    refused, loaded = run(installed, "-c", program).stdout.splitlines()
    assert "load(path, trusted=['role_centering.RoleCentering'])" in refused
    assert loaded == "TableClassifier"


def test_predict_says_whom_to_trust(installed):
    predict = "predict model.skops new.csv --out p.csv"
    # The adapter cannot learn a new target, so the last command fails after it has read.
    refused, done, later = run_commands(
        installed,
        predict,
        f"{predict} {TRUST}",
        f"adapt model.skops new.csv --out other.skops {TRUST}",
    )
    assert (refused["code"], refused["stdout"], refused["files"]) == (1, "", 0)
    (line,) = refused["stderr"].splitlines()
    assert line.startswith("covshift predict: Cannot read the model model.skops: ")
    assert line.endswith(
        f"plug-in adapter 'role-centering', which covshift does not trust by "
        f"itself. If you trust its author: {TRUST}."
    )
    assert (done["code"], done["files"]) == (0, 1)
    assert (later["code"], later["files"]) == (1, 1)
    assert "cannot learn a new target" in later["stderr"]
    assert len((installed / "p.csv").read_text().splitlines()) > 100


def test_broken_plug_ins_are_named_and_stop_nothing(broken):
    program = """
import json, warnings
from covshift.registry import PluginWarning, find_record, names, plugin_records
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    find_record("CORAL")
    assert not caught  # a built-in name loads no plug-in
    names()
    names()
assert all(one.category is PluginWarning for one in caught)
found = [record.name for record in plugin_records()]
print(json.dumps({"found": found, "told": [str(one.message) for one in caught]}))
"""
    said = json.loads(run(broken, "-c", program).stdout)
    assert set(said["found"]) == {"first", "last", "role-centering", *BROKEN_AT_USE}
    start = "Ignored the adapter plug-in "
    for name, (_, reason) in {**BROKEN, "several": ("", "'coral' is already in use")}.items():
        (line,) = [one for one in said["told"] if one.startswith(f"{start}{name!r} of the package")]
        assert reason in line
        assert line.endswith(f". Update or uninstall {name}.")
        assert "\n" not in line
    assert len(said["told"]) == len(BROKEN) + 1


def test_adapters_that_fail_at_use_are_named_and_left_out(broken):
    program = """
import json, warnings
from covshift.registry import PluginWarning, Size, names
from covshift.selection.candidates import default_candidates
from covshift.studies.comparison.systems import systems
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    names()
size, said = Size(100, 100, 5), []
for use in (lambda: default_candidates(size), lambda: systems(5, 2)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PluginWarning)
        found = use()
    assert "role-centering" in [getattr(one, "adapter_name", one) for one in found]
    said.append([str(one.message) for one in caught])
print(json.dumps(said))
"""
    for told in json.loads(run(broken, "-c", program).stdout):
        assert len(told) == len(BROKEN_AT_USE)
        for name, (_, reason) in BROKEN_AT_USE.items():
            start = f"Ignored the adapter plug-in adapter {name!r} of the package {name}: "
            (line,) = [one for one in told if one.startswith(start)]
            assert reason in line


@pytest.mark.parametrize(
    ("command", "n_more"),
    [
        ("adapt --help", 0),
        ("diagnose train.csv train.csv --label churned --time-budget 0", len(BROKEN_AT_USE)),
    ],
)
def test_commands_warn_in_one_line_each(broken, command, n_more):
    done = run(broken, "-m", "covshift", *command.split())
    lines = done.stderr.splitlines()
    assert len(lines) == len(BROKEN) + 1 + n_more
    assert all(line.startswith("covshift: Ignored the adapter plug-in ") for line in lines)
    assert "Ignored the adapter plug-in" not in done.stdout
    assert done.stdout
