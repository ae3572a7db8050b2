"""Rows that live on a device: which are taken, how they are checked, and where they go."""

from functools import cache
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import validate_data

from covshift.domains import Unit
from covshift.row_checks import largest_magnitude
from covshift.solvers.array_api import gather, namespace_of, to_numpy
from covshift.streams.kinds import Method, OfRows, OfStream, OpenRows, Units, place_of


def is_tensor(X: Any) -> bool:
    """Return whether X is a tensor of torch, without importing it."""
    return type(X).__module__.partition(".")[0] == "torch"


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than NumPy that follows the array API standard."""
    if isinstance(X, np.ndarray | np.generic) or type(X).__module__.startswith("dask."):
        return False
    return is_tensor(X) or hasattr(X, "__array_namespace__")


def stays_on_device(X: Any) -> bool:
    """Return whether X is computed with where it is, by its own library.

    That takes scikit-learn's ``array_api_dispatch``; without it arrays in the memory of the
    processor are converted to NumPy's.
    """
    if not is_device_array(X):
        return False
    if sklearn.get_config()["array_api_dispatch"]:
        return True
    if is_tensor(X) and X.device.type != "cpu":
        raise TypeError(
            f"X is on the device {X.device}. To compute there, call this inside "
            "sklearn.config_context(array_api_dispatch=True); or give X.cpu()."
        )
    return False


def check_device_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check rows as scikit-learn's `validate_data` does, and that their squares do not overflow."""
    _check_compatibility(is_tensor(X))
    if is_tensor(X) and "strided" not in str(X.layout):
        raise TypeError(f"X is a sparse tensor ({X.layout}): give X.to_dense(), or a SciPy matrix.")
    xp = namespace_of(X)
    X = X.detach() if is_tensor(X) else X  # no gradients of the caller's are to be recorded
    X = validate_data(estimator, X, reset=reset, dtype=(xp.float64, xp.float32))
    limit = largest_magnitude(float_type(X))
    largest = max(float(xp.max(X)), -float(xp.min(X)))  # abs(X) would be a copy
    if largest > limit:
        raise ValueError(
            f"X holds magnitudes up to {largest:.1e}; above {limit:.0e} they overflow {X.dtype} "
            "once squared and summed. Scale the features first, e.g. by StandardScaler."
        )
    return X


class DeviceRows(OpenRows):
    """Rows of a tensor, or of another array on a device, checked; computed with where they are."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.dtype, self.place = X, X.shape, float_type(X), place_of(X)

    @property
    def data(self) -> Any:
        """The tensor."""
        return self._X

    def measure(self, units: Units, of_rows: OfRows, of_stream: OfStream) -> dict[Unit, Any]:
        """Learn something of each unit from a copy of its rows."""
        return {unit: of_rows(self.pick(rows), unit) for unit, rows in units.items()}

    def draw(self, members: Any, n_rows: int) -> Any:
        """Return all rows that a mask holds."""
        return self.pick(np.flatnonzero(members))

    def pick(self, rows: Any) -> Any:
        """These rows, where they are."""
        return gather(self._X, put_beside(rows, self._X))

    def map(self, method: Method, of_rows: Method | None = None, sample_domain: Any = None) -> Any:
        """Apply a method to all rows at once."""
        return (of_rows or method)(self._X, *self.bring_home(sample_domain))

    def bring_home(self, *values: Any) -> tuple[Any, ...]:
        """Return the labels, domains and masks as arrays of NumPy."""
        return tuple(bring_to_host(value) for value in values)


def float_type(X: Any) -> Any:
    """NumPy's name for the precision of rows."""
    if not is_device_array(X):
        return X.dtype
    return np.dtype(np.float32 if X.dtype == namespace_of(X).float32 else np.float64)


def put_beside(array: Any, X: Any) -> Any:
    """Copy an array of NumPy to the device of X."""
    return namespace_of(X).asarray(array, device=X.device)


def bring_to_host(values: Any) -> Any:
    """Return the labels, domains and masks on a device as arrays of NumPy; others as they are."""
    return to_numpy(values) if is_device_array(values) else values


@cache
def _check_compatibility(tensors: bool) -> None:
    if not tensors:
        return
    try:
        import array_api_compat.torch  # noqa: F401
    except ImportError:
        raise ImportError(
            "Fitting tensors where they are needs the extra gpu: pip install 'covshift[gpu]'."
        ) from None
