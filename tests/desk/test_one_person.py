"""What the page says of one person where nothing can be stated, and against whom a loss does not hold."""

from __future__ import annotations

import html
import json
from itertools import product

from desk.asking import PERSON, Browser, opened
from keepsum.desk.desk import Desk

NOT_KNOWN = "No per-person loss is stated: how far a change of a or b or c reaches is not known for these totals."
WEAK = "; for b not against somebody who knows the attributes of others."
PAIRS = {("a", "b"): "0,1", ("a", "c"): "0,2", ("b", "c"): "1,2"}  # as the step Keep names them


def kept(n: int, *pairs: tuple[str, str]) -> tuple[Browser, Desk]:
    """A page with a table of n categories on each of three axes, of which it keeps these margins."""
    browser, desk = opened()
    rows = [f"a{i},b{j},c{k},{40 + i * j + k}" for i, j, k in product(range(n), repeat=3)]
    browser.upload("t.csv", "\n".join(["a,b,c,n", *rows]).encode())
    browser.page("/table")
    browser.form("/keep", {"margin": [PAIRS[pair] for pair in pairs]}, "keep")
    assert desk.draft.spec.keep.margins == [list(pair) for pair in pairs]
    return browser, desk


def test_a_loss_that_is_not_known_for_one_person_has_its_way_out_as_a_button():
    """All two-way margins of 4 x 4 x 4: the page asks for the loss of one person if nobody says otherwise."""
    browser, desk = kept(4, *PAIRS)
    page = html.unescape(browser.page("/privacy"))
    assert "The loss for a change of a is not known for these totals. Ask for a loss per unit of distance" in page
    assert "per_unit" not in page
    assert "Make epsilon the loss per unit of distance" in page
    browser.form("/privacy", PERSON | {"kind": "gaussian", "delta": "1e-6"})  # exact, and soon prepared
    browser.form("/fix", {"number": "0"}, "privacy")
    assert desk.draft.spec.mechanism.per_unit is True
    page = html.unescape(browser.page("/privacy"))
    assert (
        f"No limit is guaranteed to what the released counts say about one person. <small>{NOT_KNOWN}</small>" in page
    )
    assert '<span id="person"></span>' in page
    assert json.loads(browser.get("/margin?epsilon=0.5").text)["person"] is None
    assert NOT_KNOWN in html.unescape(browser.page("/release"))


def test_a_large_loss_is_not_made_that_of_one_person_where_none_is_stated():
    browser, _ = kept(4, *PAIRS)
    page = browser.form("/privacy", {"epsilon": "20", "reading": "unit", "kind": "gaussian", "delta": "1e-6"})
    assert "The loss per unit of distance is epsilon 20, delta 1e-6, above 10" in page
    assert "the loss of one person" not in page.partition('<form method="post" action')[0]
    assert "Make epsilon 0.1 the loss per unit of distance" in page


def test_whom_a_loss_does_not_hold_against_is_said_at_each_step_that_states_it():
    browser, _ = kept(2, ("a", "b"), ("b", "c"))
    browser.form("/privacy", PERSON)
    for step in ("/privacy", "/release"):
        assert WEAK in html.unescape(browser.page(step))
    assert WEAK[2:-1] in html.unescape(browser.page("/preview"))
    assert json.loads(browser.get("/margin?epsilon=0.5").text)["person"] == "epsilon 0.5"
