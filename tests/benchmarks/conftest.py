"""Scripts of the folder ``benchmarks`` import each other by name; a source archive has none."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

collect_ignore_glob = [] if BENCHMARKS.exists() else ["*"]
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
