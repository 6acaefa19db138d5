"""Which files of the package compiled code depends on, and what a first release compiles."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compiling import compile_all
from keepsum.sampling.core import compiling


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to be changed."""
    return shutil.copytree(compiling.PACKAGE, tmp_path / "keepsum", ignore=shutil.ignore_patterns("__pycache__"))


def test_the_key_of_a_copy_is_the_same(package):
    assert compiling.text_of_kernels.__wrapped__(package) == compiling.text_of_kernels()


@pytest.mark.parametrize("decorator", ["kernel", "loose_kernel", "inner_kernel", "compiling.kernel"])
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


@pytest.mark.parametrize("name", ["building.py", "packing.py", "loading.py", "kernel_functions.py"])
def test_what_kernels_are_compiled_with_changes_the_key(package, name):
    with (package / "sampling" / "core" / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert compiling.text_of_kernels.__wrapped__(package) != compiling.text_of_kernels()


def named_tuples(value):
    """The classes of the named tuples in an argument."""
    if isinstance(value, tuple):
        yield from [type(value)] if hasattr(value, "_fields") else []
        for part in value:
            yield from named_tuples(part)


def test_all_that_kernels_are_called_with_counts_as_their_text(monkeypatch):
    """Compiled code knows a named tuple by the name of its class: a field moved to another place would go unseen."""
    classes = set()
    honest = compiling.Kernel.run

    def watched(self, *arguments):
        classes.update(cls for argument in arguments for cls in named_tuples(argument.value))
        return honest(self, *arguments)

    monkeypatch.setattr(compiling.Kernel, "run", watched)
    compile_all()
    assert len(classes) > 20
    sources = compiling.kernel_sources()
    for cls in classes:
        assert Path(sys.modules[cls.__module__].__file__) in sources, f"no kernel imports {cls}: annotate it"


ORDINARY = {
    "a hierarchy": ("[['county']]", ["fill_regions"]),
    "a table": ("[['county'], ['age']]", ["fill_single_tables"]),
}


RELEASE = """
import sys
import keepsum as ks
from keepsum.sampling.core import compiling
compiled = []
honest = compiling.Kernel._compile
def counted(self, values):
    compiled.append(self.__name__)
    return honest(self, values)
compiling.Kernel._compile = counted
domain = ks.Domain({{"county": range(4), "age": range(3)}})
ks.plan(ks.Invariants.margins(domain, {keep}), ks.Laplace(epsilon=1)).sample(threads=2)
print(compiled, sorted(m for m in ("numba", "scipy.special", "scipy.linalg", "scipy.fft") if m in sys.modules))
"""


@pytest.mark.audit
@pytest.mark.parametrize("name", ["a hierarchy", pytest.param("a table", marks=pytest.mark.audit)])
def test_a_first_release_compiles_only_what_it_needs_and_a_second_nothing(name, tmp_path):
    keep, kernels = ORDINARY[name]
    package = tmp_path / "site" / "keepsum"
    shutil.copytree(compiling.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def run():
        command = [sys.executable, "-c", RELEASE.format(keep=keep)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    first, second = run(), run()
    assert first.stdout.split("]")[0] == str(kernels).split("]")[0]
    assert "numba" in first.stdout
    assert first.stderr == second.stderr == ""  # nothing is said where no terminal listens
    assert second.stdout.strip() == "[] []"


def test_files_that_cannot_be_read_are_left_out(package):
    before = compiling.kernel_sources(package)
    (package / "sampling" / ".#kernels.py").symlink_to("nobody@nowhere")
    assert compiling.kernel_sources(package) == before
