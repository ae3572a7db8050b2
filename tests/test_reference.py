"""Docstrings of public names say what the reference promises: parameters, examples, cost."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import covshift
from covshift.shared_docs import read_entries, read_sections

# The modules of the table of public names.
MODULES = ["covshift", "covshift.datasets", "covshift.measures", "covshift.selection"]
MODULES += ["covshift.persistence", "covshift.signals"]
MODULES += ["covshift.interop.onnx", "covshift.interop.skada"]


def public_callables(modules=MODULES):
    """Functions and estimators, each once; no records of results, no warnings and errors."""
    found = {}
    for module in modules:
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            value = getattr(namespace, name)
            if inspect.isfunction(value) or (
                inspect.isclass(value) and hasattr(value, "get_params")
            ):
                found[value] = f"{module}.{name}"
    return [pytest.param(value, id=name) for value, name in found.items()]


@pytest.mark.parametrize("value", public_callables())
def test_parameters_example_and_cost(value):
    text = inspect.getdoc(value)
    parameters = [name for name in inspect.signature(value).parameters if name != "self"]
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    assert not parameters or section
    described = text.partition("Parameters\n----------\n")[2]
    for name in parameters:
        assert name in described, name
    assert ">>> " in text
    if not value.__module__.startswith("covshift.diagnosis"):
        assert "**Cost**: " in text


def public_methods():
    """Methods of public classes that this package defines, each once."""
    found = {}
    for module in MODULES:
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            value = getattr(namespace, name)
            if not hasattr(value, "fit") and not hasattr(value, "split"):
                continue
            for method in (one for one in dir(value) if not one.startswith("_")):
                function = inspect.unwrap(getattr(value, method))
                if getattr(function, "__module__", "").startswith("covshift"):
                    found[function] = f"{name}.{method}"
    return [pytest.param(function, id=name) for function, name in found.items()]


@pytest.mark.parametrize("method", public_methods())
def test_methods_describe_their_parameters(method):
    text = inspect.getdoc(method)
    if text.startswith("Refuse: "):
        return
    described = read_entries(read_sections(text).get("Parameters", ""))
    parameters = {name for name in inspect.signature(method).parameters if name != "self"}
    assert parameters <= described.keys()


def test_sections_have_a_line_for_their_title():
    """A text that is wrapped again may swallow it."""
    for path in (Path(covshift.__file__).parent).rglob("*.py"):
        assert not re.findall(r"^ +[A-Z][a-z ]+ -{4,} ?\w.*", path.read_text(), re.MULTILINE), path


@pytest.mark.parametrize(
    "name", ["SparseFiltering", "PeriodicSparseFiltering", "SubspaceAlignment", "ULSIFWeights"]
)
def test_methods_of_the_paper_have_their_formula_and_reference(name):
    text = inspect.getdoc(getattr(importlib.import_module("covshift"), name))
    assert ".. math::" in text
    assert "References\n----------" in text


def defaults_in(text):
    """Parameters and the defaults that a docstring states: {name: text}."""
    section = text.partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w[\w ]*\n-{3,}\n", section)[0]
    return dict(re.findall(r"^(\w+) : .*?default=([^\n]+?)$", section, flags=re.MULTILINE))


@pytest.mark.parametrize("value", public_callables([*MODULES, "covshift.tables"]))
def test_stated_defaults_are_those_of_the_signature(value):
    stated = defaults_in(inspect.getdoc(value))
    parameters = inspect.signature(value).parameters
    namespace = vars(importlib.import_module(value.__module__))
    for name, text in stated.items():
        assert name in parameters, name
        text = text.replace(" GiB", " * 2**30")
        assert eval(text, dict(namespace)) == parameters[name].default, name
