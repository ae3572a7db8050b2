"""Anything at all as files of the commands: an output that is good, or one line and no output."""

import json
import os
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.user_files import as_pandas, as_r, as_spreadsheet, make_tables, run
from tests.tables.test_fuzz import TEXTS, structures, write_rows

QUICK, WHOLE = 25, 700  # of each of the three tests; the whole are 2,100


def fuzz(size, strategy, check):
    """Run a check on a number of cases."""

    def check_case(case):
        check(*case)

    options = settings(
        max_examples=size, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    options(given(strategy)(check_case))()


sizes = pytest.mark.parametrize("size", [QUICK, pytest.param(WHOLE, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Good files as bytes, and a good model: what is not being broken."""
    folder = tmp_path_factory.mktemp("valid")
    files = {}
    for name, frame in make_tables().items():
        files[name] = []
        for layout in (as_pandas, as_r, as_spreadsheet, pd.DataFrame.to_parquet):
            layout(frame.head(60), folder / "one")
            files[name].append((folder / "one").read_bytes())
    (folder / "train.csv").write_bytes(files["train"][0])
    (folder / "new.csv").write_bytes(files["new"][0])
    options = ["--label", "churned", "--adapter", "standardise", "--out", folder / "model"]
    assert run("adapt", folder / "train.csv", folder / "new.csv", *options).exit_code == 0
    files["model"] = [(folder / "model").read_bytes()]
    return files


damages = st.tuples(
    st.integers(0, 3),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=4),
    st.floats(0, 1),
)
commands = st.sampled_from(["adapt", "adapt later", "predict", "score", "monitor"])
HEADER = ["customer_id", "age", "income", "city", "since", "site", "churned"]
# Under the right names, cells of any kind, repeated so that rows suffice.
strange_tables = st.tuples(structures, st.integers(1, 40)).map(
    lambda drawn: write_rows(
        {
            **drawn[0],
            "rows": [
                HEADER,
                *([*row, *row, *[""] * 7][:7] for row in drawn[0]["rows"] * drawn[1]),
            ],
            "width": 7,
        }
    )
)
contents = st.one_of(st.binary(max_size=300), TEXTS.map(str.encode), structures.map(write_rows))


def damaged(files, damage):
    """A good file with some bytes changed, and one in two cut short."""
    which, changes, cut = damage
    raw = bytearray(files[which % len(files)])
    for place, patch in changes:
        start = int(place * len(raw))
        raw[start : start + len(patch)] = patch
    return bytes(raw[: int((0.5 + cut) * len(raw))])


def check_command(*arguments, out=None, code_when_good=(0,)):
    """Run a command in which any file may be broken."""
    folder = Path(arguments[1]).parent
    before = set(os.listdir(folder))
    result = run(*arguments, "--json")
    after = set(os.listdir(folder))
    if result.exit_code in code_when_good:
        assert isinstance(json.loads(result.stdout), dict)
        assert after == before | ({out.name} if out else set())
        return
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.isprintable()
    assert len(line) < 1100
    assert "Traceback" not in line
    assert after == before


@sizes
def test_tables_of_anything(size, valid):
    cases = st.tuples(st.one_of(contents, strange_tables), commands)
    fuzz(size, cases, lambda content, command: check_table(content, command, valid))


@sizes
def test_damaged_tables(size, valid):
    def check(damage, command):
        check_table(damaged(valid["labeled"], damage), command, valid)

    fuzz(size, st.tuples(damages, commands), check)


def check_table(content, command, valid):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train").write_bytes(valid["train"][0])
        (folder / "model").write_bytes(valid["model"][0])
        (folder / "table").write_bytes(content)
        if command == "adapt":
            options = ["--label", "churned", "--adapter", "standardise", "--out", folder / "m"]
            for pair in (("train", "table"), ("table", "train")):
                files = [folder / one for one in pair]
                check_command("adapt", *files, *options, out=folder / "m")
                (folder / "m").unlink(missing_ok=True)
            return
        arguments = {
            "adapt later": ["--out", folder / "m2"],
            "predict": ["--out", folder / "out.csv", "--proba"],
            "score": ["--label", "churned"],
            "monitor": [],
        }[command]
        out = arguments[1] if "--out" in arguments else None
        check_command(
            command.split()[0], folder / "model", folder / "table", *arguments,
            out=out, code_when_good=(0, 3),
        )  # fmt: skip


@sizes
def test_models_of_anything(size, valid):
    def check(content, command):
        if isinstance(content, tuple):
            content = damaged(valid["model"], content)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model").write_bytes(content)
            (folder / "table").write_bytes(valid["labeled"][0])
            out = folder / "out.csv" if command == "predict" else None
            arguments = [] if command == "show" else [folder / "table"]
            arguments += ["--out", out] if out else []
            good = (0, 3) if command == "monitor" else (0,)
            check_command(command, folder / "model", *arguments, out=out, code_when_good=good)

    reading = st.sampled_from(["predict", "score", "monitor", "show"])
    fuzz(size, st.tuples(st.one_of(contents, damages), reading), check)
