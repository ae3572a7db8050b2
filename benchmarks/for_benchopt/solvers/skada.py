"""SKADA's adapters with their defaults."""

from benchmark_utils.method_solver import MethodSolver


class Solver(MethodSolver):
    """A method by its name."""

    name = "SKADA"
    parameters = {
        "method": ["SKADA CORAL + logistic", "SKADA LinearOTMapping + logistic"],
        "random_state": [0],
    }
    requirements = [*MethodSolver.requirements, "pip::skada"]
