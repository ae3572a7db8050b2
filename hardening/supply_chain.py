"""List what a release depends on, with licenses, as a table and as a bill of materials.

python hardening/supply_chain.py licenses [--extras all report]     # a table in Markdown
python hardening/supply_chain.py sbom [--out dist/covshift.cdx.json]  # CycloneDX 1.6, JSON
python hardening/supply_chain.py check                              # 1 if a license is not known
python hardening/supply_chain.py audit                              # 1 unless nothing is known

Everything is read from the packages installed in this environment, whose versions are those that
were tested. ``audit`` asks `pip-audit` about them, and first about a version that is known to be
vulnerable: without access to the advisories `pip-audit` finds nothing and says so like good news.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Licenses that allow use, change and redistribution without obligations for the using code. The
# Mozilla Public License obliges only who changes the files under it.
PERMISSIVE = (
    "apache", "bsd", "mit", "isc", "psf", "python software foundation", "hpnd", "zlib", "mpl",
    "mozilla public", "unlicense", "public domain", "0bsd", "historical permission",
)  # fmt: skip
KNOWN_VULNERABLE = "jinja2==3.1.0"
RESTRICTIVE = ("gpl", "affero", "proprietary", "noncommercial", "non-commercial")


def closure(name: str, extras: set[str]) -> dict[str, Distribution]:
    """Return the installed packages that a package and some of its extras need, by name."""
    found: dict[str, Distribution] = {}
    done: set[tuple[str, str]] = set()
    todo = [(name, extra) for extra in ("", *sorted(extras))]
    while todo:
        name, extra = todo.pop()
        key = canonicalize_name(name)
        if (key, extra) in done:
            continue
        done.add((key, extra))
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed. Run `make lint` first, which installs it.")
        for text in found[key].requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                todo += [(needed.name, one) for one in ("", *needed.extras)]
    return dict(sorted(found.items()))


def license_of(package: Distribution) -> str:
    """Return the license that a package states: its expression, classifiers, text or file."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in about.get_all("Classifier") or []
        if text.startswith("License :: ") and text.rpartition(" :: ")[2] != "OSI Approved"
    ]
    if classifiers:
        return " and ".join(dict.fromkeys(classifiers))
    text = (about.get("License") or "").strip()
    if text:
        return text.splitlines()[0][:60]
    files = [one for one in package.files or [] if one.name.upper().startswith("LICEN")]
    titles = [one.read_text().strip().partition("\n")[0].strip() for one in files]
    return titles[0][:60] if titles else "not stated"


def is_permissive(text: str) -> bool:
    """Return whether a license asks nothing of the code that uses it."""
    words = text.lower()
    # Several licenses joined by "and" hold together; an exception or a choice is read by a person.
    known = any(re.search(rf"\b{one}", words) for one in PERMISSIVE)
    return known and not any(one in words for one in RESTRICTIVE)


def as_table(packages: dict[str, Distribution]) -> str:
    """Return the packages with their licenses in Markdown."""
    lines = ["| package | version | license |", "|---|---|---|"]
    for name, package in packages.items():
        if name != "covshift":
            text = re.sub(r"\s+", " ", license_of(package)).replace("|", "\\|")
            lines.append(f"| {name} | {package.version} | {text} |")
    return "\n".join(lines)


def as_sbom(packages: dict[str, Distribution]) -> dict[str, Any]:
    """Return a bill of materials (CycloneDX 1.6)."""
    components = {}
    for name, package in packages.items():
        purl = f"pkg:pypi/{name}@{package.version}"
        components[name] = {
            "type": "library", "bom-ref": purl, "name": name, "version": package.version,
            "purl": purl, "licenses": [{"license": {"name": license_of(package)}}],
        }  # fmt: skip
    depends = []
    for name, package in packages.items():
        needed = {canonicalize_name(Requirement(text).name) for text in package.requires or []}
        on = [components[one]["bom-ref"] for one in sorted(needed) if one in components]
        depends.append({"ref": components[name]["bom-ref"], "dependsOn": on})
    own = {**components.pop("covshift"), "type": "application"}
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": own},
        "components": list(components.values()), "dependencies": depends,
    }  # fmt: skip


def vulnerable(requirements: list[str]) -> list[str]:
    """Return the versions with known vulnerabilities; raise RuntimeError if one is not judged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requirements.txt"
        path.write_text("\n".join([*requirements, ""]))
        command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "-f", "json"]
        done = subprocess.run([*command, "-r", path], capture_output=True, text=True)
    try:
        judged = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RuntimeError(f"pip-audit fails: {last}") from None
    skipped = [one["name"] for one in judged if "skip_reason" in one]
    if skipped or len(judged) != len(requirements):
        raise RuntimeError(f"pip-audit could not judge {len(skipped)} of {len(requirements)}.")
    return [f"{one['name']} {one['version']}" for one in judged if one["vulns"]]


def audit(packages: dict[str, Distribution]) -> int:
    """Print what is known of the packages; return 1 if something is, or nothing can be known."""
    asked = [
        f"{name}=={package.version}" for name, package in packages.items() if name != "covshift"
    ]
    try:
        if not vulnerable([KNOWN_VULNERABLE]):
            raise RuntimeError(f"pip-audit finds nothing in {KNOWN_VULNERABLE}.")
        found = vulnerable(asked)
    except RuntimeError as error:
        print(f"Not audited: {error} The databases of PyPI or OSV must be reachable.")
        return 1
    print(f"{len(asked)} packages, known vulnerabilities in {len(found)}: {', '.join(found)}")
    return int(bool(found))


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if ``check`` or ``audit`` finds a package to look at."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["licenses", "sbom", "check", "audit"])
    parser.add_argument("--extras", nargs="*", default=["all"])
    parser.add_argument("--out", type=Path, help="file to write instead of printing")
    options = parser.parse_args(arguments)
    packages = closure("covshift", set(options.extras))
    if options.what == "audit":
        return audit(packages)
    if options.what == "check":
        stated = {name: license_of(package) for name, package in packages.items()}
        others = {name: text for name, text in stated.items() if not is_permissive(text)}
        for name, text in others.items():
            print(f"{name}: {text}")
        print(f"{len(packages)} packages, {len(others)} with a license to look at.")
        return int(bool(others))
    made = as_table(packages) if options.what == "licenses" else None
    text = made or json.dumps(as_sbom(packages), indent=1)
    if options.out is None:
        print(text)
    else:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", encoding="utf-8")
        print(f"{len(packages)} packages in {options.out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
