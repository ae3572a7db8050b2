"""Size of model files, and the time of saving and loading them.

python benchmarks/saved_models.py [--out results.json]

The bounds are what a user would notice: a second to save or to load.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from measuring import median_seconds, report
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from covshift import (
    AdaptedClassifier,
    AutoAdaptedClassifier,
    DomainStandardScaler,
    PeriodicSparseFiltering,
    load,
    save,
    stack_domains,
)
from covshift.datasets import make_smooth_shift

warnings.simplefilter("ignore", ConvergenceWarning)
NOTICED = 1000.0  # milliseconds
LARGEST = 10_000.0  # kilobytes


def models():
    """Fitted models by name: small, as large as those of speech, and a vote."""
    data = make_smooth_shift(random_state=0)
    X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    rng = np.random.RandomState(0)
    wide = rng.standard_normal((3000, 72))
    labels = (wide[:, 0] > 0).astype(int)
    filters = PeriodicSparseFiltering(100, n_restarts=1, max_iter=10, random_state=0)
    return {
        "DomainStandardScaler, LogisticRegression; 2 features": AdaptedClassifier(
            DomainStandardScaler()
        ).fit(X, y, sample_domain=sample_domain),
        "PeriodicSparseFiltering(100), LinearSVC; 72 features": AdaptedClassifier(
            filters, LinearSVC()
        ).fit(wide, labels, sample_domain=np.where(np.arange(3000) < 2500, 0, -1)),
        "AutoAdaptedClassifier, 7 votes; 500 + 250 rows": AutoAdaptedClassifier(random_state=0).fit(
            X, y, sample_domain=sample_domain
        ),
    }


def measure(folder):
    """Yield the rows of the report."""
    for name, model in models().items():
        path = Path(folder) / "model.skops"
        seconds = median_seconds(
            {
                "save": lambda model=model, path=path: save(model, path),
                "load": lambda path=path: load(path),
            },
            repetitions=5,
        )
        yield f"{name}: kilobytes", path.stat().st_size / 1e3, "<=", LARGEST
        for what, value in seconds.items():
            yield f"{name}: milliseconds to {what}", 1e3 * value, "<=", NOTICED


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report(list(measure(folder)))
