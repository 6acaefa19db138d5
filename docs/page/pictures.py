"""The pictures of docs/page.md and README.md: `python -m docs.page.pictures` takes them anew beside this file.

Each picture carries the words that it shows, so that a test can tell when the page says something else.
"""

from __future__ import annotations

import io
import math
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from keepsum.desk import margins
from keepsum.desk.desk import Desk
from keepsum.desk.guards import Guard
from keepsum.desk.margins import VALUES
from keepsum.desk.serving import listen, server_of

HERE = Path(__file__).parent
STEPS = {"keep": "#picture", "privacy": ".plainly"}  # the steps that are shown, each down to this part of it
WIDTH, EDGE = 1000, 24  # of a picture, and of the paper below the last part, in pixels
WORDS = "Description"  # the field of a PNG file that has the words

TO_LAST = """last => {
    const end = document.querySelector(last), found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode, place = end.compareDocumentPosition(text);
        if (place & Node.DOCUMENT_POSITION_FOLLOWING && !end.contains(text)) break;
        if (text.parentElement.checkVisibility() && !text.parentElement.closest("svg")) found.push(text.textContent);
    }
    return found.join(" ");
}"""  # a curve has as many points as were quick enough to work out, so its labels are left out


def words(page: Any, step: str) -> str:
    """What a step says, down to the last part that its picture shows."""
    return " ".join(page.evaluate(TO_LAST, STEPS[step]).split())


def words_of(picture: Path) -> str:
    """What the page said when a picture was taken."""
    with Image.open(picture) as image:
        return str(image.info.get(WORDS, ""))


def take(page: Any, step: str, path: Path) -> None:
    """Take the picture of a step that is open."""
    box = page.locator(STEPS[step]).bounding_box()
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": math.ceil(box["y"] + box["height"]) + EDGE}
    note = PngInfo()
    note.add_itxt(WORDS, words(page, step))
    with Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True))) as image:
        image.save(path, pnginfo=note, optimize=True)


@contextmanager
def served() -> Iterator[str]:
    """A link to a page that is served meanwhile."""
    listening = listen(0)
    listening.listen()
    guard = Guard(listening.getsockname()[1])
    server = server_of(Desk(), guard, print)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    try:
        yield guard.new_link()
    finally:
        server.should_exit = True
        thread.join()


def main(folder: Path) -> None:
    """Take all pictures into a folder, in Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    margins.LONGEST = math.inf  # so that the curve is whole, however busy the machine is
    with served() as link, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800})
        page.goto(link)
        page.locator("#example-children").click()
        page.wait_for_selector("#meaning")
        for step in STEPS:
            page.locator("#next").click()
            page.wait_for_url(f"**/{step}*")
            page.wait_for_selector("#progress", state="detached")
            if step == "privacy":
                points = page.locator("#curve svg > circle, #curve svg g:not(.live) > circle")
                while points.count() < len(VALUES):
                    page.wait_for_timeout(100)
            take(page, step, folder / f"{step}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
