"""Where Gaussian and l2 Laplace noise is exact, and where not, as docs/gaussian.md says."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

import keepsum as ks
from keepsum.planning.plan import structure_of
from keepsum.planning.selection import gaussian
from keepsum.planning.selection.choice import BUDGET, WIDEST, block_cells
from keepsum.sampling.gaussian.factors import LARGEST_DIMENSION
from keepsum.sampling.gaussian.sums import sum_acceptance

PAGE = (Path(__file__).parents[2] / "docs" / "gaussian.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
SOME_SIGMAS = [Fraction(n, 20) for n in (1, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 30)]
CLEARLY = 100  # how many times above or below its limit the cost of a draw is, where a pilot's luck must not matter
SLOW = {"8 × 8 × 8, one-way"}


def edges() -> dict[str, list[str]]:
    """The lines of the page, by table and by what is kept."""
    block = re.findall(r"<!-- edges -->\n(.*?)<!-- /edges -->", PAGE, re.DOTALL)[0]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in block.splitlines()[2:]]
    return {f"{table}, {kept.removesuffix(' margins')}": rest for table, kept, *rest in rows}


def margins(shape: tuple[int, ...], ways: int) -> ks.Invariants:
    """All margins of so many axes of a table."""
    names = "abcde"[: len(shape)]
    kept = [list(axes) for axes in itertools.combinations(names, ways)]
    return ks.Invariants.margins(ks.Domain(dict(zip(names, map(range, shape), strict=True))), kept)


def table_of(row: str) -> ks.Invariants:
    shape, ways = row.split(", ")
    return margins(tuple(map(int, shape.split(" × "))), {"one-way": 1, "two-way": 2, "three-way": 3}[ways])


def cost_of(totals: ks.Invariants):
    """The cells that an accepted draw takes, by sigma; the dimension of the block; its smallest change."""
    structure = structure_of(totals)
    (block,) = structure.blocks
    _, sizes = block_cells(structure, [block])
    part = gaussian.overlap_part(block.system, sizes, 1)
    assert part is not None
    wide = ks.plan(keep=totals, mechanism=ks.Gaussian(sigma=20))  # exact without a pilot
    change = float(wide.smallest_change.value)
    return (
        lambda sigma: part.width / max(gaussian.acceptance(part, sigma**2, gaussian.BUDGET), gaussian.RAREST),
        wide.geometry.dimension,
        change,
    )


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.audit] if row in SLOW else []) for row in edges()]
)
def test_the_lines_of_the_page(row):
    """In the middle of an interval the exact sampler is far too slow; below it, and at half the change, it is not."""
    dimension, change, interval = edges()[row]
    cost, found, smallest = cost_of(table_of(row))
    assert (f"{found:,}", f"{smallest:.3g}") == (dimension, change)
    assert cost(Fraction(round(500 * smallest), 1000)) * CLEARLY <= BUDGET
    if interval == "none":
        assert max(map(cost, SOME_SIGMAS)) <= BUDGET / 10
        return
    low, high = map(Fraction, interval.split(" to "))
    assert cost((low + high) / 2) >= BUDGET * CLEARLY
    assert cost(low / 2) * CLEARLY <= BUDGET


def test_what_the_page_says_of_narrow_noise_is_what_plans_do():
    """Two lines as whole plans, not as costs."""
    for row, sigma in (("20 × 20, one-way", "1"), ("10 × 10 × 10, two-way", "1.42"), ("10 × 10, one-way", "0.5")):
        (choice,) = ks.plan(keep=table_of(row), mechanism=ks.Gaussian(sigma=sigma)).samplers
        assert (choice.method, choice.exactness) == ("conditional_cells", "exact")
    (choice,) = ks.plan(keep=table_of("10 × 10 × 10, two-way"), mechanism=ks.Gaussian(sigma="0.6")).samplers
    assert choice.sampler is None or choice.exactness == "estimated"
    assert [reason.kind for reason in choice.reasons][:1] == ["rarely_accepted"]


@pytest.mark.audit
def test_totals_that_do_not_overlap():
    """At worst 0.8% of proposals for a million cells, within the budget; two million are refused at that sigma."""
    worst = min([n / 50 for n in range(10, 30)], key=lambda sigma: sum_acceptance(10**4, sigma**2))
    million, two_million = (sum_acceptance(cells, worst**2) for cells in (10**6, 2 * 10**6))
    assert f"at worst {100 * million:.1g}% for a million cells under one total (σ = {worst:.1f})" in WORDS
    assert 10**6 / million <= gaussian.SUM_BUDGET < 2 * 10**6 / two_million
    assert f"every σ from {float(gaussian.NARROWEST):g} to 10⁸" in WORDS
    assert WIDEST == 10**8
    assert f"at most {BUDGET // 10**6} million cells" in WORDS


def test_blocks_of_too_many_dimensions_are_refused_at_every_sigma():
    totals = margins((15, 15, 15), 1)
    dimension = ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=1)).geometry.dimension
    assert dimension > LARGEST_DIMENSION
    assert f"at most {LARGEST_DIMENSION:,} dimensions" in WORDS
    assert f"15 categories each have {dimension:,}" in WORDS
    for mechanism in (ks.Gaussian(sigma=20), ks.Laplace.per_unit(epsilon="0.1", norm="l2")):
        with pytest.raises(ks.NoSamplerError, match="too many totals overlap"):
            ks.plan(keep=totals, mechanism=mechanism).sample()


def test_l2_laplace_noise_is_exact_or_refused():
    totals = margins((30, 30, 30), 2)
    dimension = 29**3
    assert f"m = {dimension:,}, from ε = 160 on" in WORDS
    for epsilon, refused in (("1", False), ("60", False), ("200", True)):
        assert (float(epsilon) > math.sqrt(dimension)) == refused
        (choice,) = ks.plan(keep=totals, mechanism=ks.Laplace.per_unit(epsilon=epsilon, norm="l2")).samplers
        assert (choice.sampler is None, choice.exactness) == (refused, "exact")


def test_with_a_focus_noise_is_exact_or_refused():
    domain = ks.Domain({"a": range(20), "b": range(20)})
    for rho, refused in (("0.1", False), ("2.5", True)):
        mechanism = ks.Gaussian.per_unit(rho=rho, focus={"b": rho})
        choices = ks.plan(domain, keep=[["a"]], mechanism=mechanism).samplers
        assert any(choice.sampler is None for choice in choices) == refused
        assert {choice.exactness for choice in choices} == {"exact"}
