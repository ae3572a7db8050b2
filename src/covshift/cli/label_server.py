"""The local server of ``covshift label``: one page and one session.

It listens on the loopback address only. Every request must carry the random token of the address
that the command prints, name this server as its host, so that no other name can be made to point
here, and come from this page, if it says where it comes from.
"""

import base64
import hashlib
import json
import secrets
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from covshift.tables.labeling import LabelingSession

ADDRESS = "127.0.0.1"
MAX_BODY = 10_000  # bytes
TOKEN_HEADER = "X-Covshift-Token"


@cache
def _label_page() -> tuple[str, str]:
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
    timeout = 30  # seconds before an idle connection is closed
    server_version, sys_version = "covshift", ""

    def do_GET(self) -> None:
        """Answer with the page, or with the state of the session."""
        if not self._may_ask():
            return
        path = urlsplit(self.path).path
        if path == "/":
            page, policy = _label_page()
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
                self._refuse(HTTPStatus.NOT_FOUND, "Unknown address.")
                return
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"The request cannot be read: {error}")
        except OSError as error:
            self._refuse(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"The label was not written: {error.strerror}. Free some room and try again.",
            )
        else:
            self._answer_json(state)

    def _may_ask(self, *, needs_origin: bool = False) -> bool:
        """Return whether the request comes from the page; if not, it is refused."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "The request names another host.")
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
        if not length.isdecimal() or int(length) > MAX_BODY:
            self._refuse(HTTPStatus.BAD_REQUEST, "The request has no length, or is too long.")
            return None
        try:
            given = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
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
