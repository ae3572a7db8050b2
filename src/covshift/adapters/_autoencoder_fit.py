"""Fitting denoising auto-encoders of one shape together, as if each were alone."""

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covshift.adapters._autoencoder_training import Trained, train
from covshift.base import all_or_nothing
from covshift.kernels.arrays import FloatArray
from covshift.solvers.blas_threads import one_blas_thread

# Parameters that networks trained together must share; the others may differ.
SHARED = (
    "n_components",
    "activation",
    "decoder",
    "tied",
    "noise",
    "solver",
    "momentum",
    "batch_size",
    "max_epochs",
    "early_stopping",
    "validation_fraction",
    "patience",
)


def stacking_key(estimator: Any, X: FloatArray) -> tuple[Any, ...]:
    """What auto-encoders must have in common to be trained together."""
    return (X.shape, X.dtype, *(getattr(estimator, name) for name in SHARED))


def fit_stacked(
    estimators: Sequence[Any],
    rows: Sequence[Any],
    sample_domains: Sequence[Any] | None = None,
    label_masks: Sequence[Any] | None = None,
) -> None:
    """Fit each auto-encoder on its rows, all together; the same as fitting each alone.

    Parameters
    ----------
    estimators : sequence of DenoisingAutoencoder
        They share what `stacking_key` names; seeds, learning rates, noise levels, starts and
        scalings may differ.
    rows : sequence of array-like of shape (n_samples, n_features)
        Rows of each; the same array may stand here several times.
    sample_domains, label_masks : sequences, default=None
        As ``fit`` takes them, one for each; None: none for any.
    """
    nothing = [None] * len(estimators)
    with ExitStack() as stack:
        for estimator in estimators:
            stack.enter_context(all_or_nothing(estimator))
        scaled = [
            estimator._check_and_scale(*arguments)
            for estimator, *arguments in zip(
                estimators,
                rows,
                nothing if sample_domains is None else sample_domains,
                nothing if label_masks is None else label_masks,
                strict=True,
            )
        ]
        keys = {stacking_key(*pair) for pair in zip(estimators, scaled, strict=True)}
        if len(keys) > 1:
            raise ValueError(
                "Auto-encoders that are trained together need rows of one shape and precision and "
                f"one value each of {', '.join(SHARED)}; got {len(keys)} combinations."
            )
        with one_blas_thread():
            trained = train(estimators, [X.T for X in scaled])
        for estimator, result in zip(estimators, trained, strict=True):
            estimator._store(result)
    unfinished = [k for k, result in enumerate(trained) if still_falls(result)]
    if unfinished:
        which = f" of {len(unfinished)} of {len(trained)} auto-encoders" if len(trained) > 1 else ""
        warnings.warn(
            f"The reconstruction error{which} was still falling after max_epochs="
            f"{estimators[0].max_epochs}. Raise max_epochs or learning_rate.",
            ConvergenceWarning,
            stacklevel=3,
        )


def still_falls(trained: Trained) -> bool:
    """Whether more epochs would have lowered the error of a training that ran to its end.

    With rows held out: whether it kept getting better, so that early stopping did not stop.
    Otherwise: whether the last tenth of the epochs is better than the tenth before by one per
    cent, and by more than the noise of both (three standard errors).
    """
    if trained.validation_losses is not None:
        return not trained.stopped and len(trained.losses) > 0
    window = len(trained.losses) // 10
    if window < 2:
        return False  # too few to tell
    before, last = trained.losses[-2 * window : -window], trained.losses[-window:]
    fall = before.mean() - last.mean()
    error = np.sqrt((before.var(ddof=1) + last.var(ddof=1)) / window)
    return bool(fall > 0.01 * last.mean() and fall > 3 * error)
