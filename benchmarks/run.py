"""Run every benchmark to the end, then list the figures that missed their limits. Run by `make bench`.

A benchmark is a separate process that prints a line for each figure, ending in MISSED if it misses its limit, and exits
with the number of misses as its status. One that misses, or crashes, does not stop the others.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from measuring import MISSED

HERE = Path(__file__).parent
BENCHMARKS = ("startup.py", "planning.py", "sampling.py", "tables.py", "mcmc.py", "general.py")


def run(script: Path) -> list[str]:
    """The figures that missed their limits in one benchmark; its output is shown as it comes."""
    print(f"\n== {script.name}", flush=True)
    missed = []
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            if line.rstrip().endswith(MISSED):
                missed.append(f"{script.name}: {line.rstrip().removesuffix(MISSED).rstrip()}")
    if process.returncode != len(missed):
        missed.append(f"{script.name}: ended with status {process.returncode}")
    return missed


def main(scripts: Sequence[Path]) -> int:
    missed = [line for script in scripts for line in run(script)]
    print("\n" + "\n".join(["missed:", *missed] if missed else ["keepsum: every limit is met"]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or [HERE / name for name in BENCHMARKS]))
