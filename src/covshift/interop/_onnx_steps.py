"""Steps of a fitted model as ONNX operators: rows of one domain in, rows out."""

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from covshift.adapters import (
    CorrelationAlignment,
    DomainStandardScaler,
    LinearMongeAlignment,
    PeriodicSparseFiltering,
    SparseFiltering,
    SubspaceAlignment,
)
from covshift.adapters.source_standard_scaler import SourceStandardScaler
from covshift.domains import locate_units, role_of
from covshift.interop._onnx_graph import Graph
from covshift.kernels.normalization import stored_norms

HALF_PI = np.pi / 2


def add_step(graph: Graph, rows: str, step: Any, domain: Any) -> str:
    """Add a fitted transformer, as it treats rows of ``domain``; return its result."""
    if step is None or isinstance(step, str):  # "passthrough"
        return rows
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            rows = add_step(graph, rows, inner, domain)
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
