"""Options that several commands share."""

import csv
from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Folder to write to, made if missing.")]
Draws = Annotated[int, typer.Option(help="Draws of each data set, at least 1.")]
FirstSeed = Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1: all processors.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Drop the results that the folder holds.")]

# Of the commands on users' files.
OutFile = Annotated[Path, typer.Option("--out", help="File to write; appears when it is whole.")]
Domain = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column that names each row's site, user or sensor."),
]
# Of the commands on models.
ModelDomain = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that names each row's site, user or sensor; by default TRAIN's, if there.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What to maximize: accuracy (default), or balanced_accuracy, which counts all classes "
        "equally.",
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TYPE",
        help="Type of an adapter plug-in to build from the model file; runs its code. Repeatable.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLS", help="Columns to leave out, commas between, or repeated."),
]
Use = Annotated[
    list[str] | None,
    typer.Option(metavar="COLS", help="Columns to use though they look like identifiers."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Character between cells of a text file, or tab; else it is found out.",
        # Shells make it hard to write the character itself.
        callback=lambda given: "\t" if given in ("tab", "\\t") else given,
    ),
]
Decimal = Annotated[str | None, typer.Option(help='Decimal sign, "." or ","; else found out.')]
MaxRows = Annotated[
    int | None,
    typer.Option(help="Rows of each table to use, drawn at random; else up to 20 million cells."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
Seed = Annotated[int, typer.Option(help="Seed of everything that is drawn.")]


def column_names(texts: list[str] | None) -> list[str]:
    """Take lists of columns apart: commas between names, a name with a comma in quotes."""
    names = [name for text in texts or [] for name in next(csv.reader([text]), [])]
    return [name.strip() for name in names if name.strip()]
