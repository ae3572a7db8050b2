"""Coverage and size of 90 % prediction sets, and expected scores of saved models, on real tasks.

    python benchmarks/run.py DATA --methods auto --out runs/results.jsonl --jobs 2
    python benchmarks/prediction_sets.py DATA runs/results.jsonl --cache runs/stored \
        --out runs/sets [--jobs 2] [--write]

Models are the plain model and the vote of `stored_votes.py`, as if they had been saved: held-out
source rows are those of the bench, the target rows speak for the test rows, which are judged. For
each task, evidence and weights are those of `covshift.predictors.prediction_sets`, and the
quantities those of `covshift.selection.performance`. ``--write`` writes the coefficients of
``performance.json`` from all tasks; all figures are by coefficients fitted without the task's
cluster.

ORACLE: test labels judge the sets, and give the threshold of the oracle-calibrated model.
"""

import argparse
import pickle
import zlib
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from stored_votes import MODELS, OBJECTIVES, VOTE, model_of, read_all
from threadpoolctl import threadpool_limits

from covshift.kernels.class_shares import reweigh_classes
from covshift.predictors.class_proportions import SHARE_PRIOR, share_ratios
from covshift.predictors.held_out import HeldOutRows
from covshift.predictors.objective import class_shares, decide_classes
from covshift.predictors.prediction_sets import (
    CLASS_PROPORTIONS, PROBABILITIES, ROWS, UNWEIGHTED, gather_evidence,
)  # fmt: skip
from covshift.selection.metrics import METRICS
from covshift.selection.performance import Scored, compare_rows, quantities_of

ALPHA = 0.1
ORACLE = "ORACLE"


def judge_task(stored, gains):
    """Return records of a task: one for each model, with sets and with expected scores."""
    with threadpool_limits(1):
        compared = compare_rows(stored.X_source, stored.X_target)
        records = []
        for name in MODELS:
            model = model_of(stored, name, gains[OBJECTIVES[0]], OBJECTIVES[0])
            record = {
                "task": stored.task.name,
                "cluster": stored.task.cluster,
                "mark": stored.task.mark,
                "model": name,
                "n_domains": len(np.unique(stored.domain)),
            }
            record |= judge_sets(stored, model)
            for objective in OBJECTIVES:
                of_objective = model
                if objective != OBJECTIVES[0]:
                    of_objective = model_of(stored, name, gains[objective], objective)
                record[objective] = judge_estimates(
                    stored, of_objective, objective, compared, reweighed=name == VOTE
                )
            records.append(record)
        return records


def judge_sets(stored, model):
    """Return the evidence, and coverage and mean size of each kind of set."""
    held = HeldOutRows(stored.X_source, stored.codes, stored.domain, model.source)
    evidence, weightings = gather_evidence(held, stored.X_target, model.target, ALPHA)
    scores = 1 - model.source[np.arange(len(stored.codes)), stored.codes]
    sets = {
        name: one.thresholds(scores, stored.X_test, model.test, ALPHA) >= 1 - model.test
        for name, one in weightings.items()
    }
    for names in (
        (CLASS_PROPORTIONS, PROBABILITIES), (UNWEIGHTED, PROBABILITIES),
        (UNWEIGHTED, CLASS_PROPORTIONS, PROBABILITIES), (ROWS, PROBABILITIES),
        (UNWEIGHTED, CLASS_PROPORTIONS, PROBABILITIES, ROWS), (ROWS, CLASS_PROPORTIONS, PROBABILITIES),
    ):  # fmt: skip
        if all(name in sets for name in names):
            sets[" | ".join(names)] = np.any([sets[name] for name in names], axis=0)
    own = np.sort(1 - model.test[np.arange(len(stored.truth)), stored.truth])
    threshold = own[int(np.ceil((1 - ALPHA) * len(own))) - 1]
    sets[ORACLE] = 1 - model.test <= threshold
    rows = np.arange(len(stored.truth))
    return {
        "evidence": evidence,
        "covered": {name: float(one[rows, stored.truth].mean()) for name, one in sets.items()},
        "size": {name: float(one.sum(axis=1).mean()) for name, one in sets.items()},
    }


def judge_estimates(stored, model, objective, compared, *, reweighed):
    """Return quantities, single estimates and the true score of a model."""
    shares = class_shares(stored.codes, stored.n_classes)

    def decide_rows(P, reweighed=False):
        if reweighed and objective == OBJECTIVES[0]:
            P = reweigh_classes(P, share_ratios(model.target, shares, SHARE_PRIOR))
        return decide_classes(P, objective, shares)

    metric = METRICS[objective]
    held = HeldOutRows(stored.X_source, stored.codes, stored.domain, model.source)
    of_held, of_new = decide_rows(model.source), decide_rows(model.target, reweighed)
    reference = metric(stored.codes, of_held)
    drops = [reference - metric(codes, decide_rows(P)) for P, codes in model.domains]
    scored = Scored(
        held, of_held, stored.X_target, model.target, of_new, objective,
        float(np.mean(drops)) if drops else 0.0,
    )  # fmt: skip
    quantities, estimates = quantities_of(scored, compared)
    return {
        "quantities": quantities,
        "estimates": estimates,
        "true": metric(stored.truth, decide_rows(model.test, reweighed)),
    }


def read_records(options):
    """Return the records of all tasks, kept in ``--out``."""
    folder = options.out / "records"
    folder.mkdir(parents=True, exist_ok=True)
    stored, gains = read_all(options.data, options.results, options.cache, options.jobs)
    jobs = [delayed(_kept)(one, of, folder) for one, of in zip(stored, gains, strict=True)]
    found = Parallel(n_jobs=options.jobs)(jobs)
    return [record for records in found for record in records]


def _kept(stored, gains, folder):
    file = folder / f"{stored.task.rows}-{zlib.crc32(stored.task.name.encode()):08x}.pickle"
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_bytes(pickle.dumps(judge_task(stored, gains)))
        part.replace(file)
    return pickle.loads(file.read_bytes())


def main():
    """Judge sets and expected scores of all stored tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the collections")
    parser.add_argument("results", type=Path, help="file that run.py wrote")
    parser.add_argument("--cache", type=Path, required=True, help="folder for outputs of benches")
    parser.add_argument("--out", type=Path, required=True, help="folder for records and tables")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write performance.json")
    options = parser.parse_args()
    records = read_records(options)
    print(len(records))


if __name__ == "__main__":
    main()
