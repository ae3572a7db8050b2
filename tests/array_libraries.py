"""Array libraries other than NumPy, as functions that make their arrays from NumPy's.

The strictest one that there is always runs: what it takes, the others do too. torch runs where it
is installed, on the processor and, where there is one, on a GPU.
"""

from functools import partial

import pytest

try:
    import torch
except ImportError:
    torch = None
HAS_GPU = torch is not None and torch.cuda.is_available()

without_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
without_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")


def to_strict(array):
    """An array of array-api-strict."""
    strict = pytest.importorskip("array_api_strict")
    return strict.asarray(array)


def to_torch(array, device="cpu"):
    """A tensor, which shares no memory with the array."""
    return torch.tensor(array, device=device)


ON_PROCESSOR = pytest.param(to_torch, id="torch", marks=without_torch)
ON_GPU = pytest.param(partial(to_torch, device="cuda"), id="cuda", marks=without_gpu)
LIBRARIES = [pytest.param(to_strict, id="strict"), ON_PROCESSOR, ON_GPU]
