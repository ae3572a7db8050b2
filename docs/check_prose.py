"""Find constructions that make texts hard to read, and measure how the texts read.

    python docs/check_prose.py              # names each place; exit code 1 if there is one
    python docs/check_prose.py --figures    # sentences, words per sentence, shares of them

Read are strings, docstrings and comments of the package, the examples, the benchmarks, the tools
and the tests, and the pages of the documentation. Code, tables and formulas within pages are left
out, and the figures are without benchmarks, tools and tests. `CONSTRUCTIONS` is the list.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MADE = {"_build", "gallery", "generated", "_templates"}  # folders that the build writes

# A construction, and what to write in its place.
CONSTRUCTIONS = [
    (
        r"(?i)(?<!there )\b(?:is|are|was|were|be) no (?!longer|more|less|better|worse|larger"
        r"|smaller|higher|lower|faster|slower|narrower|wider)",
        '"is not a", "cannot" or "does not"',
    ),
    (
        r"(?i)\bthere (?:is|are|was|were) no (?:such|choice)\b",
        '"Unknown ...", "... does not exist"',
    ),
    (r"(?i)\bnobody\b|\bno one\b", '"not", "never", "without", "cannot be determined"'),
    (
        r"(?i)\bwhat (?:it|they|this|these|\w+ing) (?:is|are|was|were) worth\b",
        "the value itself",
    ),
    (r"(?i)\bas (?:it|they|things) stands?\b", '"unchanged", "now", or nothing'),
    (r"(?i)\bwhatever (?:\w+ )?(?:may|hold)|\bwhatever (?:it|they)\b", '"any", "ignored"'),
    (r"(?i)\bbefell\b|\bbefall", '"happened", "errors and warnings"'),
    (
        r"(?i)\b(?:told|tells?|telling) (?:\w+ )?apart\b|\btold (?:by|with)\b",
        '"separate", "distinguish"',
    ),
    (r"(?i)\b(?:can|cannot|could|may|must|to) (?:not )?be told\b", '"be determined", "detected"'),
    (r"(?i)\b(?:found|finds?) out\b", '"detect", "determine"'),
    (r"(?i)(?<!\bthis )\bso many (?!as\b|that\b)", "the number, or nothing"),
    (r"(?i)\bothers that are not read\b", '"ignored"'),
    (r"(?i)\bgoes on from (?:here|there)\b", '"resumes"'),
    (r"(?i)\bbut for\b", '"except", "without"'),
    (r"(?i)\b(?:whoever|whosoever|thereof|wherein|whereof|lest|nought|nigh)\b", "a plain word"),
    (r"(?i)\bfor there (?:is|are)\b", '"because there is"'),
    (
        r"(?i)\b(?:knows?|knowing|says?|saying|tells?|telling) (?:no|nothing|none)\b",
        '"ignores", "does not show", "has no meaning"',
    ),
    (r"(?i)\bspeaks? for\b", '"represents"'),
    (
        r"(?i)\b(?:plays?|played|playing) the target\b|\bmodels vote\b",
        '"taken as the target", "ensemble"',
    ),
    (r"(?i)\b(?:nothing|none|nobody) but\b|\bfor nothing else\b", '"only"'),
    (r"(?i)\bfor want of\b", '"for lack of", "without"'),
    (r"(?i)\bturns? round\b", '"is reversed", "rotates"'),
    (r"(?i)\bstands? in(?=[.,;])|\bstands? in for all\b", '"is used instead"'),
    (r"(?i)\bwhole or not\b", '"atomically", "complete or absent"'),
    (r"(?i)\bthe merit is\b|\bas ever\b|\bcalled sure\b", "a plain word"),
    (
        r"(?i)\bwhat (?:is|was) (?:left|learned|fitted|averaged) (?:would|will|from|with|on)\b",
        "the thing itself",
    ),
    (r"(?i)\b(?:goes|go|went) on (?:where|after a stop|from)\b", '"resumes"'),
    (r"(?i)\bwould look so\b|\bto be had\b|\bof its own making\b", "a plain word"),
    (
        r"(?i)\b(?:tells?|told|telling) (?:[\w',-]+ ){0,4}from\b|\bto tell(?=[.;,:)]|$)",
        '"separate", "distinguish", "determine"',
    ),
    (r"\b(?:learnt|amongst|whilst|towards|anew)\b", '"learned", "among", "toward", "again"'),
    (  # not in codespell's list of British spellings
        r"(?i)\b(?:centring|per cent|(?:up|down|after)wards|\w+(?:al|ar|im|er)isations?)\b",
        '"centering", "percent", "upward", "afterward", "-ization"',
    ),
    (r"\bwins? over\b", '"takes precedence over"'),
    (r"\bno whole\b", '"not a complete"'),
    (r"(?i)\bbut (?:those|that) (?:of|that|which)\b|\ball but those\b", '"except"'),
    (r"\b(?:has|have) not(?=[.,;)])", '"does not have"'),
    (r"\bbeside ours\b", '"compared with", "repeated"'),
    (r"(?i)\b(?:whereby|herein|thereby|thereto|albeit|whence|in vain|the like)\b", "a plain word"),
    (r"(?i)\bha(?:s|ve) (?:no|a) say\b", '"does not count", "counts"'),
    (r"(?i)\b(?:is|are) of \.?\d", '"95 % intervals", "has a level of"'),
    (r"(?i)\b(?:is|are|was|were|be|been) looked at\b", '"examined"'),
    (r"(?i)\bthe plain one\b", '"the plain model"'),
    (
        r"^What (?!(?:if|to)\b)(?:[^\s?]+ ){5,}[^?]*[.;:]$",
        'a subject: not a headless "What ..." clause',
    ),
    (
        r"^That (?:the|a|an|it|they|there|its|each|all|some|no|most|rows|labels)\b[^?]*[.;:]$",
        'a subject: not a headless "That ..." clause',
    ),
]
# A space after a sentence; "x" stands for code.
SENTENCE_END = r"(?<=[.?!:])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[\"'(]?(?:[A-Z0-9]|x\b))"
# A form of "to be" before a participle: an estimate, since "is limited" may be an adjective.
PASSIVE = re.compile(
    r"(?i)\b(?:is|are|was|were|be|been|being) (?:(?:not|also|then|only|\w+ly) )?"
    r"(?:[a-z]{2,}ed|known|found|given|made|taken|written|shown|drawn|chosen|kept|held|read|built"
    r"|seen|set|put|cut|split|lost|said|told|sent|done|run|hidden|thrown|left|understood|begun)\b"
)
PATTERNS = [(re.compile(pattern), advice) for pattern, advice in CONSTRUCTIONS]


class Text(NamedTuple):
    """A piece of text: where it stands, what it is, and its sentences."""

    path: Path
    line: int
    kind: str
    sentences: list[str]


def split_sentences(text):
    r"""Return the sentences of a text, code and links replaced by words.

    Examples
    --------
    >>> split_sentences("One `x.y` here, e.g. this. Two [links](a.md)?\n\n- Three")
    ['One x here, e.g. this.', 'Two links?', 'Three']
    """
    text = re.sub(r"\{\w+\}(?=`)|:[\w:]+:(?=`)", "", text)  # roles of Sphinx
    text = re.sub(r"``[^`]+``|`[^`]+`", "x", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\$[^$\n]+\$", "x", text)
    text = re.sub(r"[*_]{1,2}(\S.*?)[*_]{1,2}", r"\1", text)
    sentences = []
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+", text):
        paragraph = " ".join(re.sub(r"^\s*(?:[-*#>]+|\d+\.)\s+", "", paragraph).split())
        for one in re.split(SENTENCE_END, paragraph):
            if re.search(r"[a-z]{2}", one):
                sentences.append(one)
    return sentences


def texts_of_page(path):
    """Yield the texts of a page in Markdown or reStructuredText: one for each paragraph."""
    text = path.read_text(encoding="utf-8")
    hidden = [r"^```.*?^```$", r"^\|.*?$", r"^\$\$.*?^\$\$$", r"<!--.*?-->", r"^    .*?$"]
    hidden += [r"^\.\. [\w-]+::.*?$", r"^:\w+:.*?$", r"^%.*?$", r"^#+ .*?$", r"<[^>\n]+>"]
    for pattern in hidden:  # as many lines as before
        flags = re.DOTALL | re.MULTILINE if "```" in pattern or r"\$\$" in pattern else re.MULTILINE
        text = re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text, flags=flags)
    kind = "README" if path.name == "README.md" else "docs"
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", text):
        start = line + len(paragraph) - len(paragraph.lstrip("\n"))
        line += paragraph.count("\n")
        if paragraph.strip():
            yield Text(path, start, kind, split_sentences(paragraph))


def texts_of_program(path):
    """Yield the texts of a program: docstrings, comments, errors and warnings, other strings."""
    code = path.read_text(encoding="utf-8")
    tree = ast.parse(code)
    commands = "cli" in path.parts or path.name.endswith(("words.py", "templates.py"))
    seen, raised = set(), set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(getattr(body[0], "value", None)):
            text = body[0].value
            seen.add(id(text))
            yield Text(path, text.lineno, "docstrings", _sentences_of_docstring(text.value))
        if isinstance(node, ast.Raise) or _is_warning(node):
            raised |= {id(one) for one in ast.walk(node)}
    inner = set()
    for node in ast.walk(tree):
        if id(node) in seen or id(node) in inner:
            continue
        text = _written(node)
        if text is None:
            continue
        inner |= {id(one) for one in ast.walk(node)}
        if len(text.split()) > 3:
            kind = "errors" if id(node) in raised else "output" if commands else "other strings"
            yield Text(path, node.lineno, kind, split_sentences(text))
    block, start = [], 0
    for token in [*tokenize.generate_tokens(io.StringIO(code).readline), None]:
        if token is not None and token.type == tokenize.COMMENT:
            start = start or token.start[0]
            block.append(token.string.lstrip("# "))
        elif block and (token is None or token.type not in (tokenize.NL, tokenize.NEWLINE)):
            yield Text(path, start, "comments", split_sentences("\n".join(block)))
            block, start = [], 0


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_warning(node):
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return "warn" in name or name.endswith(("Error", "Warning"))


def _written(node):
    """Return the text of a string, values in it replaced by a word; None: it is something else."""
    if _is_text(node):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(one.value if _is_text(one) else "X" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_written(one) for one in (node.left, node.right)]
        return None if None in parts else "".join(parts)
    return None


def _sentences_of_docstring(text):
    """Return sentences of a docstring without formulas, examples, headings and references."""
    text = re.split(r"\n\s*References\n\s*-+\n", text)[0]
    text = re.split(r"\n\s*Examples\n\s*-+\n", text)[0]
    text = re.sub(r"\n\s*\.\. \w+::.*?\n(?=\S|\s*\n\s*\S)", "\n\n", text)
    text = re.sub(r"^\s+>>>.*$|^.*\\\w+\{.*$|^\s*-{3,}\s*$|^\s*\w+ : .*$", "", text, flags=re.M)
    return split_sentences(text)


def tool_texts(root=ROOT):
    """Yield the texts of programs that users of the package do not see."""
    own = {Path(__file__).name, "test_prose.py"}  # they name the constructions
    for folder in ("benchmarks", "hardening", "docs", "tests"):
        for path in sorted((root / folder).rglob("*.py")):
            if not MADE & set(path.parts) and path.name not in own:
                yield from texts_of_program(path)


def all_texts(root=ROOT):
    """Yield every text that users of the package read."""
    for folder in ("src", "examples"):
        for path in sorted((root / folder).rglob("*.py")):
            yield from texts_of_program(path)
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    for pattern in ("*.md", "*.rst"):
        pages += sorted((root / "docs").rglob(pattern))
    for path in pages:
        if path.exists() and not MADE & set(path.parts):
            yield from texts_of_page(path)


def find_faults(sentence):
    """Return each listed construction in a sentence, with what to write in its place.

    Examples
    --------
    >>> find_faults("The rows can be told apart.")[0]
    ('told apart', '"separate", "distinguish"')
    """
    found = [(pattern.search(sentence), advice) for pattern, advice in PATTERNS]
    return [(one[0].strip(), advice) for one, advice in found if one]


def measure(texts):
    """Return for each kind of text: sentences, words per sentence, shares of three kinds.

    The shares, in percent, are of sentences over 30 words, passive ones and those with a fault.
    """
    words, faults, passive = defaultdict(list), defaultdict(int), defaultdict(int)
    for text in texts:
        for sentence in text.sentences:
            words[text.kind].append(len(sentence.split()))
            faults[text.kind] += bool(find_faults(sentence))
            passive[text.kind] += bool(PASSIVE.search(sentence))
    rows = []
    for kind, lengths in sorted(words.items()):
        n = len(lengths)
        counts = sum(length > 30 for length in lengths), passive[kind], faults[kind]
        rows.append((kind, n, sum(lengths) / n, *(100 * count / n for count in counts)))
    return rows


def main(arguments=None):
    """Print the faults, or the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--figures", action="store_true", help="print a table of figures")
    given = parser.parse_args(arguments)
    if given.figures:
        print(
            "| texts | sentences | words per sentence | over 30 words | passive "
            "| listed constructions |"
        )
        print("|---|---:|---:|---:|---:|---:|")
        for kind, n, mean, long, passive, share in measure(all_texts(given.root)):
            shares = f"{long:.1f} % | {passive:.1f} % | {share:.2f} %"
            print(f"| {kind} | {n:,} | {mean:.1f} | {shares} |")
        return 0
    n_faults = 0
    for text in [*all_texts(given.root), *tool_texts(given.root)]:
        for sentence in text.sentences:
            for words, advice in find_faults(sentence):
                n_faults += 1
                place = f"{text.path.relative_to(given.root)}:{text.line}"
                print(f"{place}: {words!r}; write {advice}\n    {sentence}")
    if n_faults:
        print(f"{n_faults} places. The style guide is in CONTRIBUTING.md.", file=sys.stderr)
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
