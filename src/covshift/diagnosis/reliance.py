r"""Whether what is predicted for the target hinges on one of the source domains.

A candidate is fitted again without each source domain in turn, and adapted to the target as before.
With :math:`q_d` the share of target rows that are of the same class by all domains and without
domain d, and :math:`c_d` the share that would be so by chance, classes being as frequent as they
are in both, the agreement is Cohen's kappa, on average:

.. math::

    \frac{1}{D} \sum_d \frac{q_d - c_d}{1 - c_d}.

It is a jackknife that needs no label. A pattern that continues into the target is seen from any of
the domains; one that was pieced together from all of them, such as a period that fits them by
chance, is another as soon as one is missing.

.. [1] Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and
   Psychological Measurement, 20(1), 37-46.
"""

import numpy as np
from sklearn.metrics import cohen_kappa_score

from covshift.diagnosis.evidence import MAX_DOMAINS
from covshift.kernels.arrays import IntArray
from covshift.selection.bench import Bench
from covshift.selection.problem import target_scene

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
    return float(np.mean([_kappa(said.codes, codes) for codes in given]))


def _kappa(first: IntArray, second: IntArray) -> float:
    # Equal predictions of one class have no kappa: all of it would be so by chance.
    return 1.0 if np.array_equal(first, second) else float(cohen_kappa_score(first, second))
