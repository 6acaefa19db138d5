import pwd

import pytest

from keepsum._cache import user_cache
from keepsum.convergence.observe import MeetingTimeStore


@pytest.fixture
def nobody(monkeypatch):
    """A user with no home and no entry in the list of users, as in many containers."""

    def unknown(_):
        raise KeyError("uid not found")

    for name in ("HOME", "XDG_CACHE_HOME", "KEEPSUM_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_a_user_without_a_home_has_no_cache(nobody):
    assert user_cache() is None


def test_pairs_of_chains_are_kept_nowhere_then(nobody):
    store = MeetingTimeStore("any", lag=1, give_up=10)
    store.write([[1] * 250])
    assert store.read() == []


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("KEEPSUM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "keepsum"
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path / "chosen"))
    assert user_cache() == tmp_path / "chosen"
    MeetingTimeStore("any", lag=1, give_up=10).write([[1] * 250])
    assert [path.name for path in (tmp_path / "chosen" / "convergence").iterdir()] == ["any.json"]


def test_a_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KEEPSUM_CACHE", "~/chosen")
    assert user_cache() == tmp_path / "chosen"


def test_damaged_meeting_times_are_not_read(monkeypatch, tmp_path):
    """Nor those of another chain under this one's name."""
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path))
    stores = [MeetingTimeStore(name, lag=1, give_up=10) for name in ("this", "that")]
    for store in stores:
        store.write([[7] * 250])
    assert stores[0].read() == [[7] * 250]
    path = tmp_path / "convergence" / "this.json"
    honest = path.read_text()
    for text in (honest.replace("7, 7", "2, 7", 1), (path.parent / "that.json").read_text(), honest[:-1], "", "[]"):
        path.write_text(text)
        assert stores[0].read() == []
