"""The names that other code relies on, and what importing them costs."""

import inspect
import subprocess
import sys

import pytest

import keepsum as ks

HEAVY = [
    "numpy", "scipy", "flint", "cryptography",
    "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "scipy.optimize", "scipy.stats", "ibis",
    "duckdb", "typer", "rich", "starlette", "jinja2", "sympy", "dp_accounting", "pyspark",
]  # fmt: skip


def test_all_is_sorted_and_true():
    assert ks.__all__ == sorted(ks.__all__)
    for name in ks.__all__:
        assert hasattr(ks, name), name


def test_public_names_have_docstrings():
    for name in ks.__all__:
        assert getattr(ks, name).__doc__, name


ALONE = """
import os, sys
import numpy, scipy.stats  # what all of them need, imported once
for name in sys.argv[1:]:
    if not os.fork():
        names = {}
        exec(f"from keepsum import {name}; import keepsum; same = keepsum.{name} is {name}", names)
        print(names["same"], flush=True)
        os._exit(0)
    os.wait()
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_import_brings_nothing_heavy():
    code = f"import sys, keepsum; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run(code).strip() == "[]"


@pytest.mark.audit
def test_each_public_name_can_be_imported_alone():
    """Names are imported at their first use, whichever comes first: each in a process that has no other of ours."""
    assert run(ALONE, *ks.__all__).split() == ["True"] * len(ks.__all__)


def test_a_star_brings_every_name():
    code = "from keepsum import *; import keepsum; print([n for n in keepsum.__all__ if n not in globals()])"
    assert run(code).strip() == "[]"


def test_other_names_are_errors():
    code = "import keepsum\ntry:\n    keepsum.nothing\nexcept AttributeError as error:\n    print(error)"
    assert run(code).strip() == "module 'keepsum' has no attribute 'nothing'"


def test_types_are_checked_for_the_names_that_are_imported():
    """The imports for type checkers and the homes of names say the same."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(ks.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    checked = {alias.name: node.module for node in block.body for alias in node.names}
    assert checked == ks._HOME
    assert sorted(checked) == ks.__all__


def test_every_error_and_warning_has_a_public_name():
    """What is raised can be caught by its name; ``UndeclaredError`` is defined elsewhere."""
    from keepsum import errors

    raised = [name for name, value in vars(errors).items() if isinstance(value, type)]
    assert {name for name in raised if issubclass(getattr(errors, name), (Exception, Warning))} <= set(ks.__all__)


def named(call) -> list[str]:
    return list(inspect.signature(call).parameters)


def test_calls_that_do_alike_are_called_alike():
    assert named(ks.read_table)[1:3] == named(ks.Table.from_frame)[1:3] == ["count", "axes"]
    for call in (ks.plan, ks.release, ks.accuracy_curve, ks.mechanism_for):
        assert named(call)[:3] == ["table", "keep", "mechanism"]
    assert named(ks.share_budget)[:3] == ["table", "levels", "epsilon"]
    for call in (ks.release, ks.Plan.release, ks.Plan.sample, ks.Plan.certify, ks.mcmc.metropolis):
        assert inspect.signature(call).parameters["threads"].default is None
    assert inspect.signature(ks.mcmc.meeting_times).parameters["threads"].default is None


def test_the_package_runs_as_the_command():
    run = [sys.executable, "-m", "keepsum"]
    said = subprocess.run([*run, "--version"], capture_output=True, text=True, check=True)
    assert ks.__version__ in said.stdout
    wrong = subprocess.run([*run, "nothing"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("keepsum: No such command 'nothing'.")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_shell_answers_without_loading_what_computes(option):
    heavy = [name for name in HEAVY if name != "typer"]
    code = (
        f"import sys; sys.argv = ['keepsum', {option!r}]; from keepsum_shell import main\n"
        f"try:\n    main()\nexcept SystemExit:\n    print([m for m in {heavy!r} if m in sys.modules])"
    )
    assert run(code).strip().splitlines()[-1] == "[]"
