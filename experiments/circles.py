"""Experiment 1: intersecting counting constraints, 14 records under three overlapping totals."""

from __future__ import annotations

from experiments.setting import Section, Setting
from experiments.small import (
    LAG_HEAD,
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
from experiments.steps import REGIONS

WHAT = "Circles"
TARGETS = (
    Target("l1", -1.0, 10**5, "Figure circles-coupling, left", (10_000, 30_000, 100_000)),
    Target("l2", -1.5, 10**6, "Figure circles-coupling, right", (100_000, 300_000, 1_000_000)),
)


def run(setting: Setting) -> tuple[Section, list[Study]]:
    """Curves, boxplots, seconds and claims."""
    section = Section("Experiment 1: intersecting constraints")
    section.say(
        "14 records under three totals that all overlap, ε = 0.25. The paper's 3 × 14 matrix is only drawn, and the "
        "drawing is not in its source; here the records are the seven regions of three circles, two records each."
    )
    studies = [study(setting, "circles", target) for target in TARGETS]
    for found in studies:
        section.claims += claims_of(found, WHAT, "Figure circle-boxplot")
        norm = found.target.norm
        name = draw_bound(setting, found, f"circles_tv_{norm}", WHAT)
        section.figure(name, f"TV bound of the paper's chain on the circles, {norm} target")
    section.table("circles_lags", LAG_HEAD, [row for found in studies for row in lag_rows(found)])
    labels = [f"{name}{i}" for name in REGIONS for i in (1, 2)]
    name = draw_boxes(setting, studies, labels, "circles_boxes", WHAT)
    section.figure(
        name, "Noise of each record: the left box of each pair is the paper's chain, the right one the exact sampler"
    )
    section.table("circles_cost", TIMING_HEAD, [timing_rows(found, "circles") for found in studies])
    return section, studies
