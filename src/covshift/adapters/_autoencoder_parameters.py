"""Checks of the parameters of the denoising auto-encoder."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from covshift.base import check_count, check_option


def check_autoencoder_parameters(estimator: Any) -> None:
    """Check all parameters but the seed; messages list what is allowed."""
    check_option("activation", estimator.activation, ("sigmoid", "tanh"))
    check_option("decoder", estimator.decoder, (None, "sigmoid", "tanh", "linear"))
    check_option("noise", estimator.noise, ("gaussian", "masking"))
    check_option("solver", estimator.solver, ("adam", "sgd"))
    check_option("scaling", estimator.scaling, ("minmax", None))
    check_option("init", estimator.init, ("glorot", "normal"))
    for name in ("tied", "early_stopping"):
        check_scalar(getattr(estimator, name), name, (bool, np.bool_))
    if estimator.n_components is not None:
        check_count("n_components", estimator.n_components, minimum=1)
    for name, minimum in (("batch_size", 1), ("max_epochs", 0), ("patience", 1)):
        check_count(name, getattr(estimator, name), minimum=minimum)
    check_scalar(estimator.verbose, "verbose", (bool, Integral), min_val=0)
    _check_between("noise_level", estimator.noise_level, 0, np.inf, "left")
    if estimator.noise == "masking":
        _check_between("noise_level", estimator.noise_level, 0, 1, "left")
    _check_between("learning_rate", estimator.learning_rate, 0, np.inf, "neither")
    _check_between("momentum", estimator.momentum, 0, 1, "left")
    _check_between("validation_fraction", estimator.validation_fraction, 0, 1, "neither")


def _check_between(name: str, value: Any, low: float, high: float, boundaries: str) -> None:
    """Raise unless ``value`` is a number between the two; NaN is not."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    check_scalar(value, name, Real, min_val=low, max_val=high, include_boundaries=boundaries)
    if np.isnan(value):
        raise ValueError(f"{name} must be a number, got {value!r}.")
