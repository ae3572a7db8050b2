"""Pages of the documentation, run as a reader would: every command and every line of Python."""

import contextlib
import io
import re
import subprocess

import pytest

from tests.cli.user_files import run

# Of these the pages show the beginning.
LONG = {"show", "diagnose"}


def blocks_of(path):
    """Language and text of each block of code, in order."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^```([\w{}-]*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def commands_of(block):
    """Commands of a block of the console, with what they print."""
    for entry in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = entry.partition("\n")
        yield command, output


def run_page(path):
    """Run a page in the current folder; return the commands of ours that it showed.

    Blocks of Python share their names. A block of text after one is what it prints, one without is
    not compared. Blocks of the console hold commands and what they print.
    """
    names, printed, shown, last = {}, "", [], None
    for language, code in blocks_of(path):
        if language == "python":
            printed = run_python(code, names)
        elif language == "text":
            assert_alike(printed, code, path.name)
        elif language == "console":
            for command, expected in commands_of(code):
                if command == "echo $?":
                    assert f"{last.exit_code}\n" == expected
                    continue
                if command.startswith("covshift "):
                    shown.append(command)
                    last = run(*command.split()[1:])
                    got = last.output
                else:
                    got = run_shell(command)
                if LONG & set(command.split()):
                    got = "".join(got.splitlines(keepends=True)[: expected.count("\n")])
                assert_alike(got, expected, command)
    return shown


def run_python(code, names):
    """Run lines of Python; return what they print."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, "<page>", "exec"), names)
    return stream.getvalue()


def run_shell(command):
    """Run a command of the system; return what it prints."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    return done.stdout


def numbers_apart(text):
    """The text without its numbers, and these."""
    pattern = r"\d[\d,]*\.?\d*(?:e-?\d+)?"
    numbers = [float(one.replace(",", "")) for one in re.findall(pattern, text)]
    return re.sub(pattern, "#", text), numbers


def assert_alike(got, expected, what):
    """The same words, and the same numbers up to what versions of the libraries change."""
    got, expected = (re.sub(r"date: .*\n", "", text) for text in (got, expected))
    (skeleton, numbers), (wanted, wanted_numbers) = map(numbers_apart, (got, expected))
    what = f"{what} now prints:\n{got}"
    assert skeleton.split() == wanted.split(), what
    assert numbers == pytest.approx(wanted_numbers, rel=0.02, abs=0.02), what
