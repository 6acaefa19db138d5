"""Helpers that more than one test file uses."""

from __future__ import annotations

import shutil
from collections.abc import Callable

# How to tell that an outside service is there.
SERVICES: dict[str, Callable[[], bool]] = {
    "chromium": lambda: shutil.which("chromium") is not None,
}


def missing_service(name: str, required: str) -> str | None:
    """What to do about a service that is not there: 'fail' where KEEPSUM_REQUIRE names it, else 'skip'."""
    if SERVICES[name]():
        return None
    return "fail" if name in required.replace(",", " ").split() else "skip"
