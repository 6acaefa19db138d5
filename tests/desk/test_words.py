"""What the page says is in its own terms: no options of the shell, no arguments, no sentence that nobody understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import keepsum as ks
from desk.asking import CHILDREN, PERCENT, PERSON, opened
from keepsum._saying import Text, arg, the
from keepsum.specs.faces import CALLS, on_page
from keepsum.specs.options import OPTIONS
from support import mostly_audit

DESK = Path(ks.__file__).parent / "desk"


ARGUMENTS = sorted({option.argument for option in OPTIONS.values()})


@pytest.mark.parametrize("name", [*ARGUMENTS, "force", "patient", "ledger", "target_moe"])
def test_no_message_has_an_option_or_an_argument(name):
    option = arg[name]
    for message in (
        f"{option} must be so.",
        f"Do it {option:with} or {option:by}.",
        f"{option:Leave out}, or {option:pass}.",
    ):
        said = on_page(Text(message))
        assert "--" not in said
        assert not re.search(r"\b[a-z_]+=", said)
        assert said[0].isupper()


@pytest.mark.parametrize("name", [*CALLS, "ks.Table.from_frame", "noise.interval"])
def test_no_message_has_a_call(name):
    said = on_page(Text(f"See {the.call(name)}."))
    assert not re.search(r"ks\.|\w\.\w+\(|--", said)


TROUBLE = {
    "numbers": PERCENT,
    "wide": b"place,a,b\nx,1,2\ny,3,4\n",
    "nested": b"state,county,n\nA,a,3\nA,b,4\nB,c,9\nB,d,2\n",
    "same": b"county,fips,n\na,x1,3\nb,x2,4\nc,x3,9\n",
    "totals": CHILDREN + b"Total,Low,50\nTotal,Medium,35\nTotal,High,30\nTotal,Very High,20\n",
    "blank": CHILDREN + b"Total,,135\n",
    "sparse": "\n".join(["a,b,c,n", *(f"a{k},b{k * 7 % 31},c{k * 11 % 37},5" for k in range(60))]).encode(),
    "encoding": "région,n\nÎle,5\nsud,9\n".encode("windows-1252"),
    "no rows": b"place,n\n",
    "axis": b"n\n4\n",
}


def without_shell(page):
    """A page without what it shows of the shell."""
    return re.sub("(?s)<pre.*?</pre>|<code>keepsum app --ledger FILE</code>", "", page)


@mostly_audit("name", TROUBLE)
def test_no_page_has_an_option_but_where_the_shell_is_shown(name):
    browser, desk = opened()
    browser.upload("t.csv", TROUBLE[name])
    browser.page("/table")
    assert desk.peek().problem is not None
    for step in ("table", "keep", "privacy", "preview", "release"):
        page = without_shell(browser.page(f"/{step}"))
        assert "--" not in page
        assert not re.search(rf"\b(with|Pass|pass|out) ({'|'.join(ARGUMENTS)})=", page)


@pytest.mark.parametrize("fields", [{"epsilon": ""}, {"epsilon": "x"}, {"kind": "gaussian", "delta": "2"}])
def test_no_message_about_the_noise_has_an_option(fields):
    browser, _ = opened()
    browser.form("/example", {"name": "children"})
    page = without_shell(browser.form("/privacy", PERSON | fields))
    assert 'class="trouble"' in page
    assert "--" not in page


UNCLEAR = (
    "whose any attribute could be different",
    "a unit of distance",
    "a code of ",
    "Every combination of categories is a cell",
    "the chance that is left out",
    "Take it away",
)


def test_sentences_that_nobody_understood_are_gone():
    texts = [path.read_text() for path in [*(DESK / "templates").iterdir(), DESK / "views.py"]]
    assert [words for words in UNCLEAR for text in texts if words in text] == []
