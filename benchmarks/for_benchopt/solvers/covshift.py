"""The automatic choice of covshift, models without adaptation, and single adapters."""

from benchmark_utils.method_solver import MethodSolver


class Solver(MethodSolver):
    """A method by its name."""

    name = "covshift"
    parameters = {
        "method": [
            "plain logistic",
            "plain SVC",
            "coral + logistic",
            "ulsif + logistic",
            "estimator, accuracy",
        ],
        "random_state": [0],
    }
