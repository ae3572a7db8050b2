"""Threads and kernels of the tests; modules whose examples need an import that may be missing."""

import os
from importlib.util import find_spec

# Each worker of pytest-xdist has a processor to itself. More threads than that wait for each other
# while they burn time: boosted trees of a few rows take twice the processor time with two. The
# libraries read this when they are loaded; tests of threads set limits of their own.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

# Numbers in tests and on pages are NumPy's, with or without compiled kernels: these round in other
# ways, and a fit may end in another minimum. Tests that ask for the fixture `kernels` run in both.
os.environ.setdefault("COVSHIFT_KERNELS", "numpy")

collect_ignore = [] if find_spec("triton") else ["src/covshift/kernels/fused_filters.py"]
