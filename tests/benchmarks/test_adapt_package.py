"""ADAPT without TensorFlow: empty classes in the place of what none of its methods here calls."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from covshift_bench.methods.adapt_package import CLASSES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
USES = """
from covshift_bench.methods.adapt_package import without_networks
without_networks()
import tensorflow as tf
from tensorflow.keras import Model, Sequential
from scikeras.wrappers import KerasClassifier
class Own(Model, tf.keras.callbacks.Callback):
    pass
tf.random.set_seed(0)
assert not isinstance(1, (Model, Sequential, KerasClassifier))
assert Model is tf.keras.Model
import numpy, covshift
"""
PREDICTS = """
import sys
import numpy as np
from covshift_bench.methods.adapt_package import adapt_method
from covshift_bench.tasks import draw_task, made_up_tasks
task = draw_task(made_up_tasks(1)[0]).without_target_labels()
prediction = adapt_method(task, 0, sys.argv[1])
assert np.isin(prediction.labels, task.y_source).all()
np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1)
"""


def test_classes_and_calls_of_the_packages_left_out_do_nothing():
    run = subprocess.run([sys.executable, "-c", USES], cwd=BENCHMARKS, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()


@pytest.mark.skipif(find_spec("adapt") is None, reason="ADAPT is not installed")
@pytest.mark.parametrize("name", [name for name in CLASSES if name not in ("KMM", "TCA")])
def test_its_methods_predict_classes_of_the_source(name):
    run = subprocess.run(
        [sys.executable, "-c", PREDICTS, name], cwd=BENCHMARKS, capture_output=True
    )
    assert run.returncode == 0, run.stderr.decode()
