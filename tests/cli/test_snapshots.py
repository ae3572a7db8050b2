"""Texts that users meet, as files: a change of wording shows in review.

``python -m tests.cli.test_snapshots`` writes the files of ``snapshots`` again. Read the difference
before you commit it. Numbers are compared as on the pages: libraries change their last digits.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from covshift.cli import COMMANDS
from tests.cli.user_files import run
from tests.pages import assert_alike

SNAPSHOTS = Path(__file__).parent / "snapshots"
STUDIES = ["speech", "reviews", "bearings", "synthetic", "readings"]
HELP = [[], *([name] for name in COMMANDS), *(["reproduce", name] for name in STUDIES)]
PRINT_HELP = """
import sys
from covshift.cli import main
for words in {commands!r}:
    print("$ covshift", *words, "--help", flush=True)
    sys.argv = ["covshift", *words, "--help"]
    try:
        main()
    except SystemExit:
        pass
"""
TABLES = "train.csv new.csv --label fault --domain plant"
RUN = [
    "sample-data",
    f"diagnose {TABLES}",
    f"adapt {TABLES} --out model.skops",
    "predict model.skops new.csv --keep machine --out predictions.csv",
    "score model.skops checked.csv",
    "show model.skops",
    "monitor model.skops new.csv",
]
ERRORS = [
    "sample-data",
    "diagnose train.csv",
    "diagnose absent.csv new.csv --label fault",
    "diagnose train.csv new.csv --label broken",
    "diagnose train.csv new.csv --label fault --domain site",
    "diagnose train.csv new.csv --label machine",
    "diagnose train.csv new.csv --label fault --use color",
    "adapt train.csv new.csv --label fault --adapter magic --out other.skops",
    f"adapt {TABLES} --objective f1 --out other.skops",
    f"adapt {TABLES} --min-gain much --out other.skops",
    "predict train.csv new.csv --out other.csv",
    "predict absent.skops new.csv --out other.csv",
    "predict model.skops strange.csv --out other.csv",
    "predict model.skops empty.csv --out other.csv",
    "predict model.skops new.csv --keep color --out other.csv",
    "predict model.skops new.csv --sets 2 --out other.csv",
    "score model.skops new.csv",
    "show train.csv",
    "monitor model.skops strange.csv",
]


def print_help():
    """Every page of help, as a terminal of 100 columns shows it."""
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HELP.format(commands=HELP)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return drop_boxes(done.stdout)


def drop_boxes(text):
    """Lines without the boxes that a terminal draws, which differ between versions."""
    lines = [re.sub(r"[─-╿]+", "", line).strip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def print_run(commands):
    """Commands with what they print in the current folder, and how they end."""
    parts = []
    for command in commands:
        result = run(*command.split())
        output = re.sub(r"^date: .*\n", "", result.output, flags=re.MULTILINE)
        if command.startswith("show "):  # after that, names and numbers of libraries
            output = output.partition("leaderboard:\n")[0]
        if result.exit_code == 2:
            output = drop_boxes(output)
        output = output.rstrip()
        code = f"(exit code {result.exit_code})\n" if result.exit_code else ""
        parts.append(f"$ covshift {command}\n{output}\n{code}")
    return "\n".join(parts)


def print_all():
    """The texts by file; works in the current folder."""
    texts = {"help": print_help(), "run": print_run(RUN)}
    Path("strange.csv").write_text("a,b\n1,2\n3,4\n")
    Path("empty.csv").write_text("machine,plant,heat,shake,load\n")
    return texts | {"errors": print_run(ERRORS)}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("snapshots"))
        patch.setenv("COLUMNS", "100")
        return print_all()


@pytest.mark.parametrize("name", ["help", "run", "errors"])
def test_texts_are_those_of_the_snapshot(name, printed):
    expected = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")
    commands = re.split(r"^\$ ", expected, flags=re.MULTILINE)[1:]
    now = re.split(r"^\$ ", printed[name], flags=re.MULTILINE)[1:]
    assert [one.partition("\n")[0] for one in now] == [one.partition("\n")[0] for one in commands]
    for one, wanted in zip(now, commands, strict=True):
        assert_alike(one, wanted, wanted.partition("\n")[0])


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    SNAPSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in print_all().items():
            (SNAPSHOTS / f"{name}.txt").write_text(text, encoding="utf-8")
