"""The page of ``covshift label``: one HTML text with its style and script, and its policy."""

import base64
import hashlib
from functools import cache
from importlib.resources import files


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
