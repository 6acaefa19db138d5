"""Fibres of every kind, and the page of what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, tee

import numpy as np

from experiments.fibres.comparison import Found, Stating, compare_all, stated_by_plan
from experiments.fibres.kinds import KINDS, fibres
from experiments.fibres.nearest import L2

COLUMNS = (
    "kind", "fibres", "changes compared", "ruled out", "unprotected", "without a figure", "largest / stated",
    "attained", "exact figures attained", "beyond",
)  # fmt: skip
IN_L2 = 4  # one fibre in so many is compared in the l2 norm, too
SHOWN = 20  # changes beyond what is stated that the page lists


def run(
    number: int,
    seed: int,
    say: Callable[[str], None] = lambda line: None,
    stating: Stating = stated_by_plan,
    names: Sequence[str] = tuple(KINDS),
) -> dict[str, Found]:
    """So many fibres in all, evenly over the kinds; each kind has its own random numbers, and two rows."""
    results = {}
    for place, name in enumerate(names):
        share = number // len(names) + (place < number % len(names))
        first, second = tee(fibres(np.random.default_rng([seed, *name.encode()]), name, share))
        results[name] = compare_all(first, stating)
        results[f"{name}, l2 squared"] = compare_all(islice(second, 0, None, IN_L2), stating, L2)
        for row in (name, f"{name}, l2 squared"):
            say(" | ".join(cells(row, results[row])))
    return results


def cells(name: str, found: Found) -> list[str]:
    """A row of the table."""
    attained = f"{100 * found.attained / found.compared:.0f}%" if found.compared else "-"
    return [
        name,
        f"{found.fibres:,}",
        f"{found.compared:,}",
        f"{found.ruled_out:,}",
        f"{found.unprotected:,}",
        f"{found.without_figure:,}",
        f"{found.ratio:.2f}",
        attained,
        f"{len(found.exact_attained)} of {len(found.exact)}",
        f"{len(found.beyond)}",
    ]


def page(results: dict[str, Found], seed: int, when: str) -> str:
    """The page: a row for each kind, and the first changes that are farther than stated."""
    rows = [list(COLUMNS), ["---"] * len(COLUMNS), *(cells(name, found) for name, found in results.items())]
    beyond = [line for found in results.values() for line in found.beyond]
    elsewhere = sum(len(found.elsewhere) for found in results.values())
    in_l1 = [found for name, found in results.items() if not name.endswith("squared")]
    verdict = f"**{len(beyond):,} changes are farther than stated.**" if beyond else "No change is farther than stated."
    lines = [
        "# One person in real tables: random fibres",
        f"Written by `make fibres`, {when}, seed {seed}. A fibre is all real tables with the kept totals of one table "
        "of few people. For each person and each other value of an attribute the nearest table of the fibre in which "
        "somebody is where they would be was found by integer programming, and compared with the stated distance.",
        f"{sum(found.fibres for found in in_l1):,} fibres, {sum(found.compared for found in in_l1):,} changes in the "
        f"l1 norm. {verdict} For {elsewhere:,} people the nearest value that the totals leave them is farther than "
        "*some other value*, though no farther than *any value*.",
        "\n".join("| " + " | ".join(row) + " |" for row in rows),
        "*Largest / stated*: the largest distance over the figure for it. *Attained*: changes at the stated distance. "
        "*Exact figures attained*: attributes of systems whose figure is stated as exact, where one of a few random "
        "tables has it.",
    ]
    if beyond:
        lines += ["## Farther than stated", "\n".join(f"- {line}" for line in beyond[:SHOWN])]
    return "\n\n".join(lines) + "\n"
