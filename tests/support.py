"""Helpers that more than one test file uses."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import keepsum as ks

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
