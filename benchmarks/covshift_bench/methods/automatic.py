"""The automatic choice: one bench of candidates gives it, its rivals and every single candidate."""

from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from covshift import AutoAdaptedClassifier
from covshift.kernels.drawn_rows import deal_folds
from covshift.predictors.objectives import METRICS, decide_classes
from covshift.selection.bench import N_FOLDS, Bench, Output, Problem, class_logits
from covshift.selection.candidates import default_candidates
from covshift.selection.choice import choose
from covshift.selection.expected_scores import vote_probabilities
from covshift.selection.leaderboard import disqualify
from covshift.selection.rehearsals import KINDS, pseudo_targets
from covshift.selection.vote import FitData, fit_members
from covshift_bench.method import Method, Prediction, stacked

BALANCED = "balanced_accuracy"
OBJECTIVES = ("accuracy", BALANCED)
# Of `AutoAdaptedClassifier`.
MAX_ROWS = 600
N_MEMBERS = 7


def automatic(task, seed, objective):
    """Fit `AutoAdaptedClassifier` with its defaults."""
    model = AutoAdaptedClassifier(objective=objective, random_state=seed)
    X, y, sample_domain = stacked(task)
    model.fit(X, y, sample_domain=sample_domain)
    extras = {"chosen": list(model.chosen_), "decision": model.decision_}
    return Prediction(model.predict(task.X_test), model.predict_proba(task.X_test), extras)


def shared_bench(task, seed):
    """Every default candidate and every way to combine them, from one bench of candidates."""
    codes = np.unique(task.y_source, return_inverse=True)[1]
    bench = make_bench(task, codes, seed)
    return combine_candidates(bench, task, outputs_on_test(bench, task, codes)[0])


def combine_candidates(bench, task, logits):
    """Predictions of each candidate and of each way to combine them, from their test logits.

    "auto" is what `AutoAdaptedClassifier` predicts, which draws its seed in the same way; "vote" is
    the vote, whether it is recommended or not. "plain best" is the best unadapted candidate by
    validation on the source, "equal vote" the mean of all candidates that are neither failed nor
    degenerate.
    """
    classes = np.unique(task.y_source)
    P = [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(logits)]
    found = {}
    for number, one in enumerate(bench.candidates):
        if P[number] is not None:
            found[one.name] = Prediction(classes[P[number].argmax(axis=1)], P[number])
    for objective in OBJECTIVES:
        bench.metric = METRICS[objective]
        for name, weights, reweighed, extras in _combinations(bench, objective):
            used = np.flatnonzero(weights)
            mean = vote_probabilities(P, bench, weights, reweighed=reweighed)
            extras["weights"] = {bench.candidates[i].name: round(weights[i], 4) for i in used}
            labels = classes[decide_classes(mean, objective, bench.problem.class_shares)]
            found[name] = Prediction(labels, mean, extras)
    arrays = bench.arrays() | {f"test {i}": one for i, one in enumerate(logits) if one is not None}
    found["auto"] = found["auto"]._replace(arrays=arrays)
    return found


def make_bench(task, codes, seed):
    """Return the bench that `AutoAdaptedClassifier` makes of a task."""
    source = (task.X_source, codes, task.source_domain)
    problem = Problem(*source, task.X_target, task.target_domain, codes.max() + 1)
    rng = check_random_state(seed)
    return RecordingBench(
        default_candidates(problem.size),
        problem.thinned(MAX_ROWS, rng),
        METRICS[BALANCED],
        seed=int(rng.randint(2**31 - 1)),
    )


class RecordingBench(Bench):
    """A bench whose outputs are kept with what they are compared with."""

    def calibrated_of(self, number, logits):
        """Return the calibrated probabilities of logits of one candidate."""
        outputs = [Output(None)] * len(self.candidates)
        outputs[number] = Output(logits)
        return self.calibrated(outputs)[number]

    def arrays(self):
        """Return the outputs of all candidates in all scenes, and the scenes' classes."""
        found = self.to_arrays()
        for kind in KINDS[1:]:
            played = pseudo_targets(self, kind)
            found |= {f"truth {name}": one.codes for name, one in played if self.has_run(name)}
        folds = deal_folds(self.problem.codes, N_FOLDS, self.rng("folds"))
        return found | {"codes": self.problem.codes, "folds": folds}

    def restore(self, arrays):
        """Take outputs from the arrays of another bench, by names; returns the test logits."""
        super().restore(arrays)
        stored = [str(name) for name in arrays["candidates"]]
        tests = [arrays.get(f"test {stored.index(one.name)}") for one in self.candidates]
        return [None if one is None else one.astype(np.float64) for one in tests]


def outputs_on_test(bench, task, codes, chosen=None, test_domain=None):
    """Logits and calibrated probabilities of the test rows, by candidate; None if it failed.

    ``chosen``: numbers of the candidates to fit; the others are None, too. ``test_domain``: domains
    of the test rows, where the target has several.
    """
    where = np.full(len(task.X_test), -1) if test_domain is None else test_domain
    X, _, sample_domain = stacked(task)
    all_codes = np.concatenate([codes, np.full(len(task.X_target), -1)])
    data = FitData(X, all_codes, sample_domain, all_codes >= 0)
    logits, P = [], []
    for number, output in enumerate(bench.target):
        if output.logits is None or (chosen is not None and number not in chosen):
            logits.append(None)
            P.append(None)
            continue
        weights = np.zeros(len(bench.candidates))
        weights[number] = 1.0
        member = fit_members(bench, weights, data, None)[0]
        logits.append(class_logits(member.model, task.X_test, codes.max() + 1, sample_domain=where))
        P.append(member.probabilities(task.X_test, codes.max() + 1, where))
    return logits, P


def _combinations(bench, objective):
    """Names, weights, whether class shares are adjusted, and extras of ways to combine."""
    short = "balanced" if objective == BALANCED else objective
    reweighed = objective != BALANCED
    choice = choose(
        bench, "rehearsals", n_members=N_MEMBERS, objective=objective, reweighed=reweighed
    )
    yield f"plain best, {short}", np.eye(len(bench.candidates))[choice.plain], False, {}
    yield f"equal vote, {short}", _equal_weights(bench), False, {}
    scores = {key: rounded(column) for key, column in choice.table.scores.items()}
    scores["expected gain"] = rounded(choice.gains)
    extras = {"scores": scores, "reasons": list(choice.table.reasons), "plain": choice.plain}
    yield f"vote, {short}", choice.weights, reweighed, {}
    name = "auto" if objective == BALANCED else f"auto, {short}"
    adapted = choice.assessment is None or choice.assessment.action != "keep"
    yield name, choice.recommended, reweighed and adapted, extras


def rounded(values):
    """Return numbers as plain data; None for NaN."""
    return [None if np.isnan(value) else round(float(value), 5) for value in values]


def _equal_weights(bench):
    """Equal weights for all candidates that are neither failed nor degenerate."""
    problem = bench.problem
    reasons = disqualify(bench.target, len(problem.X_source), problem.n_classes)
    allowed = np.array([reason is None for reason in reasons], dtype=float)
    if not allowed.any():
        allowed[0] = 1.0
    return allowed / allowed.sum()


METHODS = [
    Method("auto", "6", shared_bench, random=True),
    Method(
        "estimator, accuracy",
        "1",
        partial(automatic, objective="accuracy"),
        random=True,
        by_default=False,
    ),
    Method(
        "estimator, balanced",
        "1",
        partial(automatic, objective=BALANCED),
        random=True,
        by_default=False,
    ),
]
