import shutil
import sys
from pathlib import Path

import pytest
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from compiling import compile_all
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


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to be changed."""
    return shutil.copytree(compiling.PACKAGE, tmp_path / "keepsum", ignore=shutil.ignore_patterns("__pycache__"))


def test_the_key_of_a_copy_is_the_same(package):
    assert compiling.text_of_kernels.__wrapped__(package) == compiling.text_of_kernels()


@pytest.mark.parametrize("decorator", ["kernel", "loose_kernel", "allocating_kernel", "compiling.kernel"])
def test_a_kernel_in_a_file_of_any_name_changes_the_key(package, decorator):
    (package / "planning" / "anything.py").write_text(f"@{decorator}\ndef one_more(number):\n    return number + 1\n")
    assert compiling.text_of_kernels.__wrapped__(package) != compiling.text_of_kernels()


@pytest.mark.parametrize(
    "imported",
    [
        "from keepsum.sources.limits import LARGEST",
        "from keepsum.sources.limits import (\n    LARGEST,\n    SMALLEST,\n)",
        "from keepsum.sources import limits",
        "from keepsum.sources import locking, limits as bounds",
        "import keepsum.sources.limits as bounds",
        "from keepsum.sources.middle import LARGEST",
    ],
)
def test_a_constant_of_an_imported_file_changes_the_key(package, imported):
    """Whatever the import looks like, and through another file."""
    constants, kernels = package / "sources" / "limits.py", package / "sources" / "loops.py"
    (package / "sources" / "middle.py").write_text("from keepsum.sources.limits import LARGEST\n")
    kernels.write_text(f"{imported}\n\n\n@kernel\ndef largest():\n    return LARGEST\n")
    constants.write_text("LARGEST = 3\n")
    before = compiling.text_of_kernels.__wrapped__(package)
    constants.write_text("LARGEST = 4\n")
    assert compiling.text_of_kernels.__wrapped__(package) != before


def test_a_file_that_no_kernel_imports_leaves_the_key_as_it_is(package):
    with (package / "planning" / "plan.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert compiling.text_of_kernels.__wrapped__(package) == compiling.text_of_kernels()


def named_tuples(kind):
    """The classes of the named tuples in a type of numba's."""
    if isinstance(kind, types.NamedTuple):
        yield kind.instance_class
    for part in getattr(kind, "types", ()):
        yield from named_tuples(part)


def test_all_that_kernels_are_called_with_counts_as_their_text():
    """numba knows a named tuple by the name of its class: a field moved to another place would go unseen."""
    compile_all()
    modules = [module for name, module in sys.modules.items() if name.startswith("keepsum.")]
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    arguments = {kind for kernel in kernels for signature in kernel.signatures for kind in signature}
    classes = {cls for kind in arguments for cls in named_tuples(kind)}
    assert len(classes) > 20
    sources = compiling.kernel_sources()
    for cls in classes:
        assert Path(sys.modules[cls.__module__].__file__) in sources, f"no kernel imports {cls}: annotate it"
