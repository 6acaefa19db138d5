"""Releases and their facts, by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import keepsum as ks
from keepsum.report.facts import ReportFacts
from report.samples import facts_by_name, release_of
from report.undrawn import without_figures


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that the test makes have no figures."""
    without_figures(monkeypatch)


@pytest.fixture
def sample() -> Callable[[str], ks.Release]:
    """A release by its name."""
    return release_of


@pytest.fixture
def facts() -> Callable[[str], ReportFacts]:
    """The facts of a release, by its name."""
    return facts_by_name
