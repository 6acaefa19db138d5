"""The release: made once, shown, downloaded, and saved to a folder if the user asks for that."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from keepsum.desk import forms
from keepsum.desk.pages import Pages
from keepsum.desk.posting import FORM, Form, version_of
from keepsum.errors import InputError, KeepsumError


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
            self.pages.message = action()
        except KeepsumError as error:
            self.pages.message = self.desk.say(str(error))
        except OSError as error:
            self.pages.message = f"The folder must be one that can be written, but: {error.strerror}."
        return self.pages.to("release")

    def release(self, form: Form = FORM) -> Response:
        """Make the release; a second click gets the same one."""
        return self._doing(lambda: self.desk.release(version_of(form)))

    def again(self, form: Form = FORM) -> Response:
        """Make another release possible."""
        return self._doing(lambda: self.desk.again(version_of(form)))

    def save(self, form: Form = FORM) -> Response:
        """Write it to a folder."""

        def saved() -> str:
            folder, done = forms.one(form, "folder"), self.desk.finished
            if not folder or done is None:
                raise InputError("The folder must have a name, such as out. Enter one.")
            try:
                return f"The release is written: {done.save(folder)!r}."
            except KeepsumError as error:
                problem = str(error)
            raise InputError(problem.replace(", or replace it with force=True", ""))  # the page replaces nothing

        return self._doing(saved)

    def download(self) -> Response:
        """All files as one."""
        if self.desk.finished is None:
            return Response(status_code=404)
        headers = {"content-disposition": 'attachment; filename="release.zip"'}
        return Response(self.desk.finished.zipped(), media_type="application/zip", headers=headers)

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
