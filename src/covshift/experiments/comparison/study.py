"""The comparison as a study to be run."""

from collections.abc import Mapping
from functools import partial

from covshift.experiments.comparison.collections import load_collection
from covshift.experiments.comparison.document import comparison_document, comparison_table
from covshift.experiments.comparison.trials import declare, run_comparison
from covshift.experiments.study import Study


def comparison_study(paths: Mapping[str, str], n_trials: int, seed: int) -> Study:
    """Every adapter on every pair of domains of the collections that lie at ``paths``."""
    collections = [load_collection(name, path) for name, path in paths.items()]
    return Study(
        name="adapters",
        tasks=declare(collections, n_trials, seed),
        # Where data lie is no part of what was measured: moved folders resume all the same.
        function=partial(run_comparison, paths=dict(paths)),
        run_settings={"trials": n_trials, "seed": seed, "data": dict(paths)},
        document=comparison_document,
        table=comparison_table,
    )
