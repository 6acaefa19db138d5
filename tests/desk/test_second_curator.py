"""What a second curator who saw the page for the first time stumbled over, and what the page does about it now."""

from __future__ import annotations

import re

from desk.asking import opened

CHILDREN = "county,education,n\n" + "".join(f"{c},{e},9\n" for c in "ab" for e in "xyz")


def counts():
    """A browser with a table of counts."""
    browser, desk = opened()
    browser.upload("t.csv", CHILDREN.encode())
    browser.page("/table")
    return browser, desk


def test_no_tick_moves_when_one_is_set():
    browser, _ = counts()
    pages = [browser.page("/keep"), browser.form("/keep", {"total": "1"})]
    above = [re.search(r"<h1>.*<legend>Keep the totals of", page, re.S)[0] for page in pages]
    hidden = [re.sub(r"<input[^>]*>", "", part) for part in above]
    assert hidden[0] == hidden[1]
    assert pages[0].index('id="picture"') < pages[0].index("Tick at least one total.")
