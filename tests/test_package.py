"""`import covshift`: its names and submodules are there, and are imported on first use."""

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import covshift

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "joblib")


def run(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def names_for_type_checkers():
    """Names and modules of the block that only type checkers read."""
    tree = ast.parse(Path(covshift.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_the_lists_of_names_agree():
    assert names_for_type_checkers() == covshift._MODULE_OF
    assert list(covshift._MODULE_OF) == covshift.__all__ == sorted(covshift.__all__)


def test_import_is_light():
    assert run(f"import sys, covshift; print(*(set({HEAVY}) & set(sys.modules)))") == ""
    shown = run("import covshift; print(covshift.__version__); print(*dir(covshift))")
    version, names = shown.splitlines()
    assert version == covshift.__version__
    assert {*covshift.__all__, *covshift._SUBMODULES, "__version__"} <= set(names.split())


@pytest.mark.parametrize("name", covshift.__all__)
def test_names(name):
    value = getattr(covshift, name)
    assert value is getattr(sys.modules[covshift._MODULE_OF[name]], name)
    assert vars(covshift)[name] is value  # the second time it is found at once


def test_submodules_are_attributes():
    names = covshift._SUBMODULES
    shown = run(f"import covshift; print(*(getattr(covshift, n).__name__ for n in {names}))")
    assert shown.split() == [f"covshift.{name}" for name in names]


def test_star_import():
    namespace = {}
    exec("from covshift import *", namespace)
    assert set(covshift.__all__) <= set(namespace)


def test_unknown_names():
    with pytest.raises(AttributeError, match=r"^module 'covshift' has no attribute 'nonsense'$"):
        covshift.nonsense  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'nonsense' from 'covshift'"):
        from covshift import nonsense  # noqa: F401


def test_pickles_need_no_import_of_the_package():
    data = pickle.dumps([covshift.DomainStandardScaler(), covshift.stack_domains])
    assert run(f"import pickle; print(len(pickle.loads({data!r})))") == "2"
