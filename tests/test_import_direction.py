"""Data flows one way: a module imports only from those above it."""

import ast
from pathlib import Path

import pytest

import covshift

ROOT = Path(covshift.__file__).parent
# The order of the design record "0001-layout"; `base` is what estimators share.
ORDER = [
    "_version",
    "kernels",
    "solvers",
    "streams",
    "measures",
    "domains",
    "base",
    "registry",
    "output_files",
    "datasets",
    "adapters",
    "weights",
    "predictors",
    "selection",
    "report",
    "diagnosis",
    "experiments",
    "interop",
    "persistence",
    "tables",
    "cli",
]
OPEN_TO_ALL = [ROOT / "__init__.py", ROOT / "__main__.py"]
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path not in OPEN_TO_ALL]


def layer_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported_layers(path):
    """Layers named by the imports of a file, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            names = [node.module]
            if node.module == "covshift":
                names = [f"covshift.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "covshift":
                yield parts[1] if len(parts) > 1 else "covshift"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_arrow_turns_round(path):
    layer = layer_of(path)
    assert layer in ORDER, f"{layer} has no place in the order"
    allowed = set(ORDER[: ORDER.index(layer) + 1])
    if layer == "kernels":
        allowed = {"kernels"}
    if layer == "solvers":
        allowed = {"solvers"}  # they know nothing of filters
    for imported in imported_layers(path):
        assert imported in allowed, f"{path} imports {imported}"


def test_the_reader_of_imports_sees_them(tmp_path):
    """Guards the test above: a reader that finds nothing would let anything pass."""
    module = tmp_path / "module.py"
    module.write_text(
        "import covshift.cli\nfrom covshift import predictors\n"
        "def f():\n    from covshift.report.figures import draw\n"
    )
    assert set(imported_layers(module)) == {"cli", "predictors", "report"}
