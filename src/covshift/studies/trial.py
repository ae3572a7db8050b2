"""Trials: one measurement each, as plain data with a key, and its outcome."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

STORED_SEEDS = 2**63 - 1  # largest integer of SQLite


@dataclass(frozen=True, init=False, repr=False)
class Trial:
    """One measurement: what is measured, how, and the seed it starts from.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    settings : mapping of str to plain data
        Whatever else fixes the result: data set, system, reading, ... Plain data are str, int,
        float (finite), bool, None, and lists and mappings of these. Tuples become lists.
    seed : int
        Seed of every random draw, at least 0.

    Attributes
    ----------
    settings_json : str
        The settings as canonical JSON: keys sorted, no white space, floats exact.

    Examples
    --------
    >>> from covshift.studies.trial import Trial
    >>> trial = Trial("synthetic", {"system": "SF", "data_set": "radial"}, seed=3)
    >>> trial
    Trial('synthetic', {"data_set":"radial","system":"SF"}, seed=3)
    >>> trial.settings["system"], trial.key[:8]
    ('SF', 'a4a7e4ac')
    """

    experiment: str
    settings_json: str
    seed: int

    def __init__(self, experiment: str, settings: Mapping[str, Any], seed: int) -> None:
        # Not printable: control characters, and halves of characters, which no file can hold.
        if not isinstance(experiment, str) or not experiment or not experiment.isprintable():
            raise ValueError(f"experiment must be a printable name, got {experiment!r}.")
        if not isinstance(settings, Mapping):
            raise TypeError(f"settings must be a mapping, got {_type_name(settings)}.")
        try:
            number = index(seed)
        except TypeError:
            number = -1
        if isinstance(seed, bool) or not 0 <= number <= STORED_SEEDS:
            raise ValueError(f"seed must be an integer from 0 to {STORED_SEEDS}, got {seed!r}.")
        # Settings are kept as text: neither the caller nor a function that is given the trial
        # can change them afterward, and equal texts are equal keys.
        object.__setattr__(self, "experiment", str(experiment))
        object.__setattr__(self, "settings_json", to_json(settings, "settings", finite=True))
        object.__setattr__(self, "seed", number)

    @property
    def settings(self) -> dict[str, Any]:
        """A new copy of the settings, keys sorted."""
        copy: dict[str, Any] = json.loads(self.settings_json)
        return copy

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON of experiment, settings and seed."""
        name = json.dumps(self.experiment)
        text = f'{{"experiment":{name},"seed":{self.seed},"settings":{self.settings_json}}}'
        return hashlib.sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Trial({self.experiment!r}, {self.settings_json}, seed={self.seed})"


TaskFunction: TypeAlias = Callable[[list[Trial]], list[dict[str, Any]]]


@dataclass(frozen=True)
class TaskOutcome:
    """Outcome of one task. Text only: it can always be sent between processes, and stored.

    Attributes
    ----------
    number : int
        Of the task, in the declaration.
    results : list of str, or None
        The result of each trial as JSON; None if the task failed.
    error, traceback : str, or None
        Type and message of the exception, and where it came from.
    warnings : list of (str, str, int)
        Category and message of each warning, and how often it came.
    seconds : float
        Seconds that the task took.
    """

    number: int
    results: list[str] | None
    error: str | None
    traceback: str | None
    warnings: list[tuple[str, str, int]]
    seconds: float


def to_json(value: Any, name: str, *, finite: bool) -> str:
    """Write plain data of a trial as canonical JSON, or say which part of it is not plain.

    Parameters
    ----------
    value : object
        Plain data: str, int, float, bool, None, and lists, tuples and mappings of these.
    name : str
        Name of the value in errors.
    finite : bool
        Whether NaN and infinities are an error. If not, they are written as Python writes
        and reads them, which is not strictly JSON.

    Returns
    -------
    str
        ASCII, keys sorted, no white space; floats as the shortest text that reads back exactly.
    """
    try:
        plain = _plain(value, name, finite)
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply, or holds itself.") from None
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _plain(value: Any, where: str, finite: bool) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):  # json would silently make 1 and "1" the same key
                raise TypeError(f"{where} has the key {key!r}: keys must be strings.")
        return {str(key): _plain(part, f"{where}[{key!r}]", finite) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, f"{where}[{i}]", finite) for i, part in enumerate(value)]
    if isinstance(value, float):
        if finite and not math.isfinite(value):
            raise ValueError(
                f"{where} is {value}: it must be finite; use None for a missing value."
            )
        return float(value)
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(
        f"{where} is a {_type_name(value)}, which JSON cannot hold: convert it to str, int, float, "
        "bool, None, list or dict (of NumPy: .item() or .tolist())."
    )


def _type_name(value: Any) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__
