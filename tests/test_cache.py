import os
import pwd

import pytest

from keepsum._cache import is_writable, user_cache
from keepsum.convergence.observe import _Shelf, cache_folder


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
    assert cache_folder() is None


def test_pairs_of_chains_are_kept_nowhere_then(nobody):
    shelf = _Shelf("any", lag=1, most=10)
    shelf.write([[1] * 250])
    assert shelf.read() == []


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "keepsum"
    monkeypatch.setenv("KEEPSUM_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own" / "convergence"


def test_folders_that_can_be_written_to(monkeypatch, tmp_path):
    assert is_writable(tmp_path / "new" / "folder")
    (tmp_path / "file").write_text("in the way")
    assert not is_writable(tmp_path / "file" / "folder")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert not is_writable(tmp_path)
    assert os.listdir(tmp_path / "new") == ["folder"]  # noqa: PTH208
