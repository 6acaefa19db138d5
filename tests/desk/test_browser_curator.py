"""What a curator does with the keyboard: typing that is not lost, and cells that are one stop of the Tab key."""

from __future__ import annotations

import pytest

from desk.driving import choose, downloaded, go, settled, until


def test_what_is_typed_stays_until_it_is_declared(show, desk):
    page = show()
    choose(page, "people.csv", b"sex,clinic\nf,A\nm,B\n")
    page.get_by_role("button", name="Each row is a record").click()
    page.wait_for_selector("#labels-1")
    page.fill("#labels-0", "f\nm")
    page.check("#alone")  # another form, which is sent at once
    until(page, lambda: desk.draft.spec.records.max_rows_per_unit == 1)
    until(page, lambda: page.locator("#alone").is_checked())
    assert page.input_value("#labels-0") == "f\nm"
    page.fill("#labels-1", "A\nA")
    page.get_by_role("button", name="Declare these categories").click()
    page.wait_for_selector(".said")  # refused
    assert [page.input_value(f"#labels-{k}") for k in (0, 1)] == ["f\nm", "A\nA"]
    page.fill("#labels-1", "A\nB")
    page.get_by_role("button", name="Declare these categories").click()
    page.wait_for_selector("text=4 cells")
    assert desk.draft.spec.axes.categories == {"sex": ["f", "m"], "clinic": ["A", "B"]}


def test_lists_are_read_from_a_file_into_the_page(show, desk):
    page = show()
    choose(page, "people.csv", b"sex,clinic\nf,A\nm,B\n")
    page.get_by_role("button", name="Each row is a record").click()
    page.get_by_text("All lists at once").click()
    lists = {"name": "lists.toml", "mimeType": "text/plain", "buffer": b'sex = ["f", "m"]\nclinic = ["A", "B"]\n'}
    page.locator("#lists-file").set_input_files(lists)
    until(page, lambda: page.input_value("#all-lists").startswith("sex"))
    page.get_by_role("button", name="Declare these lists").click()
    until(page, lambda: desk.draft.spec.axes.categories is not None)
    assert desk.draft.spec.axes.categories == {"sex": ["f", "m"], "clinic": ["A", "B"]}


def test_cells_are_one_stop_and_arrows_move_within_them(show):
    page = show()
    page.locator("#example-children").click()
    page.wait_for_selector("#meaning")
    go(page, "Keep")
    assert page.locator('.pick[tabindex="0"]').count() == 1

    def at() -> str:
        return page.locator(":focus").get_attribute("data-cell") or ""

    page.locator(".pick").first.focus()
    for key, cell in (("ArrowRight", "1"), ("ArrowDown", "5"), ("End", "7"), ("ArrowRight", "7"), ("Home", "4")):
        page.keyboard.press(key)
        assert at() == cell
    page.keyboard.press("Space")
    assert page.locator('.pick[aria-pressed="true"]').get_attribute("data-cell") == "4"
    assert page.locator('.pick[tabindex="0"]').get_attribute("data-cell") == "4"
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("id") == "set-name"


@pytest.mark.audit
def test_the_page_says_that_a_download_was_taken(show, tmp_path):
    page = show()
    page.locator("#example-children").click()
    go(page, "Release")
    page.get_by_role("button", name="Release the table").click()
    page.wait_for_selector("#download")
    settled(page)
    downloaded(page, tmp_path)
    page.get_by_text("You have a copy of it.").wait_for()
    assert page.get_by_text("was not downloaded or saved").count() == 0
