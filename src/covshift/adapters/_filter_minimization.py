"""Minimizing the losses of filters from their starts: many problems in few evaluations."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from covshift.base import check_count, check_option, warn_nothing_to_adapt
from covshift.domains import FitDomains, Labels, Unit, locate_units, pooling_units, unit_codes
from covshift.kernels import compiled
from covshift.kernels.activations_and_norms import (
    ACTIVATIONS,
    Activation,
    activate,
    normalize_by,
    root_mean_squares,
    stored_norms,
)
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.device_filters import (
    DeviceProblems,
    Passes,
    device_losses,
    eager_passes,
    normalize_on_device,
    squares_on_device,
)
from covshift.kernels.filter_losses import Losses, filter_losses, minimize_small_filters
from covshift.kernels.filter_streams import squares_by_code, streamed_losses
from covshift.kernels.row_blocks import blocks_are_kept
from covshift.measures.ks import mean_ks_distance
from covshift.solvers.device_arrays import (
    bring_to_host,
    float_type,
    gather,
    is_tensor,
    namespace_of,
    put_beside,
)
from covshift.solvers.lbfgs import MAX_DENSE, Path, minimize_lbfgs, search_limits
from covshift.solvers.threads import Run, run_on_threads
from covshift.streams import ArrayRows, OpenRows, RowStream

# --- Feature norms of each pooling unit, measured once and applied to any row later ---

# Activations on a device that are measured at a time: memory there is dear.
DEVICE_ACTIVATIONS = 2**26


@dataclass(frozen=True)
class UnitNorms:
    """Root mean squares of the activations in each pooling unit.

    Attributes
    ----------
    units : names of the U units.
    root_means : (U, L).
    counts : (U,) rows over which each was measured.
    """

    units: list[Unit]
    root_means: FloatArray
    counts: IntArray

    @classmethod
    def measure(cls, F: FloatArray, units: dict[Unit, IntArray]) -> "UnitNorms":
        """Measure the norms of activations F (n, L), given the rows of each unit."""
        if not isinstance(F, np.ndarray):
            return cls.measure_on_device(F, lambda rows: rows, F.shape[1], units)
        return cls(
            units=list(units),
            root_means=np.stack([root_mean_squares(F[rows]) for rows in units.values()]),
            counts=np.array([len(rows) for rows in units.values()]),
        )

    @classmethod
    def measure_on_device(
        cls,
        X: Any,
        activate: Callable[[Any], Any],
        n_filters: int,
        units: dict[Unit, IntArray],
    ) -> "UnitNorms":
        """Measure the norms of the activations of rows X on a device, some of them at a time."""
        xp = namespace_of(X)
        step = max(1, DEVICE_ACTIVATIONS // n_filters)
        root_means = []
        for rows in units.values():
            cuts = (rows[start : start + step] for start in range(0, len(rows), step))
            parts = (gather(X, put_beside(cut, X)) for cut in cuts)
            squares = sum(squares_on_device(activate(part), xp) for part in parts)
            root_means.append(xp.astype(xp.sqrt(squares / len(rows)), X.dtype))
        counts = np.array([len(rows) for rows in units.values()])
        return cls(units=list(units), root_means=xp.stack(root_means), counts=counts)

    @classmethod
    def measure_stream(
        cls,
        stream: RowStream,
        W: FloatArray,
        activation: Activation,
        epsilon: float,
        units: dict[Unit, IntArray],
    ) -> "UnitNorms":
        """Measure the norms of the activations of filters W (L, m), in a pass over the rows."""
        squares, counts = np.zeros((len(units), len(W))), np.zeros(len(units), dtype=np.int64)
        for positions, codes in unit_codes(units, stream.shape[0]):
            arguments = (W.astype(stream.dtype)[None], activation, epsilon, len(positions))
            sums = stream.sums(squares_by_code, stream.split(codes), *arguments)
            squares[positions], counts[positions] = sums
        root_means = np.sqrt(squares / counts[:, None]).astype(stream.dtype)
        return cls(list(units), root_means, counts)

    def normalize(self, F: FloatArray, sample_domain: IntArray, norm_epsilon: float) -> FloatArray:
        """Overwrite F with its representation, each row under the norms of its unit."""
        if not isinstance(F, np.ndarray):
            unit = put_beside(locate_units(self.units, sample_domain), F)
            counts, xp = put_beside(self.counts, F), namespace_of(F)
            return normalize_on_device(F, self.root_means, counts, unit, norm_epsilon, xp)
        norms = stored_norms(self.root_means, self.counts, norm_epsilon).astype(F.dtype)
        unit = locate_units(self.units, sample_domain)
        # One unit for all rows, the usual case, needs no norms for every row.
        one_unit = (unit == unit[0]).all()
        return normalize_by(F, norms[unit[0]] if one_unit else norms[unit], norm_epsilon)

    def replace(self, new: "UnitNorms") -> "UnitNorms":
        """Return the norms with those of the units of ``new`` added or exchanged."""
        others = [index for index, name in enumerate(self.units) if name not in new.units]
        if isinstance(self.root_means, np.ndarray):
            root_means = np.vstack([self.root_means[others], new.root_means])
        else:
            xp = namespace_of(self.root_means)
            rows = put_beside(np.array(others, dtype=np.int64), self.root_means)
            kept = xp.take(self.root_means, rows, axis=0)
            root_means = xp.concat([kept, new.root_means])
        return UnitNorms(
            units=[*(self.units[index] for index in others), *new.units],
            root_means=root_means,
            counts=np.append(self.counts[others], new.counts),
        )


# --- Losses of problems whose rows live on a device, and what batches of them are made of ---


# Activations evaluated together: arrays of a gigabyte in single precision.
BATCH_ACTIVATIONS = 2**28


def _device_kind(problem: Any) -> tuple[Any, ...]:
    """Return the key of problems on a device that can be evaluated together.

    Numbers of filters may differ: the smaller problems are padded. Those of few variables keep
    to themselves, for the solver keeps their whole inverse Hessian. A cosine is a sine with
    another phase.
    """
    filter_ = problem.filter_
    curve = "abs" if filter_.activation == "abs" else "periodic"
    evaluation = (filter_._loss_name(), curve, filter_.epsilon, filter_.norm_epsilon)
    C, L = problem.reward.groups.shape
    codes = problem.reward.codes
    labels = None if codes is None else hashlib.sha256(codes).digest()
    small = L if L * problem.data.shape[1] <= MAX_DENSE else None
    return ("device", id(problem.data), C, labels, small, *evaluation)


def _hold_the_same(X: Any, other: Any) -> bool:
    """Return whether two arrays of one shape are equal, in one place."""
    if X.dtype != other.dtype or X.device != other.device:
        return False
    return bool(namespace_of(X).all(other == X))


def _pad_starts(starts: Sequence[FloatArray], X: Any) -> Any:
    """Return the filters (K, L, m) beside X, from arrays of up to L filters."""
    L = max(len(start) for start in starts)
    padded = np.zeros((len(starts), L, X.shape[1]), float_type(X))
    for row, start in enumerate(starts):
        padded[row, : len(start)] = start
    return put_beside(padded, X)


def _device_batch_losses(problems: Sequence[Any], n_filters: int) -> Losses:
    """Return the losses of problems on the same rows, padded to ``n_filters`` each."""
    first, X = problems[0], problems[0].data
    filter_, dtype = first.filter_, float_type(X)
    C = first.reward.groups.shape[0]
    groups = np.zeros((len(problems), C, n_filters), dtype=bool)
    there = np.zeros((len(problems), n_filters), dtype=bool)
    for row, problem in enumerate(problems):
        L = problem.reward.groups.shape[1]
        groups[row, :, :L], there[row, :L] = problem.reward.groups, True
    codes = first.reward.codes
    codes = np.full(X.shape[0], C) if codes is None else np.where(codes < 0, C, codes)
    label_reward = np.stack([problem.reward.label_reward for problem in problems])
    alpha = np.array([problem.filter_.alpha for problem in problems])
    activations = [problem.filter_.activation for problem in problems]
    phase = np.where(np.array(activations) == "cos", np.pi / 2, 0.0)
    numbers = (label_reward.astype(dtype), there, alpha.astype(dtype), phase.astype(dtype))
    arrays = (codes, groups, *numbers)
    xp = namespace_of(X)
    passes = _choose_passes(
        X, n_filters, filter_._loss_name(),
        activation=activations[0] if len(set(activations)) == 1 else "periodic",
        epsilon=filter_.epsilon, norm_epsilon=filter_.norm_epsilon,
    )  # fmt: skip
    on_device = DeviceProblems(X, *(put_beside(array, X) for array in arrays))
    return device_losses(on_device, passes, xp)


def _choose_passes(X: Any, n_filters: int, loss: str, **how: Any) -> Passes:
    """Fused kernels where there are any for this, eager operations elsewhere."""
    xp = namespace_of(X)
    fused = _fused_filters(X.device) if is_tensor(X) and X.is_cuda else None
    if fused is not None and fused.takes(X, n_filters, loss):
        return fused.fused_passes(**how, xp=xp)
    return eager_passes(loss, **how, xp=xp)


@cache
def _fused_filters(device: Any) -> Any:
    """Return the module of the fused kernels, if Triton is there and can compile."""
    try:
        from covshift.kernels import fused_filters
    except ImportError:
        return None
    try:
        fused_filters.try_out(device)
    except Exception as error:  # whatever a compiler may say
        warnings.warn(
            f"Triton cannot compile for {device} ({type(error).__name__}: {error}): the filters "
            "are evaluated by torch itself, which takes longer.",
            stacklevel=2,
        )
        return None
    return fused_filters


# Filters evaluated together: 100 starts of four. Enough of them keep NumPy's overhead small beside
# its work; more would only make the blocks of rows shorter.
BATCH_FILTERS = 400
# Activations of an evaluation below which threads would mostly wait for each other.
MIN_THREADED_SIZE = 2**19
AUTO = "auto"  # parameter value: computed from the rows


def check_filter_parameters(filter_):
    """Check the parameters of a minimization that all filters have."""
    check_option("activation", filter_.activation, ACTIVATIONS)
    check_option("normalization", filter_.normalization, ("domain", "joint", "batch"))
    check_option("pooling", filter_.pooling, ("role", "domain"))
    check_option("early_stopping", filter_.early_stopping, (None, "ks"))
    if filter_.n_components is not None:
        check_count("n_components", filter_.n_components, minimum=1)
    if filter_.init is None or (isinstance(filter_.init, str) and filter_.init != "normal"):
        raise ValueError(f"init must be 'normal' or an array of filters, got {filter_.init!r}.")
    check_count("max_iter", filter_.max_iter, minimum=0)
    check_count("n_restarts", filter_.n_restarts, minimum=1)
    check_count("stopping_window", filter_.stopping_window, minimum=1)
    check_count("min_domain_size", filter_.min_domain_size, minimum=1)
    check_scalar(filter_.verbose, "verbose", (bool, Integral), min_val=0)
    numbers = ["epsilon", "norm_epsilon", "alpha", "tol", "init_scale"]
    if isinstance(filter_.init_scale, str):
        if filter_.init_scale != AUTO:
            raise ValueError(f"init_scale must be a number or 'auto', got {filter_.init_scale!r}.")
        numbers.remove("init_scale")
    for name in numbers:
        value = getattr(filter_, name)
        check_scalar(value, name, Real, min_val=0)
        if not np.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}.")


@dataclass(frozen=True)
class Reward:
    """The part of the loss that labels add; arguments of the loss functions in `kernels`."""

    classes: Labels
    codes: IntArray | None
    groups: BoolArray
    label_reward: FloatArray

    @classmethod
    def none(cls, n_components: int) -> "Reward":
        """No labels, no reward."""
        return cls(np.array([]), None, np.zeros((0, n_components), dtype=bool), np.zeros(0))


@dataclass(frozen=True, eq=False)
class FilterProblem:
    """A filter whose parameters are checked, and the data that it is to be fitted to."""

    filter_: Any
    rows: OpenRows
    domains: FitDomains
    reward: Reward
    starts: list[FloatArray]
    window: int | None

    @classmethod
    def of(
        cls, filter_: Any, rows: OpenRows, domains: FitDomains, reward: Reward
    ) -> "FilterProblem":
        """Draw the starts of a filter."""
        starts = _draw_starts(filter_, (reward.groups.shape[1], rows.shape[1]), rows.dtype)
        return cls(filter_, rows, domains, reward, starts, _stopping_window(filter_, domains))

    @property
    def data(self) -> Any:
        """Operand of the loss: an array, a tensor or a stream."""
        return self.rows.data

    def on_rows_of(self, other: "FilterProblem") -> "FilterProblem":
        """Return the same problem on another's array, where that holds the same rows."""
        X, theirs = self.data, other.data
        if X is theirs or type(X) is not type(theirs) or X.shape != theirs.shape:
            return self
        if isinstance(X, np.ndarray):
            same = np.array_equal(X, theirs)
        else:
            same = self.rows.on_device and _hold_the_same(X, theirs)
        return replace(self, rows=other.rows) if same else self

    @property
    def max_iter(self) -> int:
        """Iterations of the optimizer."""
        limit: int = self.filter_.max_iter
        return limit if self.window is None else min(limit, self.window)

    @property
    def n_together(self) -> int:
        """Starts to be evaluated together."""
        L = self.reward.groups.shape[1]
        if self.rows.on_device:
            return max(1, BATCH_ACTIVATIONS // (L * self.data.shape[0]))
        return max(1, BATCH_FILTERS // L)

    @property
    def name(self) -> str:
        """The start of the lines that a verbose fit prints."""
        return f"[{type(self.filter_).__name__}]"

    def kind(self) -> tuple[Any, ...]:
        """Return the properties that problems must share to be evaluated together."""
        X, filter_ = self.data, self.filter_
        evaluation = (filter_._loss_name(), filter_.activation, filter_.epsilon)
        stopping = (self.max_iter, filter_.tol, self.window is None)
        if self.rows.on_device:
            return (*_device_kind(self), *stopping)
        # Enough starts for a batch of their own share one array of rows, which costs less.
        alone = not isinstance(X, np.ndarray) or 2 * len(self.starts) > self.n_together
        rows = id(X) if alone else (X.shape, X.dtype)
        return (rows, self.reward.groups.shape, *evaluation, filter_.norm_epsilon, *stopping)

    def distance(self, W: FloatArray) -> float:
        """KS distance of source and target as these filters represent them."""
        filter_ = self.filter_
        pooling = "joint" if filter_.normalization == "joint" else filter_.pooling
        units = pooling_units(self.domains.sample_domain, pooling, filter_.min_domain_size)
        F = activate(self.data @ W.T, filter_.activation, filter_.epsilon)
        Z = UnitNorms.measure(F, units).normalize(
            F, self.domains.sample_domain, filter_.norm_epsilon
        )
        return mean_ks_distance(Z[self.domains.source], Z[self.domains.target])


class Start(NamedTuple):
    """One of the starts of one of the problems."""

    problem: FilterProblem
    restart: int


def minimize_filters(problems: Sequence[FilterProblem], n_jobs: int | None) -> list[list[Path]]:
    """Minimize the loss of every problem from all its starts; paths in the order of those.

    Starts of problems of one kind are evaluated together, in batches that depend only
    on the problems.
    """
    batches = _batches(problems)
    try:
        results = run_on_threads([partial(_minimize_batch, batch) for batch in batches], n_jobs)
    except FloatingPointError:
        raise ValueError(
            f"The loss is not finite in {problems[0].data.dtype} at the start: one of init, "
            "init_scale, epsilon, norm_epsilon, alpha and label_reward is too large for these "
            "rows."
        ) from None
    paths = {
        (id(start.problem), start.restart): path
        for batch, batch_paths in zip(batches, results, strict=True)
        for start, path in zip(batch, batch_paths, strict=True)
    }
    return [
        [paths[id(problem), restart] for restart in range(len(problem.starts))]
        for problem in problems
    ]


def _batches(problems: Sequence[FilterProblem]) -> list[list[Start]]:
    """Return starts to be evaluated together; the largest batches come first, to end together."""
    kinds: dict[tuple[Any, ...], list[Start]] = {}
    for problem in problems:
        starts = [Start(problem, restart) for restart in range(len(problem.starts))]
        kinds.setdefault(problem.kind(), []).extend(starts)
    batches = []
    for starts in kinds.values():
        # Problems on a device are padded to the first of their batch.
        starts.sort(key=lambda start: -start.problem.reward.groups.shape[1])
        n_parts = -(-len(starts) // starts[0].problem.n_together)
        bounds = np.linspace(0, len(starts), n_parts + 1).astype(int).tolist()
        batches += [starts[low:high] for low, high in pairwise(bounds)]
    # By the number of filters: the short ones at the end keep all threads busy.
    return sorted(batches, key=lambda batch: -len(batch) * batch[0].problem.reward.groups.shape[1])


def _minimize_batch(batch: list[Start], run: Run, should_stop: Any) -> list[Path]:
    paths = _paths_of(batch, run, should_stop)
    for (problem, restart), path in zip(batch, paths, strict=True):
        if problem.filter_.verbose:
            print(
                f"{problem.name} restart {restart + 1}: loss {path.loss:.8g} at iteration "
                f"{path.iteration} of {path.n_iter}"
            )
    return paths


def _paths_of(batch: list[Start], run: Run, should_stop: Any) -> list[Path]:
    problems = [start.problem for start in batch]
    first = problems[0]
    given = [problem.starts[restart] for problem, restart in batch]
    # The loss is a sum over rows, and so is its gradient.
    max_iter, tol = first.max_iter, first.filter_.tol * first.data.shape[0]
    shown = any(problem.filter_.verbose > 1 for problem in problems)
    if not shown and _is_small(problems):
        return _minimize_small(problems, np.stack(given), max_iter, tol, run, should_stop)
    if first.rows.on_device:
        starts = _pad_starts(given, first.data)
        losses = _device_batch_losses(problems, starts.shape[1])
    else:
        starts = np.stack(given)
        size = starts.shape[0] * starts.shape[1] * first.data.shape[0]
        losses = _batch_losses(problems, starts, run if size >= MIN_THREADED_SIZE else map)

    def distance(position: int, W: FloatArray) -> float:
        return problems[position].distance(W)

    def progress(position: int, iteration: int, loss: float, gradient_norm: float) -> None:
        problem, restart = batch[position]
        if problem.filter_.verbose > 1:
            print(
                f"{problem.name} restart {restart + 1}  iteration {iteration}  loss {loss:.8g}  "
                f"gradient {gradient_norm:.2e}"
            )

    paths = minimize_lbfgs(
        losses,
        starts,
        max_iter=max_iter,
        tol=tol,
        distance=None if first.window is None else distance,
        progress=progress if shown else None,
        should_stop=should_stop,
    )
    for problem, path in zip(problems, paths, strict=True):
        path.x = path.x[: problem.reward.groups.shape[1], ...]  # without padding
    return paths


def _is_small(problems: list[FilterProblem]) -> bool:
    """Whether compiled code minimizes these problems one by one, without the solver's rounds."""
    first = problems[0]
    if first.rows.on_device or not isinstance(first.data, np.ndarray) or compiled.library() is None:
        return False
    n_filters, (n_rows, n_features) = first.reward.groups.shape[1], first.data.shape
    plain = first.window is None and first.filter_._loss_name() == "joint"
    few = len(problems) * n_filters * n_rows < MIN_THREADED_SIZE
    return plain and few and n_filters * n_features <= MAX_DENSE


def _minimize_small(
    problems: list[FilterProblem],
    starts: FloatArray,
    max_iter: int,
    tol: float,
    run: Run,
    should_stop: Any,
) -> list[Path]:
    arguments = _batch_arguments(problems)
    del arguments["loss"]
    limits = search_limits() | {
        "max_iter": max_iter, "tol": tol, "precision": float(np.finfo(starts.dtype).eps)
    }  # fmt: skip
    found = minimize_small_filters(
        starts, **arguments, limits=limits, run=run, should_stop=should_stop
    )
    return [
        Path(
            x=path.W,
            loss=path.losses[-1],
            iteration=len(path.losses) - 1,
            converged=path.converged,
            losses=path.losses,
            gradient_norms=path.gradient_norms,
        )
        for path in found
    ]


def _batch_arguments(problems: list[FilterProblem]) -> dict[str, Any]:
    """Return the arguments of `filter_losses` for problems that are evaluated together."""
    first, rewards = problems[0], [problem.reward for problem in problems]
    # One array of rows for all problems turns K small products into a large one.
    shared = all(problem.data is first.data for problem in problems)
    unlabeled = np.full(first.data.shape[0], -1)
    codes = [unlabeled if reward.codes is None else reward.codes for reward in rewards]
    same_codes = shared and all(
        code is codes[0] or np.array_equal(code, codes[0]) for code in codes
    )
    return {
        "X": first.data if shared else np.stack([problem.data for problem in problems]),
        "codes": codes[0] if same_codes else np.stack(codes),
        "groups": np.stack([reward.groups for reward in rewards]),
        "label_reward": np.stack([reward.label_reward for reward in rewards]),
        "loss": first.filter_._loss_name(),
        "activation": first.filter_.activation,
        "epsilon": first.filter_.epsilon,
        "norm_epsilon": first.filter_.norm_epsilon,
        "alpha": np.array([problem.filter_.alpha for problem in problems]),
        "l1": np.array([problem.filter_._l1_weight() for problem in problems]),
    }


def _batch_losses(problems: list[FilterProblem], starts: FloatArray, run: Run) -> Losses:
    """Return the losses of problems that are evaluated together, as functions of their filters."""
    arguments = _batch_arguments(problems)
    rows, codes = problems[0].rows, arguments["codes"]
    stream = rows.data
    if not rows.in_parts:
        # Activations of many rows are not kept from pass to pass: the blocks of `filter_losses`
        # would save nothing then, and cost a copy of the rows in order of their classes.
        if codes.ndim == 2 or blocks_are_kept(starts[..., 0].nbytes, rows.shape[0]):
            return filter_losses(**arguments, run=run)
        stream = ArrayRows(rows.data)
    del arguments["X"], arguments["codes"]
    split = stream.split(np.where(codes < 0, arguments["groups"].shape[1], codes))

    def sums(function: Any, *arguments: Any) -> Any:
        return stream.sums(function, split, *arguments, run=run)

    return streamed_losses(sums, stream.shape, stream.is_sparse, dtype=stream.dtype, **arguments)


def _stopping_window(filter_, domains: FitDomains) -> int | None:
    """Return the iterations in which the KS distance picks one, or None."""
    if filter_.early_stopping is None:
        return None
    if domains.has_target:
        return filter_.stopping_window
    if domains.given:
        raise ValueError(
            "early_stopping='ks' compares source with target rows, and sample_domain has no "
            "target rows (negative entries)."
        )
    warn_nothing_to_adapt(filter_, "early_stopping='ks' is ignored")
    return None


def _draw_starts(filter_, shape: tuple[int, int], dtype) -> list[FloatArray]:
    random_state = check_random_state(filter_.random_state)
    if filter_.warm_start and hasattr(filter_, "components_"):
        given, origin = bring_to_host(filter_.components_), "warm_start: the earlier fit"
    elif isinstance(filter_.init, str):
        scale = shape[1] ** -0.5 if filter_.init_scale == AUTO else filter_.init_scale
        return [
            (scale * random_state.standard_normal(shape)).astype(dtype)
            for _ in range(filter_.n_restarts)
        ]
    else:
        given, origin = np.asarray(bring_to_host(filter_.init)), "init"
    if given.shape != shape:
        raise ValueError(
            f"{origin} has filters of shape {given.shape}; n_components and the number of "
            f"features require {shape}."
        )
    if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise ValueError(f"{origin} must hold finite numbers.")
    return [given.astype(dtype)]
