"""Can anybody know? Whether the data hold evidence for what continues in the target.

Which structure the source shares with the target is decidable in two ways only:

- **by source domains**: at least two of them, which differ from each other about as far as the
  target differs from the source, so that one can see what continued there;
- **by overlap**: the target lies where the source has rows (`Weighting.possible`), so that the rule
  learned there need not be carried anywhere else.

One source domain and a target elsewhere is undecidable by definition: for every rule that fits
the source, another one fits it as well and is wrong in the target.
"""

from typing import NamedTuple

import numpy as np

from covshift.diagnosis.weighting import Weighting
from covshift.kernels.arrays import FloatArray
from covshift.selection.problem import Problem

# Set on some families of tasks and judged on others: benchmarks/families.
MIN_DOMAINS = 2
MIN_SHIFT = 0.25  # between source domains, in standard deviations within them
MIN_RATIO = 0.3  # of the shift between source domains to that of the target


class Decidability(NamedTuple):
    """What there is to decide by; shifts are in standard deviations within domains."""

    by_domains: bool
    by_overlap: bool
    n_domains: int  # source domains that could play the target
    domain_shift: float  # median over the source domains, each from the others; NaN: one domain
    target_shift: float

    @property
    def domains_like_target(self) -> bool:
        """Whether source domains differ from each other about as far as the target does.

        They may do so and not be worth adapting to, all of them being alike.
        """
        return _alike(self.n_domains, self.domain_shift, self.target_shift)

    @property
    def decidable(self) -> bool:
        """Whether anything can be said."""
        return self.by_domains or self.by_overlap


def judge_decidability(problem: Problem, n_domains: int, weighting: Weighting) -> Decidability:
    """Judge from the shifts and the overlap; ``n_domains``: how many could play the target."""
    X, domain = problem.X_source, problem.source_domain
    domains = problem.source_domains
    within = np.sqrt(np.mean([X[domain == one].var(axis=0) for one in domains], axis=0))
    scale = np.where(within > 0, within, 1.0)
    target_shift = shift_between(X, problem.X_target, scale)
    shifts = [shift_between(X[domain != one], X[domain == one], scale) for one in domains]
    domain_shift = float(np.median(shifts)) if len(domains) > 1 else np.nan
    return Decidability(
        by_domains=domain_shift >= MIN_SHIFT and _alike(n_domains, domain_shift, target_shift),
        by_overlap=weighting.possible,
        n_domains=n_domains,
        domain_shift=domain_shift,
        target_shift=target_shift,
    )


def _alike(n_domains: int, domain_shift: float, target_shift: float) -> bool:
    return n_domains >= MIN_DOMAINS and domain_shift >= MIN_RATIO * target_shift


def shift_between(A: FloatArray, B: FloatArray, scale: FloatArray) -> float:
    """Root mean square, over the features, of the differences of means and of spreads."""
    if not (len(A) and len(B)):
        return np.nan
    means = (B.mean(axis=0) - A.mean(axis=0)) / scale
    spreads = (B.std(axis=0) - A.std(axis=0)) / scale
    return float(np.sqrt(np.mean(means**2 + spreads**2)))
