"""What compiled libraries print is on no stream of a command: HiGHS prints a line now and then, whatever it is told."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import scipy.optimize

import keepsum_shell
from cli.to_stream import TO_STREAM, forked, names
from support import HANG

REPO = Path(__file__).parents[2]
STRAY = b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n"
CELLS = list(itertools.product("01", repeat=3))
KEPT = ["--count", "n", "--keep", "a,b", "--keep", "b,c", "--keep", "c,a", "--epsilon", "0.1"]  # margins above 0


@pytest.fixture
def folder(folder):
    rows = [",".join([*cell, str(k % 7)]) for k, cell in enumerate(CELLS)]
    (folder / "cube.csv").write_text("\n".join(["a,b,c,n", *rows, ""]))
    return folder


def solving_aloud(arguments):
    """Run a command whose solver prints at once, and into the buffer of the C library, which the end of it flushes."""
    library, solve, solved = ctypes.CDLL(None), scipy.optimize.linprog, []

    def aloud(*given, **options):
        os.write(1, STRAY)
        library.printf(STRAY)
        solved.append(True)
        return solve(*given, **options)

    scipy.optimize.linprog = aloud
    sys.argv = ["keepsum", *arguments]
    try:
        keepsum_shell.main()
    finally:
        library.fflush(None)
        assert solved


def test_a_table_in_a_pipe(folder):
    arguments = ["release", "cube.csv", *KEPT, "--yes", *TO_STREAM]
    status, said, complaints = forked(arguments, folder, start=solving_aloud)
    assert status == 0
    assert [line.split(",")[:3] for line in said.splitlines()] == [["a", "b", "c"], *map(list, CELLS)]
    assert "Highs" not in complaints
    assert names(folder) == {"r.certificate.json", "cube.csv"}


def test_json_in_a_pipe(folder):
    arguments = ["release", "cube.csv", *KEPT, "--yes", "--output", "out/", "--json"]
    status, said, complaints = forked(arguments, folder, start=solving_aloud)
    assert (status, complaints) == (0, "")
    assert json.loads(said)


PROGRAM = """
    import os, sys
    from keepsum_shell.streams import keep_standard_output

    def kind():
        stream = sys.stdout
        return type(stream.buffer), stream.encoding, stream.errors, stream.line_buffering, stream.write_through

    before = kind()
    print("before")
    keep_standard_output()
    os.write(1, b"stray")
    os.system("echo stray")
    print("after \u00e9", kind() == before, sys.stdout is sys.__stdout__)
"""


@pytest.mark.parametrize("options", [[], ["-u"], ["-X", "dev", "-W", "error"]], ids=["plain", "unbuffered", "strict"])
def test_the_stream_is_like_that_which_python_made(options):
    """Its encoding, how it treats errors, and its buffering; nothing is said of it at the end."""
    done = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        timeout=HANG,
        env=os.environ | {"PYTHONIOENCODING": "latin-1:replace"},
        check=True,
    )
    assert (done.stdout.decode("latin-1"), done.stderr) == ("before\nafter \u00e9 True True\n", b"")


@pytest.mark.parametrize(
    ("program", "first", "said"),
    [
        ("experiments.run", "experiments.setting.Setting", b""),
        ("benchmarks.run", "benchmarks.cases.load", b"keepsum: loading the library and its peers\n"),
    ],
)
def test_programs_that_compare_ours_with_solvers(tmp_path, program, first, said):
    """What they call first prints as the solver does, and ends them."""
    module, _, name = first.rpartition(".")
    code = f"""
        import os, runpy, sys
        import {module}

        def aloud(*_):
            os.write(1, {STRAY!r})
            sys.exit(0)

        {module}.{name} = aloud
        runpy.run_module({program!r}, run_name="__main__")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        timeout=HANG,
        check=True,
        cwd=REPO,
        env=os.environ | {"OUT": str(tmp_path)},
    )
    assert done.stdout == said
