"""The pages as HTML: templates, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from keepsum.desk import table_views, views
from keepsum.desk.deriving import MARGINS, READY, TABLE, Look
from keepsum.desk.desk import Desk
from keepsum.desk.grids import Grid, Shown, grid_of, signed
from keepsum.desk.guards import Guard

# How far a draft is worked out for the page of each step.
UPTO = {"table": TABLE, "keep": MARGINS, "privacy": MARGINS, "preview": READY, "release": READY}
VIEWS: dict[str, Callable[[Desk, Look], dict[str, Any]]] = {
    "table": table_views.table_view,
    "keep": table_views.keep_view,
    "privacy": views.privacy_view,
    "preview": views.preview_view,
    "release": views.release_view,
}
TOO_LARGE = (
    "A file must have at most {limit:,} bytes to be opened in the page, and this one has more. Use the shell: keepsum "
    "release."
)


class Pages:
    """The pages of a desk."""

    def __init__(self, desk: Desk, guard: Guard, limit: int) -> None:
        self.desk, self.guard = desk, guard
        self.limit = limit  # bytes of an upload
        self.message: str | None = None  # what the next page says, such as why a form was refused
        self._environment = Environment(
            loader=PackageLoader("keepsum.desk"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["number"] = signed

    def show(self, step: str, page: int = 1) -> HTMLResponse:
        """The page of a step; ``page`` is that of the picture of the table."""
        look = self.desk.look(UPTO[step])
        message, self.message = self.message, None
        context = views.common(self.desk, step, look, message) | VIEWS[step](self.desk, look)
        context |= {"base": self.guard.base, "csrf": self.guard.csrf, "grid": self._grid(step, look, page)}
        context |= {"limit": self.limit, "too_large": TOO_LARGE.format(limit=self.limit)}
        return HTMLResponse(self._environment.get_template(f"{step}.html.j2").render(context))

    def to(self, step: str) -> RedirectResponse:
        """Go to the page of a step, after a form."""
        return RedirectResponse(f"{self.guard.base}/{step if step in UPTO else 'table'}", status_code=303)

    def _grid(self, step: str, look: Look, page: int) -> Grid | None:
        """The picture of the table: without numbers, with made-up noise, or with the released counts."""
        if step == "release":
            done = self.desk.finished
            if done is None:
                return None
            shown = Shown(done.drawn.table.counts, done.accuracy.margins, done.plan.pinned)
            return grid_of(done.drawn.table.domain, done.plan.invariants, page, shown)
        if look.table is None or step not in ("keep", "preview"):
            return None
        pinned = None if look.plan is None else look.plan.pinned
        bounds = None if look.measured is None else look.measured.bounds
        if step == "keep":
            return grid_of(look.table.domain, look.kept, page, Shown(None, None, pinned, bounds))
        if look.plan is None or look.measured is None:
            return None
        from keepsum.sampling.core.rng import rng

        (noise,) = look.plan.blocks.sample(1, rng())  # by itself, as if all counts were 0
        return grid_of(look.table.domain, look.kept, page, Shown(noise, look.measured.accuracy.margins, pinned))
