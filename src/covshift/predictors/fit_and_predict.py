"""Fit a candidate, an adapter with an estimator, and predict with it.

There is one way to do so. `fit_candidate` has two halves, `adapt_rows` and `fit_estimator`, for
callers that put several estimators on one fitted adapter. Predictors, the selection and the
diagnosis use these functions and no others.

The adapter is one of ours, a plain transformer or a pipeline. A pipeline is walked step by step,
so that each step gets what it asks for: the domains, if it takes them, and labels only then. A step
that does not take them could not tell the placeholder of an unlabeled row from a class.

The estimator sees labeled rows only, unless it has an attribute ``uses_target_rows`` that is true:
then it is fitted to all adapted rows, with ``sample_domain`` and ``label_mask``, and gets the
domains of the rows that it predicts. So does a pipeline that ends in one, whose last step must
request them (``__metadata_request__fit``).
"""

from contextlib import nullcontext
from copy import deepcopy
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_array, has_fit_parameter

from covshift.base import DomainTransformer, RefitNeededError
from covshift.domains import FitDomains, Labels, blank_labels
from covshift.kernels.array_types import BoolArray, FloatArray, IntArray
from covshift.kernels.feature_scales import feature_deviations
from covshift.predictors.adapter_steps import (
    check_rowwise,
    knows_domains,
    last_step,
    source_weights,
    steps_of,
    uses_target_rows,
    weighs,
)
from covshift.registry import Size
from covshift.streams import is_streamed, map_rows, sample_rows
from covshift.streams.moments import fit_components
from covshift.streams.rows import open_stream, warn_sampled
from covshift.weights import scale_to_mean_one

# Adapted rows that an estimator is fitted to: it needs them in memory, and copies of its own.
ESTIMATOR_BYTES = 2**28
NEGLIGIBLE_WEIGHT = 1e-9  # weights have mean one
SMALLEST_LOGIT = -30.0  # for classes unknown to the classifier: a probability of 1e-13


class AdaptedRows(NamedTuple):
    """Rows as a fitted adapter represents them, ready for an estimator."""

    adapter: Any  # fitted; None: no adaptation
    labeled: Any  # rows whose labels are known
    everything: Any  # all rows, where an estimator uses those of the target; else None
    importance: FloatArray | None  # weights of the source rows, if the adapter weighs them
    domains: FitDomains
    chosen: IntArray | None  # numbers of ``labeled`` among the labeled rows; None: all of them


class FittedCandidate(NamedTuple):
    """A fitted adapter and the estimator that was fitted to the rows it represents."""

    adapter: Any
    estimator: Any


def fit_candidate(
    adapter: Any,
    estimator: Any,
    X: Any,
    labels: Any,
    domains: FitDomains,
    *,
    label_kind: Literal["class", "number"] = "class",
    sample_weight: Any = None,
) -> FittedCandidate:
    """Fit a candidate: clones of an adapter and of an estimator on top of it.

    Parameters
    ----------
    adapter : transformer, weight estimator, pipeline or None
        None: the estimator sees the rows as they are.
    estimator : estimator
        What to fit to the adapted rows.
    X : array, frame, sparse matrix or Dask array of shape (n_samples, n_features)
        Rows of all domains.
    labels : ndarray
        Labels of the rows in ``domains.label_mask``, and of no others.
    domains : FitDomains
        Where each row comes from.
    label_kind : {"class", "number"}, default="class"
        Adapters see labels that are classes.
    sample_weight : ndarray of shape (n_samples,), default=None
        Multiplies the adapter's importance weights.

    Returns
    -------
    FittedCandidate
    """
    adapted = adapt_rows(
        adapter,
        X,
        labels if label_kind == "class" else None,
        domains,
        keep_all=uses_target_rows(estimator),
    )
    fitted = fit_estimator(estimator, adapted, labels, sample_weight)
    return FittedCandidate(adapted.adapter, fitted)


def predict_candidate(
    fitted: FittedCandidate, method: str, X: Any, sample_domain: Any = None
) -> Any:
    """Predict with a fitted candidate: what a method says of rows, each as one of its domain.

    For rows that are represented already, the adapter is None.
    """
    where = {} if sample_domain is None else {"sample_domain": sample_domain}
    Z = represent(fitted.adapter, X, **where)
    predict = getattr(fitted.estimator, method)
    if sample_domain is None or not uses_target_rows(fitted.estimator):
        return predict(Z)
    with _routing_to(fitted.estimator):
        return predict(Z, sample_domain=sample_domain)


def class_logits(
    model: Any, X: Any, classes: int | Labels, sample_domain: Any = None
) -> FloatArray:
    """Logits (n, n_classes) of rows by a fitted candidate: scores whose softmax are probabilities.

    Probabilities and margins are brought to this one form, so that an SVM can be calibrated, too.

    Parameters
    ----------
    model : FittedCandidate or AdaptedClassifier
        A candidate without adapter is for rows that are represented already.
    X : array, frame or sparse matrix
        Rows.
    classes : int or ndarray
        Number of classes, where these are 0, 1, ..., or the classes in order. The model may have
        seen fewer.
    sample_domain : ndarray of shape (n,), default=None
        Domain of each row.
    """
    if not isinstance(model, FittedCandidate):
        model = FittedCandidate(model.adapter_, model.estimator_)

    def ask(method: str) -> Any:
        return np.asarray(predict_candidate(model, method, X, sample_domain))

    # A fit without some rows may have seen fewer classes: each column goes where its class belongs.
    seen = np.asarray(model.estimator.classes_)
    if hasattr(model.estimator, "predict_proba"):
        P = ask("predict_proba").astype(np.float64)
        scores = np.log(np.clip(P, np.exp(SMALLEST_LOGIT), None))
    elif hasattr(model.estimator, "decision_function"):
        scores = ask("decision_function").astype(np.float64)
        if scores.ndim == 1:
            # Two logits whose difference is the margin: their softmax is the sigmoid of the margin.
            scores = np.column_stack([-scores / 2, scores / 2])
    else:
        scores = (ask("predict")[:, None] == seen).astype(np.float64)
    if isinstance(classes, np.ndarray):
        columns, n_classes = np.searchsorted(classes, seen), len(classes)
    else:
        columns, n_classes = seen, classes
    # Never above the scores that are there, or a class that the model does not know would win.
    logits = np.full((len(scores), n_classes), min(SMALLEST_LOGIT, scores.min(initial=0.0)))
    logits[:, columns] = scores
    return logits


def adapt_rows(
    adapter: Any, X: Any, classes: Any, domains: FitDomains, *, keep_all: bool = False
) -> AdaptedRows:
    """Fit a clone of a candidate's adapter and represent the labeled rows, or all of them.

    ``classes`` are those of the labeled rows; None: the adapter is fitted without labels.
    """
    where = {"sample_domain": domains.sample_domain} if domains.given else {}
    fitted = None if adapter is None else clone(adapter)
    # Adapters get one label per row, as `fit` of scikit-learn wants it, with a placeholder where it
    # is not known.
    y = None if classes is None else blank_labels(classes, domains.label_mask)
    fit_adapter(fitted, X, y, label_mask=domains.label_mask, **where)
    importance = source_weights(fitted)
    if is_streamed(X):
        if keep_all:
            raise TypeError(
                "An estimator that uses target rows cannot be fitted to rows in blocks: fit it to "
                "a sample of the rows, in memory."
            )
        labeled, chosen = _represent_some(fitted, X, domains.label_mask, **where)
        return AdaptedRows(fitted, labeled, None, importance, domains, chosen)
    # All rows at once: norms of a batch are those of the whole domain.
    Z = represent(fitted, X, **where)
    labeled = _safe_indexing(Z, np.flatnonzero(domains.label_mask))
    return AdaptedRows(fitted, labeled, Z if keep_all else None, importance, domains, None)


def fit_estimator(
    estimator: Any, adapted: AdaptedRows, labels: Any, sample_weight: Any = None
) -> Any:
    """Fit a clone of a candidate's estimator to adapted rows with their weights."""
    domains = adapted.domains
    weights = _combine_weights(sample_weight, adapted.importance, domains)
    if adapted.importance is not None and is_classifier(estimator):
        weights = _keep_every_class(weights, labels)
    estimator = clone(estimator)
    if uses_target_rows(estimator):
        y = blank_labels(labels, domains.label_mask)
        where: dict[str, Any] = {"label_mask": domains.label_mask}
        if domains.given:
            where["sample_domain"] = domains.sample_domain
        if weights is not None:
            # Rows without a label have no importance weight: they count as the caller says.
            spread = np.ones(len(domains.label_mask))
            if sample_weight is not None:
                spread[:] = sample_weight
            spread[domains.label_mask] = weights
            where["sample_weight"] = spread
        with _routing_to(estimator):
            return estimator.fit(adapted.everything, y, **where)
    if adapted.chosen is not None:
        labels = labels[adapted.chosen]
        weights = None if weights is None else weights[adapted.chosen]
    return _fit_weighted(estimator, adapted.labeled, labels, weights)


def problem_size(X: Any, n_classes: int, sample_domain: IntArray) -> Size:
    """Return the size of the problem to fit to, by which adapters of the registry are set up.

    Rows in blocks, sparse rows and rows that are not numbers count as spread by one.
    """
    n_source = int((sample_domain >= 0).sum())
    return Size(
        n_source,
        X.shape[0] - n_source,
        X.shape[1],
        n_classes,
        _measure_spread(X, sample_domain),
        len(np.unique(sample_domain)),
    )


def _measure_spread(X: Any, sample_domain: IntArray) -> float:
    """Return the mean standard deviation of a feature within a source domain, or 1."""
    if is_streamed(X) or sparse.issparse(X):  # a check would need a pass over the rows
        return 1.0
    try:
        rows = np.asarray(check_array(X, dtype=np.float64, ensure_all_finite=False))
    except (TypeError, ValueError):  # texts, which the first step of an adapter may encode
        return 1.0
    # Within a domain: differences between domains are what adapters remove.
    domains = np.unique(sample_domain[sample_domain >= 0])
    within = [feature_deviations(rows[sample_domain == one]).mean() for one in domains]
    return float(np.mean(within))


def _combine_weights(given: Any, importance: Any, domains: FitDomains) -> FloatArray | None:
    """Weights of the labeled rows: as given, or their product with importance, of mean one."""
    if importance is None:
        return None if given is None else given[domains.label_mask]
    weights = np.ones(len(domains.sample_domain))
    weights[domains.source] = importance
    if given is not None:
        weights *= given
    scaled: FloatArray = scale_to_mean_one(weights[domains.label_mask])
    return scaled


def _keep_every_class(weights: Any, labels: Any) -> Any:
    """Give a class whose rows all have importance zero a negligible weight.

    libsvm drops rows without weight, and then a class that no other row has: its scores would
    have a column fewer than there are classes.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    lost = np.bincount(codes, weights, minlength=len(classes))[codes] <= 0
    return np.where(lost, NEGLIGIBLE_WEIGHT, weights) if lost.any() else weights


def fit_adapter(adapter: Any, X: Any, y: Any, **domains: Any) -> None:
    """Fit a candidate's adapter in place."""
    last = last_step(adapter)
    for step in steps_of(adapter):
        if not hasattr(step, "transform") and not (weighs(step) and step is last):
            raise TypeError(
                f"{type(step).__name__} is not an adapter: it needs `transform` or `score_weights`."
            )
        if _needs_memory(step) and is_streamed(X):
            if type(step) is not PCA:
                raise TypeError(
                    f"{type(step).__name__} cannot be fitted to rows in blocks. Use an adapter of "
                    "covshift, such as DomainStandardScaler, or fit to a sample of the rows, in "
                    "memory."
                )
            fit_components(step, X)
            X = X if step is last else represent(step, X)
            continue
        labels = y if _may_see_labels(step) else None
        try:
            _call(step, "fit", X, labels, **domains)
        except (TypeError, ValueError) as error:
            if labels is None and y is not None:
                error.add_note(
                    f"{type(step).__name__}, or a part of it, does not take sample_domain, so the "
                    "adapter fits it without labels. If it needs them, put it in the estimator."
                )
            raise
        if step is not last:
            X = represent(step, X, **domains)


def represent(adapter: Any, X: Any, **domains: Any) -> Any:
    """Represent rows by a fitted adapter, to predict from; one that weighs leaves them alone."""
    for step in steps_of(adapter):
        if not domains and isinstance(step, DomainTransformer):
            # Nothing to hand on. Asking what it wants takes longer than transforming one row.
            X = step.transform(X)
        elif type(step) is PCA and is_streamed(X):
            X = map_rows(step, "transform", X)
        elif hasattr(step, "transform"):
            X = _call(step, "transform", X, allow_source=True, **domains)
    return X


def _represent_some(
    adapter: Any, X: Any, label_mask: BoolArray, sample_domain: Any = None
) -> tuple[FloatArray, IntArray]:
    """Represent as many labeled rows as fit into memory; return them, and which they are.

    Returns
    -------
    Z : rows as the adapter represents them.
    chosen : their numbers among the labeled rows.
    """
    check_rowwise(adapter)
    stream = open_stream(X)
    labeled = np.flatnonzero(label_mask)

    def represented(rows: IntArray) -> Any:
        where = {} if sample_domain is None else {"sample_domain": sample_domain[rows]}
        return represent(adapter, stream.pick(rows), **where)

    row_bytes = represented(labeled[:1]).nbytes
    limit = max(1, ESTIMATOR_BYTES // row_bytes)
    chosen = sample_rows(np.ones(len(labeled), dtype=bool), limit)
    if len(chosen) < len(labeled):
        warn_sampled(
            "The estimator is fitted", len(chosen), len(labeled),
            "the adapter saw all rows; what the estimator learns varies "
            f"{(len(labeled) / len(chosen)) ** 0.5:.1f} times as much as from all of them",
        )  # fmt: skip
    return represented(labeled[chosen]), chosen


def adapt_target_of(adapter: Any, X: Any, domain: Any) -> Any:
    """Fit a copy of a candidate's fitted adapter to a new target domain, and return it."""
    # A step that fails must leave the fitted adapter as it was, with all of its steps at one state.
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
        # The next step learns the new target as this one represents it.
        X = represent(step, X, sample_domain=domain)
    return adapter


def _fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
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


def _needs_memory(step: Any) -> bool:
    """Return whether a step takes rows in memory only; adapters of covshift take any they can."""
    return not (isinstance(step, DomainTransformer) or weighs(step))


def _may_see_labels(step: Any) -> bool:
    """Whether a step and, if it is a union, all of its parts can tell which labels are known."""
    # A union hands its labels on to all parts, and one that does not know which are placeholders
    # would learn from them.
    parts = [part for part in step.get_params().values() if hasattr(part, "transform")]
    return all(map(knows_domains, [step, *parts]))


def _routing_to(estimator: Any) -> Any:
    """Switch routing on for a pipeline, whose last step asks for the domains."""
    if isinstance(estimator, Pipeline):
        return config_context(enable_metadata_routing=True)
    return nullcontext()


def _call(step: Any, method: str, X: Any, *args: Any, **domains: Any) -> Any:
    """Call a method with those of ``domains`` that it asks for.

    Routing is switched on for this call only: a step that hands on (a union of filters) then
    works whatever the user's setting is.
    """
    wanted = get_routing_for_object(step).consumes(method, domains)
    with config_context(enable_metadata_routing=True):
        return getattr(step, method)(X, *args, **{name: domains[name] for name in wanted})
