"""The pictures in docs/page.md and docs/start.md show the page as it is today; docs/page/pictures.py takes them."""

from __future__ import annotations

import re

from desk.driving import on
from docs.page import pictures
from pages import REPO


def test_pictures_have_the_words_of_the_page(show):
    page = show(pictures.WIDTH)
    page.locator("#example-children").click()
    page.wait_for_selector("#meaning")
    for step in pictures.STEPS:
        on(page)
        assert pictures.words_of(pictures.HERE / f"{step}.png") == pictures.words(page, step), (
            f"the page says something else by now: run python -m docs.page.pictures, and look at {step}.png"
        )


def test_a_picture_ends_where_its_words_do(show, tmp_path):
    page = show(pictures.WIDTH)
    page.locator("#example-children").click()
    page.wait_for_selector("#meaning")
    on(page)
    pictures.take(page, "keep", tmp_path / "keep.png")
    said = pictures.words_of(tmp_path / "keep.png")
    assert said.endswith(page.locator("#picture .note").inner_text())
    assert page.locator("#next").inner_text().split()[0] in said  # a step's name is at the top too,
    assert "Start over" not in said  # but nothing of the foot of the page


def test_every_picture_is_used_and_small():
    pages = "".join((REPO / name).read_text(encoding="utf-8") for name in ("docs/start.md", "docs/page.md"))
    used = re.findall(r"\]\(page/(\w+)\.png", pages)
    assert sorted(used) == sorted(pictures.STEPS) == sorted(path.stem for path in pictures.HERE.glob("*.png"))
    assert all((pictures.HERE / f"{name}.png").stat().st_size < 200_000 for name in used)
