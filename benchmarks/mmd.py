"""MMD: memory at 40,000 rows, and the permutation test against recomputing MMD.

python benchmarks/mmd.py [--out results.json]
"""

import numpy as np
from measuring import added_megabytes, median_seconds, report

from covshift.measures import median_bandwidth, mmd, mmd_test

ROWS = """
import numpy as np
from covshift.measures import mmd
rng = np.random.RandomState(0)
A, B = rng.standard_normal((20_000, 50)), rng.standard_normal((20_000, 50)) + 0.1
"""

rng = np.random.RandomState(0)
A, B = rng.standard_normal((2000, 50)), rng.standard_normal((2000, 50)) + 0.05
bandwidth = median_bandwidth(A, B)
seconds = median_seconds(
    {
        "one MMD": lambda: mmd(A, B, bandwidth=bandwidth),
        "test": lambda: mmd_test(A, B, bandwidth=bandwidth, n_permutations=1000, random_state=0),
    }
)
report(
    [
        (
            "MMD of 20,000 + 20,000 rows, d = 50: MB added",
            added_megabytes(ROWS, "mmd(A, B)"),
            "<=",
            300,
        ),
        (
            "1,000 permutations, 2,000 + 2,000 rows: times faster than recomputing",
            1000 * seconds["one MMD"] / seconds["test"],
            ">=",
            50,
        ),
    ]
)
