"""The filters of the synthetic study, against plain NumPy and SciPy one fit at a time.

python benchmarks/study.py [--out results.json]

Thirty trials of each recipe on `periodic`, fitted as the study fits them, in one process and one
thread; the plain fits are a sample, one for each trial. SF as released is not fitted at all.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: SciPy has a BLAS of its own

import time
import warnings

import numpy as np
from baselines import plain_fit, plain_loss, released_loss
from measuring import report

from covshift import fit_each, stack_domains
from covshift.paper.synthetic.systems import READINGS, build_part
from covshift.paper.synthetic.trials import draw_trial

warnings.filterwarnings("ignore", category=UserWarning)
N_TRIALS, REPETITIONS = 30, 3
draws = [draw_trial("periodic", seed) for seed in range(N_TRIALS)]
data = [stack_domains(draw.data.X_source, draw.data.y_source, draw.data.X_target) for draw in draws]


def ours(part):
    """Seconds for all trials, and the fitted filters."""
    filters = [build_part(part, *draw) for draw in draws]
    start = time.perf_counter()
    fitted = fit_each(filters, data)
    return time.perf_counter() - start, fitted


def plain(fitted):
    """Seconds of one start of each trial, one after the other."""
    seconds = 0.0
    for filter_, (X, y, sample_domain) in zip(fitted, data, strict=True):
        codes = np.where(sample_domain >= 0, np.asarray(y, dtype=int), -1)
        groups = getattr(filter_, "feature_groups_", np.zeros((2, len(filter_.components_)), bool))
        table = np.ones((3, len(filter_.components_)))
        table[:2] -= groups * getattr(filter_, "label_reward", 0.0)
        if getattr(filter_, "loss", "joint") == "blockwise":
            function = lambda W, *_: released_loss(W, X, codes, groups, [1.0, 1.0])  # noqa: B023, E731
        else:
            function = plain_loss
        W0 = np.random.RandomState(filter_.random_state).standard_normal(filter_.components_.shape)
        start = time.perf_counter()
        plain_fit(W0, X, codes, table, filter_.activation, filter_.max_iter, loss=function)
        seconds += time.perf_counter() - start
    return seconds


totals = np.zeros((REPETITIONS, 2))
for reading, system in (("as released", "PSF"), ("used well", "SF"), ("used well", "PSF")):
    part = READINGS[reading][system]["adapter"]
    times = []
    for _ in range(REPETITIONS):
        seconds, fitted = ours(part)
        times.append((plain(fitted) * part["params"].get("n_restarts", 1), seconds))
    totals += times
    ratios = [one / other for one, other in times]
    print(
        f"{system} {reading}: times faster {np.median(ratios):.1f}", np.round(ratios, 1), flush=True
    )
ratio = np.median(totals[:, 0] / totals[:, 1])
report([("SF and PSF trials of the study on periodic: times faster", ratio, ">=", 6)])
