import os
import stat
import unicodedata

import pytest

import keepsum as ks
from faults import Fork, kill
from keepsum.sources.atomic import claimed, name_digest


@pytest.mark.parametrize("other", ["./out.csv", "link/out.csv", "sub/../out.csv", "OUT.csv"])
def test_one_place_has_one_lock_however_it_is_spelled(tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "sub").mkdir()
    path = type(tmp_path)
    with (
        claimed(tmp_path / "out.csv"),
        pytest.raises(ks.InputError, match="another process is writing it"),
        claimed(path(other)),
    ):
        pass
    with claimed(tmp_path / "out.csv"), claimed(tmp_path / "other.csv"):
        pass
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "sub"]


def test_accents_in_two_forms(tmp_path):
    name = "élève.csv"
    forms = [unicodedata.normalize(form, name) for form in ("NFC", "NFD")]
    assert forms[0] != forms[1]
    assert name_digest(tmp_path / forms[0]) == name_digest(tmp_path / forms[1])


def test_whoever_may_write_in_the_folder_may_take_a_lock_that_was_left(tmp_path):
    """A file that only its killed owner could open would hold everybody else up for good."""
    for allowed, expected in ((0o755, 0o644), (0o775, 0o664), (0o777, 0o666)):
        tmp_path.chmod(allowed)

        def hold() -> None:
            with claimed(tmp_path / "out.csv"):
                kill()

        Fork(hold, tmp_path).wait()
        (leftover,) = tmp_path.iterdir()
        assert stat.S_IMODE(leftover.stat().st_mode) == expected
        with claimed(tmp_path / "out.csv"):
            pass
        assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_made_is_one_sentence(tmp_path):
    with pytest.raises(ks.InputError, match="must be writable, but"), claimed(tmp_path / "none" / "out.csv"):
        pass


def test_a_lock_is_given_back_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), claimed(tmp_path / "out.csv"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []  # noqa: PTH208
    with claimed(tmp_path / "out.csv"):
        pass
