"""The curve of margins against epsilon: the same numbers as the slider gives, drawn at the right places."""

from __future__ import annotations

import json
import re

import pytest

from desk.asking import opened
from keepsum.accuracy.choose import Candidates
from keepsum.desk import margins as module
from keepsum.desk.margins import BOTTOM, LEFT, RIGHT, TOP, VALUES, Scales, curve_svg


def circles(text):
    """The points of a curve, without the mark, which is not on it yet."""
    return [(float(x), float(y)) for x, y in re.findall('<circle [^>]*cx="([^"]*)" cy="([^"]*)"', text)][:-1]


def curve(browser):
    """The curve, once it is complete."""
    while not (answer := json.loads(browser.get("/curve").text))["done"]:
        assert "<svg" in answer["svg"]
    return answer["svg"]


def test_points_are_where_they_belong():
    found = circles(curve_svg([(1.0, 6), (0.01, 633), (10.0, 0)]))
    high = Scales(float(re.search('data-high="([^"]*)"', curve_svg([(0.01, 633)]))[1]))
    assert [x for x, _ in found] == [LEFT, pytest.approx(LEFT + (RIGHT - LEFT) * 2 / 3, abs=0.1), RIGHT]
    assert [y for _, y in found] == [pytest.approx(high.y(margin), abs=0.1) for margin in (633, 6, 0)]
    assert TOP < found[0][1] < found[1][1] < found[2][1] == BOTTOM


def test_labels_are_not_on_the_curve():
    """The curve falls to the right: above its end there is room at the right, below its begin at the left."""
    labels = re.findall('<text [^>]*x="([^"]*)"[^>]*>±([0-9,]+)<', curve_svg([(0.01, 1070), (1.0, 11), (10.0, 1)]))
    assert labels == [(str(LEFT), "1"), *((str(RIGHT), margin) for margin in ("10", "100", "1,000"))]


@pytest.mark.audit
def test_the_curve_has_the_margins_of_the_slider(monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 10**9)
    browser, _ = opened()
    browser.form("/example", {"name": "people"})
    assert curve(browser) == ""  # nothing is known of the margins yet
    browser.page("/privacy")
    text = curve(browser)
    words = re.search("<desc>(.*)</desc>", text)[1]
    assert len(circles(text)) == len(VALUES)
    for epsilon in ("0.1", "1", "10"):
        typical = browser.get(f"/margin?epsilon={epsilon}").text.partition('"typical":')[2].partition(",")[0]
        assert f"±{int(typical):,} at {epsilon}" in words


def test_the_curve_ends_where_it_takes_long_and_stays_so(monkeypatch):
    """A page that is loaded again must not go on to what takes longer still."""
    browser, _ = opened()
    browser.form("/example", {"name": "people"})
    browser.page("/privacy")
    monkeypatch.setattr(module, "LONGEST", -1)  # which every point takes
    for _ in range(2):
        assert len(circles(curve(browser))) == 1
    browser.form("/privacy", {"epsilon": "1", "reading": "unit", "kind": "laplace"})
    monkeypatch.setattr(module, "LONGEST", 10**9)
    browser.page("/privacy")
    assert len(circles(curve(browser))) == len(VALUES)


def test_margins_that_are_scaled_do_not_end_the_curve(monkeypatch):
    """Only simulations take long here, and the first one is enough for the margins at smaller epsilons."""
    simulated, now, real = [], [0.0], Candidates.accuracy

    def slow(candidates, plan):
        simulated.append(plan)
        now[0] += 2 * module.LONGEST
        return real(candidates, plan)

    monkeypatch.setattr(Candidates, "accuracy", slow)
    monkeypatch.setattr(module, "work_so_far", lambda: now[0])
    monkeypatch.setattr(module, "PATIENCE", 10**9)
    monkeypatch.setattr(module, "VALUES", VALUES[3:8])  # at smaller ones the exact sampler does not fit
    browser, _ = opened()
    cells = [f"c{c},{a},{s},{5 * c}" for c in range(20) for a in "abcdefgh" for s in "fm"]
    browser.upload("people.csv", "\n".join(["county,age,sex,n", *cells]).encode())
    browser.form("/keep", {"margin": ["0", "1", "2"]})
    browser.page("/privacy")
    simulated.clear()
    for _ in range(2):
        assert len(circles(curve(browser))) == len(VALUES[3:8])
    assert len(simulated) <= 1


def test_what_there_is_of_the_curve_is_shown_meanwhile(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", -1)  # which is over at once, but for the first point
    monkeypatch.setattr(module, "LONGEST", 10**9)
    browser, _ = opened()
    browser.form("/example", {"name": "people"})
    browser.page("/privacy")
    answer = json.loads(browser.get("/curve").text)
    assert (len(circles(answer["svg"])), answer["done"]) == (1, False)


def test_a_wrong_epsilon_has_no_curve():
    browser, _ = opened()
    browser.form("/example", {"name": "people"})
    browser.form("/privacy", {"epsilon": "much", "reading": "person", "kind": "laplace"})
    browser.page("/privacy")
    assert curve(browser) == ""
