"""Small faults, one at a time, put into the text of a module.

A mutant replaces a few characters and leaves the rest of the file as it is, so that line numbers
and documentation stay the same. Operators: comparisons, arithmetic, ``and`` and ``or``, ``not``,
signs, conditions, numbers, truth values, names with an opposite (``min`` and ``max``), keyword
arguments left out, and statements left out.
"""

import ast
import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

COMPARISONS: dict[type, tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
ARITHMETIC: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
PAIRS = [
    ("min", "max"),
    ("any", "all"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("zeros", "ones"),
    ("floor", "ceil"),
    ("sum", "mean"),
    ("isfinite", "isnan"),
]
OPPOSITES = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
# Without effect on results by their meaning: a check of lengths that agree, the line a warning
# names, and a copy that is not needed.
NEUTRAL_KEYWORDS = ("strict", "stacklevel", "copy")


@dataclass(frozen=True)
class Mutant:
    """A replacement of the characters ``start`` to ``stop`` of a module."""

    module: str  # relative to the package: "kernels/lspc.py"
    operator: str
    start: int
    stop: int
    line: int
    last_line: int
    before: str
    after: str
    digest: str  # of the whole module: results are of no use for another text

    @property
    def key(self) -> str:
        """Return a short name that stays the same from run to run."""
        text = "|".join(map(str, asdict(self).values()))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def apply(self, source: str) -> str:
        """Return the text with the fault."""
        return source[: self.start] + self.after + source[self.stop :]

    def is_another_program(self, source: str) -> bool:
        """Return whether the text with the fault is a program, and another one than before."""
        try:
            return ast.dump(ast.parse(self.apply(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False


class _Finder:
    """Walk a module and collect its mutants."""

    def __init__(self, module: str, source: str):
        self.module, self.source = module, source
        self.digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        # Columns of the parser count bytes of UTF-8, ours characters.
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutant] = []

    def place(self, line: int, column: int) -> int:
        """Return the place in the text of a line and column of the parser."""
        text = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(text)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node begins and ends in the text."""
        return (
            self.place(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.place(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, stop = self.span(node)
        return self.source[start:stop]

    def add(self, operator: str, node: ast.AST, after: str, span: tuple[int, int] | None = None):
        """Keep a mutant."""
        start, stop = span or self.span(node)
        mutant = Mutant(
            self.module, operator, start, stop,
            node.lineno, node.end_lineno,  # type: ignore[attr-defined]
            self.source[start:stop], after, self.digest,
        )  # fmt: skip
        self.found.append(mutant)

    def between(self, left: ast.AST, right: ast.AST, symbol: str) -> tuple[int, int] | None:
        """Return where an operator stands between two operands."""
        start, stop = self.span(left)[1], self.span(right)[0]
        place = self.source[start:stop].find(symbol)
        return None if place < 0 else (start + place, start + place + len(symbol))

    def find(self) -> list[Mutant]:
        """Return the mutants of the module in the order of its text."""
        self.visit(ast.parse(self.source))
        return sorted(self.found, key=lambda one: (one.start, one.stop, one.after))

    def visit(self, node: ast.AST) -> None:
        """Collect the mutants of a node and of what is below it."""
        # Positions inside f-strings are wrong before Python 3.12, and their text is for people.
        if isinstance(node, ast.JoinedStr | ast.Assert):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in self.text(node.test):
            return
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node)
        for child in self.children(node):
            self.visit(child)

    @staticmethod
    def children(node: ast.AST) -> Iterator[ast.AST]:
        """Yield what is below a node, without annotations and decorators."""
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            if isinstance(node, ast.keyword) and node.arg in NEUTRAL_KEYWORDS:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield child

    def visit_Compare(self, node: ast.Compare) -> None:  # noqa: N802
        operands = [node.left, *node.comparators]
        for left, operation, right in zip(operands, node.ops, operands[1:], strict=False):
            start, stop = self.span(left)[1], self.span(right)[0]
            for after in COMPARISONS[type(operation)]:
                gap = self.source[start:stop]
                # Brackets of the operands stay where they are.
                closing = gap[: len(gap) - len(gap.lstrip(") \n\t"))]
                opening = gap[len(gap.rstrip("( \n\t")) :]
                self.add("comparison", node, f"{closing} {after} {opening}", (start, stop))

    def visit_BinOp(self, node: ast.BinOp) -> None:  # noqa: N802
        before, after = ARITHMETIC.get(type(node.op), ("", ""))
        if before and (span := self.between(node.left, node.right, before)):
            self.add("arithmetic", node, after, span)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:  # noqa: N802
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            if span := self.between(left, right, before):
                self.add("and-or", node, after, span)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:  # noqa: N802
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            operator = "not" if isinstance(node.op, ast.Not) else "sign"
            self.add(operator, node, f"({self.text(node.operand)})")

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> None:  # noqa: N802
        if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # those are changed themselves
            self.add("condition", node.test, f"(not ({self.text(node.test)}))")

    visit_IfExp = visit_While = visit_If

    def visit_Constant(self, node: ast.Constant) -> None:  # noqa: N802
        if isinstance(node.value, bool):
            self.add("truth value", node, str(not node.value))
        elif isinstance(node.value, int):
            self.add("number", node, str(node.value + 1))
        elif isinstance(node.value, float):
            self.add("number", node, repr(2 * node.value if node.value else 1.0))

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        if isinstance(node.ctx, ast.Load) and node.attr in OPPOSITES:
            stop = self.span(node)[1]
            self.add("opposite", node, OPPOSITES[node.attr], (stop - len(node.attr), stop))

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802
        if isinstance(node.ctx, ast.Load) and node.id in OPPOSITES and node.id != "sum":
            self.add("opposite", node, OPPOSITES[node.id])

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in NEUTRAL_KEYWORDS or len(arguments) < 2:
                continue
            start, stop = self.span(keyword)
            rest = self.source[stop : self.span(node)[1]]
            comma = len(rest) - len(rest.lstrip(" \n\t"))
            stop += comma + 1 if rest[comma : comma + 1] == "," else 0
            self.add("keyword", keyword, "", (start, stop))

    def leave_out(self, node: ast.stmt) -> None:
        """Add the mutant in which a statement does nothing."""
        self.add("statement", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if isinstance(node.value, ast.Call):
            self.leave_out(node)

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        if any(isinstance(target, ast.Subscript) for target in node.targets):
            self.leave_out(node)

    visit_AugAssign = visit_Raise = visit_Continue = visit_Break = leave_out


def find_mutants(module: str, source: str) -> list[Mutant]:
    """Return all mutants of a module.

    Parameters
    ----------
    module : str
        Its path below the package, to name it by.
    source : str
        Its text.
    """
    return _Finder(module, source).find()


def sample_mutants(
    package: Path, folders: Sequence[str], count: int, seed: int, left_out: Sequence[str] = ()
) -> list[Mutant]:
    """Return a sample with equally many mutants of each folder, as far as it has so many.

    Folders take turns: the first part of a sample is itself a sample of this kind.
    """
    drawn = [_shuffled(package, folder, seed, left_out) for folder in folders]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return list(itertools.islice((mutant for mutant in turns if mutant is not None), count))


def _shuffled(package: Path, folder: str, seed: int, left_out: Sequence[str]) -> Iterator[Mutant]:
    sources = {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((package / folder).rglob("*.py"))
    }
    found = [
        mutant
        for module, source in sources.items()
        if module not in left_out
        for mutant in find_mutants(module, source)
    ]
    random.Random(f"{seed} {folder}").shuffle(found)
    return (mutant for mutant in found if mutant.is_another_program(sources[mutant.module]))
