"""``keepsum app`` as a process: one line with the link, nothing on disk, and an end without a traceback."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from keepsum.cli.app import run
from keepsum.desk.guards import USED
from support import HANG


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """The command, and its link."""
    running = []

    def start(*options: str) -> tuple[subprocess.Popen[str], str]:
        code = "from keepsum_shell import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "app", "--no-browser", "--port", "0", *options],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(process)
        return process, re.fullmatch(r"Open (http://127\.0\.0\.1:\d+/\S+)\n", process.stdout.readline())[1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def status(address: str) -> int:
    """The status of an answer, which has nothing of the page if it is a refusal."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=HANG)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert (answer.status == 403) == (content in (b"", USED.encode()))
    return answer.status


def test_it_prints_one_line_and_ends_without_another(started, tmp_path):
    process, link = started()
    assert status(link) == 200
    assert status(link) == 403  # the link is used, and this asker keeps no cookie
    assert status(link.partition("/?")[0] + "/table") == 403
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out, err) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_nobody_else_can_connect(started):
    _, link = started()
    port = int(re.search(r":(\d+)/", link)[1])
    for address in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}:
        if not address.startswith("127.0.0.1"):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((address, port)).close()


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        (["--port", "70000"], "Option --port must be from 0 to 65535, got 70000.", 2),
        (["--ledger", "none.db"], "none.db", 5),
        (["--dataset", "d"], "--ledger", 2),
    ],
)
def test_bad_options_are_refused(options, words, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    assert run(["app", "--no-browser", *options]) == status
    assert words in capsys.readouterr().err


def test_a_port_in_use_is_refused(capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run(["app", "--no-browser", "--port", str(port)]) == 5
    assert f"Port {port} must be free" in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch, capsys):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr("keepsum._extras.find_spec", lambda name: None if name == "uvicorn" else real(name))
    assert run(["app", "--no-browser"]) == 2
    assert (
        "The page needs uvicorn, which is not installed. Run in a clone of Keepsum: pip install '.[web]'"
        in " ".join(capsys.readouterr().err.split())
    )


def test_the_browser_is_opened_through_a_file_of_its_owner(monkeypatch):
    """Command lines are for all users of a machine to read, so the link must not be on one."""
    from keepsum.desk import serving

    asked = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(serving.webbrowser, "open", asked.append)
    with serving.opened("http://127.0.0.1:1/x/?token=secret") as file:
        while not asked:
            time.sleep(0.01)
        assert asked == [file.as_uri()]
        assert "secret" not in asked[0]
        assert "token=secret" in file.read_text(encoding="utf-8")
        assert file.parent.stat().st_mode & 0o077 == 0
    assert not file.exists()


def test_no_browser_takes_the_terminal(monkeypatch):
    from keepsum.desk import serving

    monkeypatch.setattr(serving.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(serving.webbrowser, "open", lambda _: pytest.fail("opened"))
    with serving.opened("http://127.0.0.1:1/x/?token=secret") as file:
        assert file is None


class Visitor:
    """A browser as far as a connection goes: it opens a link, keeps its cookie, and sends forms."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.base, self.netloc, self.headers = parts.path, parts.netloc, {"origin": f"http://{parts.netloc}"}
        self.headers["cookie"] = self._asked("GET", f"?{parts.query}").headers["set-cookie"].partition(";")[0]

    def _asked(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.netloc, timeout=HANG)
        form = {"content-type": "application/x-www-form-urlencoded"}
        connection.request(method, f"{self.base}{path}", body, self.headers | form)
        answer = connection.getresponse()
        self.text = answer.read().decode()
        connection.close()
        return answer

    def until(self, path: str, words: str) -> None:
        """Ask for a page until it has what is waited for."""
        self._asked("GET", path)
        while words not in self.text:
            time.sleep(0.05)
            self._asked("GET", path)

    def post(self, path: str, **fields: str) -> None:
        """Send a form, made from the page that was asked for last."""
        csrf, version = (re.search(f'data-{name}="([^"]*)"', self.text)[1] for name in ("csrf", "version"))
        self._asked("POST", path, urlencode({"csrf": csrf, "version": version, **fields}))


@pytest.mark.audit
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_does_not_lose_a_release(started, number):
    process, link = started()
    visitor = Visitor(link)
    visitor.until("table", "data-csrf")
    visitor.post("example", name="children")
    visitor.until("release", 'id="go"')
    visitor.post("release")
    visitor.until("release", "Download or save it now")
    process.send_signal(number)
    said = process.stderr.readline()
    assert "nobody has downloaded or saved" in said
    other = Visitor(re.search(r"It is here: (http://\S+)[.] ", said)[1])
    other.until("release", "Download or save it now")
    process.send_signal(number)
    assert (process.communicate(timeout=HANG), process.returncode) == (("", ""), 0)
