"""Check a release before it is published: archives, metadata, and the wheel on every Python.

python hardening/release_check.py [--out dist] [--pythons 3.11 3.13]

Builds the source archive and the wheel (from the source archive), lets twine check their metadata,
refuses a version that the changelog does not name, writes the bill of materials and the digests for
the release notes, and uses the installed wheel with each Python found on this machine. The
documentation is `make docs`.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import supply_chain
from environments import find_pythons

ROOT = Path(__file__).resolve().parent.parent


def version_of(text: str) -> str:
    """Return the version that ``_version.py`` states."""
    match = re.search(r'__version__ = "([^"]+)"', text)
    if match is None:
        sys.exit("src/covshift/_version.py states no version.")
    return match[1]


def missing_statements(version: str, changelog: str, citation: str, recipe: str) -> list[str]:
    """Return what does not name a version that is to be released."""
    missing = []
    if not re.search(
        rf"^## \[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d", changelog, re.MULTILINE
    ):
        missing.append(f"CHANGELOG.md has no part '## {version} - YYYY-MM-DD'.")
    if not re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE):
        missing.append(f"CITATION.cff does not name version {version}.")
    if f'version: "{version}"' not in recipe:
        missing.append(f"conda/recipe.yaml does not name version {version}.")
    return missing


def build(out: Path) -> list[Path]:
    """Build the source archive, and the wheel from it."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return sorted(out.iterdir())


def provenance(archives: list[Path]) -> str:
    """Return the lines for the release notes: digests, the commit, and what built them."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    lines = [f"Built from commit {commit or 'unknown'} with Python {sys.version.split()[0]}.", ""]
    for path in archives:
        lines.append(f"    sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if something is not ready."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--pythons", nargs="*", help="versions to try; default: all that are found")
    parser.add_argument(
        "--rehearsal", action="store_true", help="missing statements are not a fault"
    )
    options = parser.parse_args(arguments)
    texts = ["src/covshift/_version.py", "CHANGELOG.md", "CITATION.cff", "conda/recipe.yaml"]
    about, *others = [(ROOT / name).read_text(encoding="utf-8") for name in texts]
    version = version_of(about)
    missing = missing_statements(version, *others)
    print("\n".join(missing) or f"All files name version {version}.", flush=True)
    archives = build(options.out)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *archives], check=True)
    (wheel,) = [path for path in archives if path.suffix == ".whl"]
    failed = []
    for name, python in find_pythons().items():
        if not options.pythons or name in options.pythons:
            smoke = [ROOT / "tests" / "wheel_smoke.py", "--python", python, "--wheel", wheel]
            code = subprocess.run([sys.executable, *smoke]).returncode
            print(f"The wheel on Python {name}: {'good' if code == 0 else 'FAILS'}.", flush=True)
            failed += [name] * bool(code)
    supply_chain.main(["sbom", "--out", str(options.out / f"covshift-{version}.cdx.json")])
    licenses = supply_chain.main(["check"])
    (options.out / "provenance.txt").write_text(provenance(archives))
    print((options.out / "provenance.txt").read_text())
    return int(bool(failed) or bool(licenses) or (bool(missing) and not options.rehearsal))


if __name__ == "__main__":
    sys.exit(main())
