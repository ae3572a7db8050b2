"""Install the built wheel into an empty environment and use it from outside the repository.

python tests/wheel_smoke.py [--python PYTHON] [--wheel FILE]

The environment is one of this Python, or of another; the wheel is built, or given.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SMOKE = """
import sys
from importlib.resources import files
import covshift
from covshift import AdaptedClassifier, PeriodicSparseFiltering, stack_domains
from covshift.datasets import make_periodic_shift

assert "site-packages" in covshift.__file__, covshift.__file__
for part in ("document.html.jinja", "document.css", "document.js"):
    assert (files("covshift.report") / "templates" / part).is_file(), part
data = make_periodic_shift(random_state=0)
X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
plain = AdaptedClassifier().fit(X, y, sample_domain=sample_domain)
model = AdaptedClassifier(PeriodicSparseFiltering(random_state=0))
model.fit(X, y, sample_domain=sample_domain)
scores = [m.score(data.X_test, data.y_test) for m in (plain, model)]
print(f"covshift {covshift.__version__} from its wheel: {scores[0]:.3f} -> {scores[1]:.3f}")
assert scores[0] < 0.6 < 0.85 < scores[1]
"""

MISSING_EXTRA = "import sys; from covshift.cli import main; sys.argv = ['covshift', 'demo']; main()"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--wheel", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        wheel = options.wheel and options.wheel.resolve()
        if wheel is None:
            build = ["-m", "build", "--wheel", "--outdir", str(room), str(ROOT)]
            subprocess.run([sys.executable, *build], check=True, stdout=subprocess.DEVNULL)
            (wheel,) = room.glob("*.whl")
        subprocess.run([options.python, "-m", "venv", room / "empty"], check=True)
        python = room / "empty" / ("Scripts" if os.name == "nt" else "bin") / "python"
        environment = {
            k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")
        }

        def run(*arguments, **options):
            return subprocess.run([python, *arguments], cwd=room, env=environment, **options)

        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
        run(*install, check=True)
        run("-W", "error", "-c", SMOKE, check=True)
        # Without the extra, the command says which one is missing, in one line.
        bare = run("-c", MISSING_EXTRA, capture_output=True, text=True)
        assert bare.returncode != 0, bare
        assert "covshift[cli]" in bare.stderr + bare.stdout, bare
        assert "Traceback" not in bare.stderr, bare.stderr
        # With it, the page on users' files is run as a user would.
        run(*install[:-1], f"{wheel}[cli,report]", check=True)
        page = (ROOT / "docs" / "your-own-files.md").read_text(encoding="utf-8")
        folder = room / "files"
        folder.mkdir()
        make_files = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)[1]
        options = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
        subprocess.run([python, "-c", make_files], check=True, **options)
        commands = re.findall(r"^\$ covshift (.*)$", page, flags=re.MULTILINE)
        for command in commands:
            result = subprocess.run([python.with_name("covshift"), *command.split()], **options)
            print(f"covshift {command}: {result.returncode}")
            moved = command.startswith("monitor") and "west.csv" in command
            assert result.returncode == (3 if moved else 0), result
            assert all(line in page for line in result.stderr.splitlines()), result
        written = re.findall(r"--(?:out|history|report) (\S+)", " ".join(commands))
        tables = {"train.csv", "new.csv", "checked.csv", "west.csv"}
        assert set(os.listdir(folder)) == tables | set(written), os.listdir(folder)
    print("The wheel installs, runs and names the extra that is missing.")


if __name__ == "__main__":
    main()
