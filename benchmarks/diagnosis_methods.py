"""Diagnoses as methods: labels by what was advised, and what was said as extras.

``diagnosis_tables.py`` holds what was said against what was true.
"""

import numpy as np
from methods import Method, Prediction, stacked
from results import encode_codes
from sklearn.linear_model import LogisticRegression

from covshift import DomainStandardScaler, diagnose
from covshift.adapters.source_standard_scaler import SourceStandardScaler
from covshift.diagnosis.expectation import estimate_accuracy
from covshift.diagnosis.left_out import predict_left_out
from covshift.diagnosis.plain import to_plain
from covshift.diagnosis.weighting import measure_weighting
from covshift.selection.bench import Bench
from covshift.selection.candidates import Candidate
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.problem import Problem, make_scene

N_LABELS = 20
DIAGNOSIS, ASKED, RANDOM = "diagnosis", "diagnosis, labels asked for", "diagnosis, random labels"
EXPECTED = {
    "expected accuracy, plain": SourceStandardScaler(),
    "expected accuracy, standardized": DomainStandardScaler(),
}


def all_methods():
    """Return the methods of this module."""
    return [
        Method(DIAGNOSIS, "1", diagnosis),
        Method(ASKED, "1", diagnosis_with_labels, asks_labels=True),
        Method(next(iter(EXPECTED)), "1", expected_accuracy),
    ]


def diagnosis(task, seed):
    """Diagnose, without a label of the target."""
    X, y, sample_domain = stacked(task)
    found = diagnose(X, y, sample_domain=sample_domain, random_state=seed)
    return _advised(found, _by_hypothesis(found, task), task)


def diagnosis_with_labels(task, seed):
    """Diagnose with labels of the rows it asks for, and with as many of random rows."""
    X, y, sample_domain = stacked(task)
    found = diagnose(X, y, sample_domain=sample_domain, random_state=seed)
    n_drawn = min(N_LABELS, len(found.target_rows))
    drawn = np.random.RandomState(seed).choice(found.target_rows, n_drawn, replace=False)
    codes = _by_hypothesis(found, task)
    predictions = {}
    for name, rows in ((ASKED, found.rows_to_label(N_LABELS)), (RANDOM, drawn)):
        labels = task.y_target[rows - len(task.X_source)]
        updated = found.update(rows, labels) if len(rows) else found
        predictions[name] = _advised(updated, codes, task, n_labels=len(rows))
    return predictions


def _by_hypothesis(found, task):
    """Class numbers of the test rows by the variant of each hypothesis; None if it failed."""
    scene = _test_scene(found._bench.problem, task)
    outputs = found._bench.run({"test": scene})["test"]
    variants = [None if number < 0 else outputs[number] for number in found._variant_numbers]
    return [None if one is None or one.logits is None else one.codes for one in variants]


def _test_scene(problem, task):
    return make_scene(*problem[:5], test=(task.X_test, np.full(len(task.X_test), -1)))


def _advised(found, codes, task, **more):
    verdict = found.verdict
    followed = codes[0] if codes[verdict.followed] is None else codes[verdict.followed]
    extras = {
        "kind": verdict.kind,
        "decided_by": verdict.decided_by,
        "leading": verdict.leading,
        "followed": verdict.followed,
        "surviving": verdict.surviving,
        "gain": verdict.gain,
        "by_hypothesis": [None if one is None else encode_codes(one) for one in codes],
        "decidability": found.decidability,
        "stability": found.stability.to_dict(),
        "moved": found.movement.moved,
        "evidence": {kind: gains._asdict() for kind, gains in found.evidence.items()},
        "expected": [one.to_dict() for one in found.expectations],
    }
    return Prediction(np.unique(task.y_source)[followed], extras=to_plain(extras | more))


def expected_accuracy(task, seed):
    """Estimate the accuracy of logistic regression, plain and after standardizing by domain."""
    classes, codes = np.unique(task.y_source, return_inverse=True)
    source = (task.X_source, codes, task.source_domain)
    problem = Problem(*source, task.X_target, task.target_domain, len(classes))
    model = LogisticRegression(max_iter=1000)
    candidates = [Candidate(name, "logistic", one, model) for name, one in EXPECTED.items()]
    bench = Bench(candidates, problem, balanced_accuracy, seed=seed)
    weighting = measure_weighting(bench)
    predictions = {}
    outputs = bench.run({"test": _test_scene(problem, task)})["test"]
    for number, name in enumerate(EXPECTED):
        left_out = predict_left_out(bench, number)
        estimates = estimate_accuracy(
            problem,
            left_out.source_logits,
            left_out.target_logits,
            weighting,
            representations=left_out.representations,
            seed=seed,
        )
        extras = {"expected": [one.to_dict() for one in estimates]}
        predictions[name] = Prediction(classes[outputs[number].codes], extras=extras)
    return predictions
