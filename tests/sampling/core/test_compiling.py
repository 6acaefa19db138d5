from numba.core.caching import FunctionCache

from keepsum.sampling.core import compiling, driving


def one_more(number):
    return number + 1


def test_kernels_are_compiled_in_memory_where_nothing_can_be_kept(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "is_writable", lambda folder: False)
    assert compiling.cache_folder.__wrapped__() is None
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    kernel = compiling.kernel(one_more)
    driving.announce(kernel)
    assert kernel(1) == 2


def test_a_full_disk_keeps_nothing_and_changes_nothing(monkeypatch, tmp_path):
    asked = []

    def full(self, signature, compiled):
        asked.append(signature)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(FunctionCache, "save_overload", full)
    assert compiling.kernel(one_more)(1) == 2
    assert len(asked) == 1


def test_the_users_folder_serves_where_that_of_the_package_cannot(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(compiling, "is_writable", lambda folder: folder.parent == tmp_path)
    assert compiling.cache_folder.__wrapped__() == tmp_path / compiling.text_of_kernels()
