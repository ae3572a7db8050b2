r"""What a domain's own rows tell about it: the most that another domain's rows could.

Where source domains play the target, each is predicted by the others. Here each is predicted by
models of its own rows alone, without adaptation, rows left out in turn. With :math:`b_d` the
balanced accuracy that one of these models, the better one on average, reaches in domain d,

.. math::

    \bar b = \frac{1}{D} \sum_d b_d.

Where that is far above what a model of the other domains reaches there, it does not carry over:
domains have rules of their own, or such as it does not adapt to, and what it reaches is luck.
"""

import numpy as np

from covshift.diagnosis.evidence import MAX_DOMAINS
from covshift.selection.bench import Bench
from covshift.selection.metrics import balanced_accuracy

MIN_ROWS = 20


def score_own_rows(bench: Bench) -> float:
    """Mean balanced accuracy within source domains; NaN: none has rows enough."""
    problem, rng = bench.problem, bench.rng("own rows")
    plain = [one for one in bench.candidates if not one.adapts]
    scores = []
    for domain in rng.permutation(problem.source_domains)[:MAX_DOMAINS]:
        rows = np.flatnonzero(problem.source_domain == domain)
        own = problem.take(rows, np.arange(len(problem.X_target)))
        if len(rows) < MIN_ROWS or len(np.unique(own.codes)) < 2:
            continue
        alone = Bench(plain, own, balanced_accuracy, seed=bench.seed, n_jobs=bench.n_jobs)
        logits = alone.outputs_left_out()
        scores.append(
            [
                np.nan if one is None else balanced_accuracy(own.codes, one.argmax(axis=1))
                for one in logits
            ]
        )
    means = np.mean(scores, axis=0) if scores else np.array([])
    known = means[~np.isnan(means)]
    return float(known.max()) if len(known) else float("nan")
