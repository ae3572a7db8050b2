"""``covshift label``: a local page to label rows one by one."""

import base64
import hashlib
import json
import secrets
import shlex
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from covshift.cli.errors import fail, one_line_errors
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
from covshift.cli.printing import print_notes
from covshift.cli.progress import working
from covshift.tables.labeling import LabelingSession

# The local server of `covshift label`: one page and one session.
#
# It listens on the loopback address only. Every request must carry the random token of the address
# that the command prints, name this server as its host, so that no other name can be made to point
# here, and come from this page, if it says where it comes from.


ADDRESS = "127.0.0.1"
MAX_BODY = 10_000  # bytes
TOKEN_HEADER = "X-Covshift-Token"


@cache
def label_page() -> tuple[str, str]:
    """Return the page and the content security policy it is sent with.

    The page holds no data: its script asks only the server it came from for them.
    """
    folder = files("covshift.report") / "templates"
    html, css, script = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("label.html", "label.css", "label.js")
    )
    page = html.replace("/*css*/", css).replace("/*script*/", script)
    hashes = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (css, script)
    ]
    policy = (
        "default-src 'none'; img-src data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; "
        f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    )
    return page, policy


class LabelServer(ThreadingHTTPServer):
    """A server of one session.

    Parameters
    ----------
    session : LabelingSession
        Session that it serves.
    port : int, default=0
        Port; 0: one that is free.
    """

    daemon_threads = True

    def __init__(self, session: LabelingSession, port: int = 0) -> None:
        super().__init__((ADDRESS, port), Handler)
        self.session = session
        self.token = secrets.token_urlsafe(32)
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    @property
    def url(self) -> str:
        """Address of the page, token included."""
        return f"http://{ADDRESS}:{self.server_port}/?token={self.token}"


class Handler(BaseHTTPRequestHandler):
    """Answers requests; refuses all that do not come from the page."""

    server: LabelServer
    timeout = 30  # of a connection on which nothing comes
    server_version, sys_version = "covshift", ""

    def do_GET(self) -> None:
        """Answer with the page, or with the state of the session."""
        if not self._may_ask():
            return
        path = urlsplit(self.path).path
        if path == "/":
            page, policy = label_page()
            self._answer(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8", policy)
        elif path == "/state":
            self._answer_json(self.server.session.state())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "Page not found.")

    def do_POST(self) -> None:
        """Give a label, skip a row, or take the last step back."""
        # Browsers say where a POST comes from; anything else is not this page.
        if not self._may_ask(needs_origin=True):
            return
        given = self._body()
        if given is None:
            return
        session, path = self.server.session, urlsplit(self.path).path
        try:
            if path == "/label":
                state = session.give(int(given["row"]), int(given["class"]))
            elif path == "/skip":
                state = session.skip(int(given["row"]))
            elif path == "/undo":
                state = session.undo()
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "Unknown step.")
                return
        except (KeyError, TypeError, ValueError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"The request is not understood: {error}")
        except OSError as error:
            self._refuse(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"The label was not written: {error.strerror}. Free some room and try again.",
            )
        else:
            self._answer_json(state)

    def _may_ask(self, *, needs_origin: bool = False) -> bool:
        """Whether the request comes from the page; if not, it is refused."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "Another host was asked for.")
            return False
        if (origin is None and needs_origin) or (origin is not None and origin != f"http://{host}"):
            self._refuse(HTTPStatus.FORBIDDEN, "The request comes from another page.")
            return False
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "The request comes from another page.")
            return False
        query = parse_qs(urlsplit(self.path).query)
        token = self.headers.get(TOKEN_HEADER) or query.get("token", [""])[0]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "The token is missing or wrong. Use the address "
                         "that covshift label printed.")  # fmt: skip
            return False
        return True

    def _body(self) -> Any:
        """Return the JSON object of a request; None: it was refused."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self._refuse(HTTPStatus.BAD_REQUEST, "The request has no length, or is too long.")
            return None
        try:
            given = json.loads(self.rfile.read(int(length)) or b"{}")
        except ValueError:
            given = None
        if not isinstance(given, dict):
            self._refuse(HTTPStatus.BAD_REQUEST, "The request is not a JSON object.")
            return None
        return given

    def _answer_json(self, state: Any) -> None:
        data = json.dumps(state).encode()
        self._answer(HTTPStatus.OK, data, "application/json", "default-src 'none'")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._answer(status, why.encode(), "text/plain; charset=utf-8", "default-src 'none'")

    def _answer(self, status: HTTPStatus, data: bytes, kind: str, policy: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: addresses hold the token."""


COMMAND = "label"
LARGEST_PORT = 65535


@grouped
def label(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File of `covshift adapt`.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Table of rows to label.")],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Labels, a CSV file; labels that it has stay."),
    ],
    rows: Annotated[int, typer.Option(help="Rows to label, drawn at random.")] = 20,
    port: Annotated[int, typer.Option(help="Port of the page; 0: one that is free.")] = 0,
    domain: ModelDomain = None,
    seed: Seed = 0,
    trust: Trust = None,
    *,
    reading: Reading,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Label rows of NEW on a local page, one by one; each label is saved as it is given.

    Open the address that the command prints. It works on this machine only and holds a random
    token. Keys 1 to 9 give a label, S skips a row, U takes the last label back. The page shows how
    the expected score and its interval change. Ctrl-C ends the command; start it again to go on.

    The file is for covshift monitor --labels and covshift adapt --labels.
    """
    check_seed(COMMAND, seed)
    if not 0 <= port <= LARGEST_PORT:
        fail(COMMAND, f"--port must be from 0 to {LARGEST_PORT}, got {port}.")
    with one_line_errors(COMMAND, debug):
        # Imported here: --help stays fast, and a missing extra becomes a one-line error.
        from covshift.persistence import read_card
        from covshift.tables import check_output
        from covshift.tables.labeling import LabelingSession

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
