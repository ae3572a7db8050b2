"""The steps of an adapter, which may be a pipeline: what each of them takes, and does."""

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from covshift.adapters.source_standard_scaler import SourceStandardScaler


def does_adapt(adapter: Any, estimator: Any = None) -> bool:
    """Return whether an adapter or its estimator does anything about the target.

    Scaling by the source does not.
    """
    scales = all(isinstance(step, SourceStandardScaler) for step in steps_of(adapter))
    return not scales or uses_target_rows(estimator)


def uses_target_rows(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, adapts: uses target rows."""
    last = last_step(estimator)
    return bool(getattr(last, "uses_target_rows", False))


def check_rowwise(adapter: Any) -> None:
    """Refuse an adapter with a step for which a row depends on other rows of the call."""
    for step in steps_of(adapter):
        if getattr(step, "normalization", None) == "batch":
            raise ValueError(
                f"{type(step).__name__} with normalization='batch' takes the norms of all rows of "
                "a call, which come in blocks here: fit with normalization='domain' or 'joint'."
            )


def source_weights(adapter: Any) -> Any:
    """Return the weights of the source rows, from an adapter whose last step weighs them."""
    step = last_step(adapter)
    return step.weights_ if weighs(step) else None


def steps_of(adapter: Any) -> Any:
    """Yield the adapter, or the steps of a pipeline and of the pipelines in it."""
    if adapter is None or isinstance(adapter, str):  # "passthrough"
        return
    if isinstance(adapter, Pipeline):
        for _, step in adapter.steps:
            yield from steps_of(step)
    else:
        yield adapter


def last_step(adapter: Any) -> Any:
    """Return the last of an adapter's steps, or None if there is none."""
    return next(reversed([*steps_of(adapter)]), None)


def knows_domains(step: Any) -> bool:
    """Return whether a step asks for ``sample_domain`` at fit."""
    return bool(get_routing_for_object(step).consumes("fit", ["sample_domain"]))


def weighs(step: Any) -> bool:
    """Return whether a step weighs the source rows instead of changing their representation."""
    return hasattr(step, "score_weights")
