"""The page as an application: what each address answers. The guard stands before all of it."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from urllib.parse import parse_qs, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from keepsum._arguments import check_path
from keepsum.desk import forms, views
from keepsum.desk.deriving import COLUMNS, TABLE
from keepsum.desk.desk import Desk
from keepsum.desk.examples import EXAMPLES
from keepsum.desk.finished import Finished
from keepsum.desk.forms import small_number
from keepsum.desk.guards import UPLOAD, App, Guard, Guarded, Message, Receive, Send
from keepsum.desk.margins import MarginCurves, curve_svg
from keepsum.desk.pages import TOO_LARGE, UPTO, LinkMessage, Pages
from keepsum.desk.table_views import counted_by
from keepsum.desk.views import fixes_for
from keepsum.errors import InputError, KeepsumError
from keepsum.sources.uploads import Upload
from keepsum.specs.spec import Spec
from keepsum.specs.writing import toml_of

# Forms: each changes the draft and goes back to its page, which says why if it was refused.

Form = dict[str, list[str]]


def get(path: str, answer: Callable[[Request], Response]) -> Route:
    """An address that is read, and answered in a thread; none of its own for HEAD."""
    route = Route(path, answer)
    route.methods = {"GET"}
    return route


def post(path: str, answer: Callable[[Form], Response]) -> Route:
    """An address that a form is sent to, which is answered in a thread."""

    async def answered(request: Request) -> Response:
        form = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
        return await run_in_threadpool(answer, form)

    return Route(path, answered, methods=["POST"])


def version_of(form: Form) -> int:
    """The version that a form was made from; -1 if it does not say."""
    return forms.small_number(forms.one(form, "version"))


class DraftForms:
    """What forms do."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.desk = pages, pages.desk

    def routes(self) -> list[Route]:
        """The addresses of all forms."""
        answers = {
            "/example": self.example,
            "/table": self.meaning,
            "/categories": self.categories,
            "/lists": self.lists,
            "/undo": self.undo,
            "/over": self.start_over,
            "/keep": self.totals,
            "/set": self.add_set,
            "/unset": self.drop_set,
            "/privacy": self.noise,
            "/fix": self.fix,
            "/stop": self.stop,
            "/resume": self.resume,
            "/link": self.link,
        }
        return [post(path, answer) for path, answer in answers.items()]

    def _changing(self, step: str, form: Form, change: Callable[[Spec], Spec]) -> Response:
        try:
            self.desk.change(version_of(form), change)
        except KeepsumError as error:
            return self.pages.to(step, self.desk.say(str(error)))
        return self.pages.to(step)

    def example(self, form: Form) -> Response:
        """Begin with an example."""
        chosen = EXAMPLES.get(forms.one(form, "name"))
        if chosen is not None:
            self.desk.put(*chosen.make())
        return self.pages.to("table")

    def meaning(self, form: Form) -> Response:
        """What rows and columns are."""
        header = self.desk.look(COLUMNS).header
        names = [] if header is None else header.names
        return self._changing("table", form, lambda spec: forms.meaning(spec, form, names))

    def categories(self, form: Form) -> Response:
        """The categories of all columns."""
        return self._changing("table", form, lambda spec: forms.declared(spec, form))

    def lists(self, form: Form) -> Response:
        """The categories of several columns from one text."""
        look = self.desk.look(TABLE)
        return self._changing("table", form, lambda spec: forms.from_text(spec, form, counted_by(spec, look)))

    def undo(self, form: Form) -> Response:
        """Something that was said of how the file is read is not said any more."""
        answer = self._changing("table", form, lambda spec: forms.undone(spec, forms.one(form, "what")))
        self.desk.guess()
        return answer

    def start_over(self, form: Form) -> Response:
        """Back to the choice of a table."""
        try:
            self.desk.start_over(version_of(form), "sure" in form)
        except KeepsumError as error:
            return self.pages.to(forms.one(form, "step"), self.desk.say(str(error)))
        return self.pages.to("table")

    def totals(self, form: Form) -> Response:
        """The margins to keep."""
        table = self.desk.look(TABLE).table
        axes = () if table is None else table.domain.axes
        return self._changing("keep", form, lambda spec: forms.totals(spec, form, axes))

    def add_set(self, form: Form) -> Response:
        """Keep the total of a set of cells."""
        table = self.desk.look(TABLE).table
        if table is None:
            return self.pages.to("table")
        return self._changing("keep", form, lambda spec: forms.add_set(spec, form, table.domain))

    def drop_set(self, form: Form) -> Response:
        """Keep the total of a set of cells no more."""
        return self._changing("keep", form, lambda spec: forms.drop_set(spec, form))

    def noise(self, form: Form) -> Response:
        """The mechanism."""
        table = self.desk.look(TABLE).table
        levels = [] if table is None else views.levels_of(table.domain)
        return self._changing("privacy", form, lambda spec: forms.noise(spec, form, levels))

    def fix(self, form: Form) -> Response:
        """A way out of what stops the draft."""
        number = forms.small_number(forms.one(form, "number"))

        def change(spec: Spec) -> Spec:
            fixes = fixes_for(self.desk.peek(), spec)
            if not 0 <= number < len(fixes):
                raise InputError("This way out is not there any more. Load the page again.")
            return fixes[number].change(spec)

        answer = self._changing(forms.one(form, "step"), form, change)
        self.desk.guess()  # a file whose sheet or encoding is known by now has columns
        return answer

    def stop(self, form: Form) -> Response:
        """Stop the work in the background."""
        self.desk.stop()
        return self.pages.to(forms.one(form, "step"))

    def resume(self, form: Form) -> Response:
        """Go on with it."""
        self.desk.resume()
        return self.pages.to(forms.one(form, "step"))

    def link(self, form: Form) -> Response:
        """A link for another browser."""
        return self.pages.to(forms.one(form, "step"), LinkMessage(self.pages.guard.new_link()))


# The release: made once, shown, downloaded, and saved to a folder if the user asks for that.

PIECE = 2**16  # bytes of a download that are sent together
NOTICING = 0.05  # seconds in which a connection that was closed is noticed


class Download(Response):
    """A release as one zip; it counts as taken once all of it was sent, and whoever asked for it is still there.

    Its size is not told beforehand, so that no browser leaves before the end.
    """

    media_type = "application/zip"

    def __init__(self, done: Finished) -> None:
        super().__init__()
        self._done, self._data = done, done.zipped()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Send it."""
        headers = [
            (b"content-type", b"application/zip"),
            (b"content-disposition", b'attachment; filename="release.zip"'),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for start in range(0, len(self._data), PIECE):
            piece = self._data[start : start + PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        is_there = not await _has_left(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self._done.is_taken = self._done.is_taken or is_there


async def _has_left(receive: Receive) -> bool:
    """Whether a browser has closed its connection."""
    try:
        while (await asyncio.wait_for(receive(), NOTICING))["type"] != "http.disconnect":
            pass
    except TimeoutError:
        return False
    return True


class ReleaseForms:
    """What is done with a release."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.desk = pages, pages.desk

    def routes(self) -> list[Route]:
        """The addresses."""
        forms_of_it = {"/release": self.release, "/nonnegative": self.nonnegative}
        forms_of_it |= {"/again": self.again, "/save": self.save}
        return [
            *(post(path, answer) for path, answer in forms_of_it.items()),
            get("/release.zip", self.download),
            get("/report", self.report),
            get("/keepsum.toml", self.spec),
        ]

    def _doing(self, action: Callable[[], str | None]) -> Response:
        try:
            message = action()
        except KeepsumError as error:
            message = self.desk.say(str(error))
        except OSError as error:
            message = f"The folder must be one that can be written, but: {error.strerror}."
        return self.pages.to("release", message)

    def release(self, form: Form) -> Response:
        """Make the release; a second click gets the same one."""
        return self._doing(lambda: self.desk.release(version_of(form), form.get("know", [])))

    def nonnegative(self, form: Form) -> Response:
        """Remove the negative counts of the release."""
        return self._doing(lambda: self.desk.remove_negative(version_of(form)))

    def again(self, form: Form) -> Response:
        """Make another release possible."""
        return self._doing(lambda: self.desk.again(version_of(form)))

    def save(self, form: Form) -> Response:
        """Write it to a folder."""

        def saved() -> str:
            folder, done = forms.one(form, "folder"), self.desk.finished
            if not folder or done is None or not done.files:
                raise InputError("The folder must have a name, such as out. Enter one.")
            try:
                path = os.path.realpath(os.path.expanduser(check_path(folder, "The folder")))  # noqa: PTH111
                done.save(f"{path}/")
                return f"The release is written to {path}. Check it with: keepsum verify {shlex.quote(path)}"
            except KeepsumError as error:
                problem = str(error)
            raise InputError(problem)

        return self._doing(saved)

    def download(self, _: Request) -> Response:
        """All files as one."""
        done = self.desk.finished
        if done is None or not done.files:
            return Response(status_code=404)
        return Download(done)

    def report(self, _: Request) -> Response:
        """The report, under the policy that it states itself."""
        report = None if self.desk.finished is None else self.desk.finished.report
        if report is None:
            return Response(status_code=404)
        return HTMLResponse(report, headers={"content-security-policy": own_policy(report)})

    def spec(self, _: Request) -> Response:
        """The draft as a spec, for the same table next month."""
        draft = self.desk.draft
        if draft is None:
            return Response(status_code=404)
        headers = {"content-disposition": 'attachment; filename="keepsum.toml"'}
        return PlainTextResponse(toml_of(draft.spec), headers=headers)


def own_policy(report: str) -> str:
    """The policy of a report, which allows its own script and style by their hashes; it may use nothing of the page."""
    start = report.index('content="', report.index("Content-Security-Policy")) + len('content="')
    policy = report[start : report.index('"', start)].replace("&#39;", "'")
    return f"{policy}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"


LIMIT = 10**9  # bytes of an upload
DISCARDED = 4  # times the limit: so much of a longer one is read and thrown away, for a sender that listens only then
SILENCE = 1.0  # seconds without a byte after which a sender is taken to be listening
NOWHERE = "There is no such page, or it cannot be asked for in this way. Go back."
EMPTY = "The file must not be empty, and this one is. Choose another."
STATIC = {"desk.css": "text/css", "desk.js": "text/javascript"}
LONGEST_NAME = 200


def make_app(desk: Desk, guard: Guard, limit: int = LIMIT) -> App:
    """The application, behind its guard."""
    pages = Pages(desk, guard, limit)
    routes = [
        *_pages(pages),
        *DraftForms(pages).routes(),
        *ReleaseForms(pages).routes(),
        _upload(pages, limit),
        *_live_parts(pages),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _nowhere})
    app.router.redirect_slashes = False
    return Guarded(app, guard)


async def _nowhere(_: Request, problem: Exception) -> Response:
    return PlainTextResponse(NOWHERE, problem.status_code if isinstance(problem, HTTPException) else 500)


def _pages(pages: Pages) -> list[Route]:
    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response(status_code=404)
        return Response(files("keepsum.desk").joinpath("static", name).read_bytes(), media_type=STATIC[name])

    def shown(step: str) -> Callable[[Request], Response]:
        def show(request: Request) -> Response:
            asked = request.query_params
            return pages.show(step, max(1, small_number(asked.get("page", "1"))), asked.get("said", ""))

        return show

    return [get("/static/{name}", static), *(get(f"/{step}", shown(step)) for step in UPTO)]


def _upload(pages: Pages, limit: int) -> Route:
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

    return Route(UPLOAD, upload, methods=["POST"])


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


def _live_parts(pages: Pages) -> list[Route]:
    margins = MarginCurves()

    def progress(_: Request) -> Response:
        job = pages.desk.progress
        if job is None:
            done = pages.desk.finished
            return JSONResponse({"done": True, "taken": done is not None and done.is_taken})
        return JSONResponse({"done": False, "stage": job.stage, "fraction": job.fraction})

    def margin(request: Request) -> Response:
        look, draft = pages.desk.peek(), pages.desk.draft
        if draft is None:
            return JSONResponse({})
        try:
            return JSONResponse(margins.at(look, draft.spec.mechanism, request.query_params.get("epsilon", "")))
        except KeepsumError as error:
            return JSONResponse({"problem": pages.desk.say(str(error))})

    def curve(_: Request) -> Response:
        look, draft = pages.desk.peek(), pages.desk.draft
        if draft is None or look.measured is None:
            return JSONResponse({"svg": "", "done": True})
        points, done = margins.curve(look, draft.spec.mechanism)
        return JSONResponse({"svg": curve_svg(points) if points else "", "done": done})

    return [get("/progress", progress), get("/margin", margin), get("/curve", curve)]
