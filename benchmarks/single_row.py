"""Microseconds of predicting one row, beside the plain scikit-learn estimator in the same run.

python benchmarks/single_row.py [--out results.json]

20 features, two classes; nothing is known of the target but what the fit stored. Most of the time
goes into checking the row, which scikit-learn does once for each step.
"""

import numpy as np
from measuring import median_seconds, report
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from covshift import (
    AdaptedClassifier,
    CorrelationAlignment,
    DomainStandardScaler,
    PeriodicSparseFiltering,
    SparseFiltering,
    stack_domains,
)

LIMIT = 1000  # microseconds
N_FEATURES = 20


def models():
    """The fitted models by name; the first two are scikit-learn's."""
    rng = np.random.RandomState(0)
    source, target = rng.standard_normal((500, N_FEATURES)), rng.standard_normal((300, N_FEATURES))
    labels = (source[:, 0] + source[:, 1] ** 2 > 0.5).astype(int)
    X, y, sample_domain = stack_domains(source, labels, target + 1)
    filters = {"max_iter": 100, "tol": 1e-2, "random_state": 0}
    linear = LogisticRegression()
    plain = {
        "scikit-learn: LogisticRegression": linear,
        "scikit-learn: StandardScaler, LogisticRegression": make_pipeline(StandardScaler(), linear),
    }
    adapted = {
        "no adapter, LogisticRegression": (None, linear),
        "DomainStandardScaler, LogisticRegression": (DomainStandardScaler(), linear),
        "CorrelationAlignment, LogisticRegression": (
            CorrelationAlignment(direction="target_to_source"),
            linear,
        ),
        "SparseFiltering, LogisticRegression": (SparseFiltering(10, **filters), linear),
        "PeriodicSparseFiltering, LinearSVC": (
            PeriodicSparseFiltering(8, n_restarts=1, **filters),
            LinearSVC(),
        ),
        "DomainStandardScaler > SparseFiltering, LogisticRegression": (
            make_pipeline(DomainStandardScaler(), SparseFiltering(10, **filters)),
            linear,
        ),
    }
    fitted = {name: model.fit(source, labels) for name, model in plain.items()}
    for name, parts in adapted.items():
        model = AdaptedClassifier(*parts)
        fitted[f"covshift: {name}"] = model.fit(X, y, sample_domain=sample_domain)
    return fitted, target[:1] + 1


def main():
    """Time each model on one row."""
    fitted, row = models()
    calls = {name: (lambda model=model: model.predict(row)) for name, model in fitted.items()}
    name = "covshift: SparseFiltering, LogisticRegression"
    calls[f"{name}, by the number of its domain"] = lambda: fitted[name].predict(
        row, sample_domain=-1
    )
    seconds = median_seconds(calls, repetitions=300)
    microseconds = {name: 1e6 * value for name, value in seconds.items()}
    for name, value in microseconds.items():
        if name.startswith("scikit-learn"):
            print(f"{name:76s} {value:9.1f}")
    report(
        (f"{name}, microseconds", value, "<=", LIMIT)
        for name, value in microseconds.items()
        if name.startswith("covshift")
    )


if __name__ == "__main__":
    main()
