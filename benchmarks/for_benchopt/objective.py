"""Adaptation without target labels: accuracy on the target's test rows."""

import numpy as np
from benchopt import BaseObjective
from covshift_bench.summary import log_loss, score
from covshift_bench.tasks import DrawnTask


class Objective(BaseObjective):
    """Data that a solver may see, and how its labels are judged."""

    name = "Adaptation without target labels"
    min_benchopt_version = "1.6"
    requirements = ["pip::covshift-bench"]
    sampling_strategy = "run_once"

    def set_data(self, drawn):
        """Keep the rows of a task."""
        self.drawn = drawn

    def get_objective(self):
        """Return the task without the target's labels."""
        return {"task": self.drawn.without_target_labels()}

    def evaluate_result(self, labels, probabilities=None):
        """Return the scores of the predicted labels; ``value`` is the error."""
        classes = np.unique(self.drawn.y_source)
        truth = np.searchsorted(classes, self.drawn.y_test)
        predicted = np.searchsorted(classes, labels)
        accuracy = score(truth, predicted, "accuracy")
        known = probabilities is not None
        return {
            "value": 1 - accuracy,
            "accuracy": accuracy,
            "balanced_accuracy": score(truth, predicted, "balanced accuracy"),
            "log_loss": log_loss(truth, np.asarray(probabilities)) if known else float("nan"),
        }

    def get_one_result(self):
        """Return some labels, for tests of the benchmark itself."""
        drawn = self.drawn
        assert isinstance(drawn, DrawnTask)
        return {"labels": np.full(len(drawn.X_test), drawn.y_source[0]), "probabilities": None}
