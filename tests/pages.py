"""Pages of the documentation, run as a reader would: every command and every line of Python.

``python -m tests.pages`` writes into all pages what their commands and lines now print;
``python -m tests.pages docs/start.md`` into one. Read the difference before you commit it.
"""

import contextlib
import io
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from tests.cli.user_files import run

# Of these the pages show the beginning, unless a line of dots marks what they leave out.
LONG = {"show", "diagnose"}
OMITTED = "..."
# An excerpt breaks lines that are wider than a page, and indents what belongs to the line above.
WIDTH, CONTINUED = 96, "    "

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def pages_with_code():
    """Pages whose code is run, in the order of reading."""
    pages = [DOCS.parent / "README.md", DOCS / "start.md", DOCS / "your-own-files.md"]
    pages += [DOCS / "theory.md"]
    pages += sorted((DOCS / "guide").glob("*.md"))
    return [page for page in pages if "```python" in page.read_text(encoding="utf-8")]


def blocks_of(path):
    """Language and text of each block of code, in order."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


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
    shown = []
    for what, expected, got in outputs_of(path):
        if what.startswith("covshift "):
            shown.append(what)
        assert_alike(got, expected, what)
    return shown


def outputs_of(path):
    """Run a page; yield each output that it shows: what printed it, as shown, as it is now."""
    names, printed, last = {}, "", None
    for language, code in blocks_of(path):
        if language == "python":
            printed = run_python(code, names)
        elif language == "text":
            yield path.name, code, printed
        elif language == "console":
            for command, expected in commands_of(code):
                if command == "echo $?":
                    got = f"{last.exit_code}\n"
                elif command.startswith("covshift "):
                    last = run(*command.split()[1:])
                    got = last.output
                else:
                    got = run_shell(command)
                if OMITTED in expected.splitlines():
                    got = excerpt(got, expected)
                elif LONG & set(command.split()):
                    got = "".join(got.splitlines(keepends=True)[: expected.count("\n")])
                yield command, expected, got


def excerpt(text, shown):
    """Return the lines of a text that an excerpt shows, with its lines of dots.

    After dots the next line like the one shown counts, else the next one.
    """
    lines, found, gap = text.splitlines(), [], False
    for broken in re.split(rf"\n(?!{CONTINUED}\S)", shown.removesuffix("\n")):
        line = re.sub(rf"\n{CONTINUED}(?=\S)", " ", broken)
        if line == OMITTED:
            found.append(line)
            gap = True
            continue
        wanted = numbers_apart(line)[0].split()
        while gap and lines and numbers_apart(lines[0])[0].split() != wanted:
            del lines[0]
        now = lines.pop(0) if lines else "(the output ends here)"
        if line != broken:
            now = textwrap.fill(now, WIDTH, subsequent_indent=CONTINUED, break_on_hyphens=False)
        found.append(now)
        gap = False
    if lines and not gap:
        found.append(f"(and {len(lines)} lines more)")
    return "".join(f"{line}\n" for line in found)


def refresh_page(path):
    """Run a page in the current folder; return its text with what it prints now.

    Of long outputs as many lines are shown as before. Dates stay.
    """
    outputs = outputs_of(path)

    def refresh(block):
        language, code = block.groups()
        if language == "text":
            code = next(outputs)[2]
        elif language == "console":
            parts = []
            for command, _ in commands_of(code):
                _, expected, got = next(outputs)
                if date := re.search(r"^date: .*$", expected, flags=re.MULTILINE):
                    got = re.sub(r"^date: .*$", date.group(), got, flags=re.MULTILINE)
                parts.append(f"$ {command}\n{got}")
            code = "".join(parts)
        return f"```{language}\n{code}```"

    text = BLOCK.sub(refresh, path.read_text(encoding="utf-8"))
    for _ in outputs:  # the Python after the last output is run as well
        raise AssertionError("an output was left over")
    return text


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


def main(paths):
    """Refresh pages, each in a process and a folder of its own: some change settings."""
    for path in map(Path, paths):
        print(path, flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            text = refresh_page(path)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        main([Path(name).resolve() for name in sys.argv[1:]])
    else:
        for page in pages_with_code():
            subprocess.run([sys.executable, "-m", "tests.pages", str(page)], check=True)
