"""Made-up families of shifts, which need no files."""

from benchopt import BaseDataset
from covshift_bench.tasks import draw_task, made_up_tasks


class Dataset(BaseDataset):
    """One family and seed."""

    name = "Made up"
    parameters = {"family": ["no_shift", "shift_and_scale"], "seed": [0]}
    requirements = ["pip::covshift-bench"]

    def get_data(self):
        """Draw the task."""
        tasks = made_up_tasks(self.seed + 1)
        wanted = f"made up: {self.family}, seed {self.seed}"
        return {"drawn": draw_task(next(task for task in tasks if task.name == wanted))}
