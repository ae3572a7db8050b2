"""``covshift label``: a local page to label rows one by one."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from covshift.cli.options import (
    Debug,
    ModelDomain,
    Quiet,
    Reading,
    Seed,
    Trust,
    check_seed,
    grouped,
    load_model,
)
from covshift.cli.terminal import fail, one_line_errors, print_notes, working

COMMAND = "label"
LARGEST_PORT = 65535


@grouped
def label(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Table of rows to label.")],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="CSV file for the labels; labels already in it stay."),
    ],
    rows: Annotated[int, typer.Option(help="Rows to label, drawn at random.")] = 20,
    port: Annotated[int, typer.Option(help="Port of the page; 0: any free port.")] = 0,
    domain: ModelDomain = None,
    seed: Seed = 0,
    trust: Trust = None,
    *,
    reading: Reading,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Label rows of NEW on a local page, one by one; each label is saved at once.

    Open the address that the command prints. It works on this machine only and holds a random
    token. Keys 1 to 9 give a label, S skips a row, U removes the last label. The page shows how
    the expected score and its interval change. Ctrl-C ends the command; start it again to resume.

    Give the file to covshift monitor or covshift adapt with --labels.
    """
    check_seed(COMMAND, seed)
    if not 0 <= port <= LARGEST_PORT:
        fail(COMMAND, f"--port must be from 0 to {LARGEST_PORT}, got {port}.")
    with one_line_errors(COMMAND, debug):
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.cli.label_server import LabelServer
        from covshift.persistence import read_card
        from covshift.tables.labeling import LabelingSession
        from covshift.tables.writing import check_output

        if "signals" in read_card(model):
            fail(COMMAND, f"{model} reads recordings, which cannot be shown as rows.")
        table = reading.file_of(new)
        check_output(out, inputs=[model, table], any_name=True)
        fitted = load_model(model, trust)
        with working("reading", quiet):
            session = LabelingSession(
                fitted, table, out, n_rows=rows, domain=domain, seed=seed, **reading.layout
            )
        try:
            server = LabelServer(session, port)
        except OSError as error:
            fail(COMMAND, f"port {port} cannot be used ({error.strerror}): name another --port.")
    print_notes(session.notes, quiet)
    typer.echo(f"Open in a browser on this machine: {server.url}")
    typer.echo("Ctrl-C ends; labels are saved as they are given.")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    given = sum(row in session.labels for row in session.rows)
    typer.echo(f"\n{given} of {len(session.rows)} rows are labeled: {out}")
    files = [shlex.quote(str(one)) for one in (model, new, out)]
    typer.echo(f"Next: covshift monitor {files[0]} {files[1]} --labels {files[2]}")
