"""The build of the compiled kernels: with a compiler, without one, and when it is not wanted."""

import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
hatch_build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hatch_build)


def initialize():
    """Return the hook's answer to hatchling about a wheel, and what it prints."""
    said, data = [], {"force_include": {}}
    hook = SimpleNamespace(app=SimpleNamespace(display_warning=said.append))
    hatch_build.CustomBuildHook.initialize(hook, "standard", data)
    files = {Path(source): target for source, target in data.pop("force_include").items()}
    sizes = [source.stat().st_size for source in files]
    hatch_build.CustomBuildHook.finalize(hook, "standard", data, "")
    return data, list(files.values()), sizes, said


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("COVSHIFT_COMPILE", "1")


@pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler"
)
def test_the_library_is_part_of_a_wheel_for_every_python():
    data, files, sizes, said = initialize()
    assert files == ["covshift/kernels/compiled/_filters.so"]
    assert 10_000 < sizes[0] < 1_000_000
    assert data["pure_python"] is False
    assert data["tag"].startswith("py3-none-")
    assert not said


def test_without_a_compiler_the_wheel_is_pure(monkeypatch):
    monkeypatch.setattr(hatch_build.shutil, "which", lambda name: None)
    data, files, _, said = initialize()
    assert (data, files) == ({}, [])
    assert "there is no C compiler" in said[0]


def test_a_compiler_that_fails_leaves_the_wheel_pure(monkeypatch):
    monkeypatch.setenv("CC", "false")
    data, files, _, said = initialize()
    assert (data, files) == ({}, [])
    assert "false cannot compile the kernels" in said[0]


def test_a_compiler_that_is_not_there_leaves_the_wheel_pure(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    data, files, _, said = initialize()
    assert (data, files) == ({}, [])
    assert "no-such-compiler" in said[0]


def test_the_wheel_is_pure_unless_asked(monkeypatch):
    monkeypatch.delenv("COVSHIFT_COMPILE")
    assert initialize() == ({}, [], [], [])
