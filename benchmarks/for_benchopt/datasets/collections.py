"""Real collections: a folder of files, named by the environment variable COVSHIFT_DATA."""

import os

from benchopt import BaseDataset
from covshift_bench.command import LISTS
from covshift_bench.tasks import draw_task, read_tasks


class Dataset(BaseDataset):
    """One task of a list: "design", "fresh" or "held-out"."""

    name = "Collections"
    parameters = {"tasks": ["fresh"], "number": [0]}
    requirements = ["pip::covshift-bench"]

    def skip(self, **parameters):
        """Skip where no data are named."""
        missing = not os.environ.get("COVSHIFT_DATA")
        return missing, "Set COVSHIFT_DATA to the folder with the collections."

    def get_data(self):
        """Read the collection and draw the task."""
        task = read_tasks(LISTS[self.tasks])[self.number]
        return {"drawn": draw_task(task, os.environ["COVSHIFT_DATA"])}
