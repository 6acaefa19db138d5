"""An application asked without a server or a browser: requests as a browser would send them, or as it would not."""

from __future__ import annotations

import asyncio
import io
import re
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from keepsum.desk import finished
from keepsum.desk.desk import Desk
from keepsum.desk.guards import Guard
from keepsum.desk.server import LIMIT, make_app

PORT = 5001
CHILDREN = (Path(__file__).parents[2] / "examples" / "children.csv").read_bytes()
PERCENT = b"place,sex,n,Percent\na,f,3,1.5\na,m,4,2.5\nb,f,9,3.5\nb,m,2,4.5\n"
PERSON = {"epsilon": "1", "reading": "person", "kind": "laplace"}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """One browser: it keeps its cookie, and says where its forms come from."""

    app: Any
    guard: Guard
    cookie: str = ""
    host: str = f"127.0.0.1:{PORT}"
    extra: dict[str, str] = field(default_factory=dict)
    leaves: bool = False  # once it has asked

    def ask(self, method: str, path: str, body: bytes | list[bytes] = b"", **headers: str) -> Answer:
        """One request; a list of bodies is sent in pieces."""
        parts = urlsplit(path)
        own = {"host": self.host, "cookie": self.cookie, **self.extra}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http", "method": method, "path": parts.path, "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(), "http_version": "1.1", "scheme": "http", "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in (own | given).items() if value],
            "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        pieces = [body] if isinstance(body, bytes) else list(body)
        sent: list[dict[str, Any]] = []
        self.received = 0

        async def receive() -> dict[str, Any]:
            self.received += 1
            if not pieces and not self.leaves:
                await asyncio.Event().wait()  # until the answer is complete
            if not pieces:
                return {"type": "http.disconnect"}
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = sent[0]
        found = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        if "set-cookie" in found:
            self.cookie = found["set-cookie"].partition(";")[0]
        return Answer(start["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", f"{self.guard.base}{path}", **headers)

    def post(self, path: str, fields: dict[str, Any] | None = None, **headers: str) -> Answer:
        """A form, as the page sends it; a header that is empty is left out."""
        fields = {"csrf": self.guard.csrf, **(fields or {})}
        own = {"origin": f"http://{self.host}", "content_type": "application/x-www-form-urlencoded"}
        body = urlencode(fields, doseq=True).encode()
        return self.ask("POST", f"{self.guard.base}{path}", body, **(own | headers))

    def form(self, path: str, fields: dict[str, Any], step: str | None = None) -> str:
        """Send a form made from the present version, and give the page that it leads to, once nothing is at work."""
        version = re.search(r'data-version="(\d+)"', self.get("/table").text)[1]
        answer = self.post(path, {"version": version, "step": step or "table", **fields})
        assert answer.status == 303, answer.status
        return self.page(answer.headers["location"].removeprefix(self.guard.base))

    def page(self, path: str) -> str:
        """A page, once nothing is at work on it."""
        while True:
            text = self.get(path).text
            if 'id="progress"' not in text:
                return text

    def upload(self, name: str, body: bytes | list[bytes], **headers: str) -> Answer:
        own = {"origin": f"http://{self.host}", "x_keepsum_csrf": self.guard.csrf, "x_keepsum_name": name}
        return self.ask("POST", f"{self.guard.base}/upload", body, **(own | headers))


def opened(limit: int = LIMIT, **options: Any) -> tuple[Browser, Desk]:
    """A browser that has opened the link."""
    desk, guard = Desk(**options), Guard(PORT)
    browser = Browser(make_app(desk, guard, limit), guard)
    link = guard.new_link()
    assert browser.ask("GET", link.partition(browser.host)[2]).status == 200
    return browser, desk


def held_draw(monkeypatch: Any) -> tuple[threading.Event, threading.Event]:
    """A gate before which releases wait to be drawn, and the event that one has come to it."""
    gate, begun, real = threading.Event(), threading.Event(), finished.draw_charged

    def held(*given: Any) -> Any:
        begun.set()
        gate.wait()
        return real(*given)

    monkeypatch.setattr(finished, "draw_charged", held)
    return gate, begun


def release(browser: Browser, **fields: str) -> str:
    """Press the button, with these fields filled in."""
    browser.page("/release")
    return browser.form("/release", fields)


def released_files(browser: Browser) -> dict[str, bytes]:
    """What the downloaded archive holds."""
    archive = zipfile.ZipFile(io.BytesIO(browser.get("/release.zip").body))
    return {name.removeprefix("release/"): archive.read(name) for name in archive.namelist()}


def steps(page: str) -> dict[str, tuple[str, str]]:
    """The state and the words of each step."""
    found = re.findall(r'<li class="(\w+)[^"]*"><a [^>]*>.*?<b>(\w+)</b>(?:<small>([^<]*)</small>)?', page, re.S)
    return {name: (state, words) for state, name, words in found}


def marked(page: str) -> list[str]:
    """The fields with a red frame."""
    return re.findall(r'id="([\w-]+)"[^>]* aria-invalid="true"', page)
