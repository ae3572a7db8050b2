"""How every hypothesis does where source rows play the target.

Three kinds of scenes, of unequal worth:

- **source domains**, one after the other: real shifts between real populations, and evidence for
  the target as far as its shift is like theirs;
- **common support**: the source rows most like target rows, and source rows drawn by importance
  weights: evidence for the target as far as such rows are like the target's;
- **rows moved** like the target: they *take for granted* that the target is the source moved. They
  show what a hypothesis would give if that were so, and decide nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from covshift.diagnosis.gains import Gains, PlayedScene, measure_gains
from covshift.diagnosis.hypotheses import all_hypotheses
from covshift.kernels.arrays import IntArray
from covshift.selection.bench import Bench
from covshift.selection.explanations import importance_weights
from covshift.selection.metrics import balanced_accuracy
from covshift.selection.outputs import Output
from covshift.selection.problem import Problem, Scene
from covshift.selection.pseudo_targets import (
    PseudoTarget,
    move_gaussian,
    move_mean_and_scale,
    moved,
    resampled,
    source_domains,
    target_like,
)

KINDS = ("source domains", "common support", "rows moved")
MAX_DOMAINS = 8  # that play the target: each is one case of what a new domain does


class Evidence(NamedTuple):
    """Gains of the hypotheses in the three kinds of scenes; None: no such scene can be played."""

    source_domains: Gains | None
    common_support: Gains | None
    rows_moved: Gains | None

    def items(self) -> Iterator[tuple[str, Gains]]:
        """Kinds that could be played, with their names."""
        for name, gains in zip(KINDS, self, strict=True):
            if gains is not None:
                yield name, gains


def gather_evidence(
    bench: Bench, hypothesis_of: IntArray, skip: Callable[[str], bool] = lambda kind: False
) -> Evidence:
    """Play all scenes; ``hypothesis_of`` has the hypothesis of each candidate.

    ``skip(kind)``: whether there is no time for a kind of scenes.
    """
    return Evidence(
        *(None if skip(kind) else _measure(bench, kind, hypothesis_of) for kind in KINDS)
    )


def play(bench: Bench, kind: str) -> list[tuple[IntArray, list[Output]]]:
    """Classes of the rows that play the target, and what each candidate says; scene by scene."""
    played = {
        f"{name} {number}": one
        for name, make in _makers(bench, kind)
        for number, one in enumerate(make(bench.problem, bench.rng(name)))
    }
    scenes = {name: _in_proportion(one.scene, bench.problem) for name, one in played.items()}
    return [(played[name].codes, outputs) for name, outputs in bench.run(scenes).items()]


def _makers(bench: Bench, kind: str) -> list[tuple[str, Callable[..., Iterable[PseudoTarget]]]]:
    if kind == "source domains":
        return [("source domains", partial(source_domains, max_domains=MAX_DOMAINS))]
    if kind == "common support":
        weights = importance_weights(bench)
        return [
            ("target-like", target_like),
            ("resampled: weights", partial(resampled, weights=weights)),
        ]
    return [
        ("moved: mean and scale", partial(moved, move=move_mean_and_scale)),
        ("moved: Gaussian", partial(moved, move=move_gaussian)),
    ]


def _measure(bench: Bench, kind: str, hypothesis_of: IntArray) -> Gains | None:
    played = play(bench, kind)
    if not played:
        return None
    balanced = bench.metric is balanced_accuracy
    scenes = [
        PlayedScene(codes, predictions(outputs, len(codes)), balanced) for codes, outputs in played
    ]
    target = predictions(bench.target, len(bench.problem.X_target))
    rng = bench.rng(f"gains: {kind}")
    return measure_gains(scenes, hypothesis_of, len(all_hypotheses()), target, rng)


def predictions(outputs: Sequence[Output], n_rows: int) -> IntArray:
    """Class numbers (candidates, n_rows) of rows, -1 where a candidate says nothing."""
    return np.array([np.full(n_rows, -1) if out.logits is None else out.codes for out in outputs])


def _in_proportion(scene: Scene, problem: Problem) -> Scene:
    """The scene with its target rows repeated until they are as many, for the source, as they are.

    Adapters that learn from all rows follow the many: a filter that does well on a source domain a
    third the size of the others may be led astray by a target of the source's own size.
    """
    target = scene.codes < 0
    wanted = len(problem.X_target) / len(problem.X_source) * np.sum(~target)
    copies = np.where(target, max(1, round(wanted / np.sum(target))), 1)
    return scene._replace(
        X=np.repeat(scene.X, copies, axis=0),
        codes=np.repeat(scene.codes, copies),
        sample_domain=np.repeat(scene.sample_domain, copies),
    )
