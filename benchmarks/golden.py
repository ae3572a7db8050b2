"""Golden numbers: what the package returns on small data, recorded before a change, compared after.

python benchmarks/golden.py record FILE.npz
python benchmarks/golden.py compare FILE.npz [--tolerance 1e-12] [--only GROUP]

Use it for a change that must not alter any result. The cases cover every adapter and weight
estimator, alone and inside the predictors, rows in blocks and from another array library, the
measures of rows, the default candidates and their ensemble, the models that the command line builds
by name, diagnoses, tables, and one draw of the paper's synthetic study. `compare` prints the
largest difference of each case, `|new - old| / (1 + |old|)`. It exits with code 1 if a case differs
by more than the tolerance, fails, is missing or is new.

Candidates, hypotheses and scores are read by position, because their names may change. Other names
that a later version may change stand in one place, below the imports. Record and compare on the
same machine with the same library versions: elsewhere the last bits differ. Either takes about
three minutes on one core.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: sums in one order
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["SCIPY_ARRAY_API"] = "1"  # for rows of another array library

import argparse
import csv
import dataclasses
import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import covshift
from covshift import (
    AdaptedClassifier,
    AdaptedRegressor,
    AutoAdaptedClassifier,
    ClassifierWeights,
    CorrelationAlignment,
    DenoisingAutoencoder,
    DomainQuantileTransformer,
    DomainStandardScaler,
    KLIEPWeights,
    KMMWeights,
    LinearMongeAlignment,
    LSPClassifier,
    PeriodicSparseFiltering,
    RuLSIFWeights,
    SegmentSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
    ULSIFWeights,
    diagnose,
    fit_each,
    fit_many,
    measures,
)
from covshift.datasets import make_radial_shift, make_smooth_shift

# --- Names that a later version may change. Keys name cases and stay; values follow the code. ---

NAMED_ADAPTERS = {
    "none": "none",
    "standardize": "standardize",
    "standardize-domains": "standardize-domains",
    "ranks": "ranks",
    "coral": "coral",
    "monge": "monge",
    "sa": "sa",
    "sf": "sf",
    "psf": "psf",
    "ulsif": "ulsif",
    "kliep": "kliep",
    "kmm": "kmm",
    "classifier-weights": "classifier-weights",
    "rulsif": "rulsif",
    "sa-8": "sa-8",
    "dae": "dae",
    "standardize-sf": "standardize-sf",
    "psf, unlabeled": "psf-unlabeled",
    "standardize-psf": "standardize-psf",
}
NAMED_MODELS = {
    "linear": "logistic",
    "rbf": "rbf",
    "boosting": "boosting",
    "linear svm": "linear-svm",
    "kernel ridge": "kernel-ridge",
    "forest": "forest",
    "joint": "joint",
    "joint, no graph": "joint-no-graph",
}
# Columns of a leaderboard's row that are not scores, and those of its two results.
NOT_SCORES = ("candidate", "adapter", "estimator", "seconds", "disqualified", "warnings")
COMBINED, WEIGHT = "expected gain", "weight"
ACTIONS = ("adapt", "combine", "keep")
PAPER_COMMAND = ("reproduce", "synthetic")
PAPER_RESULTS = ("with", "without", "without_target", "mmd_before", "mmd_after")


def build_named(adapter: str, model: str, n_source: int, n_features: int) -> Any:
    """Return the model that the command line builds for two names."""
    from covshift.selection.candidates import named_model

    return named_model(NAMED_ADAPTERS[adapter], NAMED_MODELS[model], n_source, n_features)


def list_named() -> tuple[set[str], set[str]]:
    """Return the names that exist, to find cases that this file lacks."""
    from covshift.registry import records
    from covshift.selection.candidates import MODELS

    # Of windows of signals, which have a case of their own.
    return {record.name for record in records()} - {"segment-sf"}, set(MODELS)


def list_candidates(
    estimator: Any, X: np.ndarray, sample_domain: np.ndarray, n_classes: int
) -> list[str]:
    """Return the names of the default candidates in the order of their list."""
    from covshift.predictors.fit_and_predict import problem_size
    from covshift.selection.candidates import candidates_around, default_candidates

    size = problem_size(X, n_classes, sample_domain)
    found = default_candidates(size) if estimator is None else candidates_around(estimator, size)
    return [one.name for one in found]


def read_diagnosis(diagnosis: Any) -> dict[str, Any]:
    """Return the numbers of a diagnosis by part."""
    told = diagnosis.to_dict()
    return {
        "action": ACTIONS.index(told["assessment"]["action"]),
        "assessment": numbers_of(told["assessment"]),
        "table": numbers_of(told["adapters"]),
        "movement": numbers_of(told["movement"]),
        "weighting": numbers_of(told["weighting"]),
        "stability": numbers_of(told["stability"]),
        "to label": diagnosis.rows_to_label(10),
    }


# --- Estimators ---

# Values that were defaults when most records were made.
RELEASED = {"init_scale": 1.0, "label_reward": 1.0}
ADAPTERS = {
    "SF": SparseFiltering(init_scale=1.0, random_state=0),
    "PSF": PeriodicSparseFiltering(**RELEASED, random_state=0),
    "standardize": DomainStandardScaler(),
    "CORAL": CorrelationAlignment(),
    "Monge": LinearMongeAlignment(),
    "SA": SubspaceAlignment(),
    "ranks": DomainQuantileTransformer(),
    "DAE": DenoisingAutoencoder(random_state=0),
}
# Other settings, those of tests/estimators.py among them.
OTHER_SETTINGS = {
    "SF, sin": SparseFiltering(
        n_components=20, activation="sin", init_scale=0.1, max_iter=0, random_state=0
    ),
    "PSF, restarts": PeriodicSparseFiltering(**RELEASED, n_restarts=2, random_state=0),
    "standardize by domain": DomainStandardScaler(pooling="domain"),
    "CORAL to source, by domain": CorrelationAlignment(
        direction="target_to_source", pooling="domain"
    ),
    "Monge to source": LinearMongeAlignment(direction="target_to_source"),
    "SA, scaled, by domain": SubspaceAlignment(center=True, scale=True, pooling="domain"),
    "ranks by domain": DomainQuantileTransformer(pooling="domain"),
    "DAE, small": DenoisingAutoencoder(n_components=2, max_epochs=5, random_state=0),
    "DAE, other training": DenoisingAutoencoder(
        n_components=3, activation="tanh", decoder="linear", tied=True, noise="masking",
        solver="sgd", learning_rate=0.05, early_stopping=True, patience=3, max_epochs=20,
        init="normal", random_state=0,
    ),
    "SF, small": SparseFiltering(n_components=3, norm_epsilon=1e-8, random_state=0),
    "PSF, blockwise": PeriodicSparseFiltering(loss="blockwise", max_iter=30, random_state=0),
    "PSF, cos, stopped": PeriodicSparseFiltering(
        activation="cos", early_stopping="ks", max_iter=40, stopping_window=20, alpha=0.01,
        n_unlabelled_components=2, n_components=10, n_restarts=2, random_state=0,
    ),
    "PSF, abs": PeriodicSparseFiltering(activation="abs", max_iter=30, random_state=0),
}  # fmt: skip
WEIGHTS = {
    "uLSIF": ULSIFWeights(random_state=0),
    "RuLSIF": RuLSIFWeights(random_state=0),
    "KLIEP": KLIEPWeights(random_state=0),
    "KMM": KMMWeights(),
    "KMM, landmarks": KMMWeights(n_landmarks=100, random_state=0),
    "classifier": ClassifierWeights(random_state=0),
}
ESTIMATORS = {"LR": LogisticRegression(), "LinearSVC": LinearSVC(dual=False)}
FEW_CANDIDATES = (
    (None, LogisticRegression()),
    (DomainStandardScaler(), LogisticRegression()),
    (CorrelationAlignment(), LogisticRegression()),
)


# --- Data ---


class Data(NamedTuple):
    """Rows of three source domains and a target, and new rows of the target."""

    X: np.ndarray
    y: np.ndarray  # classes
    number: np.ndarray  # to regress on
    sample_domain: np.ndarray
    X_new: np.ndarray

    @property
    def where(self) -> dict[str, np.ndarray]:
        """Domains, as estimators take them."""
        return {"sample_domain": self.sample_domain}

    @property
    def n_source(self) -> int:
        """Number of source rows."""
        return int(np.sum(self.sample_domain >= 0))


N_ROWS, N_NEW = 150, 30  # of each role; of new rows


@cache
def make_data(name: str) -> Data:
    """Return the data of this name.

    "two" and "three" classes of 6 features, "wide" with 80, so that features are reduced; in "near"
    the target hardly moves, and in "sites" each domain has a location of its own.
    """
    if name in ("near", "sites"):
        return _make_sites(*([0, 0, 0, 0.5], 3.0) if name == "near" else ([0, 3, -3, 4], 1.2))
    rng = np.random.RandomState(["two", "three", "wide"].index(name))
    make = make_radial_shift if name == "wide" else make_smooth_shift
    shifted = make(N_ROWS, 1, N_ROWS + N_NEW, random_state=rng)
    plane = np.concatenate([shifted.X_source, shifted.X_test])
    y = np.concatenate([shifted.y_source, shifted.y_test])
    others = rng.standard_normal((len(plane), 78 if name == "wide" else 4))
    others += plane @ rng.standard_normal((2, others.shape[1])) / 2
    X = np.column_stack([plane, others])
    number = X[:, 0] + X[:, 2] + 0.1 * rng.standard_normal(len(X))
    if name == "three":
        y = np.digitize(number, np.quantile(number[:N_ROWS], [1 / 3, 2 / 3]))
    domain = np.concatenate([np.repeat([0, 1, 2], N_ROWS // 3), np.full(N_ROWS + N_NEW, -1)])
    X = X * (1 + 0.1 * domain[:, None]) + 0.3 * domain[:, None]
    # Mixed order, as rows of files may come.
    order = np.concatenate([rng.permutation(2 * N_ROWS), np.arange(2 * N_ROWS, len(X))])
    X, y, number, domain = X[order], y[order], number[order], domain[order]
    kept = slice(2 * N_ROWS)
    return Data(X[kept], y[kept], number[kept], domain[kept], X[2 * N_ROWS :])


def _make_sites(locations: list[float], distance: float) -> Data:
    """Two classes so far apart in three of six features, each domain moved along them."""
    rng = np.random.RandomState(0)
    n_domain = N_ROWS // 3
    domain = np.concatenate([np.repeat([0, 1, 2], n_domain), np.full(N_ROWS + N_NEW, -1)])
    y = np.arange(len(domain)) % 2
    X = rng.standard_normal((len(domain), 6))
    number = X[:, 0] + y
    X[:, :3] += distance * y[:, None] + np.array(locations)[domain][:, None]
    kept = slice(2 * N_ROWS)
    return Data(X[kept], y[kept], number[kept], domain[kept], X[2 * N_ROWS :])


# --- What is kept of results ---


def thinned(values: Any) -> np.ndarray:
    """Return labels as they are; of numbers, a dozen rows and the mean of each column."""
    values = np.asarray(values)
    if values.dtype.kind in "iub":
        return values
    n_kept = 12 if values.ndim == 1 or values.shape[1] <= 40 else 3
    rows = values[:: -(-len(values) // n_kept)]
    return np.concatenate([rows, values.mean(axis=0, keepdims=True)])


def numbers_of(value: Any) -> np.ndarray:
    """Return the numbers in nested lists and dictionaries in their order; 1 stands for a text."""
    return np.array([*_walk(value)], dtype=float)


def _walk(value: Any) -> Iterator[float]:
    if value is None:
        yield np.nan
    elif isinstance(value, str):
        yield 1.0
    elif dataclasses.is_dataclass(value):
        yield from _walk(vars(value))
    elif isinstance(value, dict):
        for one in value.values():
            yield from _walk(one)
    elif isinstance(value, np.ndarray):
        yield from value.ravel().astype(float)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _walk(one)
    else:
        yield float(value)


def outputs_of(model: Any, data: Data) -> dict[str, Any]:
    """Return what a fitted adapter or predictor says of its own rows and of new ones."""
    # Those of a predictor depend on what it transforms rows to.
    predicts = ("predict", "predict_proba", "decision_function")
    found = {}
    for method in predicts if hasattr(model, "predict") else ("transform",):
        if hasattr(model, method):
            found[f"{method}, own"] = thinned(getattr(model, method)(data.X, **data.where))
            found[f"{method}, new"] = thinned(getattr(model, method)(data.X_new))
    return found


# --- Cases: each returns its arrays by name ---


def fit_adapter(adapter: Any, name: str) -> dict[str, Any]:
    """Fit an adapter alone."""
    data = make_data(name)
    return outputs_of(clone(adapter).fit(data.X, data.y, **data.where), data)


def fit_elsewhere(adapter: Any, place: str) -> dict[str, Any]:
    """Fit rows that come in blocks, in single precision, or from another array library."""
    data = make_data("three")
    if place == "blocks":
        import dask.array

        X = dask.array.from_array(data.X, chunks=(70, -1))
        fitted = clone(adapter).fit(X, data.y, **data.where)
        return {"blocks": thinned(fitted.transform(X, **data.where).compute())}
    if place == "device":
        import array_api_strict

        with sklearn.config_context(array_api_dispatch=True):
            X = array_api_strict.asarray(data.X)
            fitted = clone(adapter).fit(X, data.y, **data.where)
            return {"device": thinned(np.from_dlpack(fitted.transform(X, **data.where)))}
    X = data.X.astype(np.float32)
    fitted = clone(adapter).fit(X, data.y, **data.where)
    return {"single": thinned(fitted.transform(X, **data.where))}


def fit_segments() -> dict[str, Any]:
    """Fit filters of the segments of signals."""
    data = make_data("wide")
    filters = SegmentSparseFiltering(
        5, segment_length=10, n_segments=400, l1_penalty=0.01, max_iter=20, random_state=0
    )
    return outputs_of(filters.fit(data.X, data.y, **data.where), data)


def measure_rows(name: str) -> dict[str, Any]:
    """Compare source and target by the measures of rows."""
    data = make_data(name)
    A, B = data.X[data.sample_domain >= 0], data.X[data.sample_domain < 0]
    weights = np.exp(A[:, 0])
    return {
        "mmd": measures.mmd(A, B),
        "mmd test": numbers_of(measures.mmd_test(A, B, random_state=0)),
        "ks": measures.ks_distance(A, B),
        "ks test": numbers_of(measures.ks_test(A, B)),
        "two-sample test": numbers_of(measures.classifier_two_sample_test(A, B, random_state=0)),
        "effective size": measures.effective_sample_size(weights),
        "pareto k": measures.pareto_k(weights),
        "overlap": numbers_of(measures.support_overlap(A, B)),
        "wilcoxon": numbers_of(measures.paired_wilcoxon(A[:, 0], B[:, 0])),
    }


def fit_together(function: Any) -> dict[str, Any]:
    """Fit filters and an auto-encoder in one call."""
    data = make_data("two")
    settings = [
        SparseFiltering(4, init_scale=1.0, random_state=0),
        SparseFiltering(4, init_scale=1.0, random_state=1),
        PeriodicSparseFiltering(8, init_scale=1.0, label_reward=2.0, max_iter=50, random_state=0),
        DenoisingAutoencoder(n_components=2, max_epochs=5, random_state=0),
    ]
    if function is fit_many:
        fitted = fit_many(settings, data.X, data.y, **data.where)
    else:
        fitted = fit_each(settings, [(data.X, data.y, data.sample_domain)] * len(settings))
    return {str(i): thinned(one.transform(data.X_new)) for i, one in enumerate(fitted)}


def adapt_later(adapter: Any) -> dict[str, Any]:
    """Fit, then learn a second target by name."""
    data = make_data("three")
    model = AdaptedClassifier(adapter, LogisticRegression()).fit(data.X, data.y, **data.where)
    model.adapt_target(1.5 * data.X_new + 1, domain="later")
    found = thinned(model.predict_proba(data.X_new, sample_domain="later"))
    return {"later": found, "default": thinned(model.predict_proba(data.X_new))}


def fit_weights(estimator: Any, name: str) -> dict[str, Any]:
    """Fit a weight estimator alone."""
    data = make_data(name)
    fitted = clone(estimator).fit(data.X, data.y, **data.where)
    new = fitted.score_weights(data.X_new)
    return {"weights": thinned(fitted.weights_), "new": thinned(new)}


def fit_classifier(adapter: Any, estimator: Any, name: str, masked: bool = False) -> dict[str, Any]:
    """Fit an adapted classifier; masked: with labels of some target rows, and weights."""
    data, more = make_data(name), {}
    if masked:
        rng = np.random.RandomState(0)
        more["label_mask"] = (data.sample_domain >= 0) | (rng.uniform(size=len(data.X)) < 0.1)
        more["sample_weight"] = rng.uniform(0.5, 2, len(data.X))
    model = AdaptedClassifier(adapter, estimator).fit(data.X, data.y, **data.where, **more)
    return outputs_of(model, data)


def fit_regressor(adapter: Any) -> dict[str, Any]:
    """Fit an adapted regressor."""
    data = make_data("two")
    model = AdaptedRegressor(adapter, Ridge()).fit(data.X, data.number, **data.where)
    return outputs_of(model, data)


def fit_lspc(weights: Any, **settings: Any) -> dict[str, Any]:
    """Fit the least-squares probabilistic classifier, alone or with importance weights."""
    data = make_data("three")
    model: Any = LSPClassifier(random_state=0, **settings)
    if weights is not None:
        model = AdaptedClassifier(weights, model)
    return outputs_of(model.fit(data.X, data.y, **data.where), data)


def fit_named(adapter: str, model: str, name: str) -> dict[str, Any]:
    """Fit a model that the command line builds by name."""
    data = make_data(name)
    built = build_named(adapter, model, data.n_source, data.X.shape[1])
    return outputs_of(built.fit(data.X, data.y, **data.where), data)


def fit_vote(name: str, estimator: Any = None) -> dict[str, Any]:
    """Let the default candidates vote, around three models or around one."""
    data = make_data(name)
    model = AutoAdaptedClassifier(estimator, random_state=0).fit(data.X, data.y, **data.where)
    names = list_candidates(estimator, data.X, data.sample_domain, len(model.classes_))
    rows = {row["candidate"]: row for row in model.leaderboard_}
    if rows.keys() != set(names):
        raise ValueError("The leaderboard has other candidates than the default list.")
    ordered = [rows[name] for name in names]
    scores = [key for key in ordered[0] if key not in (*NOT_SCORES, COMBINED, WEIGHT)]
    return {
        "weights": np.array([row[WEIGHT] for row in ordered]),
        "combined": np.array([row[COMBINED] for row in ordered]),
        "disqualified": np.array([row["disqualified"] is not None for row in ordered]),
        "scores": np.array([[row[key] for key in scores] for row in ordered]),
        "chosen": np.array([names.index(one) for one in model.chosen_]),
        **outputs_of(model, data),
    }


def fit_short_vote(given: bool = True, masked: bool = False, **settings: Any) -> dict[str, Any]:
    """Let three candidates vote, by other settings."""
    data, more = make_data("two"), {}
    if given:
        more = data.where
    if masked:
        drawn = np.random.RandomState(0).uniform(size=len(data.X)) < 0.1
        more = more | {"label_mask": (data.sample_domain >= 0) | drawn}
    model = AutoAdaptedClassifier(candidates=FEW_CANDIDATES, random_state=0, **settings)
    model.fit(data.X, data.y, **more)
    board = {(row["adapter"], row["estimator"]): row for row in model.leaderboard_}
    ordered = sorted(board.values(), key=lambda row: (row[COMBINED], row[WEIGHT]))
    return {
        "board": np.array([[row[COMBINED], row[WEIGHT]] for row in ordered]),
        "shares": model.class_shares_,
        "predict": thinned(model.predict(data.X_new)),
        "predict_proba": thinned(model.predict_proba(data.X_new)),
    }


def find_diagnosis(name: str) -> dict[str, Any]:
    """Diagnose, once more with labels, and fit what is recommended."""
    data = make_data(name)
    first = diagnose(data.X, data.y, **data.where)
    found = read_diagnosis(first)
    asked = first.rows_to_label(10)
    if len(asked):
        after = read_diagnosis(first.update(asked, data.y[asked]))
        for part in ("action", "assessment", "table"):
            found[f"labeled: {part}"] = after[part]
    recommended = first.recommended.fit(data.X, data.y, **data.where)
    return found | outputs_of(recommended, data)


def run_command(*arguments: Any) -> None:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "covshift", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])}: {done.stderr[-500:]}")


def predict_table(*options: str) -> dict[str, Any]:
    """Adapt to a table by the command line, and predict its rows."""
    data = make_data("three")
    source = data.sample_domain >= 0
    with tempfile.TemporaryDirectory() as folder:
        train, new, model, out = (
            Path(folder) / name for name in ("train.csv", "new.csv", "model.skops", "out.csv")
        )
        _write_table(train, data.X[source], data.y[source], data.sample_domain[source])
        _write_table(new, data.X[~source])
        run_command(
            "adapt", train, new, "--label", "label", "--domain", "site", "--out", model, *options
        )
        run_command("predict", model, new, "--proba", "--out", out)
        with out.open(encoding="utf-8", newline="") as file:
            rows = [*csv.reader(file)][1:]
    labels = [ord(row[0][-1]) for row in rows]
    return {
        "predict": np.array(labels),
        "predict_proba": thinned([[float(cell) for cell in row[1:]] for row in rows]),
    }


def _write_table(path: Path, X: np.ndarray, y: Any = None, domain: Any = None) -> None:
    """Write numbers, a word and a gap in some rows, the label and the domain."""
    words = np.array(["low", "middle", "high"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"x{i}" for i in range(X.shape[1])), "level", "site", "label"])
        for i, row in enumerate(X):
            cells = ["" if i % 17 == 3 and j == 1 else repr(float(x)) for j, x in enumerate(row)]
            level = words[int(np.digitize(row[2], [-0.5, 0.5]))]
            site = "new" if domain is None else f"site {domain[i]}"
            writer.writerow([*cells, level, site, "" if y is None else f"class {y[i]}"])


def repeat_paper() -> dict[str, Any]:
    """Run one draw of the paper's synthetic study by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        run_command(*PAPER_COMMAND, "--trials", 1, "--out", folder)
        with (Path(folder) / "trials.csv").open(encoding="utf-8", newline="") as file:
            rows = [*csv.DictReader(file)]
    found = [[float(row[f"result.{key}"] or "nan") for key in PAPER_RESULTS] for row in rows]
    return {"results": np.array(found), "errors": np.array([bool(row["error"]) for row in rows])}


def list_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what computes each case, by "group/name"."""
    cases: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, adapter in (ADAPTERS | OTHER_SETTINGS).items():
        for data in ("two", "three"):
            cases[f"adapters/{name}, {data}"] = partial(fit_adapter, adapter, data)
        for label, estimator in ESTIMATORS.items():
            data = "two" if name in ADAPTERS else "three"
            cases[f"classifiers/{name} + {label}"] = partial(
                fit_classifier, adapter, estimator, data
            )
    for name, adapter in ADAPTERS.items():
        cases[f"adapters/{name}, wide"] = partial(fit_adapter, adapter, "wide")
        cases[f"regressors/{name}"] = partial(fit_regressor, adapter)
    cases["adapters/fit_many"] = partial(fit_together, fit_many)
    cases["adapters/fit_each"] = partial(fit_together, fit_each)
    for name in ("standardize", "CORAL to source, by domain", "Monge to source", "ranks", "SF"):
        adapter = (ADAPTERS | OTHER_SETTINGS)[name]
        cases[f"adapters/{name}, later target"] = partial(adapt_later, adapter)
    for name, weights in WEIGHTS.items():
        for data in ("two", "three", "wide"):
            cases[f"weights/{name}, {data}"] = partial(fit_weights, weights, data)
        for label, estimator in ESTIMATORS.items():
            cases[f"classifiers/{name} + {label}"] = partial(
                fit_classifier, weights, estimator, "three"
            )
        cases[f"regressors/{name}"] = partial(fit_regressor, weights)
    for name, part in {"none": None, "PSF": ADAPTERS["PSF"], "uLSIF": WEIGHTS["uLSIF"]}.items():
        cases[f"classifiers/{name}, labeled target rows"] = partial(
            fit_classifier, part, LogisticRegression(), "two", masked=True
        )
    cases["classifiers/defaults"] = partial(fit_classifier, None, None, "three")
    cases["regressors/none"] = partial(fit_regressor, None)
    cases["LSPC/alone"] = partial(fit_lspc, None)
    cases["LSPC/target bases"] = partial(fit_lspc, None, bases="target")
    cases["LSPC/weighted"] = partial(fit_lspc, WEIGHTS["uLSIF"], criterion="misclassification")
    for name in NAMED_ADAPTERS:
        for data in ("three", "wide"):
            cases[f"named/{name} + linear, {data}"] = partial(fit_named, name, "linear", data)
    for name in NAMED_MODELS:
        cases[f"named/standardize + {name}"] = partial(fit_named, "standardize", name, "two")
    for name in ("PSF", "SF", "PSF, blockwise", "standardize", "CORAL", "Monge", "SA"):
        adapter = (ADAPTERS | OTHER_SETTINGS)[name]
        cases[f"adapters/{name}, blocks"] = partial(fit_elsewhere, adapter, "blocks")
        cases[f"adapters/{name}, single precision"] = partial(fit_elsewhere, adapter, "single")
    for name in ("PSF", "SF", "PSF, blockwise"):
        adapter = (ADAPTERS | OTHER_SETTINGS)[name]
        cases[f"adapters/{name}, device"] = partial(fit_elsewhere, adapter, "device")
    cases["adapters/DAE, single precision"] = partial(
        fit_elsewhere, OTHER_SETTINGS["DAE, small"], "single"
    )
    cases["adapters/segments"] = fit_segments
    for name in ("two", "near"):
        cases[f"measures/{name}"] = partial(measure_rows, name)
    for name in ("two", "three", "wide"):
        cases[f"vote/defaults, {name}"] = partial(fit_vote, name)
    for name in ("two", "wide"):
        cases[f"vote/around LR, {name}"] = partial(fit_vote, name, LogisticRegression())
    cases["vote/accuracy"] = partial(fit_short_vote, scoring="accuracy", vote=2)
    cases["vote/estimated shares"] = partial(fit_short_vote, class_shares="estimated")
    cases["vote/no risk"] = partial(fit_short_vote, max_risk=0.0, max_rows=100)
    cases["vote/no target"] = partial(fit_short_vote, given=False)
    cases["vote/labeled target rows"] = partial(fit_short_vote, masked=True)
    for name in ("two", "wide", "near", "sites"):
        cases[f"diagnosis/{name}"] = partial(find_diagnosis, name)
    cases["tables/coral"] = partial(predict_table, "--adapter", NAMED_ADAPTERS["coral"])
    cases["tables/auto"] = partial(predict_table, "--model", NAMED_MODELS["linear"])
    cases["paper/one draw"] = repeat_paper
    return cases


# --- Recording and comparing ---


def software() -> str:
    """Return the versions that numbers depend on."""
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "sklearn": sklearn.__version__}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def compute(case: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the arrays of a case, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {part: np.asarray(value, dtype=float) for part, value in case().items()}


def record(path: Path) -> None:
    """Compute every case and write them all."""
    start = time.perf_counter()
    # One array: a member of the archive for each would take more room than its numbers.
    values: list[np.ndarray] = []
    shapes: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, case in list_cases().items():
        found = compute(case)
        shapes[name] = {part: value.shape for part, value in found.items()}
        values += [value.ravel() for value in found.values()]
    index = json.dumps({"software": software(), "shapes": shapes})
    np.savez_compressed(path, values=np.concatenate(values), index=np.array(index))
    size, seconds = path.stat().st_size / 1000, time.perf_counter() - start
    print(f"{len(list_cases())} cases in {path}: {size:.0f} kB, {seconds:.0f} s")


def difference(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> tuple[float, str]:
    """Return the largest difference between two results of a case, and where it is."""
    largest, where = 0.0, ""
    for part in old.keys() | new.keys():
        if part not in old or part not in new:
            return np.inf, f"{part} {'is new' if part in new else 'is missing'}"
        ours, theirs = new[part], old[part]
        if ours.shape != theirs.shape:
            return np.inf, f"{part} has shape {ours.shape}, not {theirs.shape}"
        if (np.isnan(ours) != np.isnan(theirs)).any():
            return np.inf, f"{part} has NaN elsewhere"
        same = (ours == theirs) | np.isnan(theirs)
        if not same.all():
            # Where both are infinite they are the same; where one is, the difference is too.
            far = np.abs(ours - theirs)[~same] / (1 + np.abs(theirs[~same]))
            found = float(np.nan_to_num(far, nan=np.inf).max())
            if found > largest:
                largest, where = found, part
    return largest, where


def read_recorded(path: Path) -> tuple[str, dict[str, dict[str, np.ndarray]]]:
    """Return the versions and the arrays of each case of a file."""
    with np.load(path) as file:
        values, index = file["values"], json.loads(str(file["index"]))
    recorded: dict[str, dict[str, np.ndarray]] = {}
    start = 0
    for case, shapes in index["shapes"].items():
        recorded[case] = {}
        for part, shape in shapes.items():
            end = start + math.prod(shape)
            recorded[case][part] = values[start:end].reshape(shape)
            start = end
    return index["software"], recorded


def compare(path: Path, tolerance: float, only: str) -> int:
    """Compute cases again, print how far each is off, and return how many are too far."""
    versions, recorded = read_recorded(path)
    if versions != software():
        print(f"Recorded with {versions}; these are {software()}.")
    cases = {name: case for name, case in list_cases().items() if name.startswith(only)}
    n_failed = 0
    for name in sorted({*cases, *(one for one in recorded if one.startswith(only))}):
        if name not in cases or name not in recorded:
            found, where = np.inf, "new case" if name in cases else "missing case"
        else:
            try:
                found, where = difference(recorded[name], compute(cases[name]))
            except Exception as error:  # the other cases are still to be compared
                found, where = np.inf, f"{type(error).__name__}: {error}"[:200]
        failed = not found <= tolerance
        n_failed += failed
        print(f"{'DIFFERS' if failed else 'same   '} {found:8.1e}  {name}  {where}".rstrip())
    unknown = [
        one
        for known, here in zip((NAMED_ADAPTERS, NAMED_MODELS), list_named(), strict=True)
        for one in sorted(here - set(known.values()))
    ]
    if unknown:
        print(f"Names without a case: {', '.join(unknown)}")
    print(f"{n_failed} of {len(cases)} cases differ by more than {tolerance:g}.")
    return n_failed


def main() -> None:
    """Read the arguments, then record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("file", type=Path, help="the recorded numbers, .npz")
    parser.add_argument("--tolerance", type=float, default=1e-12, help="relative plus absolute")
    parser.add_argument("--only", default="", metavar="GROUP", help='such as "vote" (compare)')
    arguments = parser.parse_args()
    print(f"covshift {covshift.__version__} of {Path(covshift.__file__).parent}")
    if arguments.action == "record":
        record(arguments.file)
    elif compare(arguments.file, arguments.tolerance, arguments.only):
        sys.exit(1)


if __name__ == "__main__":
    main()
