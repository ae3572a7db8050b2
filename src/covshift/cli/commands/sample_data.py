"""``covshift sample-data``: three small tables to try the commands on."""

import csv
import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covshift.cli.options import Debug
from covshift.cli.terminal import fail, one_line_errors

if TYPE_CHECKING:
    import numpy as np

COMMAND = "sample-data"
COLUMNS = ("machine", "plant", "heat", "shake", "load", "fault")
# How far the sensors of a plant are off: tens of degrees of heat, units of shake.
OLD_PLANTS = {
    "Aachen": (0, 0), "Brno": (2, -1), "Cork": (-2, 1), "Delft": (1, 2), "Essen": (-1, -2),
    "Fulda": (3, 0),
}  # fmt: skip
N_OLD, N_NEW, N_CHECKED = 100, 300, 60


def sample_data(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the files.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    debug: Debug = False,
) -> None:
    """Write small made-up tables to try the commands on: train.csv, new.csv, checked.csv."""
    # Imported here: --help stays fast.
    from covshift.output_files import write_whole

    with one_line_errors(COMMAND, debug):
        tables = _make_sample_tables()
        taken = [name for name in tables if (out / name).exists()]
        if taken and not force:
            fail(
                COMMAND,
                f"{out / taken[0]} exists. Choose another folder with --out, or use --force.",
            )
        out.mkdir(parents=True, exist_ok=True)
        for name, rows in tables.items():
            text = _to_csv(rows).encode()
            write_whole(out / name, lambda file, text=text: file.write(text))  # type: ignore[misc]
        typer.echo(
            f"{out / 'train.csv'}: {N_OLD * len(OLD_PLANTS)} machines of six plants, with sensor "
            "readings and whether each had a fault."
        )
        typer.echo(f"{out / 'new.csv'}: {N_NEW} machines of a seventh plant, without labels.")
        typer.echo(f"{out / 'checked.csv'}: {N_CHECKED} of these, with labels, to score a model.")
        files = shlex.join(str(out / name) for name in ("train.csv", "new.csv"))
        typer.echo(f"Next:\n  covshift diagnose {files} --label fault --domain plant")


def _make_sample_tables() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each file. Every plant has calibrated its sensors in its own way."""
    import numpy as np

    rng = np.random.default_rng(0)
    train: list[dict[str, Any]] = []
    for name, offset in OLD_PLANTS.items():
        train += _machines(rng, name, N_OLD, offset, rng.uniform(0.7, 1.4))
    new = list(_machines(rng, "Ghent", N_NEW, (-3, -1), 1.5))
    checked = [new[i] for i in rng.choice(N_NEW, N_CHECKED, replace=False)]
    unlabeled = [{name: row[name] for name in COLUMNS if name != "fault"} for row in new]
    return {"train.csv": train, "new.csv": unlabeled, "checked.csv": checked}


def _machines(
    rng: "np.random.Generator", plant: str, n: int, offset: tuple[int, int], unit: float
) -> Iterator[dict[str, Any]]:
    """Yield the machines of a plant: a fault depends on heat and shake relative to the plant."""
    heat, shake, load = rng.normal(size=(3, n))
    faulty = heat + shake - 0.5 * load + rng.normal(0, 0.4, n) > 0.3
    for i in range(n):
        yield {
            "machine": f"{plant}-{i:04d}",
            "plant": plant,
            "heat": round(float(60 + 10 * offset[0] + 8 * unit * heat[i]), 1),
            "shake": round(float(3 + offset[1] + unit * shake[i]), 2),
            "load": round(float(50 + 10 * load[i])),
            "fault": "yes" if faulty[i] else "no",
        }


def _to_csv(rows: list[dict[str, Any]]) -> str:
    """Return rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
