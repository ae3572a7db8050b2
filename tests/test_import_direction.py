"""Data flows one way: a module imports only from those above it, and never in a circle."""

import ast
from pathlib import Path

import pytest

import covshift

ROOT = Path(covshift.__file__).parent
# The order of the design record "0001-layout"; `base` is what estimators share.
ORDER = [
    "_version",
    "warning_filters",
    "shared_docs",
    "kernels",
    "solvers",
    "row_checks",
    "domains",
    "streams",
    "measures",
    "base",
    "adapter_record",
    "registry",
    "output_files",
    "datasets",
    "signals",
    "adapters",
    "weights",
    "predictors",
    "selection",
    "report",
    "diagnosis",
    "studies",
    "interop",
    "persistence",
    "tables",
    "cli",
    "paper",
]
OPEN_TO_ALL = ["covshift", "covshift.__main__"]


def read_modules(root):
    """The syntax tree of every module below a folder, by name; a package is its __init__."""
    trees = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def statements(tree):
    """All statements, those inside functions included, but those for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            negated = isinstance(node.test, ast.UnaryOp)
            node = ast.Module(node.body if negated else node.orelse, [])
        yield node
        yield from statements(node)


def bound_names(tree):
    """Names that a module gives a value outside of functions."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))


def imports_of(name, trees):
    """Modules that a module imports.

    ``from package import name`` takes the name from the package's __init__ where that binds it,
    else it imports the submodule; a submodule's import is not an import of its package.
    """
    found = set()
    for node in statements(trees[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {name}"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                taken = node.module in trees and alias.name in bound_names(trees[node.module])
                found.add(inner if inner in trees and not taken else node.module)
    return {one for one in found if one.partition(".")[0] == "covshift"} - {name}


def find_cycle(graph):
    """Modules of a cycle in the order of its imports, the first one again at the end; else None."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if cycle := visit(other):
                return cycle
        done.add(path.pop())
        return None

    return next((cycle for name in graph if (cycle := visit(name))), None)


def layer_of(name):
    return name.split(".")[1] if "." in name else name


def is_private_of_another(importer, imported):
    """Whether a module, or a package on the way to it, is private to a package not around it."""
    parts = imported.split(".")
    return any(
        part.startswith("_") and not f"{importer}.".startswith(".".join(parts[:depth]) + ".")
        for depth, part in enumerate(parts)
    )


TREES = read_modules(ROOT)
GRAPH = {name: imports_of(name, TREES) for name in TREES}


@pytest.mark.parametrize("name", [name for name in TREES if name not in OPEN_TO_ALL])
def test_no_arrow_turns_round(name):
    layer = layer_of(name)
    assert layer in ORDER, f"{layer} has no place in the order"
    allowed = set(ORDER[: ORDER.index(layer) + 1])
    if layer == "kernels":
        allowed = {"kernels"}
    if layer == "solvers":
        allowed = {"solvers"}  # they do not use filters
    for imported in GRAPH[name]:
        assert layer_of(imported) in allowed, f"{name} imports {imported}"


def test_no_modules_import_each_other_in_a_circle():
    cycle = find_cycle(GRAPH)
    assert cycle is None, " imports ".join(cycle)


def test_private_modules_are_imported_by_their_package_alone():
    found = {
        (importer, imported)
        for importer, names in GRAPH.items()
        for imported in names
        if is_private_of_another(importer, imported)
    }
    assert found == set(), "give the module a public name"


def test_kernels_and_solvers_read_no_clock():
    for name, tree in TREES.items():
        if layer_of(name) in ("kernels", "solvers"):
            for node in statements(tree):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                assert not {"time", "timeit"} & set(names), f"{name} reads a clock"


def test_modules_are_imported_by_a_text_in_five_places_only():
    """Elsewhere a text would hide an import from the tests above.

    ``covshift`` and ``covshift.tables`` import names on first use; what type checkers read there
    has the same imports. ``own_models`` imports the class that a user names, of other packages.
    """
    users = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if getattr(node, "id", getattr(node, "attr", None)) in ("import_module", "__import__")
    }
    assert users == {
        "covshift",
        "covshift.adapter_record",
        "covshift.cli.app",
        "covshift.tables",
        "covshift.tables.own_models",
    }


# Guards of the tests above: a reader that finds nothing would let anything pass.


def test_all_modules_are_read():
    assert {
        "covshift",
        "covshift._version",
        "covshift.cli",
        "covshift.kernels.gaussian_kernels",
    } <= set(TREES)
    assert "covshift.kernels.gaussian_kernels" in GRAPH["covshift.measures.mmd"]


def test_the_reader_of_imports_sees_them():
    module = (
        "import covshift.cli\nimport numpy\nfrom covshift import predictors\n"
        "def f():\n    from covshift.report.figures import draw\n"
        "if TYPE_CHECKING:\n    from covshift.weights import kmm\n"
        "else:\n    from covshift.streams import moments\n"
        "if not typing.TYPE_CHECKING:\n    import covshift.base\n"
    )
    trees = {"covshift.module": ast.parse(module), "covshift.predictors": ast.parse("")}
    assert imports_of("covshift.module", trees) == {
        "covshift.cli",
        "covshift.predictors",
        "covshift.report.figures",
        "covshift.streams",
        "covshift.base",
    }


def test_the_reader_of_imports_tells_packages_from_their_modules():
    trees = {
        "covshift.a": ast.parse("from covshift.a.both import both"),
        "covshift.a.both": ast.parse(""),
        "covshift.a.inner": ast.parse(""),
        "covshift.b": ast.parse("from covshift.a import inner"),
        "covshift.c": ast.parse("from covshift.a import both, other"),
        "covshift.d": ast.parse("from covshift.a.inner import name"),
    }
    assert imports_of("covshift.b", trees) == {"covshift.a.inner"}
    assert imports_of("covshift.c", trees) == {"covshift.a"}
    assert imports_of("covshift.d", trees) == {"covshift.a.inner"}


def test_the_search_for_cycles_finds_them():
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}) == ["b", "c", "d", "b"]


def test_private_modules_of_others_are_seen():
    assert is_private_of_another("covshift.a.b", "covshift.c._d")
    assert is_private_of_another("covshift.a.b", "covshift.c._d.e")
    assert is_private_of_another("covshift.a", "covshift.a.c._d")
    assert not is_private_of_another("covshift.a", "covshift.a._d")
    assert not is_private_of_another("covshift.a.b", "covshift.a._d")
    assert not is_private_of_another("covshift.a.b.c", "covshift.a._d")
    assert not is_private_of_another("covshift.a.b", "covshift._version")
