"""PSF's whole grid of the speech study on one trial, against plain NumPy setting by setting.

python benchmarks/speech_grid.py [--out results.json]

170 settings of 50 iterations on rows of the shape of a trial that trains on RAVDESS and tests a
speaker of EMODB: 4,974 source rows of two classes, 60 target rows, 72 features. Ours as the study
fits them, in single precision, on two cores; the plain fits are a sample in double precision, each
number of features and activation once, from which the time of all is extrapolated. Both with and
without the KS distances that early stopping looks at.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded: SciPy has a BLAS of its own

import time
import warnings

import numpy as np
from baselines import plain_distance, plain_fit
from measuring import report
from sklearn.base import clone

from covshift import fit_many
from covshift.paper.grid_systems import PRECISION, UNLABELLED_FEATURES, periodic_filter
from covshift.paper.speech.printed import GRIDS, REWARDS

warnings.filterwarnings("ignore", category=UserWarning)
N_SOURCE, N_TARGET, N_FEATURES, N_ITERATIONS = 4974, 60, 72, 50

rng = np.random.default_rng(0)
X = rng.standard_normal((N_SOURCE + N_TARGET, N_FEATURES))
codes = np.concatenate([rng.integers(0, 2, N_SOURCE), np.full(N_TARGET, -1)])
domain = np.where(codes < 0, -1, 0)
filters = [periodic_filter(setting, len(X), 0) for setting in GRIDS["PSF"]]
sample = filters[8 :: len(REWARDS)]


def seconds_of_ours(stopping):
    """Time of all settings, fitted together."""
    several = [clone(one).set_params(early_stopping=stopping, tol=0) for one in filters]
    start = time.perf_counter()
    fit_many(several, X.astype(PRECISION), codes, sample_domain=domain, n_jobs=2)
    return time.perf_counter() - start


def seconds_of_plain(some, stopping):
    """Time of some settings, fitted one after the other."""
    start = time.perf_counter()
    for one in some:
        L = one.n_components
        table = np.ones((3, L))
        half = (L - UNLABELLED_FEATURES) // 2
        table[0, :half] -= one.label_reward
        table[1, half : 2 * half] -= one.label_reward
        W0 = np.random.RandomState(0).standard_normal((L, N_FEATURES))
        watch = None
        if stopping:
            watch = lambda W: plain_distance(W, X, codes, one.activation)  # noqa: B023, E731
        plain_fit(W0, X, codes, table, one.activation, max_iter=N_ITERATIONS, tol=0, callback=watch)
    return time.perf_counter() - start


rows = []
for stopping, required in ((None, 7), ("ks", 7)):
    # Half of the sample before and half after: what else the machine does meets both.
    plain = seconds_of_plain(sample[::2], stopping)
    ours = seconds_of_ours(stopping)
    plain += seconds_of_plain(sample[1::2], stopping)
    plain *= len(filters) / len(sample)
    name = "with KS distances" if stopping else "without KS distances"
    print(f"{name}: {ours:.1f} s; plain {plain:.0f} s, from {len(sample)} fits", flush=True)
    rows.append((f"speech grid, {name}: times faster than plain", plain / ours, ">=", required))
report(rows)
