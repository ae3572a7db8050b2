"""Checks of the parameters that all filters have."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_scalar

from covshift.base import check_count, check_option
from covshift.kernels.activations import ACTIVATIONS

AUTO = "auto"  # as a parameter: a value that follows from the rows


def check_filter_parameters(filter_):
    """Check the parameters that all filters have; messages list what is allowed."""
    check_option("activation", filter_.activation, ACTIVATIONS)
    check_option("normalization", filter_.normalization, ("domain", "joint", "batch"))
    check_option("pooling", filter_.pooling, ("role", "domain"))
    check_option("early_stopping", filter_.early_stopping, (None, "ks"))
    if filter_.n_components is not None:
        check_count("n_components", filter_.n_components, minimum=1)
    if filter_.init is None or (isinstance(filter_.init, str) and filter_.init != "normal"):
        raise ValueError(f"init must be 'normal' or an array of filters, got {filter_.init!r}.")
    check_count("max_iter", filter_.max_iter, minimum=0)
    check_count("n_restarts", filter_.n_restarts, minimum=1)
    check_count("stopping_window", filter_.stopping_window, minimum=1)
    check_count("min_domain_size", filter_.min_domain_size, minimum=1)
    check_scalar(filter_.verbose, "verbose", (bool, Integral), min_val=0)
    numbers = ["epsilon", "norm_epsilon", "alpha", "tol", "init_scale"]
    if isinstance(filter_.init_scale, str):
        if filter_.init_scale != AUTO:
            raise ValueError(f"init_scale must be a number or 'auto', got {filter_.init_scale!r}.")
        numbers.remove("init_scale")
    for name in numbers:
        value = getattr(filter_, name)
        check_scalar(value, name, Real, min_val=0)
        if not np.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}.")
