"""``covshift reproduce reviews``: the supplement's study of reviews, on the user's copy."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from covshift.cli.errors import fail
from covshift.cli.options import FirstSeed, Fresh, Jobs, Out
from covshift.cli.study import check_draws, check_output, run_study
from covshift.experiments.reviews.paper import PLANS
from covshift.experiments.reviews.study import reviews_study

COMMAND = "reproduce"


def reviews(
    out: Out,
    data: Annotated[Path, typer.Option(help="Folder of the reviews (Blitzer et al. 2007).")],
    plan: Annotated[
        str, typer.Option(help="default: a part of the grids, three draws; full: all, ten draws.")
    ] = "default",
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    fresh: Fresh = False,
) -> None:
    """Reviews of dvds to those of other products; then all pairs, and more words."""
    if plan not in PLANS:
        fail(COMMAND, f"--plan must be one of {', '.join(PLANS)}, got {plan!r}.")
    check_draws(COMMAND, PLANS[plan].n_draws, seed)
    check_output(COMMAND, out, jobs)
    try:
        study = reviews_study(str(data), PLANS[plan], seed)
    except (OSError, ValueError) as error:
        fail(COMMAND, str(error))
    run_study(COMMAND, Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)
