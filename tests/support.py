"""Helpers that more than one test file uses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import keepsum as ks

# Seconds after which a process or a thread is given up, far more than any takes on the busiest machine: it ends what
# would never end. No test is about time.
HANG = 3600

# How to tell that an outside service is there.
SERVICES: dict[str, Callable[[], bool]] = {
    "chromium": lambda: shutil.which("chromium") is not None,
}


def margins(*shape: int) -> ks.Invariants:
    """A table of that shape under all its margins of one way less."""
    axes = [f"x{k}" for k in range(len(shape))]
    domain = ks.Domain({axis: list(range(n)) for axis, n in zip(axes, shape, strict=True)})
    return ks.Invariants.margins(domain, [[a for a in axes if a != left] for left in axes])


def missing_service(name: str, required: str) -> str | None:
    """What to do about a service that is not there: 'fail' where KEEPSUM_REQUIRE names it, else 'skip'."""
    if SERVICES[name]():
        return None
    return "fail" if name in required.replace(",", " ").split() else "skip"


def titles_inside(figure: Any) -> bool:
    """Whether every title lies in the box of its figure, as it is written to a file."""
    figure.draw_without_rendering()
    titles = [title for axes in figure.axes for title in (axes.title, axes._left_title) if title.get_text()]
    assert titles
    boxes = [title.get_window_extent() for title in titles]
    edge = figure.bbox
    return all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= edge.x1 and box.y1 <= edge.y1 for box in boxes)
