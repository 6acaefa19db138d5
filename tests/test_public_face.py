"""The names that other code relies on, and what importing them costs."""

import subprocess
import sys

import keepsum as ks

HEAVY = [
    "numba", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "scipy.optimize", "scipy.stats", "ibis",
    "duckdb", "typer", "rich", "fastapi", "jinja2", "sympy", "dp_accounting", "pyspark",
]  # fmt: skip


def test_all_is_sorted_and_true():
    assert ks.__all__ == sorted(ks.__all__)
    for name in ks.__all__:
        assert hasattr(ks, name), name


def test_public_names_have_docstrings():
    for name in ks.__all__:
        assert getattr(ks, name).__doc__, name


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy():
    code = f"import sys, keepsum; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code).strip() == "[]"
