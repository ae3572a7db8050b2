"""Linear models as ONNX operators: labels, margins, probabilities, predictions."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from covshift.interop._onnx_graph import Graph
from covshift.kernels.arrays import FloatArray

PROBABILISTIC = (LogisticRegression, LogisticRegressionCV, LinearDiscriminantAnalysis)
MARGINS = (LinearSVC, RidgeClassifier, RidgeClassifierCV, SGDClassifier)
REGRESSORS = (
    ARDRegression, BayesianRidge, ElasticNet, ElasticNetCV, HuberRegressor, Lasso, LassoCV,
    LinearRegression, LinearSVR, Ridge, RidgeCV, SGDRegressor,
)  # fmt: skip


def add_predictor(graph: Graph, rows: str, model: Any, shares: FloatArray | None = None) -> None:
    """Add a fitted linear model, and its outputs.

    ``shares``: the label is the class whose probability is largest compared with its share. None:
    it follows from the margins.
    """
    kinds = PROBABILISTIC + MARGINS if is_classifier(model) else REGRESSORS
    if not isinstance(model, kinds):
        raise NotImplementedError(
            f"{type(model).__name__} cannot be exported to ONNX. Of its kind these can: "
            f"{', '.join(sorted(kind.__name__ for kind in kinds))}, alone, at the end of a "
            "pipeline, or in AdaptedClassifier and AdaptedRegressor."
        )
    if is_classifier(model):
        _add_classifier(graph, rows, model, shares)
    else:
        prediction = _linear(graph, rows, model.coef_, model.intercept_)
        shape = np.shape(model.coef_)[:-1]
        graph.output("prediction", graph.cast(prediction, np.float32), np.float32, *shape)


def _add_classifier(graph: Graph, rows: str, model: Any, shares: FloatArray | None) -> None:
    classes = _classes(model)
    binary = len(classes) == 2
    coef = np.atleast_2d(_dense(model.coef_))
    intercept = np.broadcast_to(model.intercept_, (len(coef),))
    if binary:  # one margin per row
        coef, intercept = coef[0], intercept[0]
    decision = _linear(graph, rows, coef, intercept)
    P = _probabilities(graph, decision, model, binary) if hasattr(model, "predict_proba") else None
    if shares is not None:
        if P is None:
            raise NotImplementedError(
                f"The probabilities of {type(model).__name__} cannot be exported to ONNX, and the "
                "objective needs them. Fit with objective=None to export the estimator's own "
                "decision."
            )
        ratios = graph.add("Div", P, graph.constant(shares))
        number = graph.add("ArgMax", ratios, axis=1, keepdims=0)
    elif binary:
        above = graph.add("Greater", decision, graph.constant(0.0))
        number = graph.cast(above, np.int64)
    else:
        number = graph.add("ArgMax", decision, axis=1, keepdims=0)
    label = graph.add("Gather", graph.constant(classes), number, axis=0)
    graph.output("label", label, classes.dtype)
    shape = () if binary else (len(classes),)
    graph.output("decision", graph.cast(decision, np.float32), np.float32, *shape)
    if P is not None:
        graph.output("probabilities", graph.cast(P, np.float32), np.float32, len(classes))


def _probabilities(graph: Graph, decision: str, model: Any, binary: bool) -> str | None:
    """Probabilities of the classes, or None for those of a loss that is not the logistic one."""
    if not isinstance(model, PROBABILISTIC) and model.loss != "log_loss":
        return None
    if binary:
        column = graph.add("Unsqueeze", decision, graph.constant([1]))
        # The sigmoid of both signs: one minus the other would lose the digits of small ones.
        pair = graph.add("Concat", graph.add("Neg", column), column, axis=1)
        return graph.add("Sigmoid", pair)
    each_against_the_rest = isinstance(model, SGDClassifier) or (
        getattr(model, "solver", None) == "liblinear"
        or getattr(model, "multi_class", None) == "ovr"
    )
    if not each_against_the_rest:
        return graph.add("Softmax", decision, axis=1)
    # Sigmoids over their sum, from logarithms: all of them may be smaller than any number.
    below = graph.add("Min", decision, graph.constant(0.0))
    decay = graph.add("Exp", graph.add("Neg", graph.add("Abs", decision)))
    above = graph.add("Log", graph.add("Add", decay, graph.constant(1.0)))
    return graph.add("Softmax", graph.add("Sub", below, above), axis=1)


def _linear(graph: Graph, rows: str, coef: Any, intercept: Any) -> str:
    """Rows times coefficients, one vector or one per output, plus the intercept."""
    product = graph.add("MatMul", rows, graph.constant(_dense(coef).T))
    return graph.add("Add", product, graph.constant(np.asarray(intercept, dtype=np.float64)))


def _dense(coef: Any) -> FloatArray:
    dense: FloatArray = coef.toarray() if sparse.issparse(coef) else np.asarray(coef)
    return dense.astype(np.float64)


def _classes(model: Any) -> Any:
    classes = np.asarray(model.classes_)
    if classes.dtype.kind in "OU" and all(isinstance(one, str) for one in classes.tolist()):
        return classes.astype(object)  # texts, for ONNX
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    raise NotImplementedError(
        f"Classes of type {classes.dtype} cannot be exported to ONNX: use texts, numbers or "
        "booleans."
    )
