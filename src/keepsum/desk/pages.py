"""The pages as HTML: templates, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from keepsum.desk import table_views, views
from keepsum.desk.deriving import MARGINS, READY, TABLE
from keepsum.desk.desk import Desk, Scene
from keepsum.desk.grids import PictureContent, TablePicture, grid_of
from keepsum.desk.guards import Guard
from keepsum.desk.tokens import ROOM, unguessable
from keepsum.report.page import number
from keepsum.sampling.core.rng import rng
from keepsum.specs.options import OPTIONS

# How far a draft is worked out for the page of each step.
UPTO = {"table": TABLE, "keep": MARGINS, "privacy": MARGINS, "preview": READY, "release": READY}
VIEWS: dict[str, Callable[[Scene], dict[str, Any]]] = {
    "table": table_views.table_view,
    "keep": table_views.keep_view,
    "privacy": views.privacy_view,
    "preview": views.preview_view,
    "release": views.release_view,
}
MOST_MESSAGES = 50  # that nobody has come for
TOO_LARGE = (
    "A file must have at most {limit:,} bytes to be opened in the page, and this one has more. Use the shell: keepsum "
    "release."
)


@dataclass(frozen=True)
class LinkMessage:
    """A message that is a link for another browser."""

    link: str


class Pages:
    """The pages of a desk."""

    def __init__(self, desk: Desk, guard: Guard, limit: int) -> None:
        self.desk, self.guard = desk, guard
        self.limit = limit  # bytes of an upload
        self._messages: dict[str, str | LinkMessage] = {}  # by the word in the address of the page that shows it, once
        self._environment = Environment(
            loader=PackageLoader("keepsum.desk"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["number"] = number
        self._environment.globals["options"] = OPTIONS

    def show(self, step: str, page: int = 1, said: str = "") -> HTMLResponse:
        """The page of a step; ``page`` is that of the picture of the table, ``said`` names a message (see ``to``)."""
        self.desk.open(step)
        scene = self.desk.scene(UPTO[step])
        # While something is at work the page is loaded again by itself, and still has to say it.
        message = (self._messages.get if scene.progress is not None else self._messages.pop)(said, None)
        context = views.common(scene, step, message) | VIEWS[step](scene)
        context |= {"base": self.guard.base, "csrf": self.guard.csrf, "grid": _grid(scene, step, page)}
        context |= {"limit": self.limit, "too_large": TOO_LARGE.format(limit=self.limit)}
        return HTMLResponse(self._environment.get_template(f"{step}.html.j2").render(context))

    def to(self, step: str, message: str | LinkMessage | None = None) -> RedirectResponse:
        """Go to the page of a step, after a form; a message is for whoever sent the form, and for no other tab."""
        address = f"{self.guard.base}/{step if step in UPTO else 'table'}"
        if message is not None:
            word = unguessable(ROOM)
            self._messages[word] = message
            while len(self._messages) > MOST_MESSAGES:
                self._messages.pop(next(iter(self._messages)), None)
            address += f"?said={word}{'#new-link' if isinstance(message, LinkMessage) else ''}"
        return RedirectResponse(address, status_code=303)


def _grid(scene: Scene, step: str, page: int) -> TablePicture | None:
    """The picture of the table: without numbers, with made-up noise, or with the released counts."""
    if step == "release":
        done = scene.finished
        if done is None:
            return None
        shown = PictureContent(done.drawn.table.counts, done.accuracy.margins, done.plan.pinned, None, done.edges)
        return grid_of(done.drawn.table.domain, done.plan.invariants, page, shown)
    look = scene.look
    if look.table is None or step not in ("keep", "preview"):
        return None
    pinned = None if look.plan is None else look.plan.pinned
    bounds = None if look.measured is None else look.measured.bounds
    if step == "keep":
        return grid_of(look.table.domain, look.kept, page, PictureContent(None, None, pinned, bounds))
    if look.plan is None or look.measured is None:
        return None
    (noise,) = look.plan.blocks.sample(1, rng())  # by itself, as if all counts were 0
    return grid_of(look.table.domain, look.kept, page, PictureContent(noise, look.measured.accuracy.margins, pinned))
