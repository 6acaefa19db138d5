"""A page that is served, and a real browser that opens it: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from keepsum.desk.desk import Desk
from keepsum.desk.guards import Guard
from keepsum.desk.serving import listen, server_of
from support import HANG


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a file; while it runs, no other loop may."""
    from playwright.sync_api import sync_playwright  # here, because without chromium nothing needs it

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def link(desk: Desk) -> Iterator[Callable[[], str]]:
    """New links to a page that is served meanwhile."""
    listening = listen(0)
    listening.listen()  # whoever comes before the server is ready waits
    guard = Guard(listening.getsockname()[1])
    server = server_of(desk, guard, print)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
    thread.start()
    yield guard.new_link
    server.should_exit = True
    thread.join(HANG)


@pytest.fixture
def show(need: Callable[[str], None], request: pytest.FixtureRequest, link: Callable[[], str]) -> Iterator[Any]:
    """Open the page; whatever the console says, and whatever is asked of another host, fails the test."""
    need("chromium")
    running = request.getfixturevalue("chromium")
    contexts, complaints, requests = [], [], []

    def open_page(width: int = 1280, **options: Any) -> Any:
        context = running.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * HANG)
        appeared = page.wait_for_selector

        def wait_for_selector(*what: Any, **options: Any) -> Any:
            """Until the page has it and its script has run: whoever is quicker chooses a file that nothing sees."""
            found = appeared(*what, **options)
            page.wait_for_load_state()
            return found

        page.wait_for_selector = wait_for_selector
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: requests.append(asked.url))
        page.goto(link())
        page.wait_for_url("**/table")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    own = link().split("/?")[0]
    assert [url for url in requests if not url.startswith((own, "data:", "blob:"))] == []
