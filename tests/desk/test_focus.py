"""A focus on the page: whatever totals a focus may be on are offered, kept as they were entered, and released."""

from __future__ import annotations

import io
import re
import zipfile

import pytest

import keepsum as ks
from desk.asking import PERSON, opened


def places(page):
    """The field of each total that is offered."""
    return {
        title: f"focus-{place}" for title, place in re.findall(r"<bdi>([^<]*)</bdi> <input name=\"focus-(\d+)\"", page)
    }


def value_of(page, field):
    return re.search(f'name="{field}" id="[^"]*" value="([^"]*)"', page)[1]


def opened_at(name, fix=False):
    browser, desk = opened()
    browser.form("/example", {"name": name})
    if fix:
        browser.form("/fix", {"number": "0"})
    return browser, desk


def certificate(browser):
    browser.page("/release")
    assert "<h1>Released</h1>" in browser.form("/release", {})
    archive = zipfile.ZipFile(io.BytesIO(browser.get("/release.zip").body))
    return ks.Certificate.from_json(archive.read("release/certificate.json"))


def test_what_is_kept_anyway_is_not_offered():
    browser, _ = opened_at("counties", fix=True)  # states are kept, and so is the grand total
    assert list(places(browser.page("/privacy"))) == [
        "county", "sex", "age", "state × sex", "state × age", "county × sex", "county × age", "sex × age",
        "state × sex × age",
    ]  # fmt: skip
    browser.form("/keep", {"total": "1"})
    assert list(places(browser.page("/privacy")))[:2] == ["state", "county"]
    browser.form("/example", {"name": "children"})
    assert places(browser.page("/privacy")) == {}
    assert "Focus" not in browser.page("/privacy")


@pytest.mark.audit
@pytest.mark.parametrize(("kind", "reading"), [("laplace", "person"), ("gaussian", "person"), ("laplace", "unit")])
def test_a_focus_on_nested_totals_is_released(kind, reading):
    browser, desk = opened_at("counties", fix=True)
    field = places(browser.page("/privacy"))["county"]
    page = browser.form(
        "/privacy", {"epsilon": "0.5", "reading": reading, "kind": kind, field: "0.2", "cell_share": "3"}
    )
    assert "trouble" not in page
    assert value_of(page, field) == "0.2"
    assert desk.draft.spec.mechanism.focus == {"county": "0.2"}
    is_shared = reading == "person"
    assert desk.draft.spec.mechanism.cell_share == ("3" if is_shared else None)
    assert ("cell_share=" in browser.page("/release")) == is_shared
    assert certificate(browser).mechanism.focus


def test_the_grand_total_keeps_its_weight():
    browser, desk = opened_at("people")
    browser.form("/keep", {})
    browser.form("/set", {"cells": "0,1", "name": "two"})
    field = places(browser.page("/privacy"))["the whole table"]
    page = browser.form("/privacy", PERSON | {field: "1"})
    assert value_of(page, field) == "1"
    page = browser.form("/privacy", PERSON | {field: value_of(page, field), "nonnegative": "1"})
    assert desk.draft.spec.mechanism.focus == {"": "1"}
    assert "focus={(): &#39;1&#39;}" in browser.page("/release")


@pytest.mark.audit
def test_rows_and_columns_of_a_table_may_both_have_a_focus():
    browser, desk = opened_at("children")
    browser.form("/keep", {"total": "1"})
    fields = places(browser.page("/privacy"))
    page = browser.form("/privacy", PERSON | {fields["county"]: "1", fields["education"]: "1"})
    assert "trouble" not in page
    assert certificate(browser).mechanism.focus
    assert desk.draft.spec.mechanism.focus == {"county": "1", "education": "1"}


@pytest.mark.audit
def test_totals_of_several_axes_may_have_a_focus():
    browser, desk = opened_at("people")
    fields = places(browser.page("/privacy"))
    page = browser.form("/privacy", PERSON | {fields["sex × clinic"]: "1"})
    assert "trouble" not in page
    assert value_of(page, fields["sex × clinic"]) == "1"
    assert desk.draft.spec.mechanism.focus == {"sex,clinic": "1"}
    assert certificate(browser).mechanism.focus


def test_a_focus_on_totals_that_are_kept_later_is_refused_at_its_field_and_can_be_removed():
    browser, _ = opened_at("children")
    browser.form("/keep", {"total": "1"})
    field = places(browser.page("/privacy"))["county"]
    browser.form("/privacy", PERSON | {field: "1"})
    browser.form("/keep", {"margin": ["0", "1"]})
    page = browser.page("/privacy")
    assert 'class="trouble"' in page
    assert value_of(page, field) == "1"
    assert "trouble" not in browser.form("/privacy", PERSON | {field: ""})


def test_no_focus_with_l2_noise():
    browser, desk = opened_at("counties", fix=True)
    field = places(browser.page("/privacy"))["county"]
    page = browser.form("/privacy", PERSON | {"kind": "laplace-l2", field: "1", "cell_share": "2"})
    assert "Focus" not in page
    assert (desk.draft.spec.mechanism.focus, desk.draft.spec.mechanism.cell_share) == (None, None)


@pytest.mark.audit
def test_a_focus_on_several_axes_under_kept_states_is_exact():
    browser, _ = opened_at("counties", fix=True)
    offered = places(browser.page("/privacy"))
    chosen = {offered[axis]: "0.2" for axis in ("county", "sex", "age")}
    page = browser.form("/privacy", {"epsilon": "0.5", "reading": "unit", "kind": "laplace", **chosen})
    assert "trouble" not in page
    made = certificate(browser)
    assert [level.axes for level in made.mechanism.focus] == [["county"], ["sex"], ["age"]]
    assert made.guarantee.sampling.exactness == "exact"
    assert {block.sampler.method for block in made.guarantee.blocks} == {"axis_elimination"}
