"""A signal loses no release without a word: one that is being made is finished, and one that nobody has is told."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace

import pytest

from desk.asking import held_draw, opened
from keepsum.desk.serving import BEING_MADE, LOST, NOT_TAKEN, EndBySignal

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
TOLD = NOT_TAKEN.format(link="LINK")


@pytest.fixture
def ending():
    """An ending of a desk that is made up, what it said, and how often it ended."""
    said, ended = [], []
    desk = SimpleNamespace(finished=None, releasing=None)
    made = EndBySignal(desk, said.append, lambda: "LINK")
    with made.on_signals(lambda: ended.append(True)):
        yield SimpleNamespace(desk=desk, said=said, ended=ended, made=made)


@pytest.mark.parametrize("number", SIGNALS)
def test_without_a_release_the_first_signal_ends_it(ending, number):
    signal.raise_signal(number)
    assert (ending.said, ending.ended) == ([], [True])


@pytest.mark.parametrize("number", SIGNALS)
def test_a_release_that_nobody_has_taken_is_told_and_the_next_signal_ends_it(ending, number):
    ending.desk.finished = SimpleNamespace(is_taken=False)
    signal.raise_signal(number)
    assert (ending.said, ending.ended) == ([TOLD], [])
    signal.raise_signal(number)
    assert (ending.said, ending.ended) == ([TOLD], [True])
    ending.made.told_at_last()
    assert ending.said == [TOLD]


def test_it_is_told_of_each_release(ending):
    for _ in range(2):
        ending.desk.finished = SimpleNamespace(is_taken=False)
        signal.raise_signal(signal.SIGINT)
        ending.desk.finished.is_taken = True
    assert (ending.said, ending.ended) == ([TOLD, TOLD], [])
    signal.raise_signal(signal.SIGINT)
    assert ending.ended == [True]


@pytest.fixture
def drawing(monkeypatch):
    """A desk whose release is being drawn, until the gate is open."""
    browser, desk = opened()
    browser.form("/example", {"name": "children"})
    browser.page("/release")
    gate, begun = held_draw(monkeypatch)
    browser.post("/release", {"version": str(desk.version)})
    assert begun.wait()
    yield browser, desk, gate
    gate.set()
    desk.close()  # nothing is at work when the next test begins


@pytest.mark.audit
def test_a_release_that_is_being_drawn_is_finished_and_told(drawing):
    browser, desk, gate = drawing
    said, ended, told = [], [], threading.Event()

    def note(words):
        said.append(words)
        if words == TOLD:
            told.set()

    with EndBySignal(desk, note, lambda: "LINK").on_signals(lambda: ended.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert (said, ended) == ([BEING_MADE], [])
        gate.set()
        assert told.wait()
        assert (said, ended) == ([BEING_MADE, TOLD], [])
        assert "Released" in browser.page("/release")
        signal.raise_signal(signal.SIGINT)
    assert (said, ended) == ([BEING_MADE, TOLD], [True])


@pytest.mark.audit
def test_who_insists_ends_it_and_is_told_what_is_lost(drawing):
    _, desk, gate = drawing
    said, ended = [], []
    ending = EndBySignal(desk, said.append, lambda: "LINK")
    with ending.on_signals(lambda: ended.append(True)):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert (said, ended) == ([BEING_MADE], [True])
    gate.set()
    desk.close()
    ending.told_at_last()
    assert said == [BEING_MADE, LOST]


@pytest.mark.audit
def test_a_release_that_is_being_drawn_is_not_called_released(drawing):
    browser, _, _ = drawing
    page = browser.get("/release").text
    assert "<small>releasing</small>" in page
    assert "<small>released</small>" not in page
