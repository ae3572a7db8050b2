"""Calling any adapter in the same way: one of ours, a plain transformer, or a pipeline.

A pipeline is walked step by step, so that each step gets what it asks for: the domains, if
it knows them, and labels only then. A step that knows no domains could not tell the
placeholder of an unlabelled row from a class.
"""

from copy import deepcopy
from typing import Any

from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from covshift.base import DomainTransformer, RefitNeededError
from covshift.streams import is_streamed


def fit_adapter(adapter: Any, X: Any, y: Any, **domains: Any) -> None:
    """Fit an adapter in place."""
    last = last_step(adapter)
    for step in steps_of(adapter):
        if not hasattr(step, "transform") and not (weighs(step) and step is last):
            raise TypeError(
                f"{type(step).__name__} is no adapter: it has no transform, and does not weigh "
                "the source rows either (score_weights)."
            )
        if is_streamed(X) and not (isinstance(step, DomainTransformer) or weighs(step)):
            raise TypeError(
                f"{type(step).__name__} takes no rows in blocks: use an adapter of covshift, such "
                "as DomainStandardScaler, or fit to a sample of the rows, in memory."
            )
        labels = y if _may_see_labels(step) else None
        try:
            _call(step, "fit", X, labels, **domains)
        except (TypeError, ValueError) as error:
            if labels is None and y is not None:
                error.add_note(
                    f"{type(step).__name__}, or a part of it, knows no domains, so the adapter "
                    "fits it without labels. One that needs them belongs in the estimator."
                )
            raise
        if step is not last:
            X = represent(step, X, **domains)


def represent(adapter: Any, X: Any, **domains: Any) -> Any:
    """Return rows as a fitted adapter represents them; one that weighs leaves them alone."""
    for step in steps_of(adapter):
        if not domains and isinstance(step, DomainTransformer):
            # Nothing to hand on. Asking what it wants takes longer than transforming one row.
            X = step.transform(X)
        elif hasattr(step, "transform"):
            X = _call(step, "transform", X, allow_source=True, **domains)
    return X


def source_weights(adapter: Any) -> Any:
    """Return the weights of the source rows, from an adapter that ends in weighing them."""
    step = last_step(adapter)
    return step.weights_ if weighs(step) else None


def adapt_target_of(adapter, X, domain):
    """Return a copy of a fitted adapter that has learned a new target domain."""
    adapter = deepcopy(adapter)
    if not any(knows_domains(step) for step in steps_of(adapter)):
        raise RefitNeededError(
            f"{type(adapter).__name__} keeps nothing per domain, so it cannot learn a new "
            "target: refit on the source rows and the rows of the new target."
        )
    for step in steps_of(adapter):
        if knows_domains(step):
            if not hasattr(step, "adapt_target"):
                raise RefitNeededError(
                    f"{type(step).__name__} cannot learn a new target: refit on the source rows "
                    "and the rows of the new target."
                )
            step.adapt_target(X, domain=domain)
        X = represent(step, X, sample_domain=domain)
    return adapter


def fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Fit ``estimator``, with weights where there are some."""
    if sample_weight is None:
        return estimator.fit(X, y)
    if has_fit_parameter(estimator, "sample_weight"):
        return estimator.fit(X, y, sample_weight=sample_weight)
    if get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        with config_context(enable_metadata_routing=True):
            return estimator.fit(X, y, sample_weight=sample_weight)
    raise ValueError(
        f"{type(estimator).__name__} takes no sample_weight, so the weights of the source rows "
        "cannot reach it. Use an estimator that does; in a pipeline, enable scikit-learn's "
        "metadata routing and call set_fit_request(sample_weight=True) on the last step."
    )


def steps_of(adapter):
    """Yield the adapter, or the steps of a pipeline and of the pipelines in it."""
    if adapter is None or isinstance(adapter, str):  # "passthrough"
        return
    if isinstance(adapter, Pipeline):
        for _, step in adapter.steps:
            yield from steps_of(step)
    else:
        yield adapter


def last_step(adapter):
    """Return the last of the steps, or None if there is none."""
    return next(reversed([*steps_of(adapter)]), None)


def knows_domains(step):
    """Whether a step asks for ``sample_domain`` at fit."""
    return bool(get_routing_for_object(step).consumes("fit", ["sample_domain"]))


def _may_see_labels(step):
    """Whether a step and, if it is a union, all of its parts can tell which labels are known."""
    parts = [part for part in step.get_params().values() if hasattr(part, "transform")]
    return all(map(knows_domains, [step, *parts]))


def weighs(step):
    """Whether a step weighs the source rows instead of changing their representation."""
    return hasattr(step, "score_weights")


def _call(step, method, X, *args, **domains):
    """Call a method with those of ``domains`` that it asks for.

    Routing is switched on for this call only: a step that hands on (a union of filters) then
    works whatever the user's setting is.
    """
    wanted = get_routing_for_object(step).consumes(method, domains)
    with config_context(enable_metadata_routing=True):
        return getattr(step, method)(X, *args, **{name: domains[name] for name in wanted})
