"""What a second curator who saw the page for the first time stumbled over, and what the page does about it now."""

from __future__ import annotations

import re

from desk.asking import opened
from keepsum._saying import Text, arg, the
from keepsum.specs.faces import on_page

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


def test_an_edited_list_is_declared_only_with_the_words_beside_the_button():
    browser, desk = counts()
    edited = {"axis-0": "county", "labels-0": "a\nb\nc", "axis-1": "education", "labels-1": ""}
    assert "nobody has said so: nothing was declared" in browser.form("/categories", edited)
    assert desk.draft.spec.axes.categories is None
    browser.form("/categories", edited | {"public": "1"})
    assert desk.draft.spec.axes.categories == {"county": ["a", "b", "c"]}


def test_a_missing_number_of_records_is_marked_and_said_well():
    browser, _ = opened()
    browser.upload("p.csv", b"who,sex\n1,f\n2,m\n")
    browser.form("/table", {"rows": "records", "role-0": "unit", "role-1": "axis"})
    page = browser.form("/categories", {"axis-0": "sex", "labels-0": "f\nm"})
    assert re.search('id="most"[^>]* aria-invalid="true"', page)
    assert "must be given together: a guarantee per unit needs both" in page


def test_a_mechanism_is_named_and_sentences_begin_with_a_capital():
    assert on_page(Text(f"By {the.noise('Laplace(epsilon=0.5)')}.")) == "By Laplace noise."
    assert on_page("By Laplace(epsilon=0.5).") == "By Laplace(epsilon=0.5)."  # the name of something
    assert on_page(Text(f"It is so. {arg.epsilon} is wrong.")) == "It is so. Epsilon is wrong."


def test_few_combinations_are_spoken_of_only_where_few_occur():
    browser, _ = counts()
    assert "although few do in this file" not in browser.page("/table")


def test_what_is_shown_of_a_release():
    browser, _ = counts()
    browser.form("/keep", {"total": "1"})
    page = browser.page("/privacy")
    assert "for one person: epsilon" in page
    assert "<code>keepsum app --ledger FILE</code>" in page
    browser.page("/release")
    page = browser.form("/release", {})
    assert re.search("(counts are|count is) negative, because the noise is unbiased|No count came out negative", page)
    assert "~/release" not in page
    assert '"taken":false' in browser.get("/progress").text
    browser.get("/release.zip")
    assert '"taken":true' in browser.get("/progress").text
