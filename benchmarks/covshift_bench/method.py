"""Methods: a method is a function of a task without target labels.

A method gets a `tasks.DrawnTask` whose ``y_test`` and ``y_target`` are None, and a seed. It returns
labels of the test rows, a `Prediction`, or several of these by name, if they share most of the
work.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Prediction(NamedTuple):
    """Answers of a method about the test rows.

    ``probabilities`` have a column for each class of the source, in sorted order. ``extras`` are
    plain data to keep with the result; ``arrays`` are kept in a file beside it.
    """

    labels: np.ndarray
    probabilities: np.ndarray | None = None
    extras: dict | None = None
    arrays: dict | None = None


class Method(NamedTuple):
    """A name, a version and ``predict(task, seed)``, which workers must be able to import.

    Raise ``version`` when you change what a method does: its tasks are then run again.
    ``asks_labels``: it is given ``y_target``, to answer for the rows that it asks about.
    ``random``: its predictions depend on the seed, so it is run with several. ``by_default``: it
    runs where no methods are named.
    """

    name: str
    version: str
    predict: Callable
    asks_labels: bool = False
    random: bool = False
    by_default: bool = True


def stacked(task):
    """Rows, labels and domains of source and target; labels of target rows are never read."""
    X = np.concatenate([task.X_source, task.X_target])
    y = np.concatenate([task.y_source, np.resize(task.y_source, len(task.X_target))])
    return X, y, np.concatenate([task.source_domain, task.target_domain])


def predict_all(model, X):
    """Return the labels and, where the model has them, the probabilities of rows."""
    known = hasattr(model, "predict_proba")
    return Prediction(model.predict(X), model.predict_proba(X) if known else None)
