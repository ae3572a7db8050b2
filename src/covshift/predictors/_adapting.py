"""Calling any adapter, a pipeline of adapters or a plain transformer, in the same way."""

from copy import deepcopy

from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter


def call_with_domains(adapter, method, X, *args, **domains):
    """Call ``adapter.method`` with those of ``domains`` that it asks for.

    Routing is switched on for this call only, so that a pipeline hands ``sample_domain`` to
    its steps whatever the user's setting is.
    """
    wanted = get_routing_for_object(adapter).consumes(method, domains)
    with config_context(enable_metadata_routing=True):
        return getattr(adapter, method)(X, *args, **{name: domains[name] for name in wanted})


def knows_domains(adapter):
    """Whether ``adapter``, or a step of it, asks for ``sample_domain`` at fit."""
    return bool(get_routing_for_object(adapter).consumes("fit", ["sample_domain"]))


def adapt_target_of(adapter, X, domain):
    """Return a copy of a fitted adapter that has learned a new target domain."""
    adapter = deepcopy(adapter)
    if not knows_domains(adapter):
        raise ValueError(
            f"{type(adapter).__name__} keeps nothing per domain, so it cannot learn a new "
            "target: refit on the source rows and the rows of the new target."
        )
    if not isinstance(adapter, Pipeline):
        return _adapt_step(adapter, X, domain)
    for _, step in adapter.steps:
        if step is None or step == "passthrough":
            continue
        if knows_domains(step):
            _adapt_step(step, X, domain)
        X = call_with_domains(step, "transform", X, sample_domain=domain)
    return adapter


def _adapt_step(adapter, X, domain):
    if not hasattr(adapter, "adapt_target"):
        raise ValueError(
            f"{type(adapter).__name__} cannot learn a new target: refit on the source rows and "
            "the rows of the new target."
        )
    return adapter.adapt_target(X, domain=domain)


def fit_weighted(estimator, X, y, sample_weight):
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
