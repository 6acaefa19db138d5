"""Two-way tables of any shape, and three-way ones: the tree, how often proposals are accepted, draws per second.

Speeds are those of `benchmarks/results.json`, which `make bench` measures.
`make paper` runs this with everything else. Alone, in less than a minute: `python -m experiments.tables`; FULL=1 for
all of it, some ten minutes; OUT=folder for another folder.
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

from experiments import table_acceptance, table_speed, three_way
from experiments.cache import Cache
from experiments.drawing import save
from experiments.setting import Section, Setting
from experiments.tree import draw_tree


def run(setting: Setting) -> Section:
    """The tree, the acceptance rate, and draws per second."""
    section = Section("Two-way tables of any shape, and three-way tables")
    section.say(
        "l1 Laplace noise in two-way tables under both margins, by splitting the columns along a tree: exact, for any "
        "shape ([the proof](../../docs/exact-tables.md))."
    )
    section.figure(save(draw_tree(), setting.out, "tree"), "A table of five columns, split along a tree")
    table_speed.add(setting, section)
    table_acceptance.add(setting, section)
    three_way.add(section)
    return section


def main() -> int:
    """Run this part alone, quick unless FULL=1: figures and tables, and what it says on standard output."""
    out = Path(os.environ.get("OUT") or Path(__file__).parent / "out")
    quick = os.environ.get("FULL", "") in ("", "0")
    out.mkdir(parents=True, exist_ok=True)
    section = run(Setting(out, quick, Cache(out / "cache", lambda line: print(line, file=sys.stderr))))
    for name, rows in section.tables.items():
        with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    print("\n\n".join(section.text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
