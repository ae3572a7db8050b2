"""``covshift compare``: every adapter on every pair of domains of some collections."""

from typing import Annotated

import typer
from rich.console import Console

from covshift.cli.options import Draws, FirstSeed, Fresh, Jobs, Out, parse_paths
from covshift.cli.terminal import fail

COMMAND = "compare"
# The keys of `covshift.studies.comparison.collections.LOADERS`, whose import needs NumPy.
COLLECTIONS = (
    "reviews", "office-caltech", "vowels", "emodb", "ravdess", "des", "vam", "enterface",
)  # fmt: skip


def compare(
    data: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=PATH",
            help=f"A collection: {', '.join(COLLECTIONS)} and its folder, or any name and a file "
            ".npz with the arrays X, y and domain (and group, for rows that belong together).",
        ),
    ],
    out: Out,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=PATH]...", help="More collections.")
    ] = None,
    trials: Draws = 3,
    seed: FirstSeed = 0,
    jobs: Jobs = 1,
    fresh: Fresh = False,
) -> None:
    """Try every adapter on every pair of domains, and report where it helps and where it harms.

    Target labels are read only to score. Each finished trial is saved in the folder; after a
    stop, run the same command again to resume.
    """
    # Imported here: --help stays fast.
    from covshift.cli.study import check_draws, check_output, run_study
    from covshift.studies.comparison.study import comparison_study

    check_draws(COMMAND, trials, seed)
    check_output(COMMAND, out, jobs)
    form = "NAME=PATH, e.g. vowels=data/vowels"
    paths = parse_paths(COMMAND, "data", form, [*data, *(more or [])])
    try:
        study = comparison_study({name: str(paths[name]) for name in paths}, trials, seed)
    except (ImportError, OSError, ValueError) as error:  # speech needs an extra
        fail(COMMAND, str(error))
    run_study(COMMAND, Console(highlight=False), study, out=out, jobs=jobs, fresh=fresh)
