"""A test that needs an outside service must not pass silently without it where it is required."""

import re
from pathlib import Path

import pytest

import support
import test_processors


@pytest.mark.parametrize(
    ("present", "required", "verdict"),
    [(True, "chromium", None), (False, "", "skip"), (False, "postgres", "skip"), (False, "postgres chromium", "fail")],
)
def test_verdict(monkeypatch, present, required, verdict):
    monkeypatch.setitem(support.SERVICES, "chromium", lambda: present)
    assert support.missing_service("chromium", required) == verdict


def test_without_a_compiler_another_libm_is_missed_where_it_is_required(monkeypatch, need, tmp_path_factory):
    monkeypatch.setitem(support.SERVICES, "cc", lambda: False)
    monkeypatch.setenv("KEEPSUM_REQUIRE", "chromium,cc")
    with pytest.raises(pytest.fail.Exception, match="names cc, but it is not installed"):
        test_processors.other_libm.__wrapped__(need, tmp_path_factory)


def test_every_service_is_required_where_a_change_lands():
    """Not by a test that is skipped there without a word."""
    script = (Path(__file__).parent.parent / ".ci" / "run").read_text(encoding="utf-8")
    (required,) = re.findall(r"^export KEEPSUM_REQUIRE=(.*)$", script, flags=re.MULTILINE)
    assert set(required.split(",")) == set(support.SERVICES)
