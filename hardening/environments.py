"""Run the suite in other environments: the lowest versions, other Pythons, with torch.

python hardening/environments.py list
python hardening/environments.py floors  [--python 3.11] [--place .environments] [-- PYTEST OPTIONS]
python hardening/environments.py pythons [--python 3.13]
python hardening/environments.py torch   [--if-available]

``floors`` installs every dependency of the package and its extras at the version that
``pyproject.toml`` declares as its lowest. ``pythons`` uses each Python from 3.11 to 3.14 found on
this machine. ``torch`` adds PyTorch to a copy of this environment and runs the tests that use it.
With ``--if-available`` a machine where PyTorch cannot be installed within three minutes passes.
Environments are kept in ``--place`` and used again until ``pyproject.toml`` changes.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TORCH = "torch==2.13.0"
# Tools of the suite may be of any version; what users install may not.
USERS_EXTRAS = ("cli", "report", "excel", "duckdb", "speech", "models", "onnx", "dask")
# Tools whose objects users hand over: they are declared with a lowest version, too.
USERS_TOOLS = ("polars",)
# Tools that do not allow the lowest versions; their tests are skipped there.
TOO_NEW_FOR_FLOORS = ("skada",)
# Of old versions under newer ones of what they use: typer under click, scikit-learn under pytest.
FLOOR_WARNINGS = ("ignore::DeprecationWarning", "ignore::pytest.PytestDeprecationWarning")
# Tests that run on torch where it is installed.
TORCH_TESTS = (
    "tests/kernels/test_device_filters.py",
    "tests/adapters/test_device_filters.py",
    "tests/solvers/test_lbfgs.py",
)
INSTALL_LIMIT = 180.0  # seconds for PyTorch, where it may be missing


def find_pythons() -> dict[str, Path]:
    """Return the Pythons of this machine by version: on the path, or installed by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in VERSIONS:
        names = [shutil.which(f"python{version}")]
        names += sorted(map(str, pyenv.glob(f"{version}.*/bin/python{version}")), reverse=True)
        for name in filter(None, names):
            # Shims of pyenv are on the path for versions that are not switched on.
            asked = subprocess.run([name, "-c", "import ssl, venv"], capture_output=True)
            if asked.returncode == 0:
                found[version] = Path(name)
                break
    return found


def lowest_versions(project: dict) -> list[str]:
    """Return "name==version" for each dependency that the project declares as "name>=version"."""
    named = [*project["dependencies"]]
    for extra in USERS_EXTRAS:
        named += project["optional-dependencies"][extra]
    tools = project["optional-dependencies"]["dev"]
    named += [text for text in tools if text.startswith(USERS_TOOLS)]
    found = {}
    for text in named:
        match = re.fullmatch(r"([A-Za-z0-9._-]+)(\[[^]]*\])?>=([0-9.]+)", text.replace(" ", ""))
        if match is None:
            if not text.startswith("covshift["):
                sys.exit(f"pyproject.toml: {text!r} does not have the form name>=version.")
            continue
        found[match[1]] = match[3]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def tools_beside_floors(project: dict) -> list[str]:
    """Return what the suite needs beside the package and its extras at the lowest versions."""
    tools = project["optional-dependencies"]["dev"]
    return [text for text in tools if not text.startswith(("covshift[", *TOO_NEW_FOR_FLOORS))]


def make_environment(
    python: Path, place: Path, requirements: list[str], key: str, limit: float | None = None
) -> Path:
    """Return the Python of an environment with these requirements, made if it is not there.

    ``limit`` is in seconds, for the installation; it raises `subprocess.TimeoutExpired`.
    """
    inside = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    mark = place / "made-for.txt"
    digest = hashlib.sha256(key.encode()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return inside
    shutil.rmtree(place, ignore_errors=True)
    start = time.monotonic()
    subprocess.run([python, "-m", "venv", place], check=True)
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True, cwd=ROOT, timeout=limit)
    mark.write_text(digest)
    print(f"{place.name}: made in {time.monotonic() - start:.0f} s.", flush=True)
    return inside


def run_suite(python: Path, name: str, options: list[str]) -> bool:
    """Run the tests with a Python; return whether they passed."""
    # The benchmarks are a package of their own, which needs only what is installed.
    places = os.pathsep.join(map(str, (ROOT / "src", ROOT / "benchmarks")))
    environment = {**os.environ, "PYTHONPATH": places}
    environment.pop("VIRTUAL_ENV", None)
    start = time.monotonic()
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    print(f"{name}: exit status {code} after {time.monotonic() - start:.0f} s.", flush=True)
    return code == 0


def suite_options(options: list[str]) -> list[str]:
    """Return the options of the whole suite, unless there are others."""
    return options or ["-n", "auto", "-m", "not slow"]


def run_floors(options: argparse.Namespace) -> bool:
    """Run the suite at the lowest versions."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    lowest = lowest_versions(project)
    python = find_pythons()[options.python or VERSIONS[0]]
    place = options.place / "floors"
    options.place.mkdir(parents=True, exist_ok=True)
    constraints = options.place / "floors.txt"
    constraints.write_text("\n".join([*lowest, ""]))
    extras = ",".join(USERS_EXTRAS)
    needed = ["-e", f".[{extras}]", *tools_beside_floors(project), "-c", str(constraints)]
    inside = make_environment(python, place, needed, str(python) + text)
    ignored = [word for text in FLOOR_WARNINGS for word in ("-W", text)]
    return run_suite(inside, "floors", [*ignored, *suite_options(options.pytest)])


def run_pythons(options: argparse.Namespace) -> bool:
    """Run the suite with each Python found, or with one."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    passed = []
    for version, python in find_pythons().items():
        if options.python in (None, version):
            name = f"python-{version}"
            needed = ["-e", ".[dev]"]
            inside = make_environment(python, options.place / name, needed, str(python) + text)
            passed.append(run_suite(inside, name, suite_options(options.pytest)))
    return bool(passed) and all(passed)


def run_torch(options: argparse.Namespace) -> bool:
    """Run the tests that use torch; the other packages are those of this environment."""
    place = options.place / "torch"
    key = f"{TORCH} {sys.prefix} {sys.version}"
    limit = INSTALL_LIMIT if options.if_available else None
    try:
        inside = make_environment(Path(sys.executable), place, [TORCH], key, limit)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        if not options.if_available:
            raise
        print(f"{TORCH} could not be installed, so its tests are not run: {error}")
        return True
    asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(subprocess.check_output([inside, "-c", asked], text=True).strip())
    (packages / "rest.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    # Torch is asked for: a test that is skipped without it shows nothing.
    subprocess.run([inside, "-c", "import torch; print('torch', torch.__version__)"], check=True)
    return run_suite(inside, "torch", options.pytest or list(TORCH_TESTS))


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a suite fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["list", "floors", "pythons", "torch"])
    parser.add_argument("--python", choices=VERSIONS)
    parser.add_argument("--place", type=Path, default=ROOT / ".environments")
    parser.add_argument("--if-available", action="store_true", help="pass without PyTorch")
    parser.epilog = "Tests and options of pytest may follow after --."
    given = sys.argv[1:] if arguments is None else arguments
    cut = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:cut])
    options.pytest = given[cut + 1 :]
    options.place = options.place.resolve()
    if options.which == "list":
        for version, python in find_pythons().items():
            print(f"{version}  {python}")
        return 0
    run = {"floors": run_floors, "pythons": run_pythons, "torch": run_torch}[options.which]
    return int(not run(options))


if __name__ == "__main__":
    sys.exit(main())
