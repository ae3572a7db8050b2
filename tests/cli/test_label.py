"""``covshift label``: the server refuses strangers; in a browser, a kill loses nothing."""

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from covshift import AdaptedClassifier, DomainStandardScaler, save
from covshift.cli.label_server import LabelServer
from covshift.tables import TableClassifier, match_tables
from covshift.tables.labeling import LabelingSession
from tests.cli.user_files import assert_refused, run
from tests.tables.test_monitoring_series import rows, write

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("label")
    tables = match_tables(rows(80), rows(150, seed=1).drop(columns="label"), label="label")
    adapted = AdaptedClassifier(DomainStandardScaler(), keep_rows=True)
    model = TableClassifier(adapted).fit_tables(tables)
    path = folder / "model.skops"
    save(model, path)
    hostile = rows(150, seed=1).drop(columns="label").assign(note="<img src=x onerror=alert(1)>")
    new = write(folder / "new.csv", hostile)
    return SimpleNamespace(folder=folder, model=model, path=path, new=new)


@pytest.fixture
def server(made, tmp_path):
    session = LabelingSession(made.model, made.new, tmp_path / "labels.csv", n_rows=4)
    server = LabelServer(session)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, method, path, body=None, **headers):
    """Return the status, the headers and the text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    given = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    connection.putrequest(method, path, skip_host=True)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    for name, value in given.items():
        connection.putheader(name.replace("_", "-"), value)
    if data is not None:
        connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def test_the_page_works_with_its_token(server):
    origin = f"http://127.0.0.1:{server.server_port}"
    status, headers, page = ask(server, "GET", f"/?token={server.token}")
    assert status == 200
    assert server.token not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Cache-Control"] == "no-store"
    token = {"X_Covshift_Token": server.token}
    status, _, text = ask(server, "GET", "/state", **token)
    assert (status, json.loads(text)["given"]) == (200, 0)
    row = json.loads(text)["row"]["number"]
    status, _, text = ask(
        server, "POST", "/label", {"row": row, "class": 1}, Origin=origin, **token
    )
    assert (status, json.loads(text)["given"]) == (200, 1)
    assert server.session.out.read_text() == f"row_to_label,label\n{row},yes\n"
    local = f"localhost:{server.server_port}"
    status, _, _ = ask(server, "GET", "/state", Host=local, **token)
    assert status == 200


def test_strangers_are_refused(server):
    port, token = server.server_port, {"X_Covshift_Token": server.token}
    own = f"http://127.0.0.1:{port}"
    row = server.session.rows[0]
    for method, path, headers in (
        ("GET", "/", {}),
        ("GET", "/?token=wrong", {}),
        ("GET", "/state", {"X_Covshift_Token": server.token[:-1]}),
        ("GET", "/state", {**token, "Host": f"evil.example:{port}"}),
        ("GET", "/state", {**token, "Host": "127.0.0.1"}),
        ("GET", f"/?token={server.token}", {"Host": "evil.example"}),
        ("GET", "/state", {**token, "Origin": "http://evil.example"}),
        ("GET", "/state", {**token, "Origin": "null"}),
        ("GET", "/state", {**token, "Sec_Fetch_Site": "cross-site"}),
        ("POST", "/label", {**token, "Origin": "http://evil.example"}),
        ("POST", "/label", {**token, "Origin": f"https://127.0.0.1:{port}"}),
        ("POST", "/label", {**token, "Origin": f"http://localhost:{port}"}),  # another host
        ("POST", "/label", token),  # no origin
        ("POST", "/label", {"Origin": own}),  # no token
        ("POST", "/undo", {"Origin": own, "X_Covshift_Token": "x"}),
    ):
        body = {"row": row, "class": 0} if method == "POST" else None
        status, _, text = ask(server, method, path, body, **headers)
        assert status == 403, (method, path, headers)
        assert "rows" not in text
    assert server.session.labels == {}


def test_requests_that_make_no_sense(server):
    headers = {"X_Covshift_Token": server.token, "Origin": f"http://127.0.0.1:{server.server_port}"}
    row = server.session.rows[0]
    for body in ({}, {"row": 10**9, "class": 0}, {"row": row, "class": 7}, {"row": "x"}, [1], "x"):
        assert ask(server, "POST", "/label", body, **headers)[0] == 400
    assert ask(server, "POST", "/label", {"row": "1" * 20_000}, **headers)[0] == 400
    assert ask(server, "POST", "/label", **headers)[0] == 400
    for text in (b'{"row": 1e999, "class": 0}', b"[" * 9000, b"\xff"):  # no traceback on the server
        assert ask(server, "POST", "/label", text, **headers)[0] == 400
    assert ask(server, "POST", "/label", Content_Length="\xb2", **headers)[0] == 400
    assert ask(server, "POST", "/other", {}, **headers)[0] == 404
    assert ask(server, "GET", "/etc/passwd", **headers)[0] == 404
    assert server.session.labels == {}


def test_the_server_listens_on_the_loopback_address_only(server):
    assert server.server_address[0] == "127.0.0.1"


def test_bad_requests_of_the_command(made, tmp_path):
    out = tmp_path / "labels.csv"
    for words, *arguments in (
        ("--port", made.path, made.new, "--out", out, "--port", 70000),
        ("--rows", made.path, made.new, "--out", out, "--rows", 0),
        ("is read too", made.path, made.new, "--out", made.new),
    ):
        assert_refused(run("label", *arguments), "label", words)


class Labeler:
    """The command in a process of its own."""

    def __init__(self, made, out):
        command = [sys.executable, "-m", "covshift", "label", made.path, made.new, "--out", out]
        self.process = subprocess.Popen(
            [str(one) for one in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in self.process.stdout:
            if found := re.search(r"http://\S+", line):
                self.url = found.group()
                return
        pytest.fail("the command printed no address")

    def end(self, how):
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=20)
        return rest


def lines_of(out):
    return out.read_text().splitlines()[1:]


def wait_for(page, text):
    for _ in range(400):
        if text in page.locator("#progress").inner_text():
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never: {text}; {page.locator('body').inner_text()}")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_twenty_labels_in_a_browser_with_a_kill_in_between(made, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    out, problems = tmp_path / "labels.csv", []
    first = Labeler(made, out)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_context(viewport=PHONE).new_page()
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("http://127.0.0.1:", "data:"))
                else problems.append(request.url)
            ),
        )
        page.goto(first.url)
        wait_for(page, "0 of 20")
        assert "<img src=x" in page.locator("#cells").inner_text()  # as text
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        for number in range(1, 8):  # by keyboard
            page.keyboard.press("1" if number % 2 else "2")
            wait_for(page, f"{number} of 20")
            assert len(lines_of(out)) == number
        page.keyboard.press("u")
        wait_for(page, "6 of 20")
        assert len(lines_of(out)) == 6
        page.keyboard.press("s")
        wait_for(page, "1 skipped")
        before = lines_of(out)
        first.end(signal.SIGKILL)
        page.keyboard.press("1")
        page.locator("#problem").wait_for(state="visible")
        assert "does not answer" in page.locator("#problem").inner_text()
        second = Labeler(made, out)
        assert second.url != first.url
        page.goto(second.url)
        wait_for(page, "6 of 20")
        assert lines_of(out) == before
        for number in range(7, 21):  # by clicks
            page.locator("#classes button").nth(number % 2).click()
            wait_for(page, f"{number} of 20")
        assert page.locator("#finished").is_visible()
        assert "Expected accuracy: " in page.locator("#expected").inner_text()
        assert page.locator("#trail .range").count() == 15  # six labels were there, and 14 more
        assert "of 20 labeled rows" in page.locator("#observed").inner_text()
        browser.close()
    said = second.end(signal.SIGINT)
    assert "20 of 20 rows are labeled" in said
    assert second.process.returncode == 0
    assert problems == []
    numbers = [line.split(",")[0] for line in lines_of(out)]
    assert len(set(numbers)) == 20
    assert lines_of(out)[:6] == before
