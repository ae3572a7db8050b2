r"""Fitted models as ONNX, to predict without Python: in a browser, a service, a database.

A file in the Open Neural Network Exchange format runs wherever there is a runtime for it. It can
hold filters, scalers and linear alignments, as they treat rows of one target domain, and linear
models on top of them. The input, ``X``, is in single precision; everything is computed in double
precision, and results are rounded at the end. Labels follow from the margins before that, so they
can differ from those of ``predict`` on the same rows in double precision only where two classes tie
to about :math:`10^{-15}`.

Needs the extra ``onnx``. Every graph is run once on random rows, by the evaluator that comes with
``onnx``, and compared with the model before it is handed out.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.decomposition import PCA
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
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted

from covshift._version import __version__
from covshift.adapters import (
    CorrelationAlignment,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.adapters.source_standard_scaler import SourceStandardScaler
from covshift.domains import check_new_domains, locate_units, role_of
from covshift.kernels.activations_and_norms import stored_norms
from covshift.kernels.array_types import FloatArray
from covshift.output_files import write_whole
from covshift.predictors.adapted import ESTIMATED, AdaptedEstimator
from covshift.predictors.adapter_steps import knows_domains, steps_of
from covshift.predictors.objectives import BALANCED_ACCURACY
from covshift.warning_filters import ignored_warnings

# --- The graph: steps and models as operators ---


OPSET = 18
IR_VERSION = 9  # what runtimes since 2023 read


class Graph:
    """Operators and constants in the order in which they are added; values go by name."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []

    def constant(self, values: npt.ArrayLike) -> str:
        """Add a constant; numbers are in double precision unless they are integers."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            # Computed in double precision inside, as the model does: sums of many small terms would
            # differ.
            array = array.astype(np.float64)
        name = f"constant{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its result."""
        # Names of values must be unique in a graph; the number of the operator makes them so.
        name = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [name], **attributes)
        )
        return name

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Add a conversion to another type of number."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=kind)

    def output(self, name: str, value: str, dtype: npt.DTypeLike, *columns: int) -> None:
        """Give a value a name and make it an output of rows, by columns if there are some."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        # A node of its own gives the output its name, whatever the value is called within.
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(
            self._onnx.helper.make_tensor_value_info(name, kind, ["rows", *columns])
        )

    def model(self, n_features: int, properties: dict[str, str]) -> Any:
        """Return the whole, whose input is ``X``: rows by features in single precision."""
        helper = self._onnx.helper
        rows = helper.make_tensor_value_info(
            "X", self._onnx.TensorProto.FLOAT, ["rows", n_features]
        )
        graph = helper.make_graph(
            self._nodes, "covshift", [rows], self._outputs, initializer=self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="covshift",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, properties)
        return model


HALF_PI = np.pi / 2


def _add_step(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    """Add a fitted transformer, as it treats rows of ``domain``; return its result."""
    if step is None or isinstance(step, str):  # "passthrough"
        return rows
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            rows = _add_step(graph, rows, inner, domain)
        return rows
    if hasattr(step, "score_weights"):  # weighs rows at fit and leaves them as they are
        return rows
    writer = WRITERS.get(type(step))
    if writer is None:
        raise NotImplementedError(
            f"{type(step).__name__} cannot be exported to ONNX. Steps that can: "
            f"{', '.join(sorted(kind.__name__ for kind in WRITERS))}, weight estimators, and "
            "pipelines of these."
        )
    return writer(graph, rows, step, domain)


def _filter(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    if step.normalization == "batch":
        raise NotImplementedError(
            f"{type(step).__name__}(normalization='batch') cannot be exported to ONNX: its norms "
            "are those of each batch. Use normalization='domain' or 'joint'."
        )
    H = graph.add("MatMul", rows, graph.constant(step.components_.T))
    if step.activation == "abs":
        squares = graph.add("Mul", H, H)
        F = graph.add("Sqrt", graph.add("Add", squares, graph.constant(float(step.epsilon))))
    else:
        if step.activation == "cos":  # runtimes have the sine in double precision
            H = graph.add("Add", H, graph.constant(HALF_PI))
        F = graph.add("Add", graph.add("Sin", H), graph.constant(1.0 + step.epsilon))
    unit = locate_units(step.norm_units_, step._domains_of(domain, 1))[0]
    root_means = step.feature_norms_.astype(np.float64)
    norms = stored_norms(root_means, step.norm_counts_, step.norm_epsilon)[unit]
    A = graph.add("Div", F, graph.constant(norms))
    squares = graph.add("ReduceSum", graph.add("Mul", A, A), graph.constant([1]), keepdims=1)
    length = graph.add("Sqrt", graph.add("Add", squares, graph.constant(float(step.norm_epsilon))))
    empty = graph.add("Equal", length, graph.constant(0.0))
    return graph.add("Div", A, graph.add("Where", empty, graph.constant(1.0), length))


def _domain_scaler(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    (unit,) = step._units_of(domain, 1)
    return _standardize(graph, rows, step.means_[unit], step.scales_[unit])


def _linear_alignment(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    (unit,) = step._units_of(domain, 1)
    if unit < 0:  # the role that stays
        return rows
    centered = graph.add("Sub", rows, graph.constant(step.means_[unit]))
    moved = graph.add("MatMul", centered, graph.constant(step.matrices_[unit]))
    return graph.add("Add", moved, graph.constant(step.shifts_[unit]))


def _subspace_alignment(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    (unit,) = step._units_of(domain, 1)
    if step.center or step.scale:
        rows = _standardize(graph, rows, step.means_[unit], step.scales_[unit])
    matrix = step.target_components_.T
    if role_of(step.units_[unit]) == "source":
        matrix = step.source_components_.T @ step.alignment_
    return graph.add("MatMul", rows, graph.constant(matrix))


def _source_scaler(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    return _standardize(graph, rows, step.mean_, step.scale_)


def _standard_scaler(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    zeros, ones = np.zeros(step.n_features_in_), np.ones(step.n_features_in_)
    mean = step.mean_ if step.with_mean else zeros
    return _standardize(graph, rows, mean, step.scale_ if step.with_std else ones)


def _range_scaler(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    if isinstance(step, MaxAbsScaler):
        return graph.add("Div", rows, graph.constant(step.scale_))
    scaled = graph.add("Mul", rows, graph.constant(step.scale_))
    moved = graph.add("Add", scaled, graph.constant(step.min_))
    if step.clip:
        low, high = (graph.constant(float(bound)) for bound in step.feature_range)
        moved = graph.add("Max", graph.add("Min", moved, high), low)
    return moved


def _pca(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    centered = graph.add("Sub", rows, graph.constant(step.mean_))
    matrix = step.components_.T
    if step.whiten:
        matrix = matrix / np.sqrt(step.explained_variance_)
    return graph.add("MatMul", centered, graph.constant(matrix))


def _standardize(graph: Graph, rows: str, mean: Any, scale: Any) -> str:
    return graph.add("Div", graph.add("Sub", rows, graph.constant(mean)), graph.constant(scale))


WRITERS = {
    CorrelationAlignment: _linear_alignment,
    DomainStandardScaler: _domain_scaler,
    LinearMongeAlignment: _linear_alignment,
    MaxAbsScaler: _range_scaler,
    MinMaxScaler: _range_scaler,
    PCA: _pca,
    PeriodicSparseFiltering: _filter,
    SourceStandardScaler: _source_scaler,
    SparseFiltering: _filter,
    StandardScaler: _standard_scaler,
    SubspaceAlignment: _subspace_alignment,
}


PROBABILISTIC = (LogisticRegression, LogisticRegressionCV, LinearDiscriminantAnalysis)
MARGINS = (LinearSVC, RidgeClassifier, RidgeClassifierCV, SGDClassifier)
REGRESSORS = (
    ARDRegression, BayesianRidge, ElasticNet, ElasticNetCV, HuberRegressor, Lasso, LassoCV,
    LinearRegression, LinearSVR, Ridge, RidgeCV, SGDRegressor,
)  # fmt: skip


def _add_predictor(graph: Graph, rows: str, model: Any, shares: FloatArray | None = None) -> None:
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
    """Return the rows times coefficients, one vector or one per output, plus the intercept."""
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


# --- Export ---


__all__ = ["to_onnx"]

METHODS = {
    "Z": "transform",
    "decision": "decision_function",
    "probabilities": "predict_proba",
    "prediction": "predict",
    "label": "predict",
}
ROWS_CHECKED = 64
EXPORT_ERROR = 1e-5


def to_onnx(
    model: Any, path: str | PathLike[str] | None = None, *, domain: int | str | None = None
) -> Any:
    """Export a fitted model, as it treats rows of one target domain; needs the extra ``onnx``.

    Parameters
    ----------
    model : fitted estimator
        `AdaptedClassifier`, `AdaptedRegressor`, one of their adapters, a linear model of
        scikit-learn, or a pipeline of these. Adapters: `SparseFiltering` and
        `PeriodicSparseFiltering` (not with ``normalization="batch"``), `DomainStandardScaler`,
        `CorrelationAlignment`, `LinearMongeAlignment`, `SubspaceAlignment`, weight estimators
        (which leave rows alone), scikit-learn's ``StandardScaler``, ``MinMaxScaler``,
        ``MaxAbsScaler`` and ``PCA``.
    path : str or path, default=None
        File to write, atomically. None: no file is written.
    domain : int or str, default=None
        Domain whose statistics are exported, as ``sample_domain`` in ``predict``. None: the target
        of rows of which nothing is said.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` (rows, features), float32. Outputs of a transformer: ``Z`` (rows, features out),
        float32; of a classifier: ``label`` (texts, integers or booleans), ``decision`` as in
        ``decision_function`` and, where there are some, ``probabilities`` (rows, classes); of a
        regressor: ``prediction``.

    Raises
    ------
    NotImplementedError
        For a step or a model that cannot be exported. It names the step, and those that can.

    Notes
    -----
    **Cost**: time and memory of the order of the model's arrays.

    Examples
    --------
    >>> from covshift import AdaptedClassifier, DomainStandardScaler, stack_domains
    >>> from covshift.datasets import make_smooth_shift
    >>> from covshift.interop.onnx import to_onnx
    >>> data = make_smooth_shift(random_state=0)
    >>> X, y, sample_domain = stack_domains(data.X_source, data.y_source, data.X_target)
    >>> model = AdaptedClassifier(DomainStandardScaler()).fit(X, y, sample_domain=sample_domain)
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'decision', 'probabilities']
    """
    onnx = _import_onnx()
    check_is_fitted(model)
    graph = Graph(onnx)
    rows = graph.cast("X", np.float64)
    _add_model(graph, rows, model, _number_of(model, domain))
    properties = {
        "covshift": __version__,
        "model": repr(model),
        "domain": "target" if domain is None else str(domain),
    }
    n_features = int(next(steps_of(model)).n_features_in_)  # a pipeline's may be hidden
    exported = graph.model(n_features, properties)
    onnx.checker.check_model(exported, full_check=True)
    _compare(onnx, exported, model, domain, n_features)
    if path is not None:
        content = exported.SerializeToString()
        write_whole(Path(path), lambda file: file.write(content))
    return exported


def _add_model(
    graph: Graph, rows: str, model: Any, domain: Any, shares: FloatArray | None = None
) -> None:
    """Add a transformer or predictor, and its outputs.

    ``shares``: the label is the class whose probability is largest compared with its share.
    """
    if isinstance(model, AdaptedEstimator):
        rows = _add_step(graph, rows, model.adapter_, domain)
        _add_model(graph, rows, model.estimator_, domain, _decision_of(model))
    elif isinstance(model, Pipeline):
        *steps, (_, last) = model.steps
        for _, step in steps:
            rows = _add_step(graph, rows, step, domain)
        _add_model(graph, rows, last, domain, shares)
    elif is_classifier(model) or is_regressor(model):
        _add_predictor(graph, rows, model, shares)
    else:
        Z = graph.cast(_add_step(graph, rows, model, domain), np.float32)
        graph.output("Z", Z, np.float32, len(model.get_feature_names_out()))


def _decision_of(model: Any) -> FloatArray | None:
    """Shares that probabilities are divided by in ``predict``; None: the estimator decides."""
    if not hasattr(model, "decide"):
        return None
    if model.class_shares == ESTIMATED:
        raise NotImplementedError(
            "Probabilities for estimated class proportions cannot be exported to ONNX. Fit with "
            'class_shares="source" to export the estimator\'s own.'
        )
    if model.objective == BALANCED_ACCURACY:
        shares: FloatArray = model.class_shares_
        return shares
    return np.ones(len(model.classes_))


def _number_of(model: Any, domain: Any) -> Any:
    """Return a domain by its number, where the model knows its name."""
    if domain is None:
        return None
    if isinstance(model, AdaptedEstimator):
        (number,) = check_new_domains(domain, 1, has_target=True, domain_names=model.domain_names_)
        return int(number)
    if not any(isinstance(s, AdaptedEstimator) or knows_domains(s) for s in steps_of(model)):
        raise ValueError(
            f"{type(model).__name__} does not use domains: leave out domain={domain!r}."
        )
    return domain


def _compare(onnx: Any, exported: Any, model: Any, domain: Any, n_features: int) -> None:
    """Run the graph on random rows, and refuse to hand out one that is not the model."""
    X = np.random.RandomState(0).standard_normal((ROWS_CHECKED, n_features)).astype(np.float32)
    where = {} if domain is None else {"sample_domain": domain}
    # The graph was written from formulas, a second time beside the model's own code: that both
    # agree is checked for every export.
    values = onnx.reference.ReferenceEvaluator(exported).run(None, {"X": X})
    for output, value in zip(exported.graph.output, values, strict=True):
        with (
            config_context(enable_metadata_routing=True),
            ignored_warnings(UserWarning, message="X does not have valid feature names"),
        ):
            predict = getattr(model, METHODS[output.name])
            expected = np.asarray(predict(X.astype(np.float64), **where))
        if output.name == "label":  # except rows that happen to lie on a boundary
            same = np.mean(np.asarray(value).astype(expected.dtype) == expected) > 0.9
        else:
            largest = max(1.0, float(np.abs(expected).max()))
            same = np.allclose(value, expected, rtol=EXPORT_ERROR, atol=EXPORT_ERROR * largest)
        if not same:
            raise RuntimeError(
                f"The exported graph differs from the model in its {output.name}. This is a fault "
                "of covshift: please report it."
            )


def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.reference
    except ImportError as error:
        raise ImportError(
            'Exporting needs onnx, which is not installed: pip install "covshift[onnx]"'
        ) from error
    return onnx
