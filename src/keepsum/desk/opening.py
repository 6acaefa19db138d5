"""The page in the user's browser, whose command line every user of the machine can read: so the link is not on it."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">'
    '<title>Keepsum</title><p><a href="{link}">Open the page</a></p></html>'
)


def has_screen() -> bool:
    """Whether there is a screen: without one, a browser may be a program that takes the terminal."""
    others = sys.platform in ("darwin", "win32")
    return others or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def opened(link: str) -> Iterator[Path | None]:
    """Open a link in the browser, through a file that only its owner may read, for as long as the context lasts."""
    if not has_screen():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="keepsum-") as folder:  # which only its owner may enter
        file = Path(folder) / "open.html"
        file.write_text(PAGE.format(link=html.escape(link)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield file
