import dataclasses
import hashlib
import json
import os
import pickle
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pytest

from covshift.studies.trial import Trial, to_json

SETTINGS = {"system": "é", "C": 0.1 + 0.2, "grid": [1, 2.0, None, True], "more": {"b": 1, "a": 2}}


def key_twin(experiment, settings, seed):
    data = {"seed": seed, "settings": settings, "experiment": experiment}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_key_is_the_hash_of_canonical_json():
    trial = Trial('stu"dy é', SETTINGS, 7)
    assert trial.key == key_twin('stu"dy é', SETTINGS, 7)
    assert trial.settings == SETTINGS


def test_key_does_not_depend_on_the_order_or_kind_of_mapping():
    backwards = {key: SETTINGS[key] for key in reversed(SETTINGS)}
    backwards["more"] = MappingProxyType({"a": 2, "b": 1})
    backwards["grid"] = tuple(backwards["grid"])
    trial, other = Trial("e", SETTINGS, 7), Trial("e", MappingProxyType(backwards), np.int64(7))
    assert trial.key == other.key
    assert trial == other
    assert hash(trial) == hash(other)
    assert type(other.seed) is int


@pytest.mark.parametrize(
    "other",
    [
        Trial("f", {"C": 1, "D": 2}, 7),
        Trial("e", {"C": 1, "D": 2}, 8),
        Trial("e", {"C": 1, "D": 3}, 7),
        Trial("e", {"C": 1, "E": 2}, 7),
        Trial("e", {"C": 1}, 7),
        Trial("e", {"C": 1.0, "D": 2}, 7),
        Trial("e", {"C": True, "D": 2}, 7),
        Trial("e", {"C": "1", "D": 2}, 7),
        Trial("e", {"C": np.nextafter(1.0, 2.0), "D": 2}, 7),
    ],
    ids=repr,
)
def test_key_differs_for_every_field(other):
    trial = Trial("e", {"C": 1, "D": 2}, 7)
    assert trial.key != other.key
    assert trial != other


def test_key_is_the_same_in_another_process():
    program = (
        "from covshift.studies.study import Trial\n"
        f"print(Trial('e', {SETTINGS!r}, 3).key, hash('e'))"
    )
    keys, hashes = zip(
        *(
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for seed in ("1", "2")
        ),
        strict=True,
    )
    assert set(keys) == {Trial("e", SETTINGS, 3).key}
    assert len(set(hashes)) == 2  # Python's own hash would not do


def test_a_trial_cannot_be_changed():
    settings = {"grid": [1]}
    trial = Trial("e", settings, 0)
    settings["grid"].append(2)
    trial.settings["grid"].append(3)
    assert trial.settings == {"grid": [1]}
    with pytest.raises(dataclasses.FrozenInstanceError):
        trial.seed = 1
    copy = pickle.loads(pickle.dumps(trial))
    assert copy == trial
    assert copy.key == trial.key


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.int64(3), r"settings\['a'\]\[1\] is a numpy.int64, which JSON cannot hold.*item"),
        (np.zeros(2), r"settings\['a'\]\[1\] is a numpy.ndarray"),
        ({1, 2}, r"settings\['a'\]\[1\] is a set,"),
        (b"b", "bytes"),
        ({1: 2}, r"settings\['a'\]\[1\] has the key 1: keys must be strings"),
    ],
)
def test_what_json_cannot_hold(value, message):
    with pytest.raises(TypeError, match=message):
        Trial("e", {"a": [0, value]}, 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf])
def test_settings_are_finite(value):
    with pytest.raises(ValueError, match=r"settings\['a'\] is -?(nan|inf): it must be finite"):
        Trial("e", {"a": value}, 0)


def test_settings_that_hold_themselves():
    settings = {}
    settings["a"] = settings
    with pytest.raises(ValueError, match="nested too deeply, or holds itself"):
        Trial("e", settings, 0)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, "1", None, True])
def test_bad_seed(seed):
    with pytest.raises(ValueError, match="seed must be an integer from 0"):
        Trial("e", {}, seed)


@pytest.mark.parametrize("experiment", ["", None, 3, "a\nb", "\udce9"])
def test_bad_name(experiment):
    with pytest.raises(ValueError, match="experiment must be a printable name"):
        Trial(experiment, {}, 0)


def test_bad_settings():
    with pytest.raises(TypeError, match="settings must be a mapping, got list"):
        Trial("e", [("a", 1)], 0)


def test_floats_read_back_exactly():
    values = [0.1 + 0.2, 5e-324, -0.0, 1.7976931348623157e308, np.float64(1 / 3)]
    assert json.loads(to_json(values, "values", finite=True)) == values
    assert to_json([float("nan"), float("inf")], "values", finite=False) == "[NaN,Infinity]"
