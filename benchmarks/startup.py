"""What a first call takes: an import, the shell's help, a first draw with and without compiled code. See `make bench`.

CPU time of new processes with their files in memory: the median of some, but for the compilation, which is run once.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import Report

import keepsum as ks

TABLE = "ks.Invariants.margins(ks.Domain({'a': range(4), 'b': range(4)}), [['a'], ['b']])"
HIERARCHY = "ks.Invariants.margins(ks.Domain({'a': range(4), 'b': range(3)}), [['a']])"
DRAW = "import keepsum as ks; ks.plan({keep}, {mechanism}).sample()"
L1, GAUSSIAN = "ks.Laplace(epsilon='0.25')", "ks.Gaussian(sigma=2)"
SHELL = "import sys; sys.argv = ['keepsum', *{arguments!r}]; from keepsum_shell import main; main()"
DEMO = "--count n --keep county --keep education --epsilon 0.25 --yes --force".split()  # noqa: SIM905
CATEGORIES = ["county=Alpha,Beta,Gamma,Delta", "education=Low,Medium,High,Very High"]
PACKAGE = Path(ks.__file__).parent
CHILDREN = Path(__file__).parents[1] / "examples" / "children.csv"


def once(code: str, package: Path = PACKAGE) -> float:
    """CPU time of a new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(code: str) -> float:
    """The same with no kernel compiled: in a copy of the package."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(PACKAGE, Path(folder) / "keepsum", ignore=shutil.ignore_patterns("kernels-*"))
        return once(code, copy)


def median(code: str) -> float:
    once(code)  # which may compile
    return statistics.median(once(code) for _ in range(5))


def main() -> int:
    report = Report()

    def line(what: str, seconds: float, limit: float) -> None:
        report.line(what, seconds, "CPU s", limit, at_least=False)

    line("import keepsum", median("import keepsum"), 0.3)
    for option in ("--version", "--help"):
        line(f"keepsum {option}", median(SHELL.format(arguments=[option])), 0.3)
    for name, keep in {"hierarchy": HIERARCHY, "4 x 4 table": TABLE}.items():
        for kind, mechanism in {"l1": L1, "Gaussian": GAUSSIAN}.items():
            draw = DRAW.format(keep=keep, mechanism=mechanism)
            line(f"first draw in a new process, {name}, {kind}", median(draw), 0.8)
            line("  and with nothing compiled", cold(draw), 6.0)
    with tempfile.TemporaryDirectory() as folder:
        release = ["release", str(CHILDREN), *DEMO, "--output", f"{folder}/out/"]
        release += [argument for text in CATEGORIES for argument in ("--categories", text)]
        line("keepsum release, the table of the demo", median(SHELL.format(arguments=release)), 0.8)
    return report.status


if __name__ == "__main__":
    sys.exit(main())
