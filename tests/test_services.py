"""A test that needs an outside service must not pass silently without it where it is required."""

import pytest

import support


@pytest.mark.parametrize(
    ("present", "required", "verdict"),
    [(True, "chromium", None), (False, "", "skip"), (False, "postgres", "skip"), (False, "postgres chromium", "fail")],
)
def test_verdict(monkeypatch, present, required, verdict):
    monkeypatch.setitem(support.SERVICES, "chromium", lambda: present)
    assert support.missing_service("chromium", required) == verdict
