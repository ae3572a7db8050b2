"""Draw the picture of the README, docs/_static/report.png: the start of a real report.

    python docs/readme_picture.py

Writes the sample files, diagnoses them and lets Chromium draw the report.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PICTURE = Path(__file__).parent / "_static" / "report.png"
SIZE = "1000,1460"
# A plain process that sends no requests; without a sandbox it also runs as root.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def main():
    """Write the files, the report and the picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    covshift = [sys.executable, "-m", "covshift"]
    with tempfile.TemporaryDirectory() as folder:
        # The numbers on the pages are NumPy's.
        settings = {"cwd": folder, "check": True, "env": os.environ | {"COVSHIFT_KERNELS": "numpy"}}
        subprocess.run([*covshift, "sample-data"], **settings)
        options = ["--label", "fault", "--domain", "plant", "--report", "report.html"]
        subprocess.run([*covshift, "diagnose", "train.csv", "new.csv", *options], **settings)
        page = Path(folder) / "report.html"
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("<nav ", "<nav hidden ", 1), encoding="utf-8")
        drawn = Path(folder) / "report.png"
        command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={SIZE}"]
        subprocess.run([*command, f"--screenshot={drawn}", page.as_uri()], **settings)
        # A page has few colors: 64 of them take a third of the space.
        Image.open(drawn).convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
