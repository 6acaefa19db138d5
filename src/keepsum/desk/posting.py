"""Forms: each changes the draft and goes back to its page, which says why if it was refused."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs

from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response

from keepsum.desk import categories, forms, views
from keepsum.desk.deriving import COLUMNS, TABLE
from keepsum.desk.examples import EXAMPLES
from keepsum.desk.fixes import fixes_for
from keepsum.desk.pages import Link, Pages
from keepsum.desk.table_views import counted_by
from keepsum.errors import InputError, KeepsumError
from keepsum.specs.spec import Spec

Form = dict[str, list[str]]


async def form_of(request: Request) -> Form:
    """The fields of a form."""
    return parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)


FORM = Depends(form_of)


def version_of(form: Form) -> int:
    """The version that a form was made from; -1 if it does not say."""
    return forms.small_number(forms.one(form, "version"))


class Posting:
    """What forms do."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.desk = pages, pages.desk

    def add_to(self, app: FastAPI) -> None:
        """Add the addresses of all forms."""
        for path, answer in {
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
        }.items():
            app.post(path)(answer)

    def _changing(self, step: str, form: Form, change: Callable[[Spec], Spec]) -> Response:
        """Change the draft, or say at the step why not."""
        try:
            self.desk.change(version_of(form), change)
        except KeepsumError as error:
            return self.pages.to(step, self.desk.say(str(error)))
        return self.pages.to(step)

    def example(self, form: Form = FORM) -> Response:
        """Begin with an example."""
        chosen = EXAMPLES.get(forms.one(form, "name"))
        if chosen is not None:
            self.desk.put(*chosen.make())
        return self.pages.to("table")

    def meaning(self, form: Form = FORM) -> Response:
        """What rows and columns are."""
        header = self.desk.look(COLUMNS).header
        names = [] if header is None else header.names
        return self._changing("table", form, lambda spec: forms.meaning(spec, form, names))

    def categories(self, form: Form = FORM) -> Response:
        """The categories of all columns."""
        return self._changing("table", form, lambda spec: categories.declared(spec, form))

    def lists(self, form: Form = FORM) -> Response:
        """The categories of several columns from one text."""
        look = self.desk.look(TABLE)
        return self._changing("table", form, lambda spec: categories.from_text(spec, form, counted_by(spec, look)))

    def undo(self, form: Form = FORM) -> Response:
        """Something that was said of how the file is read is not said any more."""
        answer = self._changing("table", form, lambda spec: forms.undone(spec, forms.one(form, "what")))
        self.desk.guess()
        return answer

    def start_over(self, form: Form = FORM) -> Response:
        """Back to the choice of a table."""
        try:
            self.desk.start_over(version_of(form), "sure" in form)
        except KeepsumError as error:
            return self.pages.to(forms.one(form, "step"), self.desk.say(str(error)))
        return self.pages.to("table")

    def totals(self, form: Form = FORM) -> Response:
        """The margins to keep."""
        table = self.desk.look(TABLE).table
        axes = () if table is None else table.domain.axes
        return self._changing("keep", form, lambda spec: forms.totals(spec, form, axes))

    def add_set(self, form: Form = FORM) -> Response:
        """Keep the total of a set of cells."""
        table = self.desk.look(TABLE).table
        if table is None:
            return self.pages.to("table")
        return self._changing("keep", form, lambda spec: forms.add_set(spec, form, table.domain))

    def drop_set(self, form: Form = FORM) -> Response:
        """Keep the total of a set of cells no more."""
        return self._changing("keep", form, lambda spec: forms.drop_set(spec, form))

    def noise(self, form: Form = FORM) -> Response:
        """The mechanism."""
        table = self.desk.look(TABLE).table
        levels = [] if table is None else views.levels_of(table.domain)
        return self._changing("privacy", form, lambda spec: forms.noise(spec, form, levels))

    def fix(self, form: Form = FORM) -> Response:
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

    def stop(self, form: Form = FORM) -> Response:
        """Stop the work in the background."""
        self.desk.stop()
        return self.pages.to(forms.one(form, "step"))

    def resume(self, form: Form = FORM) -> Response:
        """Go on with it."""
        self.desk.resume()
        return self.pages.to(forms.one(form, "step"))

    def link(self, form: Form = FORM) -> Response:
        """A link for another browser."""
        return self.pages.to(forms.one(form, "step"), Link(self.pages.guard.new_link()))
