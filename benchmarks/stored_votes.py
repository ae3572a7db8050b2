"""Plain model and vote of each real task, from stored benches.

    covshift-bench run DATA --methods auto --out runs/results.jsonl --jobs 2
    covshift-bench run FRESH --list fresh --methods auto --out runs/fresh.jsonl --jobs 2

`prediction_sets.py` judges a saved model: one that knows held-out source rows, and probabilities of
these, of target rows and of test rows. All of them are in a stored bench, so that nothing is fitted
here. The weights of a vote come from coefficients of expected gains that were fitted without the
task's cluster: for tasks of the fresh collections they are those of the package, which the design
tasks alone shaped. Outputs are kept in a cache: reading a bench takes two seconds.
"""

import pickle
import zlib
from typing import NamedTuple

import numpy as np
from calibrate import OBJECTIVES, Case, left_out_coefficients, make_case, restore, stored_benches
from covshift_bench import fresh as fresh_collections
from covshift_bench.methods.automatic import BALANCED, N_MEMBERS
from covshift_bench.tasks import MADE_UP
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from covshift.predictors.objectives import METRICS
from covshift.selection.expected_gains import QUANTITIES, gain_coefficients
from covshift.selection.rehearsals import SOURCE_DOMAINS, pseudo_targets
from covshift.selection.vote import mix_probabilities, vote_weights

PLAIN, VOTE = MODELS = ("plain", "vote")


class Outputs(NamedTuple):
    """Calibrated probabilities of some rows, by candidate; None: it has none."""

    source: list  # of held-out source rows, as source rows
    target: list
    test: list
    domains: list  # of source domains left out: pairs of such lists and true classes


class StoredTask(NamedTuple):
    """Answers of a bench about a task. ``truth`` is read by code marked ORACLE only."""

    cases: list[Case]  # by objective
    adapts: np.ndarray
    X_source: np.ndarray
    codes: np.ndarray
    domain: np.ndarray
    X_target: np.ndarray
    X_test: np.ndarray
    truth: np.ndarray
    n_classes: int
    outputs: Outputs

    @property
    def task(self):
        """The task of the list."""
        return self.cases[0].task


class Model(NamedTuple):
    """A model as it would be saved: held-out source rows, and what it says of others.

    Probabilities are those for the class shares of the source. ``domains`` has, for each source
    domain that fits left out, the probabilities of its rows and their classes.
    """

    source: np.ndarray
    target: np.ndarray
    test: np.ndarray
    domains: list


def read_stored(stored):
    """Return the outputs of a task's candidates. ORACLE: keeps the classes of the test rows."""
    with threadpool_limits(1):
        drawn, task = stored.draw(), stored.task
        bench, tests = restore(drawn, stored.path, stored.line["seed"])
        cases = [make_case(bench, tests, drawn, task, objective) for objective in OBJECTIVES]
        bench.metric = METRICS[OBJECTIVES[0]]
        played = [(name, one) for name, one in pseudo_targets(bench, SOURCE_DOMAINS)]
        played = [(name, one) for name, one in played if bench.has_run(name)]
        found = bench.run({name: one.scene for name, one in played})
        problem = bench.problem
        outputs = Outputs(
            bench.probabilities_left_out(),
            bench.calibrated(bench.target),
            [None if one is None else bench.calibrated_of(i, one) for i, one in enumerate(tests)],
            [(bench.calibrated(found[name]), one.codes) for name, one in played],
        )
        return StoredTask(
            cases,
            np.array([one.adapts for one in bench.candidates]),
            problem.X_source,
            problem.codes,
            problem.source_domain,
            problem.X_target,
            drawn.X_test,
            np.searchsorted(np.unique(drawn.y_source), drawn.y_test),
            problem.n_classes,
            outputs,
        )


def model_of(stored, name, gains, objective):
    """Return the plain model or the vote of a task, given the expected gains of its candidates."""
    case = stored.cases[OBJECTIVES.index(objective)]
    gains = gains.copy()
    gains[[one is None for one in stored.outputs.test]] = np.nan
    weights = np.eye(len(gains))[case.plain]
    if name == VOTE:
        weights = vote_weights(gains, case.allowed, N_MEMBERS, case.plain)

    def mix(P):
        return mix_probabilities(P, weights, stored.adapts)

    outputs = stored.outputs
    played = [
        (mix(P), codes) for P, codes in outputs.domains
        if any(one is not None and w for one, w in zip(P, weights, strict=True))
    ]  # fmt: skip
    return Model(mix(outputs.source), mix(outputs.target), mix(outputs.test), played)


def read_all(data, results, cache, n_jobs=1, fresh=None):
    """Return all stored real tasks, and their expected gains by objective.

    ``fresh``: folder and results of the fresh collections, which are added.
    """
    cache.mkdir(parents=True, exist_ok=True)
    design = [one for one in stored_benches(data, results) if one.task.collection != MADE_UP]
    new = [] if fresh is None else stored_benches(*fresh, fresh_collections.LIST)
    stored = Parallel(n_jobs=n_jobs)(delayed(_cached)(one, cache) for one in [*design, *new])
    gains = []
    for number, objective in enumerate(OBJECTIVES):
        cases = [one.cases[number] for one in stored]
        of_package = np.array([gain_coefficients()[objective][name] for name in QUANTITIES])
        betas = left_out_coefficients(cases[: len(design)])
        gains.append([one.features @ betas.get(one.task.cluster, of_package) for one in cases])
    return stored, [dict(zip(OBJECTIVES, one, strict=True)) for one in zip(*gains, strict=True)]


def _cached(stored, cache):
    name = f"{zlib.crc32(stored.task.name.encode()):08x}-{stored.line['seed']}.pickle"
    file = cache / name
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_bytes(pickle.dumps(_halved(read_stored(stored))))
        part.replace(file)
    return pickle.loads(file.read_bytes())


def _halved(value):
    """Arrays of numbers in half the room, in tuples and lists, too."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return value.astype(np.float32)
    if isinstance(value, list):
        return [_halved(one) for one in value]
    if isinstance(value, tuple):
        halves = [_halved(one) for one in value]
        return type(value)(*halves) if hasattr(value, "_fields") else tuple(halves)
    return value


__all__ = ["BALANCED", "MODELS", "OBJECTIVES", "PLAIN", "VOTE", "model_of", "read_all"]
