import copy
import io
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from keepsum.sampling.core import compiling, loading
from keepsum.sampling.core.kernel_functions import digest_of, functions_of
from keepsum.sampling.core.packing import pack


def one_more(number):
    return number + 1


def fresh(function=one_more):
    """A kernel that nothing was loaded for."""
    return compiling.kernel(function)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A cache of its own."""
    monkeypatch.setattr(compiling, "cache_folders", lambda: (tmp_path,))
    return tmp_path


@pytest.fixture
def builds(monkeypatch):
    """The kernels that are compiled and not found in a cache."""
    compiled = []
    honest = compiling.Kernel._compile

    def counted(self, values):
        compiled.append(self.__name__)
        return honest(self, values)

    monkeypatch.setattr(compiling.Kernel, "_compile", counted)
    return compiled


def test_kernels_are_compiled_in_memory_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setattr(compiling, "user_cache", lambda: None)
    monkeypatch.setattr(compiling, "is_writable", lambda folder: False)
    assert len(compiling.cache_folders.__wrapped__()) == 1  # that of the package, to be read
    monkeypatch.setattr(compiling, "cache_folders", lambda: ())
    assert fresh()(1) == 2


def test_what_was_compiled_when_the_package_was_installed_is_read(monkeypatch, tmp_path, builds):
    """Whoever runs it may not be who installed it, and cannot write there."""
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    theirs.mkdir()
    own.mkdir()
    monkeypatch.setattr(compiling, "cache_folders", lambda: (theirs,))
    assert fresh()(1) == 2
    monkeypatch.setattr(compiling, "cache_folders", lambda: (own, theirs))
    assert fresh()(2) == 3
    assert builds == ["one_more"]
    assert fresh()(1.5) == 2.5
    assert len(builds) == 2
    assert (len(list(own.iterdir())), len(list(theirs.iterdir()))) == (1, 1)


def test_code_is_kept_for_each_kind_of_arguments(folder, builds):
    for _ in range(2):
        kernel = fresh()
        assert (kernel(1), kernel(2)) == (2, 3)
        assert kernel(1.5) == 2.5
    assert builds == ["one_more"] * 2
    assert len(list(folder.iterdir())) == 2


def test_a_full_disk_keeps_nothing_and_changes_nothing(monkeypatch, folder, builds):
    asked = []

    def full(path, content):
        asked.append(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert (fresh()(1), fresh()(1)) == (2, 2)
    assert len(asked) == len(builds) == 2
    assert not list(folder.iterdir())


def test_a_folder_that_is_gone_keeps_nothing(monkeypatch, tmp_path, builds):
    monkeypatch.setattr(compiling, "cache_folders", lambda: (tmp_path / "gone",))
    assert (fresh()(1), fresh()(1)) == (2, 2)
    assert len(builds) == 2


@pytest.mark.parametrize(
    "damage", [lambda code: code[:-1], lambda code: b"", lambda code: code[:50] + b"?" + code[51:]]
)
def test_damaged_code_is_compiled_again(folder, builds, damage):
    """LLVM would end the process."""
    assert fresh()(1) == 2
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert fresh()(1) == 2
    assert len(builds) == 2
    assert loading.kept(path) is not None


def test_code_that_calls_what_this_process_lacks_is_compiled_again(folder, builds):
    assert fresh()(1) == 2
    (path,) = folder.iterdir()
    code = loading.kept(path)
    loading.keep(path, loading.Code(code.binary, ("no_such_function",), code.returns))
    assert loading.kept(path) is None
    assert fresh()(1) == 2
    assert len(builds) == 2


def test_another_machine_or_version_has_code_of_its_own(monkeypatch, folder, builds):
    assert fresh()(1) == 2
    monkeypatch.setattr(compiling, "machine", lambda: "another")
    assert fresh()(1) == 2
    assert len(builds) == len(list(folder.iterdir())) == 2


def test_settings_of_numba_are_part_of_the_machine(monkeypatch):
    before = loading.machine.__wrapped__()
    monkeypatch.setenv("NUMBA_CACHE_DIR", "anywhere")
    assert loading.machine.__wrapped__() == before
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert loading.machine.__wrapped__() != before


def test_others_may_read_what_is_kept(folder):
    """A cache beside the package serves all users."""
    before = os.umask(0o022)
    try:
        fresh()(1)
    finally:
        os.umask(before)
    (path,) = folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644


def two_more(number):
    return inner(inner(number))


@pytest.mark.parametrize("decorator", [compiling.kernel, compiling.inner_kernel, compiling.loose_kernel])
def test_kernels_call_kernels_of_every_kind(monkeypatch, folder, builds, decorator):
    monkeypatch.setitem(globals(), "inner", decorator(one_more))
    assert fresh(two_more)(1) == 3
    assert fresh(two_more)(1.5) == 3.5
    assert builds == ["two_more"] * 2  # what they call is part of them


inner = one_more


def divided(number):
    return 1 // number


def test_what_fails_in_a_kernel_is_an_error(folder):
    assert fresh(divided)(1) == 1
    with pytest.raises(AssertionError):
        fresh(divided)(0)


def same(value):
    return value


def of_tuple(pair):
    return pair[0]


def of_array(array):
    return array[1, 2]


def test_arguments_arrive_as_they_are(folder):
    grid = np.arange(12.0).reshape(3, 4)
    assert fresh(same)(-5) == -5
    assert fresh(same)(2.0**-1074) == 2.0**-1074
    assert fresh(same)(True) == 1
    assert fresh(of_tuple)((7, 1.5)) == 7
    for array in (grid, grid.T, grid[::2, ::-1], grid.astype(np.int32), grid.astype(np.uint16), grid.astype(bool)):
        assert fresh(of_array)(array) == array[1, 2]
    with pytest.raises(TypeError, match="arrays, numbers and tuples"):
        fresh(same)("text")


def test_what_is_laid_out_differently_has_another_kind():
    from keepsum.sampling.core.kernel_arguments import Cells, Task

    grid = np.zeros((3, 4))
    fixed = np.zeros((3, 4))
    fixed.setflags(write=False)
    records = [np.zeros(1, dtype=np.dtype([(a, np.int64), (b, np.float64)])) for a, b in ("xy", "yx")]
    whole = np.zeros(2, dtype=np.int64)
    values = (1, 1.0, True, np.uint64(1), (), (1,), (1, 1), (1, 1.0), grid, grid.T, grid[0], fixed, *records)
    kinds = [pack(value).kind for value in (*values, Cells(whole, 0, 1), tuple(Cells(whole, 0, 1)), Task(0, 1, whole))]
    assert len(set(kinds)) == len(kinds)


def test_packed_arguments_are_packed_again_where_they_are_copied():
    """The slots of a copy must not point to what was copied."""
    packed = pack((np.arange(3), 1))
    for copied in (pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):  # noqa: S301
        assert copied.kind == packed.kind
        assert copied.slots != packed.slots
        assert copied.slots == pack(copied.value).slots


def written_to(array):
    array[0] = 1


def test_an_array_that_must_not_change_cannot_be_written_to(folder):
    array = np.zeros(3)
    array.setflags(write=False)
    with pytest.raises(Exception, match="readonly"):
        fresh(written_to)(array)
    assert not array.any()


def test_a_terminal_is_told_once(monkeypatch, folder, capsys):
    monkeypatch.setattr(compiling._Watch, "printed", False)
    fresh()(1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fresh()(1)  # kept
    assert capsys.readouterr().err == ""
    fresh()(1.5)
    fresh(same)(1)
    assert capsys.readouterr().err.count("compiling samplers") == 1


def test_whoever_watches_is_told_how_far_it_is(folder):
    from keepsum.sampling.l1.double_geometric_kernels import fill_cells

    heard = []
    with compiling.compiling_shown(lambda done, total: heard.append((done, total))):
        fresh(fill_cells.py_func)  # nothing is compiled before a call
        assert not heard
        fresh()(1.5)
    assert heard == [(0, 1), (1, 1)]
    assert {function.__name__ for function in functions_of(fill_cells)} == {
        "fill_cells", "fill", "fill_pairs", "fill_singly", "draw_pairs", "draw_pairs_of", "draw_word", "look_up_word",
        "draw_high", "look_up", "put", "settled",
    }  # fmt: skip


def test_the_users_folder_serves_where_that_of_the_package_cannot(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(compiling, "is_writable", lambda folder: folder.parent == tmp_path)
    own, theirs = compiling.cache_folders.__wrapped__()
    assert own == tmp_path / compiling.text_of_kernels()
    assert theirs.parent.name == "__pycache__"


def test_the_users_folder_is_left_alone_where_that_of_the_package_serves(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "user_cache", lambda: tmp_path)
    (own,) = compiling.cache_folders.__wrapped__()
    assert own.parent.name == "__pycache__"
    assert not list(tmp_path.iterdir())


# -- what kept code is named by ---------------------------------------------------------------------


def adding(x):
    return x + CONSTANT


CONSTANT = 1


def test_code_is_named_by_what_stands_in_memory(folder, monkeypatch):
    """Files on disk may be newer than what a process has imported: another constant, or other code, other names."""
    first = digest_of(compiling.kernel(adding))
    assert first == digest_of(compiling.kernel(adding))
    assert fresh(adding)(1) == 2
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", 5)
    assert digest_of(compiling.kernel(adding)) != first
    assert fresh(adding)(1) == 6
    monkeypatch.setattr(adding, "__code__", (lambda x: x - CONSTANT).__code__)
    assert fresh(adding)(1) == -4
    assert digest_of(compiling.loose_kernel(adding)) != digest_of(compiling.kernel(adding))


def test_names_do_not_depend_on_the_order_of_sets():
    code = (
        "from keepsum.sampling.core.kernel_functions import digest_of;"
        "from keepsum.sampling.general import factor_kernels;"
        "from keepsum.sampling.core.compiling import Kernel;"
        "print([digest_of(k) for k in vars(factor_kernels).values() if isinstance(k, Kernel)])"
    )
    shown = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in "123"
    }
    assert len(shown) == 1


def test_nothing_is_kept_where_the_text_cannot_be_read(tmp_path, monkeypatch):
    """In a zip file, say: every version would have the same name."""
    assert compiling.kernel_sources(tmp_path) == {}
    names = {compiling.text_of_kernels.__wrapped__(tmp_path) for _ in range(2)}
    assert len(names) == 2
    monkeypatch.setattr(compiling, "text_of_kernels", names.pop)
    assert compiling.cache_folders.__wrapped__() == ()


def test_numbers_of_another_byte_order_are_refused():
    array = np.arange(4)
    swapped = array.astype(array.dtype.newbyteorder())
    with pytest.raises(TypeError, match="byte order"):
        pack(swapped)
    long, short = (
        np.zeros(1, dtype=np.dtype({"names": ["x"], "formats": ["i8"], "itemsize": size})) for size in (16, 8)
    )
    assert pack(long).kind != pack(short).kind


@pytest.mark.parametrize("stream", [object(), io.StringIO()])
def test_a_stream_that_is_no_terminal_is_told_nothing(folder, monkeypatch, stream):
    if isinstance(stream, io.StringIO):
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(compiling._Watch, "printed", False)
    assert fresh(same)(3) == 3


def test_without_a_compiler_it_says_so(folder, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    loading.machine.cache_clear()
    with pytest.raises(ks.InputError, match="NUMBA_DISABLE_JIT"):
        fresh(same)(3)
    loading.machine.cache_clear()


def test_ctrl_c_waits_until_a_kernel_is_compiled(folder, monkeypatch):
    """Interrupted in the middle, numba would not work any more in this process."""
    order = []

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        order.append("compiled")
        raise ArithmeticError

    monkeypatch.setattr("keepsum.sampling.core.building.build", interrupted)
    with pytest.raises((KeyboardInterrupt, ArithmeticError)):
        fresh(same)(3)
    assert order == ["compiled"]
