"""Run every experiment in order and write `results.md`. `make paper` calls it.

QUICK=1 runs little of everything; COUNTIES=path and DAS=path name census files; OUT=folder says where results go.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from experiments import children, circles
from experiments.cache import Cache
from experiments.setting import Setting

OUT = Path(__file__).parent / "out"


def say(line: str) -> None:
    """Progress, on a terminal only: nothing when piped."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line[:150]}", end="", file=sys.stderr, flush=True)


def setting_from(environment: dict[str, str]) -> Setting:
    """What the environment asks for."""
    out = Path(environment.get("OUT") or OUT)

    def path(name: str) -> Path | None:
        return Path(environment[name]) if environment.get(name) else None

    quick = environment.get("QUICK", "") not in ("", "0")
    return Setting(out, quick, Cache(out / "cache", say), path("COUNTIES"), path("DAS"))


def main() -> int:
    """Everything, in the paper's order."""
    setting = setting_from(dict(os.environ))
    for part in (circles, children):
        print(part.run(setting)[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
