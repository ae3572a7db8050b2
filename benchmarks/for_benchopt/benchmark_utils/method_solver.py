"""A method of covshift_bench as a solver of benchopt."""

from benchopt import BaseSolver
from covshift_bench.methods import all_methods


class MethodSolver(BaseSolver):
    """Subclasses name the methods as values of the parameter ``method``."""

    requirements = ["pip::covshift-bench"]
    sampling_strategy = "run_once"

    def set_objective(self, task):
        """Keep the task."""
        self.task = task
        self.predict = all_methods()[self.method].predict

    def run(self, _):
        """Fit and predict."""
        self.prediction = self.predict(self.task, self.random_state)

    def get_result(self):
        """Return labels and probabilities."""
        return {"labels": self.prediction.labels, "probabilities": self.prediction.probabilities}
