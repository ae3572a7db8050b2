"""Methods of the package ADAPT that train no network, with their defaults, around a logistic model.

ADAPT imports TensorFlow, which none of these methods calls: it takes seconds a process and its
own versions of NumPy. `without_networks` puts empty classes in its place, in the process of the
method alone. KMM needs cvxopt.

    pip install --no-deps adapt && pip install cvxopt
"""

import importlib.abc
import importlib.machinery
import sys
import types
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from covshift_bench.method import Method, Prediction

NETWORKS = ("tensorflow", "scikeras")
# Classes of ADAPT, the module of each, and whether it draws at random. Kernels get the same width
# as those of SKADA: one over the number of features.
CLASSES = {
    "CORAL": ("feature_based", False),
    "SA": ("feature_based", False),
    "TCA": ("feature_based", False),
    "KLIEP": ("instance_based", True),
    "KMM": ("instance_based", False),
    "NearestNeighborsWeighting": ("instance_based", False),
    "RULSIF": ("instance_based", True),
    "ULSIF": ("instance_based", True),
}
WITH_KERNEL = ("KLIEP", "KMM", "RULSIF", "ULSIF")
ON_COMPONENTS = ("SA", "TCA")


class _Anything:
    """Stands for every class and function of the packages that are left out."""

    def __init__(self, *args, **kwargs):
        pass


class _Empty(types.ModuleType):
    """A module that has a class of its own for every name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].islower():
            value = _Empty(f"{self.__name__}.{name}")
            value.__class__ = type(name, (_Empty,), {"__call__": lambda self, *a, **k: _Anything()})
        else:
            value = type(name, (_Anything,), {})
        setattr(self, name, value)
        return value


class _EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds empty modules under the names of the packages that are left out."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        """Answer for these packages and all that is in them."""
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        """Return an empty module."""
        return _Empty(spec.name)

    def exec_module(self, module):
        """Leave it empty."""


def without_networks():
    """Let ADAPT be imported without TensorFlow, and without cvxopt where that is missing."""
    names = NETWORKS if find_spec("cvxopt") else (*NETWORKS, "cvxopt")
    sys.meta_path.insert(0, _EmptyModules(names))


def adapt_method(task, seed, name):
    """Fit one method of ADAPT on the standardized rows."""
    without_networks()
    module, random = CLASSES[name]
    settings = {"random_state": seed if random else 0}
    n_features = task.X_source.shape[1]
    if name in WITH_KERNEL:
        settings["gamma"] = 1 / n_features
    if name in ON_COMPONENTS:
        settings["n_components"] = max(1, min(20, n_features // 2))
    scaler = StandardScaler().fit(task.X_source)
    source, target, test = map(scaler.transform, (task.X_source, task.X_target, task.X_test))
    make = getattr(import_module(f"adapt.{module}"), name)
    model = make(LogisticRegression(max_iter=1000), Xt=target, verbose=0, **settings)
    model.fit(source, task.y_source)
    # Features are transformed by where rows come from; weights need no such word.
    where = {"domain": "tgt"} if module == "feature_based" else {}
    labels = model.predict(test, **where).ravel()
    if module == "feature_based":
        test = model.transform(test, domain="tgt")
    return Prediction(labels, model.estimator_.predict_proba(test))


def _methods():
    for name, (_, random) in CLASSES.items():
        if name == "KMM" and find_spec("cvxopt") is None:
            continue
        yield Method(
            f"ADAPT {name} + logistic", "1", partial(adapt_method, name=name), random=random
        )


METHODS = list(_methods()) if find_spec("adapt") else []
