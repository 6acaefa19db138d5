"""A seed gives the same noise on every processor, where the noise is exact.

What differs between processors are the last digits of floats: the kernels of BLAS and how many threads share them,
NumPy's loops for vector instructions, and the variants of libm. Each can be chosen on one machine, as far as it has
them; beyond that, an error of one unit in the last place of every function stands for any other processor.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core import _multiarray_umath as loops

import keepsum
import test_seeded_draws as seeded
from support import HANG, c_compiler

TESTS = Path(__file__).parent
SAMPLING = Path(keepsum.__file__).parent / "sampling"
PAGE = TESTS.parent / "docs" / "seeds.md"

ARM = platform.machine() in ("aarch64", "arm64")
CORES = ("ARMV8", "NEOVERSEN1", "CORTEXA57") if ARM else ("Prescott", "Nehalem", "Sandybridge")
DISPATCHED = [name for name in loops.__cpu_dispatch__ if loops.__cpu_features__.get(name)]
LIBM = "glibc.cpu.name=generic" if ARM else "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4"
VARIANTS = {
    **{f"BLAS for {core}": {"OPENBLAS_CORETYPE": core} for core in CORES},
    "one thread": {"OPENBLAS_NUM_THREADS": "1"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2"},
    "no vector instructions": {"NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED)},
    "plain libm": {"GLIBC_TUNABLES": LIBM},
    "kernels for any processor": {"KEEPSUM_KERNELS": "baseline"},
    "all at once": {
        "OPENBLAS_CORETYPE": CORES[0],
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
        "GLIBC_TUNABLES": LIBM,
        "KEEPSUM_KERNELS": "baseline",
    },
}


def draws(**variables: str) -> dict[str, list[str]]:
    """The hashes of all exact draws, from a process with these variables."""
    process = subprocess.run(
        [sys.executable, TESTS / "other_processor.py"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def differing(found: dict[str, list[str]]) -> list[str]:
    known = seeded.recorded()
    return [name for name, values in found.items() if known[name] != values]


@pytest.mark.audit
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_of_this_processor_draws_the_same(variant):
    assert differing(draws(**VARIANTS[variant])) == []


@pytest.fixture(scope="module")
def other_libm(need, tmp_path_factory) -> str:
    """Another libm, compiled."""
    need("cc")
    library = tmp_path_factory.mktemp("libm") / "other.so"
    command = [
        c_compiler(),
        "-O2",
        "-shared",
        "-fPIC",
        "-fno-builtin",
        "-o",
        library,
        TESTS / "other_libm.c",
        "-ldl",
        "-lm",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG)
    return str(library)


@pytest.mark.audit
@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_a_processor_that_errs_in_last_digits_draws_the_same(number, other_libm):
    assert differing(draws(KEEPSUM_OTHER=number, LD_PRELOAD=other_libm)) == []


@pytest.mark.audit
def test_a_sampler_that_compares_last_digits_is_found_out():
    """Choosing a row by all digits of a chance is what made draws depend on the processor."""
    found = [name for number in "123" for name in differing(draws(KEEPSUM_OTHER=number, KEEPSUM_DRAWS="last digit"))]
    assert "columns split, structural zeros" in found


FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "cos", "sin", "tanh", "lgamma", "logaddexp", "pow", "power"),
    *("convolve", "einsum", "rfft", "irfft", "rfftn", "irfftn", "fftconvolve"),
    *("leggauss", "solve", "cholesky", "pinv", "inv"),
}


def functions_used() -> set[str]:
    """The functions of floats that the exact samplers call, but for those that IEEE 754 defines to the last digit."""
    used = set()
    for folder in ("core", "l1", "gaussian"):
        for path in (SAMPLING / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                    used.add("@")
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    last = called.rpartition(".")[2]
                    outside = called.startswith(("math.", "np.")) or last in ("fftconvolve", "rfftn", "irfftn")
                    if outside and last in FUNCTIONS:
                        used.add(last)
    return used


def test_the_page_lists_the_functions_that_a_draw_may_depend_on():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert listed == functions_used()
