"""Experiment 2: delinquent children by county and education, 4 x 4 with both margins kept."""

from __future__ import annotations

import numpy as np

from experiments.claims import Claim, equal, not_rejected
from experiments.setting import Section, Setting
from experiments.small import (
    LAG_HEAD,
    RATE,
    TIMING_HEAD,
    Study,
    Target,
    claims_of,
    draw_bound,
    draw_boxes,
    lag_rows,
    study,
    timing_rows,
)
from experiments.steps import CHILDREN, COUNTIES, EDUCATION

TABLE_NAME = "Children"
CHILDREN_TARGETS = (
    Target("l1", -1.0, 10**4, "Figure children-coupling-l1", (1_000, 3_000, 10_000)),
    Target("l2", -2.0, 10**5, "Figure children-coupling-l2", (10_000, 30_000, 100_000)),
)
# The two noise tables that the paper prints.
PRINTED = {
    "l1": [[-1, -1, 0, 2], [5, 4, -2, -7], [-5, -3, 5, 3], [1, 0, -3, 2]],
    "l2": [[-11, 1, 10, 0], [-3, -6, 1, 8], [-6, -5, 13, -2], [20, 10, -24, -6]],
}
TABLES = {"l1": "Table children-noise", "l2": "Table children-noise-l2"}


def run(setting: Setting) -> tuple[Section, list[Study]]:
    """Curves, noise tables, boxplots and claims."""
    section = Section("Experiment 2: delinquent children, 4 × 4 with both margins")
    section.say(
        "ε = 0.25. The paper prints 35 as the total of Gamma; the row is 3, 10, 10, 2, which sums to 25, and its "
        "column totals and grand total of 135 agree with 25. The corrected table:"
    )
    _counts(section, "children_counts", CHILDREN)
    studies = [study(setting, "children", target) for target in CHILDREN_TARGETS]
    for result in studies:
        norm = result.target.norm
        section.claims += claims_of(result, TABLE_NAME, "Figure chidren-boxplot")
        section.claims += _table_claims(result)
        name = draw_bound(setting, result, f"children_tv_{norm}", TABLE_NAME)
        section.figure(name, f"TV bound of the paper's chain on the children's table, {norm} target")
        section.say(f"One noise table, {norm} target, from the chain after the paper's number of steps:")
        _counts(section, f"children_noise_{norm}", result.chain["draws"][0].reshape(4, 4))
    section.table("children_lags", LAG_HEAD, [row for result in studies for row in lag_rows(result)])
    labels = [f"{county[0]}\n{'LMHV'[k]}" for county in COUNTIES for k in range(4)]
    name = draw_boxes(setting, studies, labels, "children_boxes", TABLE_NAME)
    section.figure(
        name,
        "Noise of each cell (county Alpha, Beta, Gamma or Delta, education Low, Medium, High or Very High, by their "
        "initials): the left box of each pair is the paper's chain, the right one the exact sampler",
    )
    section.table("children_cost", TIMING_HEAD, [timing_rows(result, "children") for result in studies])
    return section, studies


def _counts(section: Section, name: str, table: np.ndarray) -> None:
    """Add a table in the paper's layout, with its totals."""
    rows = [[county, *map(str, row), str(row.sum())] for county, row in zip(COUNTIES, table, strict=True)]
    section.table(
        name, ["County", *EDUCATION, "Total"], [*rows, ["Total", *map(str, table.sum(axis=0)), str(table.sum())]]
    )


def _table_claims(result: Study) -> list[Claim]:
    norm, printed = result.target.norm, np.array(PRINTED[result.target.norm])
    order = 1 if norm == "l1" else 2
    lengths = np.linalg.norm(result.exact["draws"].astype(float), order, axis=1)
    length = np.linalg.norm(printed.reshape(-1).astype(float), order)
    above = (1 + (lengths >= length).sum()) / (1 + len(lengths))
    below = (1 + (lengths <= length).sum()) / (1 + len(lengths))
    tables = result.chain["draws"].reshape(-1, 4, 4)
    broken = np.abs(tables.sum(axis=1)).sum() + np.abs(tables.sum(axis=2)).sum()
    return [
        Claim(f"{TABLE_NAME}, {norm}: margins changed by 1,000 noise tables", TABLES[norm], 0, float(broken), equal()),
        Claim(
            f"{TABLE_NAME}, {norm}: the length of the paper's printed noise is consistent with the exact "
            f"distribution (p-value, two-sided)",
            TABLES[norm],
            float(length),
            float(min(1.0, 2 * min(above, below))),
            not_rejected(RATE),
            paper_text=f"length {length:.3g}",
        ),
    ]
