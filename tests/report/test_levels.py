"""The rows of a report for the levels of a focus, against the law of the noise."""

import re

from keepsum.report.page import level_words
from report.samples import html_by_name


def test_a_row_for_each_focus_and_for_cells(sample, facts):
    plan, levels = sample("focus").plan, facts("focus").levels
    accuracy = plan.accuracy()
    assert [level.name for level in levels] == [*(level.totals for level in plan.mechanism.focus), "cells"]
    for level, row in zip(levels, [*(row.accuracy for row in accuracy.levels), accuracy], strict=True):
        assert (level.typical, level.number) == (row.typical, len(row.margins))
        assert (level.smallest, level.largest) == (row.margins.min(), row.margins.max())
    assert [level.epsilon for level in levels] == ["0.1", "0.1", "0.3"]


def test_the_page_shows_them_with_the_law_and_losses_within_totals(facts):
    html = html_by_name("focus")
    text = " ".join(re.sub("<[^>]*>", " ", html).split())
    stated = facts("focus")
    for level in stated.levels:
        assert (
            f"{level.name} {level.number} {level.epsilon} ±{level.typical} ±{level.smallest} ±{level.largest}" in text
        )
    assert level_words(stated) in text
    assert stated.privacy.law.replace("-", "−") in text
    assert stated.privacy.within
    for what, words in stated.privacy.within:
        assert what.startswith("within one total of")
        assert f"A change {what} {words}" in text


def test_a_release_without_a_focus_has_none(facts):
    assert facts("margins").levels == ()
    assert facts("margins").privacy.within == ()
    assert 'id="levels"' not in html_by_name("margins")
