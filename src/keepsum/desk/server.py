"""The page as an application: what each address answers. The guard stands before all of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib.resources import files
from urllib.parse import unquote

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from keepsum.desk.desk import Desk
from keepsum.desk.forms import small_number
from keepsum.desk.guards import UPLOAD, App, Guard, Guarded, Message, Receive, Send
from keepsum.desk.pages import TOO_LARGE, UPTO, Pages
from keepsum.desk.posting import Posting
from keepsum.desk.taking import Taking
from keepsum.errors import KeepsumError
from keepsum.sources.uploads import Upload

LIMIT = 10**9  # bytes of an upload
DISCARDED = 4  # times the limit: so much of a longer one is read and thrown away, for a sender that listens only then
SILENCE = 1.0  # seconds without a byte after which a sender is taken to be listening
NOWHERE = "There is no such page, or it cannot be asked for in this way. Go back."
EMPTY = "The file must not be empty, and this one is. Choose another."
STATIC = {"desk.css": "text/css", "desk.js": "text/javascript"}
LONGEST_NAME = 200


def make_app(desk: Desk, guard: Guard, limit: int = LIMIT) -> App:
    """The application, behind its guard."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    for kind in (HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _nowhere)
    pages = Pages(desk, guard, limit)
    _add_pages(app, pages)
    Posting(pages).add_to(app)
    Taking(pages).add_to(app)
    _add_upload(app, pages, limit)
    _add_live_parts(app, pages)
    return Guarded(app, guard)


async def _nowhere(_: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 422
    return PlainTextResponse(NOWHERE, status)


def _add_pages(app: FastAPI, pages: Pages) -> None:
    def static(name: str) -> Response:
        if name not in STATIC:
            return Response(status_code=404)
        return Response(files("keepsum.desk").joinpath("static", name).read_bytes(), media_type=STATIC[name])

    app.get("/static/{name}")(static)
    for step in UPTO:
        _add_page(app, pages, step)


def _add_page(app: FastAPI, pages: Pages, step: str) -> None:
    def show(page: str = "1", said: str = "") -> Response:
        return pages.show(step, max(1, small_number(page)), said)

    app.get(f"/{step}", name=step)(show)


def _add_upload(app: FastAPI, pages: Pages, limit: int) -> None:
    async def upload(request: Request) -> Response:
        """A file as the body of a request, counted while it comes, and kept in memory alone."""
        data = await _body(request, limit)
        if data is None:
            return TooLarge(limit)
        if not data:
            return JSONResponse({"problem": EMPTY}, 400)
        name = unquote(request.headers.get("x-keepsum-name", "")).replace("\\", "/").rpartition("/")[2]
        await run_in_threadpool(pages.desk.put, Upload(name[-LONGEST_NAME:] or "table", data))
        return JSONResponse({"to": f"{pages.guard.base}/table"})

    app.post(UPLOAD)(upload)


async def _body(request: Request, limit: int) -> bytes | None:
    """What was sent; None if it is, or says that it is, more than the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        return None
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


class TooLarge(JSONResponse):
    """Why a file is not taken; it is said at once, but some senders listen only when they have sent all of it."""

    def __init__(self, limit: int) -> None:
        super().__init__({"problem": TOO_LARGE.format(limit=limit)}, 413, headers={"connection": "close"})
        self._most = DISCARDED * limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer, and close the connection only when nothing comes any more."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        discarded = 0
        with suppress(TimeoutError):
            while discarded < self._most:
                message = await asyncio.wait_for(receive(), SILENCE)
                discarded += len(message.get("body", b""))
                if not message.get("more_body", False):
                    break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _add_live_parts(app: FastAPI, pages: Pages) -> None:
    from keepsum.desk.curves import curve_svg
    from keepsum.desk.margins import Margins

    margins = Margins()

    def progress() -> Response:
        job = pages.desk.progress
        if job is None:
            done = pages.desk.finished
            return JSONResponse({"done": True, "taken": done is not None and done.is_taken})
        return JSONResponse({"done": False, "stage": job.stage, "fraction": job.fraction})

    def margin(epsilon: str = "") -> Response:
        look, draft = pages.desk.peek(), pages.desk.draft
        if draft is None:
            return JSONResponse({})
        try:
            return JSONResponse(margins.at(look, draft.spec.mechanism, epsilon))
        except KeepsumError as error:
            return JSONResponse({"problem": pages.desk.say(str(error))})

    def curve() -> Response:
        look, draft = pages.desk.peek(), pages.desk.draft
        if draft is None or look.measured is None:
            return JSONResponse({"svg": "", "done": True})
        points, done = margins.curve(look, draft.spec.mechanism)
        return JSONResponse({"svg": curve_svg(points) if points else "", "done": done})

    app.get("/progress")(progress)
    app.get("/margin")(margin)
    app.get("/curve")(curve)
