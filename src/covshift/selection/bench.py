"""Where candidates are tried: a problem, its scenes, and all candidates run on them.

A problem holds what a scorer may see: labeled source rows, target rows, and no label of the latter.
A scene is rows to fit on and rows to predict: the target itself, or source rows that play it. The
bench runs scenes once, in parallel, for all callers.

Probabilities and margins are brought to one form, logits, whose softmax are the probabilities where
the classifier has some. So a linear SVM takes part in everything. Predicted numbers are kept in the
same place, as a single column.
"""

import hashlib
import json
import warnings
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from covshift.domains import FitDomains
from covshift.kernels.array_types import FloatArray, IntArray
from covshift.kernels.drawn_rows import deal_folds, draw_rows
from covshift.kernels.probabilities import Scaling, class_shares
from covshift.measures import classifier_two_sample_test, effective_sample_size
from covshift.predictors.adapter_steps import uses_target_rows
from covshift.predictors.fit_and_predict import (
    AdaptedRows,
    FittedCandidate,
    adapt_rows,
    class_logits,
    fit_estimator,
    predict_candidate,
    problem_size,
    represent,
)
from covshift.predictors.objectives import Metric
from covshift.registry import Size
from covshift.selection.candidates import Candidate
from covshift.selection.label_tasks import CLASSES, ClassTask, NumberTask
from covshift.solvers.threads import one_blas_thread, one_openmp_thread
from covshift.warning_filters import ignored_warnings, recorded_warnings

# --- A problem, its scenes, and what a candidate says of the rows of a scene ---


class Problem(NamedTuple):
    """Rows to learn from and rows to adapt to. Classes are numbers from 0 to n_classes - 1.

    Where the label is a number, ``values`` holds it in units of the source, ``task`` the units, and
    the classes are groups of equally many rows by the label: by these, rows are drawn and dealt.
    """

    X_source: FloatArray
    codes: IntArray
    source_domain: IntArray
    X_target: FloatArray
    target_domain: IntArray
    n_classes: int
    values: FloatArray | None = None
    task: ClassTask | NumberTask = CLASSES

    @property
    def truth(self) -> Any:
        """Labels that predictions are compared with: class numbers, or numbers."""
        return self.codes if self.values is None else self.values

    @property
    def source_domains(self) -> IntArray:
        """Distinct source domains."""
        return np.unique(self.source_domain)

    @property
    def class_shares(self) -> FloatArray:
        """Shares of the classes among the source rows."""
        return class_shares(self.codes, self.n_classes)

    @property
    def size(self) -> Size:
        """Size of the problem, by which settings of adapters are chosen."""
        scene = target_scene(self)
        n_classes = self.n_classes if self.values is None else 1  # as in `AdaptedRegressor`
        return problem_size(scene.X, n_classes, scene.sample_domain)

    def thinned(self, max_rows: int, rng: np.random.RandomState) -> "Problem":
        """Largest number of rows of each role, drawn in proportion to domains and classes."""
        return self.take(*self.draw_rows(max_rows, rng))

    def draw_rows(self, max_rows: int, rng: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Return the numbers of the source rows and of the target rows that `thinned` keeps."""
        source = _draw(self.source_domain * self.n_classes + self.codes, max_rows, rng)
        return source, _draw(self.target_domain, max_rows, rng)

    def take(self, source: IntArray, target: IntArray) -> "Problem":
        """Return the problem of some of the rows."""
        return self._replace(
            X_source=self.X_source[source],
            codes=self.codes[source],
            source_domain=self.source_domain[source],
            X_target=self.X_target[target],
            target_domain=self.target_domain[target],
            values=None if self.values is None else self.values[source],
        )


class Scene(NamedTuple):
    """One fit of every candidate: training rows, rows to adapt to (code -1), rows to predict.

    ``values``: labels of the training rows that are numbers; None: the codes are the labels.
    """

    X: FloatArray
    codes: IntArray
    sample_domain: IntArray
    X_test: FloatArray
    test_domain: IntArray
    values: FloatArray | None = None

    @property
    def labels(self) -> Any:
        """Labels of the training rows: class numbers, or numbers."""
        return self.codes[self.codes >= 0] if self.values is None else self.values

    @property
    def domains(self) -> FitDomains:
        """Where the rows to fit come from, and which of them have a label."""
        return FitDomains(self.sample_domain, self.codes >= 0, given=True)


def make_scene(
    X_source: FloatArray,
    codes: IntArray,
    source_domain: IntArray,
    X_target: FloatArray,
    target_domain: IntArray,
    *,
    test: tuple[FloatArray, IntArray] | None = None,
    values: FloatArray | None = None,
) -> Scene:
    """Make a scene of the bench: source rows, and rows to predict, the target's or others.

    ``values``: labels of the source rows that are numbers.
    """
    X_test, test_domain = (X_target, target_domain) if test is None else test
    return Scene(
        np.concatenate([X_source, X_target]),
        np.concatenate([codes, np.full(len(X_target), -1)]),
        np.concatenate([source_domain, target_domain]),
        X_test,
        test_domain,
        values,
    )


def target_scene(problem: Problem) -> Scene:
    """Return the bench's problem as a scene: learn from the source, adapt to and predict target."""
    return make_scene(*problem[:5], values=problem.values)


def _draw(strata: Any, max_rows: int, rng: np.random.RandomState) -> IntArray:
    if len(strata) <= max_rows:
        return np.arange(len(strata))
    _, numbers = np.unique(strata, return_inverse=True)
    return np.sort(draw_rows(numbers, max_rows, rng))


# --- Candidates fitted to a scene, and what they say of its rows ---


class Output(NamedTuple):
    """Output of one candidate for the rows of a scene, or the reason why it has none.

    ``logits`` (n, n_classes); where the label is a number, the predictions (n, 1).
    ``n_effective`` is the effective number of source rows, where the adapter weighs them.
    """

    logits: FloatArray | None
    error: str | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    n_effective: float | None = None

    @property
    def codes(self) -> IntArray:
        """Predicted class numbers."""
        assert self.logits is not None
        return self.logits.argmax(axis=1)

    @property
    def probabilities(self) -> FloatArray:
        """Softmax of the logits."""
        p: FloatArray = softmax(self.logits, axis=1)
        return p


def _run_scene(candidates: Sequence[Candidate], scene: Scene, n_classes: int) -> list[Output]:
    """Fit candidates to a scene; an adapter that several share is fitted once."""
    adapted: dict[int, _Adapted] = {}
    # Most estimators see the labeled rows alone; all adapted rows are kept where one sees the
    # others.
    keep_all = any(uses_target_rows(one.estimator) for one in candidates)
    for one in candidates:
        # Candidates that share an adapter hold the same object. It is fitted once, which is most of
        # the time where an adapter is slow and the models on top of it are not.
        if id(one.adapter) not in adapted:
            adapted[id(one.adapter)] = _adapt(one.adapter, scene, keep_all)
    return [_run(one.estimator, adapted[id(one.adapter)], scene, n_classes) for one in candidates]


class _Adapted(NamedTuple):
    """The rows of a scene as an adapter represents them, or why it does not."""

    rows: AdaptedRows | None = None
    Z_test: Any = None
    error: str | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def _adapt(adapter: Any, scene: Scene, keep_all: bool) -> _Adapted:
    start = perf_counter()
    with recorded_warnings() as caught:
        try:
            domains = scene.domains
            labels = scene.labels if scene.values is None else None  # adapters read classes only
            rows = adapt_rows(adapter, scene.X, labels, domains, keep_all=keep_all)
            Z_test = represent(rows.adapter, scene.X_test, sample_domain=scene.test_domain)
        except Exception as error:  # a user's adapter may raise anything: the others continue
            return _Adapted(error=_in_a_line(error), seconds=perf_counter() - start)
    return _Adapted(rows, Z_test, None, perf_counter() - start, _messages(caught))


def _run(estimator: Any, adapted: _Adapted, scene: Scene, n_classes: int) -> Output:
    if adapted.rows is None:
        return Output(None, adapted.error, adapted.seconds)
    start = perf_counter()
    importance = adapted.rows.importance
    # Few source rows that carry all the weight make an unstable model: scorers disqualify it by
    # this.
    n_effective = None if importance is None else effective_sample_size(importance)
    with recorded_warnings() as caught:
        try:
            model = fit_estimator(estimator, adapted.rows, scene.labels)
            # The rows to predict are represented already, hence no adapter.
            fitted = FittedCandidate(None, model)
            if scene.values is None:
                logits = class_logits(fitted, adapted.Z_test, n_classes, scene.test_domain)
            else:
                logits = predicted_numbers(fitted, adapted.Z_test, scene.test_domain)
            # A model that overflows predicts something, and its mean with others would not be a
            # number.
            error = None if np.isfinite(logits).all() else "its scores are not finite"
        except Exception as raised:
            logits, error = None, _in_a_line(raised)
    return Output(
        None if error else logits,
        error,
        adapted.seconds + perf_counter() - start,
        (*adapted.warnings, *_messages(caught)),
        n_effective,
    )


def predicted_numbers(model: Any, X: Any, sample_domain: Any = None) -> FloatArray:
    """Return outputs of a bench for numbers: predictions (n, 1) of rows by a fitted candidate."""
    if not isinstance(model, FittedCandidate):
        model = FittedCandidate(model.adapter_, model.estimator_)
    found = predict_candidate(model, "predict", X, sample_domain)
    return np.asarray(found, dtype=np.float64).reshape(-1, 1)


def _in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _messages(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    texts = [f"{one.category.__name__}: {one.message}".partition("\n")[0] for one in caught]
    return tuple(dict.fromkeys(texts))


# --- The bench: outputs of all candidates on all scenes ---


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
            # Outputs of a scene do not depend on which candidates are beside: none is run again.
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
        # Files hold no Python objects, since reading them could run code: names, numbers and JSON
        # only.
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
        # The type and shape of an array are part of the hash: equal bytes may be other numbers.
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
        # A stream for each name: a scorer that draws more numbers than before does not change what
        # others draw. CRC-32, because Python's hash of a text differs from process to process.
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
        # The rows left out are predicted as rows of the source, by fits that still adapt to the
        # target: what is calibrated here is how sure such a fit is of rows that it has not seen.
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
        # A group, not a candidate, is the unit of parallel work: what shares an adapter stays
        # together.
        tasks = [(group, scene) for scene in new.values() for group in groups]
        # Results come back in the order of the tasks, whichever process was first.
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
            delayed(_run_group)([self.candidates[i] for i in group], scene, self.problem.n_classes)
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


def _run_group(candidates: Sequence[Candidate], scene: Scene, n_classes: int) -> list[Output]:
    with one_blas_thread(), one_openmp_thread():  # scenes have few rows
        return _run_scene(candidates, scene, n_classes)
