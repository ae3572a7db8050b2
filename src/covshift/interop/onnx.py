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
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from covshift._version import __version__
from covshift.domains import check_new_domains
from covshift.interop.onnx_operators import Graph, add_predictor, add_step
from covshift.kernels.array_types import FloatArray
from covshift.output_files import write_whole
from covshift.predictors.adapted import ESTIMATED, AdaptedEstimator
from covshift.predictors.fit_and_predict import knows_domains, steps_of
from covshift.predictors.objectives import BALANCED_ACCURACY
from covshift.warning_filters import ignored_warnings

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
        rows = add_step(graph, rows, model.adapter_, domain)
        _add_model(graph, rows, model.estimator_, domain, _decision_of(model))
    elif isinstance(model, Pipeline):
        *steps, (_, last) = model.steps
        for _, step in steps:
            rows = add_step(graph, rows, step, domain)
        _add_model(graph, rows, last, domain, shares)
    elif is_classifier(model) or is_regressor(model):
        add_predictor(graph, rows, model, shares)
    else:
        Z = graph.cast(add_step(graph, rows, model, domain), np.float32)
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
    values = onnx.reference.ReferenceEvaluator(exported).run(None, {"X": X})
    for output, value in zip(exported.graph.output, values, strict=True):
        with (
            config_context(enable_metadata_routing=True),
            ignored_warnings(UserWarning, message="X does not have valid feature names"),
        ):
            predict = getattr(model, METHODS[output.name])
            expected = np.asarray(predict(X.astype(np.float64), **where))
        if output.name == "label":  # all but those of rows that happen to lie on a boundary
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
