"""The registry of adapters: what each is called, assumes, fixes, harms and can do.

One record per adapter. The same name means the same model, with the same preprocessing and
settings, in Python (``AdaptedClassifier("coral")``), on the command line (``--adapter coral``), in
the leaderboard, the diagnosis, ``compare`` and the documentation: all of them read this table.

Records are data: they name their class by its import path, so that reading them loads none of it.
Other packages add records through the entry point group ``covshift.adapters``: see
`plugin_records`.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from covshift.adapter_record import (
    AUTO,
    METHODS,
    MODEL_NAMES,
    NO_ADAPTATION,
    NUMBER_MODEL_NAMES,
    RAW,
    SCALED_PATH,
    STANDARDIZED_PATH,
    AdapterRecord,
    Size,
)

__all__ = [
    "AUTO",
    "BUILT_IN",
    "MODEL_NAMES",
    "NO_ADAPTATION",
    "NUMBER_MODEL_NAMES",
    "RAW",
    "AdapterRecord",
    "PluginWarning",
    "Size",
    "find_record",
    "names",
    "plugin_records",
    "records",
    "try_plugin",
]

ALIGNED_FEATURES = 60  # principal components that are kept where covariances are matched
FILTERED_FEATURES = 40  # principal components kept where filters are fitted
FILTER_ITERATIONS = 50
SMALL_SUBSPACE, LARGE_SUBSPACE = 8, 30
SEGMENT_FILTERS = 100
CODES = 20  # units of the auto-encoder's code, at most
EPOCHS = 60
# Labels count for more than sparsity, and the more so the more rows have none: else the target's
# rows outvote them, and the filters settle out of step. On 20 tasks of `periodic_groups`
# (covshift_bench.families) accuracy is .86 with this reward, .78 with a reward of 4 for any number
# of rows, and .61 with 1 (on 14 other tasks).
LABEL_REWARD = 4.0


def _subspace(at_most: int) -> Callable[[Size], dict[str, Any]]:
    # In as many dimensions as there are features, alignment is a rotation and adapts nothing.
    return lambda size: {
        "n_components": max(1, min(at_most, size.n_features // 2, size.n_source // 2))
    }


def _filters(**more: Any) -> Callable[[Size], dict[str, Any]]:
    return lambda size: {
        "n_components": min(max(4 * size.n_classes, 12), 40),
        "max_iter": FILTER_ITERATIONS,
        "tol": 1e-4,
        "init_scale": 1.0,
        "random_state": 0,
        **more,
    }


def _filters_by_class(size: Size) -> dict[str, Any]:
    """PSF as the paper has it, with labels; its start fits the spread within a domain."""
    return {
        "label_reward": LABEL_REWARD * (1 + size.n_target / size.n_source),
        "n_restarts": 10,
        "max_iter": 100,
        "tol": 1e-4,
        "init_scale": 1 / size.spread if size.spread > 0 else 1.0,
        "random_state": 0,
    }


def _codes(size: Size) -> dict[str, Any]:
    n_codes = min(CODES, max(2, size.n_features // 2))
    return {"n_components": n_codes, "max_epochs": EPOCHS, "random_state": 0}


# Chosen on real tasks (docs/results/selection.md): linear SVMs, forests and joint alignment add to
# what the vote reaches; boosted trees cost ten times as much as forests.
_PLAIN = ("logistic", "linear-svm", "rbf", "kernel-ridge", "forest")
_TWO = ("logistic", "rbf")
_NUMBER_PLAIN = ("ridge", "kernel-ridge", "forest")
_NUMBER_TWO = ("ridge", "kernel-ridge")

# Fields that records of one kind share.
_BY_FEATURE: dict[str, Any] = {
    "learns_targets": True,
    "streams": True,
    "before": (),
}
_ALIGNED: dict[str, Any] = {
    "harms": "Only the rows of one class have moved.",
    "needs_target": True,
    "learns_targets": True,
    "streams": True,
    "exports_to_onnx": True,
    "before": ("scale", ALIGNED_FEATURES),
    "settings": {"direction": "target_to_source"},
    "n_outputs": ALIGNED_FEATURES,
}
_WEIGHTS: dict[str, Any] = {
    "kind": "weights",
    "assumption": "The label depends on the features in the same smooth way in all domains, and "
    "source rows lie wherever target rows do.",
    "fixes": "A model that spends its capacity where the target has few rows.",
    "harms": "The source has no rows in parts of the target: a few rows then carry all the weight.",
    "needs_target": True,
    "streams": True,
    "exports_to_onnx": True,
}
_SUBSPACE: dict[str, Any] = {
    "path": "covshift.adapters.subspace_alignment:SubspaceAlignment",
    "assumption": "The label depends on the main principal directions, and those of the source "
    "correspond to those of the target.",
    "fixes": "Principal axes that are rotated between domains.",
    "harms": "The label depends on directions of small variance.",
    "needs_target": True,
    "streams": True,
    "exports_to_onnx": True,
}
_SF: dict[str, Any] = {
    "path": "covshift.adapters.sparse_filtering:SparseFiltering",
    "assumption": "The label depends on the direction of a row from the origin, up to its sign, "
    "and not on its length.",
    "fixes": "Rows that are scaled away from the source along their direction.",
    "harms": "The label depends on the distance from the origin.",
    "learns_targets": True,
    "streams": True,
    "exports_to_onnx": True,
    "n_outputs": FILTERED_FEATURES,
}
_PSF: dict[str, Any] = {
    **_SF,
    "path": "covshift.adapters.periodic_sparse_filtering:PeriodicSparseFiltering",
    "assumption": "The label repeats periodically along some directions, and the period continues "
    "in the target.",
    "fixes": "A target that lies several periods away from the source.",
    "harms": "The label does not repeat. One source domain alone cannot show whether it does.",
}

BUILT_IN: tuple[AdapterRecord, ...] = (
    AdapterRecord(
        name=NO_ADAPTATION,
        path=SCALED_PATH,
        title="no adaptation: all rows in units of the source",
        assumption="The label depends on the features in the same way in all domains, and the "
        "model has learned this wherever the target lies.",
        fixes="Nothing: every adapter is compared with it.",
        harms="The model extrapolates badly, or the label depends on the features in different "
        "ways in the domains.",
        learns_targets=True,
        streams=True,
        exports_to_onnx=True,
        before=(),
        automatic=_PLAIN,
        automatic_numbers=_NUMBER_PLAIN,
        min_domains=1,
    ),
    AdapterRecord(
        name="standardize",
        path=STANDARDIZED_PATH,
        title="mean and standard deviation of each feature, separately in source and target",
        assumption="Source and target differ by a shift and a scale of each feature.",
        fixes="Offsets and gains: other units, another sensor, another level.",
        harms="Class proportions differ between source and target.",
        exports_to_onnx=True,
        automatic=(*_PLAIN, "joint"),
        automatic_numbers=_NUMBER_PLAIN,
        aliases=("standardise",),
        **_BY_FEATURE,
    ),
    AdapterRecord(
        name="standardize-domains",
        path=STANDARDIZED_PATH,
        title="mean and standard deviation of each feature, in each domain by itself",
        assumption="All domains differ by a shift and a scale of each feature.",
        fixes="Offsets and gains of every site, person or sensor.",
        harms="Class proportions differ between domains, or a domain has few rows.",
        exports_to_onnx=True,
        settings={"pooling": "domain"},
        automatic=(*_TWO, "joint"),
        automatic_numbers=_NUMBER_TWO,
        min_domains=3,
        aliases=("standardise-domains", "standardise groups"),
        **_BY_FEATURE,
    ),
    AdapterRecord(
        name="coral",
        path="covshift.adapters.correlation_alignment:CorrelationAlignment",
        title="correlation alignment: the covariance of target rows made that of the source",
        assumption="Source and target differ by a linear map of the features.",
        fixes="Correlations and scales that differ between domains.",
        automatic=_TWO,
        automatic_numbers=_NUMBER_TWO,
        **_ALIGNED,
    ),
    AdapterRecord(
        name="monge",
        path="covshift.adapters.linear_monge_alignment:LinearMongeAlignment",
        title="linear optimal transport of target rows to the source's mean and covariance",
        assumption="Source and target differ by an affine map of the features.",
        fixes="Means, correlations and scales that differ between domains.",
        **_ALIGNED,
    ),
    AdapterRecord(
        name="ranks",
        path="covshift.adapters.domain_quantile_transformer:DomainQuantileTransformer",
        title="rank of each value among those of its role, feature by feature",
        assumption="Source and target differ by an increasing map of each feature.",
        fixes="Offsets, gains and non-linear responses of sensors.",
        harms="Class proportions differ between source and target.",
        automatic=("logistic", "linear-svm", "rbf", "forest", "joint"),
        automatic_numbers=_NUMBER_PLAIN,
        **_BY_FEATURE,
    ),
    AdapterRecord(
        name="ulsif",
        path="covshift.weights.ulsif:ULSIFWeights",
        title="importance weights: least-squares density ratio",
        settings={"random_state": 0},
        automatic=_TWO,
        automatic_numbers=_NUMBER_TWO,
        **_WEIGHTS,
    ),
    AdapterRecord(
        name="rulsif",
        path="covshift.weights.rulsif:RuLSIFWeights",
        title="importance weights: relative density ratio, bounded",
        settings={"random_state": 0},
        **_WEIGHTS,
    ),
    AdapterRecord(
        name="kliep",
        path="covshift.weights.kliep:KLIEPWeights",
        title="importance weights: density ratio of least Kullback-Leibler divergence",
        settings={"random_state": 0},
        **_WEIGHTS,
    ),
    AdapterRecord(
        name="kmm",
        path="covshift.weights.kmm:KMMWeights",
        title="importance weights: kernel mean matching",
        **_WEIGHTS,
    ),
    AdapterRecord(
        name="classifier-weights",
        path="covshift.weights.classifier:ClassifierWeights",
        title="importance weights: odds of a classifier between source and target",
        settings={"random_state": 0},
        **_WEIGHTS,
    ),
    AdapterRecord(
        name="sa-8",
        title=f"subspace alignment in at most {SMALL_SUBSPACE} dimensions",
        settings=_subspace(SMALL_SUBSPACE),
        n_outputs=SMALL_SUBSPACE,
        aliases=("SA 8",),
        **_SUBSPACE,
    ),
    AdapterRecord(
        name="sa",
        title=f"subspace alignment in at most {LARGE_SUBSPACE} dimensions",
        settings=_subspace(LARGE_SUBSPACE),
        automatic=("logistic",),
        automatic_numbers=("ridge",),
        n_outputs=LARGE_SUBSPACE,
        aliases=("sa-30", "SA 30"),
        **_SUBSPACE,
    ),
    AdapterRecord(
        name="dae",
        path="covshift.adapters.denoising_autoencoder:DenoisingAutoencoder",
        title="denoising auto-encoder",
        assumption="All rows lie near one low-dimensional surface, on which the label varies "
        "slowly.",
        fixes="Noise and detail that differ between domains.",
        harms="The label depends on small variations, which the code drops.",
        uses_domains=False,
        settings=_codes,
        n_outputs=CODES,
    ),
    AdapterRecord(
        name="sf",
        title="sparse filtering",
        before=("scale", FILTERED_FEATURES),
        settings=_filters(),
        automatic=("linear-svm",),
        automatic_numbers=("ridge",),
        **_SF,
    ),
    AdapterRecord(
        name="standardize-sf",
        title="sparse filtering of standardized source and target",
        before=("standardize", FILTERED_FEATURES),
        settings=_filters(),
        aliases=("standardise > SF",),
        **_SF,
    ),
    AdapterRecord(
        name="psf-unlabeled",
        title="periodic sparse filtering without labels",
        before=("scale", FILTERED_FEATURES),
        settings=_filters(label_reward=0.0, n_restarts=1),
        automatic=("rbf",),
        automatic_numbers=("kernel-ridge",),
        **_PSF,
    ),
    AdapterRecord(
        name="standardize-psf",
        title="periodic sparse filtering of standardized source and target, without labels",
        before=("standardize", FILTERED_FEATURES),
        settings=_filters(label_reward=0.0, n_restarts=1),
        aliases=("standardise > PSF",),
        **_PSF,
    ),
    AdapterRecord(
        name="psf",
        title="periodic sparse filtering",
        before=(FILTERED_FEATURES,),
        settings=_filters_by_class,
        max_features=FILTERED_FEATURES,
        reads_labels=True,
        needs_classes="its filters are grouped by class; psf-unlabeled has none",
        runs_on_device=True,  # on so few features that it has no step before it
        aliases=("PSF by class",),
        **_PSF,
    ),
    AdapterRecord(
        name="segment-sf",
        path="covshift.adapters.segment_sparse_filtering:SegmentSparseFiltering",
        title="sparse filtering of short segments of a signal, averaged over each window",
        assumption="The label depends on which short waveforms a window of a signal holds, not on "
        "where they stand in it.",
        fixes="Windows that start at any moment of the same vibration.",
        harms="The order of events in a window matters, or domains ring with other waveforms.",
        uses_domains=False,
        streams=True,
        before=(),  # columns are moments of a window: scaling each would bend the waveforms
        settings={"n_components": SEGMENT_FILTERS, "random_state": 0},
        n_outputs=SEGMENT_FILTERS,
    ),
)


def records() -> tuple[AdapterRecord, ...]:
    """Return every record: those of this package, then those of others."""
    return (*BUILT_IN, *plugin_records())


def names() -> list[str]:
    """Return the names of all adapters, in the order of the registry."""
    return [record.name for record in records()]


def find_record(name: str) -> AdapterRecord:
    """Return the record of an adapter by its name, or by one of its older names.

    Parameters
    ----------
    name : str
        Upper and lower case are the same.

    Returns
    -------
    AdapterRecord

    Raises
    ------
    ValueError
        If the name is unknown. The message lists the names.
    """
    wanted = name.strip().lower()
    for group in (lambda: BUILT_IN, plugin_records):  # a built-in name loads no plug-in
        for record in group():
            if wanted in (record.name, *(alias.lower() for alias in record.aliases)):
                return record
    raise ValueError(f"Unknown adapter {name.strip()!r}. Choose from: {', '.join(names())}.")


@cache
def plugin_records() -> tuple[AdapterRecord, ...]:
    """Return the records that other packages register, each loaded once per process.

    An entry point of the group ``covshift.adapters`` names an `AdapterRecord`, or a list of them.
    In the ``pyproject.toml`` of a package:

    .. code-block:: toml

        [project.entry-points."covshift.adapters"]
        mine = "my_package.records:RECORD"

    A plug-in that fails to load, or whose record is not valid, is reported with a `PluginWarning`
    and left out. Its class is imported when it is first used.
    """
    return tuple(_load_plugins(BUILT_IN))


# --- Adapters of other packages: found by their entry points, checked, reported where they fail ---


GROUP = "covshift.adapters"
# Other people's code may raise anything, and call sys.exit: the other plug-ins are still used.
_ANY_ERROR = (Exception, SystemExit)
_OWNERS: dict[str, str] = {}  # name of a plug-in's record -> its package


class PluginWarning(UserWarning):
    """An adapter of another package cannot be used."""


def _load_plugins(built_in: Sequence[AdapterRecord]) -> list[AdapterRecord]:
    """Return the records of all entry points of the group; those that fail are reported."""
    from importlib.metadata import entry_points  # costs 10 ms, which reading records need not

    found: list[AdapterRecord] = []
    for point in entry_points(group=GROUP):
        owner = "" if point.dist is None else point.dist.name
        try:
            loaded = point.load()
        except _ANY_ERROR as error:
            _warn_about(f"plug-in {point.name!r}", owner, error, stacklevel=4)
            continue
        for record in loaded if isinstance(loaded, list | tuple) else [loaded]:
            try:
                _check_plugin(record, [*built_in, *found])
            except _ANY_ERROR as error:
                _warn_about(f"plug-in {point.name!r}", owner, error, stacklevel=4)
            else:
                found.append(record)
                _OWNERS[record.name] = owner
    return found


def try_plugin(record: AdapterRecord, make: Callable[[], Any]) -> Any:
    """Return what ``make`` makes of a record; None, with a warning, if a plug-in's code fails.

    For lists of adapters, which continue with the others. Errors of records of this package are
    raised.
    """
    if record.name not in _OWNERS:
        return make()
    try:
        return make()
    except _ANY_ERROR as error:
        _warn_about(f"plug-in adapter {record.name!r}", _OWNERS[record.name], error, stacklevel=4)
        return None


def _warn_about(what: str, owner: str, error: BaseException, stacklevel: int) -> None:
    reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
    of, advice = (
        (f" of the package {owner}", f" Update or uninstall {owner}.") if owner else ("", "")
    )
    warnings.warn(
        f"Ignored the adapter {what}{of}: {reason}.{advice}",
        PluginWarning,
        stacklevel=stacklevel + 1,
    )


def _check_plugin(record: Any, known: list[AdapterRecord]) -> None:
    """Raise an error for a record that would fail later, without importing its class."""
    if not isinstance(record, AdapterRecord):
        raise TypeError(f"expected an AdapterRecord, got {type(record).__name__}")
    for name, fits, wanted in _FIELDS:
        value = getattr(record, name)
        if not fits(value):
            raise TypeError(f"{name} must be {wanted}, got {value!r}")
    taken = {name.lower() for one in known for name in (one.name, *one.aliases)} | {AUTO, RAW}
    for name in (record.name, *record.aliases):
        if name.strip().lower() in taken:
            raise ValueError(f"the adapter name {name!r} is already in use")
        if "+" in name:  # "adapter + model" is a candidate
            raise ValueError(f"the adapter name {name!r} must not have a '+'")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda values: isinstance(values, tuple | list) and all(map(fits, values))


# Of a plug-in's record: field, what it must meet, and that in words.
_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "name",
        _matches(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"),
        "lower-case letters, digits and hyphens",
    ),
    (
        "path",
        _matches(r"\w+(\.\w+)*:\w+"),
        "'package.module:Class'",
    ),
    *(
        (name, _is_text, "a text")
        for name in ("title", "assumption", "fixes", "harms")
    ),
    ("kind", lambda one: one in tuple(METHODS), "'transformer' or 'weights'"),
    *(
        (name, lambda one: isinstance(one, bool), "True or False")
        for name in (
            "reads_labels", "needs_target", "uses_domains", "learns_targets", "streams",
            "runs_on_device", "exports_to_onnx",
        )
    ),
    (
        "before",
        _all(lambda one: one in ("scale", "standardize") or _is_count(one)),
        "a tuple of 'scale', 'standardize' or a number of components",
    ),
    (
        "settings",
        lambda one: callable(one) or isinstance(one, Mapping),
        "a mapping, or a function of the size that returns one",
    ),
    (
        "automatic",
        _all(lambda one: one in MODEL_NAMES),
        f"a tuple of {', '.join(MODEL_NAMES)}",
    ),
    (
        "automatic_numbers",
        _all(lambda one: one in NUMBER_MODEL_NAMES),
        f"a tuple of {', '.join(NUMBER_MODEL_NAMES)}",
    ),
    ("needs_classes", lambda one: isinstance(one, str), "a text"),
    *(
        (name, lambda one: one is None or _is_count(one), "a whole number of at least 1, or None")
        for name in ("max_features", "n_outputs")
    ),
    ("min_domains", _is_count, "a whole number of at least 1"),
    ("aliases", _all(_is_text), "a tuple of texts"),
)  # fmt: skip
