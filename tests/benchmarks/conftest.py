"""Scripts of the folder ``benchmarks`` import each other by name; a source archive has none."""

import sys
from pathlib import Path

import pytest
import sklearn

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

collect_ignore_glob = [] if BENCHMARKS.exists() else ["*"]
if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))


@pytest.fixture(autouse=True)
def own_settings():
    """Keep the settings of scikit-learn: importing SKADA turns metadata routing on for all."""
    with sklearn.config_context():
        yield
