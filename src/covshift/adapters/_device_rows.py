"""Rows that live on a device: which are taken, how they are checked, and where they go."""

from functools import cache
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import validate_data

from covshift.kernels.row_views import largest_magnitude
from covshift.solvers.namespaces import namespace_of, to_numpy


def is_tensor(X: Any) -> bool:
    """Whether X is a tensor of torch, without importing it."""
    return type(X).__module__.partition(".")[0] == "torch"


def is_device_array(X: Any) -> bool:
    """Whether X is an array of another library than NumPy that follows the array API standard."""
    if isinstance(X, np.ndarray | np.generic) or type(X).__module__.startswith("dask."):
        return False
    return is_tensor(X) or hasattr(X, "__array_namespace__")


def stays_on_device(X: Any) -> bool:
    """Whether X is computed with where it is, by its own library.

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


def check_same_place(fitted: Any, X: Any) -> None:
    """Refuse rows that are elsewhere than what was fitted."""
    if type(fitted) is not type(X) or getattr(fitted, "device", 0) != getattr(X, "device", 0):
        raise ValueError(
            f"The filters were fitted {_place(fitted)} and X is {_place(X)}: they must be in one "
            "place. Tensors need sklearn.config_context(array_api_dispatch=True) here as in fit; "
            "covshift.to_numpy(model) is the model for NumPy arrays."
        )


def float_type(X: Any) -> Any:
    """NumPy's name for the precision of rows."""
    if not is_device_array(X):
        return X.dtype
    return np.dtype(np.float32 if X.dtype == namespace_of(X).float32 else np.float64)


def put_beside(array: Any, X: Any) -> Any:
    """Copy an array of NumPy to the device of X."""
    return namespace_of(X).asarray(array, device=X.device)


def bring_to_host(values: Any) -> Any:
    """Labels, domains and masks on a device as arrays of NumPy; others as they are."""
    return to_numpy(values) if is_device_array(values) else values


def _place(array: Any) -> str:
    library = type(array).__module__.partition(".")[0]
    on = "" if isinstance(array, np.ndarray) else f" on {array.device}"
    return f"with {library}{on}"


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
