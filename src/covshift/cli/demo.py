"""``covshift demo``: the synthetic study in its quick form."""

from pathlib import Path

from rich.console import Console

from covshift.cli.options import Draws, FirstSeed, Fresh, Jobs, Out
from covshift.cli.study import check_draws, run_study
from covshift.experiments.synthetic.study import synthetic_study


def demo(
    out: Out = Path("demo-output"),
    trials: Draws = 3,
    seed: FirstSeed = 0,
    jobs: Jobs = -1,
    fresh: Fresh = False,
) -> None:
    """Adapt to the shifts of the paper's four data sets, and show where that helps.

    The quick form of `covshift reproduce synthetic`, and like it goes on where it was stopped.
    """
    check_draws("demo", trials, seed)
    study = synthetic_study(trials, seed)
    run_study("demo", Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)
