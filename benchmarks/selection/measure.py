"""Run every candidate and every score on one task, and keep all that rules could be made of.

What is kept of a task: the label-free scores; the logits of every candidate on source rows (left
out of its fit), target rows and test rows; the labels of all three. Those of target and test rows
are for judging, and for experiments with a few labelled rows: no score has seen them.

A task that was measured when there were fewer scores is completed: every score draws from a stream
of its own, so that the new ones are those that a whole run gives.
"""

import warnings

import numpy as np
from fixed_candidates import fixed_candidates
from sklearn import config_context, set_config

from covshift.selection.bench import Bench
from covshift.selection.disqualification import disqualify
from covshift.selection.explanations import (
    class_share_weights,
    explained_by_shares,
    importance_weights,
    left_unexplained,
)
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import Problem, make_scene
from covshift.selection.scorers import SCORERS

LARGEST_LOGIT = 60.0  # kept in half precision
# Made of others: `measured_tasks` mixes it anew.
SKADA_NAMES = tuple(
    f"SKADA: {name}"
    for name in ("importance weighted", "DEV", "circular", "MixVal", "entropy", "density")
)
MEASURED = {name: scorer for name, scorer in SCORERS.items() if name != "what explains"}


def measure(task, seed, known=None, *, skada=False):
    """Arrays of one task, as they are written to its file; ``known``: those of an older one.

    ``skada``: its scorers too, which take as long as all of ours.
    """
    known = {} if known is None else known
    classes = np.unique(task.y_source)
    codes, target_codes, test_codes = (
        np.searchsorted(classes, y) for y in (task.y_source, task.y_target, task.y_test)
    )
    problem = Problem(
        task.X_source.astype(np.float64),
        codes,
        task.source_domain,
        task.X_target.astype(np.float64),
        np.full(len(task.X_target), -1),
        len(classes),
    )
    candidates = fixed_candidates(problem.size)
    bench = Bench(candidates, problem, balanced_accuracy, seed=seed)
    scores = dict(zip(known.get("score_names", []), known.get("scores", []), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores |= {name: scorer(bench) for name, scorer in MEASURED.items() if name not in scores}
        if skada and SKADA_NAMES[0] not in scores:
            scores |= _skada_scores(bench)
        arrays = {
            "score_names": np.array(list(scores)),
            "scores": np.array(list(scores.values())),
            "left_by_shares": left_unexplained(bench, class_share_weights(bench)),
            "left_by_weights": left_unexplained(bench, importance_weights(bench)),
            "explained": explained_by_shares(bench),
        }
        if known:
            return known | arrays
        X_test = task.X_test.astype(np.float64)
        test = make_scene(*problem[:5], test=(X_test, np.full(len(X_test), -1)))
        on_test = bench.run({"test": test})["test"]
    reasons = disqualify(bench.target, len(codes), len(classes))
    return arrays | {
        "names": np.array([one.name for one in candidates]),
        "adapters": np.array([one.adapter_name for one in candidates]),
        "allowed": np.array([reason is None for reason in reasons]),
        "source_logits": _stack(bench.outputs_left_out(), (len(codes), len(classes))),
        "target_logits": _stack(_logits(bench.target), (len(target_codes), len(classes))),
        "test_logits": _stack(_logits(on_test), (len(test_codes), len(classes))),
        "seconds": np.array([output.seconds for output in bench.target]),
        "codes": codes.astype(np.int16),
        "target_codes": target_codes.astype(np.int16),
        "test_codes": test_codes.astype(np.int16),
    }


def _skada_scores(bench):
    with config_context():  # importing SKADA turns metadata routing on, for all of scikit-learn
        from skada_scores import skada_scores

        set_config(enable_metadata_routing=True)
        return skada_scores(bench)


def _logits(outputs):
    return [output.logits for output in outputs]


def _stack(logits, shape):
    filled = [np.full(shape, np.nan) if one is None else one for one in logits]
    return np.clip(np.array(filled), -LARGEST_LOGIT, LARGEST_LOGIT).astype(np.float16)
