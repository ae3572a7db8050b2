"""Adapters of other packages: found by their entry points, checked, reported where they fail."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from covshift.adapter_record import (
    AUTO,
    METHODS,
    MODEL_NAMES,
    NUMBER_MODEL_NAMES,
    RAW,
    AdapterRecord,
)

GROUP = "covshift.adapters"
# Other people's code may raise anything, and call sys.exit: the other plug-ins are still used.
_ANY_ERROR = (Exception, SystemExit)
_OWNERS: dict[str, str] = {}  # name of a plug-in's record -> its package


class PluginWarning(UserWarning):
    """An adapter of another package cannot be used."""


def load_plugins(built_in: Sequence[AdapterRecord]) -> list[AdapterRecord]:
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
                check_plugin(record, [*built_in, *found])
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


def check_plugin(record: Any, known: list[AdapterRecord]) -> None:
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
