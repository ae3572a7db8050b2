"""Where candidates are tried: scenes are run once, in parallel, for all callers."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.distinct_rows import deal_folds
from covshift.kernels.probabilities import Scaling
from covshift.measures import classifier_two_sample_test
from covshift.predictors.objectives import Metric
from covshift.selection.candidates import Candidate
from covshift.selection.label_tasks import ClassTask, NumberTask
from covshift.selection.scenes import Output, Problem, Scene, make_scene, run_scene, target_scene
from covshift.solvers.threads import one_blas_thread, one_openmp_thread
from covshift.warning_filters import ignored_warnings

N_FOLDS = 3  # folds of the source
MIN_ROLE_ROWS = 10  # of each role, to measure their separation


class Bench:
    """Candidates, the problem they are for, and the outputs of the scenes run so far.

    Parameters
    ----------
    candidates : sequence of Candidate
        Problem to score.
    problem : Problem
        Rows; no label of the target is in it.
    metric : callable
        ``metric(true, predicted)`` of class numbers, or of numbers: what "good" means.
    seed : int, default=0
        Of everything that is drawn. Each scorer draws from its own stream, so that its scores do
        not depend on which others are computed.
    n_jobs : int, default=None
        Processes, as in joblib.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        problem: Problem,
        metric: Metric,
        *,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = list(candidates)
        self.problem = problem
        self.metric = metric
        self.seed = seed
        self.n_jobs = n_jobs
        self._outputs: dict[str, list[Output]] = {}

    @property
    def task(self) -> ClassTask | NumberTask:
        """Whether the label is a class or a number, and what follows from it."""
        return self.problem.task

    def with_candidates(self, numbers: Sequence[int]) -> "Bench":
        """Return a bench of some of the candidates, with what they have said so far."""
        some = Bench(
            [self.candidates[i] for i in numbers],
            self.problem,
            self.metric,
            seed=self.seed,
            n_jobs=self.n_jobs,
        )
        for name, outputs in self._outputs.items():
            some._outputs[name] = [outputs[i] for i in numbers]
        return some

    def to_arrays(self) -> dict[str, Any]:
        """Return the outputs of all scenes run so far, as arrays without Python objects.

        ``"SCENE, NUMBER"`` has the logits of a candidate in a scene, ``"candidates"`` the names of
        the candidates, and ``"facts"`` a JSON text with the rest of each output, by scene.
        """
        arrays: dict[str, Any] = {"candidates": np.array([one.name for one in self.candidates])}
        facts = {}
        for name, outputs in self._outputs.items():
            facts[name] = [one._replace(logits=None) for one in outputs]
            for number, one in enumerate(outputs):
                if one.logits is not None:
                    arrays[f"{name}, {number}"] = one.logits
        return arrays | {"facts": np.array(json.dumps(facts))}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take the outputs of another bench from its arrays, so that its scenes are not run again.

        Candidates are found by name; the other bench may have more of them. Whether it has the same
        rows is for the caller to know: see `fingerprint`.
        """
        stored = [str(name) for name in arrays["candidates"]]
        numbers = [stored.index(one.name) for one in self.candidates]
        facts = json.loads(str(arrays["facts"])) if "facts" in arrays else {}
        scenes = dict.fromkeys(key.rpartition(", ")[0] for key in arrays if ", " in key)
        for name in {**scenes, **facts}:
            self._outputs[name] = [
                _restored(arrays.get(f"{name}, {i}"), facts[name][i] if name in facts else None)
                for i in numbers
            ]

    def fingerprint(self) -> str:
        """Return a hash of rows, classes, domains, candidates with their settings, and seed."""
        found = hashlib.sha256()
        values = self.problem.values
        for part in [*self.problem[:5], *([] if values is None else [values])]:
            array = np.ascontiguousarray(part)
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(array.tobytes())
        settings = [
            (one.name, _settings(one.adapter), _settings(one.estimator)) for one in self.candidates
        ]
        found.update(repr((self.problem.n_classes, self.seed, settings)).encode())
        return found.hexdigest()

    def rng(self, name: str) -> np.random.RandomState:
        """Return the stream of random numbers of this name."""
        return np.random.RandomState([self.seed, zlib.crc32(name.encode())])

    @property
    def target(self) -> list[Output]:
        """Outputs of each candidate for the target rows."""
        return self.run({"target": target_scene(self.problem)})["target"]

    @cached_property
    def separation_auc(self) -> float:
        """AUC of a classifier of source against target; .5: there are too few rows."""
        problem = self.problem
        if min(len(problem.X_source), len(problem.X_target)) < MIN_ROLE_ROWS:
            return 0.5
        with ignored_warnings(ConvergenceWarning):  # expected where rows separate easily
            test = classifier_two_sample_test(
                problem.X_source,
                problem.X_target,
                random_state=self.rng("separation"),
                n_importance_repeats=0,
            )
        return float(test.statistic)

    def outputs_left_out(self) -> list[FloatArray | None]:
        """Logits of the source rows, as source rows, by fits that left them out; by candidate."""
        problem = self.problem
        fold_of = deal_folds(problem.codes, N_FOLDS, self.rng("folds"))
        scenes = {}
        for fold in range(N_FOLDS):
            left_out = fold_of == fold
            scenes[f"fold {fold}"] = make_scene(
                problem.X_source[~left_out],
                problem.codes[~left_out],
                problem.source_domain[~left_out],
                problem.X_target,
                problem.target_domain,
                test=(problem.X_source[left_out], problem.source_domain[left_out]),
                values=None if problem.values is None else problem.values[~left_out],
            )
        folds = list(self.run(scenes).values())
        return [_join([fold[i] for fold in folds], fold_of) for i in range(len(self.candidates))]

    @cached_property
    def scalings(self) -> list[Scaling | None]:
        """How logits of each candidate become probabilities; None: its fits failed.

        From logits of source rows by fits that left them out.
        """
        return [
            None if logits is None else self.task.calibrate(logits, self.problem.truth)
            for logits in self.outputs_left_out()
        ]

    def calibrated(self, outputs: Sequence[Output]) -> list[FloatArray | None]:
        """Calibrated probabilities of each candidate's output, or its numbers; None: none."""
        return [
            None if output.logits is None else self.task.apply(output.logits, scaling)
            for output, scaling in zip(outputs, self.scalings, strict=True)
        ]

    def probabilities_left_out(self) -> list[FloatArray | None]:
        """Calibrated probabilities of the source rows, or numbers, by fits that left them out."""
        return [
            None if logits is None else self.task.apply(logits, scaling)
            for logits, scaling in zip(self.outputs_left_out(), self.scalings, strict=True)
        ]

    def has_run(self, name: str) -> bool:
        """Return whether the scene of this name has been run."""
        return name in self._outputs

    def run(self, scenes: Mapping[str, Scene]) -> dict[str, list[Output]]:
        """Return the outputs of every candidate in each of the named scenes."""
        new = {name: scene for name, scene in scenes.items() if not self._has(name, scene)}
        groups = self._groups()
        tasks = [(group, scene) for scene in new.values() for group in groups]
        results = iter(self.run_tasks(tasks))
        for name in new:
            outputs: dict[int, Output] = {}
            for group in groups:
                outputs.update(zip(group, next(results), strict=True))
            self._outputs[name] = [outputs[number] for number in range(len(self.candidates))]
        return {name: self._outputs[name] for name in scenes}

    def run_tasks(self, tasks: Sequence[tuple[Sequence[int], Scene]]) -> list[list[Output]]:
        """Return the outputs of some candidates, by number, in the scene that goes with them."""
        calls = [
            delayed(_run)([self.candidates[i] for i in group], scene, self.problem.n_classes)
            for group, scene in tasks
        ]
        results: list[list[Output]] = Parallel(n_jobs=self.n_jobs)(calls) if calls else []
        return results

    def score(self, outputs: Sequence[Output], truth: Any) -> FloatArray:
        """Return the metric of each candidate's output; NaN where it has none."""
        return np.array(
            [
                np.nan if output.logits is None else self.metric(truth, self._predicted(output))
                for output in outputs
            ]
        )

    def _predicted(self, output: Output) -> Any:
        """Return the class numbers, or numbers."""
        if self.problem.values is None:
            return output.codes
        assert output.logits is not None
        return self.task.apply(output.logits, None)[:, 0]

    def _has(self, name: str, scene: Scene) -> bool:
        """Whether there are outputs of a scene; those restored of other rows do not count."""
        n_outputs = self.problem.n_classes if self.problem.values is None else 1
        shape = (len(scene.X_test), n_outputs)
        return name in self._outputs and all(
            one.logits is None or one.logits.shape == shape for one in self._outputs[name]
        )

    def _groups(self) -> list[list[int]]:
        """Return the numbers of the candidates that share an adapter."""
        groups: dict[int, list[int]] = {}
        for number, one in enumerate(self.candidates):
            groups.setdefault(id(one.adapter), []).append(number)
        return list(groups.values())


def _join(folds: Sequence[Output], fold_of: IntArray) -> FloatArray | None:
    """Return the logits of all rows from those of each fold; None, if a fold has none."""
    logits = [output.logits for output in folds if output.logits is not None]
    if len(logits) < len(folds):
        return None
    joined = np.empty((len(fold_of), logits[0].shape[1]))
    for fold, part in enumerate(logits):
        joined[fold_of == fold] = part
    return joined


def _restored(logits: FloatArray | None, facts: Sequence[Any] | None) -> Output:
    """Return an output from its logits and from what `Bench.to_arrays` tells of it."""
    if logits is not None:
        logits = np.array(logits, dtype=np.float64)
    if facts is None:
        facts = [None, None, 0.0, (), None]
    _, error, seconds, warnings, n_effective = facts
    return Output(
        logits,
        str(error or "failed") if logits is None else None,
        float(seconds),
        tuple(map(str, warnings)),
        None if n_effective is None else float(n_effective),
    )


def _settings(part: Any) -> Any:
    """Return the type and all parameters of an estimator; the repr of anything else.

    The repr of an estimator would be cut, and leave out parameters that have their defaults.
    """
    if isinstance(part, type) or not hasattr(part, "get_params"):
        if isinstance(part, list | tuple):
            return [_settings(one) for one in part]
        return repr(part)
    kind = f"{type(part).__module__}.{type(part).__qualname__}"
    own = sorted(part.get_params(deep=False).items())
    return [kind, *((name, _settings(value)) for name, value in own)]


def _run(candidates: Sequence[Candidate], scene: Scene, n_classes: int) -> list[Output]:
    with one_blas_thread(), one_openmp_thread():  # scenes have few rows
        return run_scene(candidates, scene, n_classes)
