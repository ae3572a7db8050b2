"""How every hypothesis does where source rows play the target.

Three kinds of scenes, of unequal worth:

- **source domains**, one after the other: real shifts between real populations, and evidence for
  the target as far as its shift is like theirs;
- **common support**: the source rows most like target rows, and source rows drawn by importance
  weights: evidence for the target as far as such rows are like the target's;
- **rows moved** like the target: they *take for granted* that the target is the source moved. They
  show what a hypothesis would give if that were so, and decide nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from covshift.diagnosis.gains import Gains, PlayedScene, measure_gains
from covshift.diagnosis.hypotheses import HYPOTHESES
from covshift.kernels.arrays import IntArray
from covshift.selection.bench import Bench
from covshift.selection.explanations import importance_weights
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
    weights = importance_weights(bench)
    kinds: dict[str, list[tuple[str, Callable[..., Iterable[PseudoTarget]]]]] = {
        "source domains": [("source domains", source_domains)],
        "common support": [
            ("target-like", target_like),
            ("resampled: weights", partial(resampled, weights=weights)),
        ],
        "rows moved": [
            ("moved: mean and scale", partial(moved, move=move_mean_and_scale)),
            ("moved: Gaussian", partial(moved, move=move_gaussian)),
        ],
    }
    return Evidence(
        *(None if skip(name) else _play(bench, name, kinds[name], hypothesis_of) for name in KINDS)
    )


def _play(
    bench: Bench,
    kind: str,
    makers: Iterable[tuple[str, Callable[..., Iterable[PseudoTarget]]]],
    hypothesis_of: IntArray,
) -> Gains | None:
    played = [
        (f"{name} {number}", one)
        for name, make in makers
        for number, one in enumerate(make(bench.problem, bench.rng(name)))
    ]
    if not played:
        return None
    outputs = bench.run({name: one.scene for name, one in played})
    scenes = []
    for name, (_, codes) in played:
        right = [
            np.full(len(codes), np.nan) if out.logits is None else (out.codes == codes) * 1.0
            for out in outputs[name]
        ]
        scenes.append(PlayedScene(codes, np.array(right)))
    return measure_gains(scenes, hypothesis_of, len(HYPOTHESES), bench.rng(f"gains: {kind}"))
