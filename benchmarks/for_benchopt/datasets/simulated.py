"""The simulated part of SKADA-Bench, by its protocol."""

from benchopt import BaseDataset
from covshift_bench.published import draw_task, published_tasks


class Dataset(BaseDataset):
    """One kind of shift, seed and split."""

    name = "Simulated"
    parameters = {
        "kind": ["covariate", "target", "concept", "subspace"],
        "seed": [0],
        "split": [0],
    }
    requirements = ["pip::covshift-bench", "pip::skada"]

    def get_data(self):
        """Draw the task."""
        for task in published_tasks("simulated"):
            if (task.cut, task.sources[0], task.target) == (self.kind, self.seed, self.split):
                return {"drawn": draw_task(task)}
        raise ValueError(f"no task of kind {self.kind}, seed {self.seed}, split {self.split}")
