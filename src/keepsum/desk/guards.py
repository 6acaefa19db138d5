"""Who may use the page: only the browser that opened the one-time link, and only from the page itself.

Every request passes here first. One that fails gets status 403 and nothing else: no page, no reason, no header that
says what is served.

The address has a random first part (the *room*), and the session's cookie is for that path alone. Cookies ignore ports,
so without it a server of another user on the same machine would be sent the cookie by a browser that visits it.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from keepsum._progress import failed as log_failure
from keepsum.desk.tokens import ROOM, unguessable

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

CSRF_FIELD, CSRF_HEADER = "csrf", b"x-keepsum-csrf"
FORM = b"application/x-www-form-urlencoded"
UPLOAD = "/upload"  # a file, which is counted where it is received; everything else is a form
MOST_FORM_BYTES = 2**24  # of a form
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
ENTRANCE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=table">'
    '<link rel="icon" href="data:,"><title>Keepsum</title><p><a href="table">To the table</a></p></html>'
)
USED = (  # the same for whoever asks, whatever the token is
    '<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Keepsum</title>'
    "<p>This link has been used. Open a new one from the page, or start <code>keepsum app</code> again.</p></html>"
)
FAILED = "Something failed that should not have. Nothing was released or written by this. Please report it as a bug."
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with none, a browser would say that forms come from nowhere
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


class Guard:
    """What only one run and its browsers know: the room, the session, the token of forms, and links that work once."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.room = unguessable(ROOM)
        self.csrf = unguessable()
        self._session = unguessable()
        self._links: set[str] = set()
        self.host = f"127.0.0.1:{port}"  # as in the link; another program may be what localhost leads to

    @property
    def base(self) -> str:
        """The path that all addresses begin with."""
        return f"/{self.room}"

    @property
    def cookie(self) -> str:
        """The name of the session's cookie."""
        return f"keepsum-{self.port}"

    def new_link(self) -> str:
        """A link that opens the page once; whoever has opened it needs no other in that browser."""
        token = unguessable()
        self._links.add(token)
        return f"http://{self.host}{self.base}/?token={token}"

    def take(self, token: str) -> bool:
        """Whether a link works; if so, it does not work again."""
        fitting = [link for link in self._links if _same(link, token)]
        self._links.difference_update(fitting)
        return bool(fitting)

    def knows(self, cookies: str) -> bool:
        """Whether a request has the session's cookie.

        Another port may have set one of the same name for all paths: a browser sends both, in any order.
        """
        pairs = [pair.strip().partition("=") for pair in cookies.split(";")]
        fitting = [_same(value, self._session) for name, _, value in pairs if name == self.cookie]
        return any(fitting)

    def set_cookie(self) -> bytes:
        """The header that gives a browser the session."""
        return f"{self.cookie}={self._session}; Path={self.base}/; HttpOnly; SameSite=Strict".encode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


class Guarded:
    """An application behind the guard."""

    def __init__(self, app: App, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = _headers(scope)
        path = scope["path"]
        is_here = headers.get(b"host", b"").decode("latin-1") == self.guard.host
        if not is_here or not path.startswith(f"{self.guard.base}/"):
            await _refuse(send)
            return
        known = self.guard.knows(headers.get(b"cookie", b"").decode("latin-1"))
        if path == f"{self.guard.base}/" and scope["method"] == "GET":
            await self._enter(scope, send, known)
            return
        if not known or not self._is_own(scope["method"], headers):
            await _refuse(send)
            return
        if scope["method"] == "POST":
            body = await self._with_token(path.removeprefix(self.guard.base), headers, receive)
            if body is None:
                await _refuse(send)
                return
            receive = body
        inner = {**scope, "path": path.removeprefix(self.guard.base), "root_path": ""}
        inner["raw_path"] = inner["path"].encode()
        await _answered(self.app, inner, receive, _with_headers(send))

    async def _enter(self, scope: Message, send: Send, known: bool) -> None:
        """Exchange the token of a link for the session; a link that was used is good for whoever has the session."""
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        taken = bool(token) and self.guard.take(token)
        if not (known or taken):
            await _refuse(send, USED.encode() if token else b"")
            return
        # A page that goes on by itself, and not a redirection: after a link in another site's page, a browser sends a
        # strict cookie only with what this page asks for.
        body = ENTRANCE.encode()
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"content-security-policy", POLICY.encode()),
            *HEADERS,
        ]
        headers += [(b"set-cookie", self.guard.set_cookie())] if taken else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_own(self, method: str, headers: dict[bytes, bytes]) -> bool:
        """Whether a request comes from the page itself, as far as browsers say it; others only read."""
        if method in ("GET", "HEAD"):
            return headers.get(b"sec-fetch-site", b"none") in (b"none", b"same-origin")
        if method != "POST" or headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
            return False
        return headers.get(b"origin") == b"http://" + headers[b"host"]

    async def _with_token(self, path: str, headers: dict[bytes, bytes], receive: Receive) -> Receive | None:
        """What gives the body to the application, if the request has the token of forms; else None."""
        if path == UPLOAD:
            return receive if _same(headers.get(CSRF_HEADER, b"").decode("latin-1"), self.guard.csrf) else None
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != FORM:
            return None
        body = await _all_of(receive)
        if body is None:
            return None
        token = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).get(CSRF_FIELD, [""])[-1]
        return _again(body) if _same(token, self.guard.csrf) else None


def _headers(scope: Message) -> dict[bytes, bytes]:
    """The headers of a request; one that is given twice, which no browser does, is as good as none."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        found[name] = b"" if name in found else value
    return found


async def _all_of(receive: Receive) -> bytes | None:
    """The body of a form; None if it is too long, or if whoever sent it left."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += bytes(message.get("body", b""))
        if len(body) > MOST_FORM_BYTES:
            return None
        if not message.get("more_body", False):
            return body


def _again(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _with_headers(send: Send) -> Send:
    """Every answer forbids whatever the page does not need; a page with a policy of its own keeps that."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.lower(), value) for name, value in message.get("headers", [])]
            own_policy = any(name == b"content-security-policy" for name, _ in headers)
            policy = [] if own_policy else [(b"content-security-policy", POLICY.encode())]
            given = {name for name, _ in headers}
            message = {**message, "headers": headers + policy + [pair for pair in HEADERS if pair[0] not in given]}
        await send(message)

    return guarded


async def _answered(app: App, scope: Message, receive: Receive, send: Send) -> None:
    """Answer a request; what fails is told to nobody, because a traceback may hold counts."""
    begun = failed = False

    async def noted(message: Message) -> None:
        nonlocal begun, failed
        failed = failed or (message["type"] == "http.response.start" and message["status"] >= 500)
        if not failed:  # else it is an answer of the framework, in its own words
            begun = True
            await send(message)

    try:
        await app(scope, receive, noted)
    except Exception as error:
        failed = True
        log_failure(error)
    if failed and not begun:
        body = FAILED.encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 500, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _refuse(send: Send, body: bytes = b"") -> None:
    headers = [(b"content-length", str(len(body)).encode()), *HEADERS]
    if body:
        headers += [(b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", POLICY.encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
