"""How `covshift` starts: fast, with every command listed, and quiet when it is interrupted."""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from covshift._version import __version__
from covshift.cli import COMMANDS, build_app
from covshift.cli.app import load_command
from covshift.cli.commands.compare import COLLECTIONS
from covshift.cli.front_page import OPTIONS
from covshift.datasets import speech_corpora
from covshift.paper import commands
from covshift.studies.comparison.collections import LOADERS

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "pyarrow", "joblib")
RUN = "import sys; from covshift.cli import main; main()"
LIST_HEAVY = (
    "import sys\n"
    "from covshift.cli import main\n"
    "try:\n    main()\n"
    f"finally:\n    sys.stderr.write(' '.join(set({HEAVY}) & set(sys.modules)))\n"
)
STUDIES = ["speech", "reviews", "bearings", "synthetic", "readings"]
MODEL = Path(__file__).parents[1] / "fixtures" / "models_0_1" / "search.skops"
ON_FILES = ["diagnose", "adapt", "predict", "score", "monitor", "label", "show"]


def start(*arguments, program=RUN, **options):
    options = {"capture_output": True, "text": True} | options
    return subprocess.run([sys.executable, "-c", program, *arguments], **options)


def complete(*words):
    """Return the completions that Bash gets for the last word."""
    given = {"COMP_WORDS": " ".join(("covshift", *words)), "COMP_CWORD": str(len(words))}
    environment = os.environ | given | {"_COVSHIFT_COMPLETE": "complete_bash"}
    return start(program=LIST_HEAVY, env=environment)


def test_help_and_version_import_nothing_heavy():
    """One after the other in one process: what one had imported, the next would be told of."""
    calls = [
        ["--help"],
        ["--version"],
        [],
        ["nonsense"],
        *([name, "--help"] for name in COMMANDS),
        *(["reproduce", name, "--help"] for name in STUDIES),
    ]
    program = f"""
import json, sys
from covshift.cli import main
ends = []
for arguments in {calls!r}:
    sys.argv = ["covshift", *arguments]
    try:
        main()
    except SystemExit as end:
        ends.append([end.code, sorted(set({HEAVY}) & set(sys.modules))])
sys.stderr.write("\\n" + json.dumps(ends))
"""
    done = start(program=program, env=os.environ | {"COLUMNS": "200"})
    ends = json.loads(done.stderr.splitlines()[-1])
    for arguments, end in zip(calls, ends, strict=True):
        code = 0 if arguments and arguments != ["nonsense"] else 2
        assert end == [code, []], arguments


@pytest.mark.parametrize("name", ["predict", "score", "monitor", "label", "adapt"])
def test_commands_that_read_a_model_can_be_told_whom_to_trust(name):
    (option,) = [one for one in load_command(name, COMMANDS[name][0]).params if one.name == "trust"]
    assert option.opts == ["--trust"]
    assert option.multiple


def test_version():
    assert start("--version").stdout == f"covshift {__version__}\n"
    # With more arguments the parser answers.
    assert start("--version", "demo").stdout == f"covshift {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_of_the_table_are_those_of_the_commands(name):
    path, line = COMMANDS[name]
    assert load_command(name, path).help.splitlines()[0] == line


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", [60, 80, 130])
def test_paragraphs_of_help_fill_the_terminal(name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    page = CliRunner().invoke(build_app(), [name, "--help"], prog_name="covshift").stdout
    text = page[page.index("Usage:") : page.index("\N{BOX DRAWINGS LIGHT ARC DOWN AND RIGHT}")]
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = [line.strip() for line in paragraph.split("\n")]
        for line, after in itertools.pairwise(lines):
            # The next line's first word would not have fitted, with a margin on each side.
            assert len(line) + 1 + len(after.split()[0]) > columns - 2, paragraph


def test_names_in_the_help_are_those_that_are_read():
    assert list(COLLECTIONS) == list(LOADERS)
    assert list(commands.CORPORA) == list(speech_corpora.CORPORA)
    assert list(load_command("reproduce", COMMANDS["reproduce"][0]).commands) == STUDIES


def test_order_of_the_commands():
    assert list(COMMANDS) == [*ON_FILES, "sample-data", "demo", "compare", "reproduce"]
    assert list(get_command(build_app()).commands) == list(COMMANDS)


@pytest.mark.parametrize("columns", ["60", "100"])
def test_front_page(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    page = start("--help").stdout
    assert page == CliRunner().invoke(build_app(), ["--help"]).stdout
    words = " ".join(page.replace("│", " ").split())
    for _, line in COMMANDS.values():
        assert line in words
    group = get_command(build_app())
    parameters = group.get_params(group.make_context("covshift", ["demo"]))
    assert {one.opts[0]: one.help for one in parameters} == OPTIONS
    for name, text in OPTIONS.items():
        assert f"{name} <bool> {text.split()[0]}" in words
        assert set(text.split()) <= set(words.split())


def test_a_line_with_brackets_is_not_markup(monkeypatch):
    monkeypatch.setitem(COMMANDS, "odd", ("nowhere:odd", "Takes [bold]brackets[/bold]."))
    assert "Takes [bold]brackets[/bold]." in CliRunner().invoke(build_app(), ["--help"]).stdout


def test_a_misspelled_command():
    result = CliRunner().invoke(build_app(), ["diagnos"])
    assert result.exit_code == 2
    assert "diagnose" in result.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["d"], ["diagnose", "demo"]),
        (["diagnose", "--la"], ["--label", "--labels"]),
        (["reproduce", "s"], ["speech", "synthetic"]),
    ],
    ids=["command", "option", "subcommand"],
)
def test_completion(words, expected):
    done = complete(*words)
    assert done.stdout.split() == expected
    assert done.stderr == ""


def test_completion_script():
    # Without detection, which looks at the processes around it: make's shell is not supported.
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = start("--show-completion", "bash", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_COVSHIFT_COMPLETE=complete_bash" in done.stdout


@pytest.mark.parametrize("package", ["typer", "rich"])
@pytest.mark.parametrize("arguments", [["--help"], ["show", "a"], []], ids=" ".join)
def test_missing_extra(package, arguments):
    done = start(*arguments, program=f"import sys; sys.modules[{package!r}] = None; {RUN}")
    if package == "typer" and arguments == ["--help"]:  # the page needs rich alone
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert package in done.stderr
    assert 'pip install "covshift[cli]"' in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("where", ["command", "typer"])
def test_ctrl_c_during_an_import(where, tmp_path):
    """Sent by the imported module itself, so that it always arrives at the same place."""
    interrupt = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nrun = print\n"
    (tmp_path / ("interrupted.py" if where == "command" else "typer.py")).write_text(interrupt)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from covshift import cli; "
        "cli.COMMANDS['slow'] = ('interrupted:run', 'Slow.'); cli.main()"
    )
    done = start("slow", program=program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_a_standard_output_that_is_full(argument):
    with open("/dev/full", "w") as full:
        done = start(argument, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "covshift: cannot print the result: No space left on device.\n"


@pytest.mark.skipif(os.name == "nt", reason="shells of POSIX")
@pytest.mark.parametrize("argument", ["--help", "--version", f"show '{MODEL}'"])
def test_a_standard_output_that_is_closed(argument):
    command = f"{shlex.quote(sys.executable)} -m covshift {argument} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "covshift: cannot print the result: Bad file descriptor.\n"


@pytest.mark.skipif(os.name == "nt", reason="shells of POSIX")
def test_a_standard_error_that_is_closed(tmp_path):
    command = f"{shlex.quote(sys.executable)} -m covshift show {tmp_path}/missing 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_ctrl_c_before_the_command_line_is_there(tmp_path):
    """Interrupted while the module of the commands is looked for."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'covshift.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "covshift", "--version"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
