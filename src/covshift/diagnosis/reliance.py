r"""Whether what is predicted for the target hinges on one of the source domains.

A candidate is fitted again without each source domain in turn, and adapted to the target as before.
With :math:`\hat y_i` the class of target row i by all domains and :math:`\hat y_i^{(-d)}` that
without domain d, the agreement is

.. math::

    \frac{1}{D} \sum_d \frac{1}{n'} \sum_i \mathbb{1}[\hat y_i^{(-d)} = \hat y_i],

a jackknife that needs no label. A pattern that continues into the target is seen from any of the
domains; one that was pieced together from all of them, such as a period that fits them by chance,
is another as soon as one is missing.
"""

import numpy as np

from covshift.selection.bench import Bench
from covshift.selection.problem import target_scene

MAX_DOMAINS = 8  # that are left out
MIN_ROWS = 10  # that must be left


def measure_agreement(bench: Bench, number: int) -> float:
    """Agreement of the candidate of this number; NaN: no domain can be left out."""
    problem, said = bench.problem, bench.target[number]
    rng = bench.rng("left out domains")
    domains = rng.permutation(problem.source_domains)[:MAX_DOMAINS]
    scenes = []
    for domain in domains:
        kept = np.flatnonzero(problem.source_domain != domain)
        if len(kept) >= MIN_ROWS and len(np.unique(problem.codes[kept])) == problem.n_classes:
            every = np.arange(len(problem.X_target))
            scenes.append(target_scene(problem.take(kept, every)))
    outputs = [one for (one,) in bench.run_tasks([([number], scene) for scene in scenes])]
    given = [one.codes for one in outputs if one.logits is not None]
    if said.logits is None or not given:
        return float("nan")
    return float(np.mean([codes == said.codes for codes in given]))
