"""What a user waits for before anything is drawn: imports, first calls, the first release ever, the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.children import REPO, fresh_copy
from benchmarks.measuring import Timing, Work, by_turns, ratio
from benchmarks.peers import CALIBRATION
from benchmarks.registry import Bench, at_most, case

IMPORT = [sys.executable, "-c", "import keepsum"]
SHELL = [sys.executable, "-c", "import sys; from keepsum_shell import main; sys.exit(main())"]  # as the command does
FIRST_CALL = [
    sys.executable,
    "-c",
    "import keepsum as ks; d = ks.Domain({'a': range(4), 'b': range(4)});"
    "ks.plan(d, keep=['a', 'b'], mechanism=ks.Laplace.per_unit(epsilon='0.25')).sample()",
]
RELEASE = [
    "release",
    str(REPO / "examples" / "children.csv"),
    "--count",
    "n",
    "--keep",
    "county",
    "--keep",
    "education",
]
RELEASE += ["--categories", "county=Alpha,Beta,Gamma,Delta", "--categories", "education=Low,Medium,High,Very High"]
LAPLACE, GAUSSIAN = ["--epsilon", "0.25"], ["--mechanism", "gaussian", "--sigma", "10"]
DEMO_SECONDS = 45


def command(arguments: list[str], environment: Mapping[str, str] | None = None) -> Work:
    """A program run to its end, with bytecode kept as usual; its output is thrown away."""
    settings = {name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"}
    return Work(
        lambda: subprocess.run(
            arguments, env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        )
    )


def release(folder: str, mechanism: list[str], environment: Mapping[str, str] | None = None) -> Work:
    """A release of the demo's table through the shell."""
    output = ["--output", f"{folder}/released.csv", "--force", "--yes"]
    return command([*SHELL, *RELEASE, *mechanism, *output], environment)


@case("new processes")
def new_processes(bench: Bench) -> None:
    """Wall time, what a user waits for: OpenBLAS spends CPU time on waiting in threads of its own."""
    with tempfile.TemporaryDirectory() as folder:
        works = {
            "import keepsum": (command(IMPORT), 0.3),
            "keepsum --version": (command([*SHELL, "--version"]), 0.3),
            "first call in a new process, 4 × 4 margins": (command(FIRST_CALL), 0.8),
            "first release in a new process, the demo's table": (release(folder, LAPLACE), None),
        }
        timed = {**{name: work for name, (work, _) in works.items()}, "loop": CALIBRATION}
        times = by_turns(timed, bench.pick(7, 3))
    for name, (_, limit) in works.items():
        share = ratio(times[name], times["loop"], "wall")
        target = at_most(limit) if limit else None
        pair = {"ours": times[name], "loop": times["loop"]}
        bench.figure(f"{name} / calibration loop (wall)", share, "×", target, pair, "wall")


@case("the first release ever")
def first_release(bench: Bench) -> None:
    """Nothing in the cache: l1 Laplace, then Gaussian noise in another process."""
    rounds = []
    for _ in range(bench.pick(2, 1)):
        with fresh_copy() as environment, tempfile.TemporaryDirectory() as folder:
            works = {
                "l1 Laplace": release(folder, LAPLACE, environment),
                "Gaussian": release(folder, GAUSSIAN, environment),
                "loop": CALIBRATION,
            }
            rounds.append(by_turns(works, 1, warm=False))
    times = {name: together([one[name] for one in rounds]) for name in rounds[0]}
    times["in all"] = times["l1 Laplace"] + times["Gaussian"]
    for name, target in (("l1 Laplace", at_most(2.5)), ("Gaussian", at_most(2.5)), ("in all", None)):
        pair = {"ours": times[name], "loop": times["loop"]}
        what = f"first release ever, {name} / calibration loop"
        bench.figure(what, ratio(times[name], times["loop"]), "×", target, pair)


def together(timings: list[Timing]) -> Timing:
    """Rounds that were timed one by one."""
    return Timing(np.concatenate([t.cpu for t in timings]), np.concatenate([t.wall for t in timings]))


@case("make demo on a fresh clone", quick=False)
def demo(bench: Bench) -> None:
    """With DEMO=1 only: it installs packages. CPU seconds against the loop; wall time depends on the registry."""
    if not os.environ.get("DEMO"):
        return
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "keepsum")
        subprocess.run(["git", "clone", "--quiet", REPO, clone], check=True)
        times = by_turns({"ours": command(["make", "-C", str(clone), "demo"]), "loop": CALIBRATION}, 1, warm=False)
    share = ratio(times["ours"], times["loop"])
    bench.figure("make demo on a fresh clone / calibration loop", share, "×", at_most(DEMO_SECONDS), times)
