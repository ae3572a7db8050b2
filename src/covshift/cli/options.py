"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option(help="Folder to write to, made if missing.")]
Draws = Annotated[int, typer.Option(help="Draws of each data set, at least 1.")]
FirstSeed = Annotated[int, typer.Option(help="Seed of the first draw; the next is one more.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1: all processors.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Drop the results that the folder holds.")]
