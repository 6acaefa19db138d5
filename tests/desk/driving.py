"""What a user does in the browser."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = ["Table", "Keep", "Privacy", "Preview", "Release"]


def settled(page: Any) -> Any:
    """The page once nothing is at work."""
    page.wait_for_selector("#progress", state="detached")
    return page


def until(page: Any, holds: Callable[[], bool]) -> None:
    """Wait for something; the page's policy lets nothing wait within it."""
    while not holds():
        page.wait_for_timeout(50)


def go(page: Any, step: str) -> Any:
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=step).click()
    page.wait_for_url(f"**/{step.lower()}*")
    return settled(page)


def downloaded(page: Any, folder: Path) -> Path:
    with page.expect_download() as download:
        page.locator("#download").click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        archive.extractall(folder)
    return folder / "release"


def on(page: Any) -> Any:
    """The next step, by its button."""
    address = page.locator("#next").get_attribute("href")
    page.locator("#next").click()
    page.wait_for_url(f"**{address}")
    return settled(page)


def choose(page: Any, name: str, data: bytes) -> Any:
    """Choose a file."""
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})
    return page
