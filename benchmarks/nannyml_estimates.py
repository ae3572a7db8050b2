"""NannyML's CBPE beside `estimate_performance`: design tasks, and two collections in time chunks.

    pip install nannyml statsmodels
    python benchmarks/nannyml_estimates.py DATA runs/results.jsonl --cache runs/stored \
        --records runs/sets --out runs/nannyml

It runs in an environment of its own, since NannyML is not a dependency of the project; NannyML's
reports of usage to its makers are switched off. **Tasks**:
the models and rows of `prediction_sets.py`; NannyML gets the held-out source rows as reference and
the target rows as analysis, one chunk. **Time chunks**: a model learns from the first period of a
collection; all later rows, in their order, are cut into chunks of 500. Coefficients of
`estimate_performance` are fitted without the cluster of the collection. A chunk has moved if its
accuracy is more than .03 below that on held-out rows.

ORACLE: labels of the new rows give the true accuracies.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # before NannyML is imported

import nannyml
import numpy as np
import pandas as pd
from covshift_bench.real_collections import read_cuts
from covshift_bench.tasks import impute, read_tasks
from prediction_sets import decide_task, fit_performance, frame_of, read_records
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_votes import MODELS, OBJECTIVES, VOTE, model_of, read_all

from covshift import AdaptedClassifier, stack_domains
from covshift.selection.performance_estimate import estimate_performance, predict_performance

COLLECTIONS = ("employment_ma", "car_loan_synthetic")
CHUNK, MOVED = 500, 0.03
ACCURACY = OBJECTIVES[0]
LEARNERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}


def as_frame(P, predicted, truth=None):
    """Return rows as NannyML reads them."""
    columns = {f"p{k}": P[:, k] for k in range(P.shape[1])}
    frame = pd.DataFrame({**columns, "predicted": predicted})
    return frame if truth is None else frame.assign(truth=truth)


def cbpe(P_held, held, codes, P, predicted):
    """Return NannyML's estimate of the accuracy on all rows of P; NaN where it fails."""
    binary = P.shape[1] == 2
    probabilities = "p1" if binary else {k: f"p{k}" for k in range(P.shape[1])}
    estimator = nannyml.CBPE(
        metrics=["accuracy"],
        y_pred_proba=probabilities,
        y_pred="predicted",
        y_true="truth",
        problem_type="classification_binary" if binary else "classification_multiclass",
        chunk_number=1,
    )
    try:
        estimator.fit(as_frame(P_held, held, codes))
        found = estimator.estimate(as_frame(P, predicted)).filter(period="analysis").to_df()
    except Exception as error:
        warnings.warn(f"NannyML: {type(error).__name__}: {error}", stacklevel=1)
        return np.nan
    return float(found[("accuracy", "value")].iloc[0])


def estimate_tasks(options):
    """Return NannyML's estimates of all tasks and models, kept in ``--out``."""
    path = options.out / "tasks.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stored, gains = read_all(
        options.data, options.results, options.cache, options.jobs, options.fresh
    )
    for one, gain in zip(stored, gains, strict=True):
        for name in MODELS:
            key = f"{one.task.name} | {name}"
            if key in found:
                continue
            model = model_of(one, name, gain[ACCURACY], ACCURACY)
            of_held, of_new = decide_task(one, model, ACCURACY, reweighed=name == VOTE)
            found[key] = cbpe(model.source, of_held, one.codes, model.target, of_new)
        path.write_text(json.dumps(found), encoding="utf-8")
    return found


def chunk_estimates(collection, learner, data, fitted):
    """Return true and estimated accuracies of the chunks after the first period."""
    cut = read_cuts(str(data), collection)[""]
    domains = np.unique(cut.domain)
    first = cut.domain == domains[0]
    order = np.concatenate([np.flatnonzero(cut.domain == one) for one in domains[1:]])
    X, X_later = impute(cut.X[first], cut.X[order])
    rows, y, where = stack_domains(X, cut.y[first], X_later[:CHUNK])
    model = AdaptedClassifier(None, LEARNERS[learner], keep_rows=True)
    model.fit(rows, y, sample_domain=where)
    held, found = model.held_out_, []
    for start in range(0, len(order) - CHUNK + 1, CHUNK):
        X_new = X_later[start : start + CHUNK]
        truth = cut.y[order[start : start + CHUNK]]
        estimate = estimate_performance(model, X_new)
        P = model._set_probabilities(X_new, None)
        predicted = model.predict(X_new)
        of_new = np.searchsorted(model.classes_, predicted)
        of_held = held.scores.argmax(axis=1)
        found.append(
            {
                "collection": collection, "learner": learner, "chunk": start // CHUNK,
                "true": float(np.mean(predicted == truth)), "source": estimate.reference,
                "estimate_performance": predict_performance(estimate.quantities, fitted).value,
                "NannyML's CBPE": cbpe(held.scores, of_held, held.y, P, of_new),
                **estimate.estimates,
            }
        )  # fmt: skip
    return found


def without_cluster(records, collection):
    """Return the coefficients of accuracy, fitted without the cluster of a collection."""
    cluster = {task.collection: task.cluster for task in read_tasks()}[collection]
    frame = frame_of(records, ACCURACY)
    return fit_performance(frame[frame["cluster"] != cluster])


def main():
    """Estimate accuracies by NannyML and by the package, and print mean absolute errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file of `covshift-bench run`")
    parser.add_argument("--cache", type=Path, required=True, help="folder of prediction_sets.py")
    parser.add_argument("--records", type=Path, required=True, help="--out of prediction_sets.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fresh", type=Path, nargs=2, metavar=("FOLDER", "RESULTS"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    records = read_records(argparse.Namespace(**{**vars(options), "out": options.records}))
    chunks = pd.DataFrame(
        [
            line
            for collection in COLLECTIONS
            for learner in LEARNERS
            for line in chunk_estimates(
                collection, learner, options.data, without_cluster(records, collection)
            )
        ]
    )
    chunks.to_json(options.out / "chunks.json", orient="records")
    names = [name for name in chunks if name not in ("collection", "learner", "chunk", "true")]
    errors = chunks[names].sub(chunks["true"], axis=0).abs()
    errors["kind"] = np.where(
        chunks["source"] - chunks["true"] > MOVED, "accuracy fell", "unchanged"
    )
    errors["collection"] = chunks["collection"]
    shown = errors.groupby(["collection", "kind"])[names].mean().T
    print(shown.round(3).to_string())
    print(errors.groupby(["collection", "kind"]).size().to_string())
    found = estimate_tasks(options)
    print(f"{len(found)} estimates, {sum(np.isnan(one) for one in found.values())} failed")


if __name__ == "__main__":
    main()
