"""Kernels in C: what they are built on, at the edges of numbers and of arrays, and every kernel under checks."""

import ctypes
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keepsum
from keepsum.sampling.core.kernel import Kernel, pack
from keepsum.sampling.core.kernel_arguments import TIE_ACCEPT
from keepsum.sampling.native import build
from scripts import write_structs
from support import HANG

HERE = Path(__file__).parent
TESTS = HERE.parent
LEAST, MOST = -(2**63), 2**63 - 1
CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1")
BOUNDS = ("-DKEEPSUM_BOUNDS", "-O1")
QUICK = "not audit and not exhaustive"


def compiled(target, *flags, sources=()):
    """A library with these flags, by the compiler that installed the package."""
    command = [*(build.compiler() or build.zig()), *build.FLAGS, f"-I{build.FOLDER}", *flags, *map(str, sources)]
    subprocess.run([*command, "-o", str(target)], check=True, timeout=HANG)
    return target


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """The inline functions, with undefined behaviour as an error where the compiler can say so."""
    path = compiled(tmp_path_factory.mktemp("probe") / "probe.so", sources=[HERE / "probe.c"])
    return ctypes.CDLL(str(path))


def call(probe, name, *arguments, returns=ctypes.c_int64):
    function = getattr(probe, f"probe_{name}")
    function.restype = returns
    kinds = {int: ctypes.c_int64, float: ctypes.c_double, np.uint64: ctypes.c_uint64}
    return function(
        *[a if type(a) not in kinds else kinds[type(a)](int(a) if type(a) is np.uint64 else a) for a in arguments]
    )


# -- numbers ----------------------------------------------------------------------------------------


EDGES = [LEAST, LEAST + 1, -(2**62), -8, -7, -1, 0, 1, 7, 8, 2**62, MOST - 1, MOST]


@pytest.mark.parametrize("b", [b for b in EDGES if b])
def test_quotients_are_pythons_down_to_the_least_integer(probe, b):
    """Floors, of negative numbers, too; the one quotient that has no 64 bits is left out."""
    for a in EDGES:
        if (a, b) != (LEAST, -1):
            assert (call(probe, "floor_quotient", a, b), call(probe, "floor_remainder", a, b)) == divmod(a, b)


def test_truncated_quotients_would_be_seen(probe):
    assert call(probe, "floor_quotient", -7, 2) == -4 != int(-7 / 2)


def test_lengths_of_integers(probe):
    for value in (0, 1, 2, 3, 2**31, 2**62 - 1, 2**62, MOST):
        assert call(probe, "bit_length", value) == value.bit_length()


def test_the_first_of_equal_floats_is_taken(probe):
    """As Python's min and max do, for both zeros and for what is no number."""
    nan = float("nan")
    for a in (0.0, -0.0, 1.0, -1.0, nan, float("inf")):
        for b in (0.0, -0.0, 1.0, -1.0, nan, -float("inf")):
            for name, function in (("lesser", min), ("larger", max)):
                found = call(probe, name, a, b, returns=ctypes.c_double)
                assert np.float64(found).tobytes() == np.float64(function(a, b)).tobytes()


def test_units_are_powers_of_two(probe):
    for bits in (0, 1, 4, 8, 52, 62):
        assert call(probe, "unit_of", bits, returns=ctypes.c_double) == 2.0**-bits


def test_chances_that_a_division_by_zero_left_go_to_the_referee(probe):
    """0/0 and 1/0, as C leaves them, decide nothing by themselves; numba would have ended the draw."""
    for word in (0, 1, 2**63, 2**64 - 1):
        assert call(probe, "compare", np.uint64(word), 0, float("nan"), float("nan")) == TIE_ACCEPT
        assert call(probe, "compare", np.uint64(word), 0, 0.0, float("inf")) == TIE_ACCEPT


def test_comparisons_at_the_ends_of_a_word(probe):
    top = np.uint64(2**64 - 1)
    for shift in (0, 8, 56, 60):
        assert call(probe, "compare", np.uint64(0), shift, 1.0, 1.0) == 1
        assert call(probe, "compare", top, shift, 1.0, 1.0) == 1
        assert call(probe, "compare", np.uint64(0), shift, 0.0, 0.0) == 0
        assert call(probe, "compare", top, shift, 0.0, 0.0) == 0
        assert call(probe, "compare", np.uint64(2**63), shift, 0.25, 0.75) == TIE_ACCEPT


@pytest.mark.parametrize(
    ("outcomes", "digits"), [((3, -4), 7), ((-(2**18), 2**18), 0), ((2**19 - 1, -(2**19)), 2**24 - 1)]
)
def test_outcomes_have_their_signs(probe, outcomes, digits):
    own, other = (value & 2**20 - 1 for value in outcomes)
    columns = pack(np.array([digits << 40 | own << 20 | other], dtype=np.uint64))
    for number in {max(digits - 1, 0), digits, min(digits + 1, 2**24 - 1)}:
        value = ctypes.c_int64()
        tie = call(probe, "look_up", np.uint64(number), columns.slots, 24, ctypes.byref(value))
        assert (value.value, tie) == (outcomes[0] if number < digits else outcomes[1], number == digits)


# -- arrays -----------------------------------------------------------------------------------------


OUTSIDE = """
import ctypes, sys
import numpy as np
from keepsum.sampling.core.kernel import pack
probe = ctypes.CDLL(sys.argv[1])
array, matrix = pack(np.arange(6)), pack(np.arange(6).reshape(2, 3))
name, *places = sys.argv[2:]
argument = matrix if name == "cell" else array
print(getattr(probe, f"probe_{name}")(argument.slots, *[ctypes.c_int64(int(place)) for place in places]))
"""
PLACES = {
    ("at", 5): "5", ("at", 6): None, ("at", -1): None, ("at", MOST): None, ("at", LEAST): None,
    ("cell", 1, 2): "5", ("cell", 1, 3): None, ("cell", 2, 0): None, ("cell", 0, -1): None,
    ("span", 2, 4): "2", ("span", 6, 0): "6", ("span", 2, 5): None, ("span", 7, 0): None, ("span", 1, MOST): None,
    ("span", 0, -1): None,
}  # fmt: skip


def test_places_outside_of_an_array_end_the_process_where_bounds_are_asserted(tmp_path):
    library = compiled(tmp_path / "probe.so", *BOUNDS, sources=[HERE / "probe.c"])
    for (name, *places), expected in PLACES.items():
        command = [sys.executable, "-c", OUTSIDE, str(library), name, *map(str, places)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
        assert (done.returncode == 0) == (expected is not None), (name, places, done.stderr)
        if expected is None:
            assert "probe.c" in done.stderr
        else:
            assert done.stdout.strip() == expected


# -- warnings ---------------------------------------------------------------------------------------


def warned(*sources):
    """Whether the compiler warns of something in these files; users' builds never fail for that."""
    flags = ("-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{build.FOLDER}")
    command = [*(build.compiler() or build.zig()), *flags, *map(str, sources)]
    return subprocess.run(command, capture_output=True, timeout=HANG, check=False).returncode != 0


def test_no_compiler_warns_of_anything(tmp_path):
    assert not warned(*(path for path in build.sources() if path.suffix == ".c"))
    (tmp_path / "narrow.c").write_text('#include "kernels.h"\nint narrow(i64 wide) { return wide; }\n')
    assert warned(tmp_path / "narrow.c")


# -- other libraries ---------------------------------------------------------------------------------


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="libm is a library of its own in glibc alone")
@pytest.mark.skipif(build.compiler() is None, reason="ziglang links all that there is")
def test_no_function_of_libm_is_called(tmp_path):
    """A draw must not depend on the system's last digits: the linker has no libm, and finds all that is called."""
    everything = [path for path in build.sources() if path.suffix == ".c"]
    compiled(tmp_path / "kernels.so", "-O1", "-Wl,--no-undefined", sources=everything)
    (tmp_path / "wrong.c").write_text("#include <math.h>\ndouble wrong(double x) { return exp(x); }\n")
    with pytest.raises(subprocess.CalledProcessError):
        compiled(tmp_path / "wrong.so", "-Wl,--no-undefined", sources=[tmp_path / "wrong.c"])


# -- structs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", write_structs.MODULES)
def test_structs_in_c_are_the_named_tuples_of_python(name):
    """`python -m scripts.write_structs` writes them."""
    path = build.FOLDER / f"{name}_arguments.h"
    assert path.read_text(encoding="utf-8") == write_structs.header(name)


def test_another_order_of_fields_would_be_seen(monkeypatch):
    from keepsum.sampling.core import kernel
    from keepsum.sampling.l1 import kernel_arguments as l1

    before = write_structs.header("l1")
    swapped = dict(reversed(l1.RegionTables.__annotations__.items()))
    monkeypatch.setattr(l1.RegionTables, "__annotations__", swapped)
    kernel.layout_of.cache_clear()
    try:
        assert write_structs.header("l1") != before
    finally:
        monkeypatch.undo()
        kernel.layout_of.cache_clear()


# -- every kernel under checks ----------------------------------------------------------------------


def declared():
    """The kernels of all modules, by the names that C has."""
    import importlib
    import pkgutil

    names = set()
    for module in pkgutil.walk_packages(keepsum.__path__, "keepsum."):
        if module.name.startswith(("keepsum.sampling", "keepsum.projection", "keepsum.research")):
            names |= {
                value.__name__
                for value in vars(importlib.import_module(module.name)).values()
                if isinstance(value, Kernel)
            }
    return names


def test_every_kernel_in_c_is_declared_in_python():
    text = "".join(path.read_text(encoding="utf-8") for path in build.sources())
    exported = set(re.findall(r"^KERNEL (?:i64|double) (\w+)\(", text, flags=re.MULTILINE))
    assert exported - {"keepsum_runs_v3"} == declared()


EVERY = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], str(Path(sys.argv[1]).parent)]
from keepsum.sampling.core.kernel import Kernel
called, honest = set(), Kernel.run
def watched(self, *arguments):
    called.add(self.__name__)
    return honest(self, *arguments)
Kernel.run = watched
import every_sampler
every_sampler.draw_all()
print(*sorted(called))
"""


def checked(library, command, **variables):
    """A process with another library."""
    environment = {**os.environ, "KEEPSUM_KERNELS": str(library), **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout


@pytest.mark.audit
def test_every_kernel_stays_inside_of_its_arrays(tmp_path):
    build.build_library(tmp_path / "bounds.so", *BOUNDS)
    found = checked(tmp_path / "bounds.so", [sys.executable, "-c", EVERY, str(TESTS)])
    assert set(found.split()) == declared()


# Those that draw by words of few bits and buffers of one word, and take seconds, not minutes: 110 CPU seconds in all.
STATISTICAL = ("test_sums.py", "test_splitting_ties.py", "test_focus_ties.py", "test_gaussian.py")


@pytest.mark.audit
def test_kernels_are_clean_under_sanitizers(tmp_path):
    """AddressSanitizer and UndefinedBehaviorSanitizer, over every kernel and statistical tests of exact families."""
    command = build.compiler()
    runtime = (
        command
        and subprocess.run(
            [*command, "-print-file-name=libasan.so"], capture_output=True, text=True, timeout=HANG, check=True
        ).stdout.strip()
    )
    if not runtime or not Path(runtime).is_absolute():
        pytest.skip("the compiler at hand has no sanitizers")
    build.build_library(tmp_path / "checked.so", *CHECKS)
    variables = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    found = checked(tmp_path / "checked.so", [sys.executable, "-c", EVERY, str(TESTS)], **variables)
    assert set(found.split()) == declared()
    files = [str(TESTS / "statistical" / name) for name in STATISTICAL]
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", QUICK, *files]
    checked(tmp_path / "checked.so", pytest_command, **variables)


@pytest.mark.audit
def test_sanitizers_would_see_a_place_outside(tmp_path):
    """The same checks, on a read behind an array: they end the process."""
    command = build.compiler()
    if command is None:
        pytest.skip("the compiler at hand has no sanitizers")
    runtime = subprocess.run(
        [*command, "-print-file-name=libasan.so"], capture_output=True, text=True, timeout=HANG, check=True
    )
    if not Path(runtime.stdout.strip()).is_absolute():
        pytest.skip("the compiler at hand has no sanitizers")
    library = compiled(tmp_path / "probe.so", *CHECKS, sources=[HERE / "probe.c"])
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    for place, good in (("5", True), ("6", False)):
        done = subprocess.run(
            [sys.executable, "-c", OUTSIDE, str(library), "at", place],
            env=environment, capture_output=True, text=True, timeout=HANG, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) == good, done.stderr
