"""The release: made once, shown, downloaded, and saved to a folder if the user asks for that."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from keepsum._arguments import check_path
from keepsum.desk import forms
from keepsum.desk.finished import Finished
from keepsum.desk.guards import Message, Receive, Send
from keepsum.desk.pages import Pages
from keepsum.desk.posting import FORM, Form, version_of
from keepsum.errors import InputError, KeepsumError

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


class Taking:
    """What is done with a release."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.desk = pages, pages.desk

    def add_to(self, app: FastAPI) -> None:
        """Add the addresses."""
        app.post("/release")(self.release)
        app.post("/again")(self.again)
        app.post("/save")(self.save)
        app.get("/release.zip")(self.download)
        app.get("/report")(self.report)

    def _doing(self, action: Callable[[], str | None]) -> Response:
        """Do something, and say what was done or why not."""
        try:
            message = action()
        except KeepsumError as error:
            message = self.desk.say(str(error))
        except OSError as error:
            message = f"The folder must be one that can be written, but: {error.strerror}."
        return self.pages.to("release", message)

    def release(self, form: Form = FORM) -> Response:
        """Make the release; a second click gets the same one."""
        return self._doing(lambda: self.desk.release(version_of(form), form.get("know", [])))

    def again(self, form: Form = FORM) -> Response:
        """Make another release possible."""
        return self._doing(lambda: self.desk.again(version_of(form)))

    def save(self, form: Form = FORM) -> Response:
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

    def download(self) -> Response:
        """All files as one."""
        done = self.desk.finished
        if done is None or not done.files:
            return Response(status_code=404)
        return Download(done)

    def report(self) -> Response:
        """The report, under the policy that it states itself."""
        report = None if self.desk.finished is None else self.desk.finished.report
        if report is None:
            return Response(status_code=404)
        return HTMLResponse(report, headers={"content-security-policy": own_policy(report)})


def own_policy(report: str) -> str:
    """The policy of a report, which allows its own script and style by their hashes; it may use nothing of the page."""
    start = report.index('content="', report.index("Content-Security-Policy")) + len('content="')
    policy = report[start : report.index('"', start)].replace("&#39;", "'")
    return f"{policy}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
