"""Releases that reports are made of: those that must verify for good, and one with hostile labels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import keepsum as ks
from keepsum.report.facts import ReportFacts, facts_of
from keepsum.report.page import Names, page

SAMPLES = Path(__file__).parent.parent / "certificates"
HOSTILE = [
    "</script><script>document.title = 'harmed'</script>",
    "<img src=x onerror=\"document.title='harmed'\">",
    '=HYPERLINK("http://example.org")',
    'quote " comma , line\nfeed',
    "\u202eright to left",
    "{{ 7 * 7 }}",
    "'); document.title = 'harmed'; //",
    "x" * 300,
]


@cache
def release_of(name: str) -> ks.Release:
    if name in ("hostile", "long"):
        return hostile() if name == "hostile" else long()
    return ks.read_release(SAMPLES / name)


def hostile() -> ks.Release:
    """Labels, and names of columns, that would do harm where they are not taken for text."""
    axes = {"<b>place": HOSTILE, "a&b": ["<!--", "]]>"]}
    table = ks.Table.from_array([[40 * i + j for j in (5, 9)] for i in range(8)], axes=axes, count="<i>n</i>")
    return ks.release(table, keep=["<b>place"], mechanism=ks.Laplace.per_unit(epsilon=0.5), rng=ks.rng(seed=19))


def long() -> ks.Release:
    """A table of several pages, with a nested axis whose labels repeat, and a cell without noise."""
    counties = {f"State {s}": [f"County {c}" for c in range(1, 30 * s)] for s in (1, 2, 3)} | {"Alone": ["County 1"]}
    domain = ks.Domain({"state": list(counties), "county": counties}, within={"county": "state"})
    table = ks.Table.from_array([(37 * k) % 101 for k in range(domain.size)], axes=domain)
    return ks.release(
        table, keep=["state"], mechanism=ks.Laplace.per_unit(epsilon=0.5), accept_pinned="all", rng=ks.rng(seed=19)
    )


@cache
def html_by_name(name: str) -> str:
    return page(facts_by_name(name), Names(), ks.__version__)


@cache
def facts_by_name(name: str) -> ReportFacts:
    release = release_of(name)
    return facts_of(release._record, release.plan._record)
