"""Names for the array types that the kernels take and return."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# (n, m) rows of data: dense, or a SciPy sparse array, which has no static type of its own.
Rows: TypeAlias = Any
