"""The law of the noise of a few cells, as numbers to be drawn: nothing here depends on a count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.query_laws import ExactLaw
from keepsum.planning.plan import CompiledPlan
from keepsum.planning.selection.choice import Choice, simulate_into
from keepsum.sampling.core.rng import rng

DRAWN = 2.5  # margins of error to each side that a curve shows
MOST_POINTS, MOST_BINS = 200, 60  # to each side: of a computed law, and of a simulated one
EFFORT, MOST_DRAWS, FEWEST_DRAWS = 10**7, 4000, 200  # simulated cells, rejected ones included


@dataclass(frozen=True, eq=False)
class NoiseCurve:
    """The law of one cell's noise.

    Attributes
    ----------
    which
        Which cells have this margin, in a word or two.
    cell
        The number of one of them.
    margin
        Their margin of error.
    values, chances
        Values of the noise, and how probable each is; of a wide law not every value is there.
    within
        The probability that the noise stays within the margin.
    draws
        From how many simulated draws the probabilities come; 0 if they were computed.
    """

    which: str
    cell: int
    margin: int
    values: IntArray
    chances: Floats
    within: float
    draws: int


def noise_curves(plan: CompiledPlan, accuracy: Accuracy) -> list[NoiseCurve]:
    """The laws of a typical cell and, where margins differ, of cells with the smallest and the largest one.

    Cells without noise are left out.
    """
    margins = accuracy.margins
    noisy = np.ones(len(margins), dtype=bool)
    noisy[plan.pinned] = False
    cells = np.flatnonzero(noisy)
    ordered = cells[np.argsort(margins[cells], kind="stable")]
    typical = int(ordered[len(ordered) // 2])
    low, high = int(ordered[0]), int(ordered[-1])
    middle = int(margins[typical])
    chosen = [("typical cells" if margins[low] < margins[high] else "every cell with noise", typical)]
    if margins[low] < middle:
        chosen.insert(0, ("cells with the smallest margin", low))
    if margins[high] > middle:
        chosen.append(("cells with the largest margin", high))
    return [_curve(plan, which, cell, int(margins[cell])) for which, cell in chosen]


def _curve(plan: CompiledPlan, which: str, cell: int, margin: int) -> NoiseCurve:
    reach = max(3, round(DRAWN * margin))
    if plan.mechanism.kind in ("laplace-l1", "gaussian") and not _overlaps(plan, cell):
        law = Noise(plan.blocks, plan.invariants).law(cell)
        if isinstance(law, ExactLaw):
            step = -(-reach // MOST_POINTS)
            values = np.arange(-(reach // step), reach // step + 1) * step
            within = law.cdf(margin) - law.cdf(-margin - 1)
            return NoiseCurve(which, cell, margin, values, np.array([law.pmf(int(v)) for v in values]), within, 0)
    drawn = _simulated(plan, cell)
    width = 2 * (reach // MOST_BINS) + 1  # odd, so that a bin has a middle
    bins = reach // width
    place = ((np.abs(drawn) + width // 2) // width * np.sign(drawn) + bins).ravel()
    counted = np.bincount(place[(place >= 0) & (place <= 2 * bins)], minlength=2 * bins + 1)
    within = float((np.abs(drawn) <= margin).mean())
    values = np.arange(-bins, bins + 1) * width
    return NoiseCurve(which, cell, margin, values, counted / (width * drawn.size), within, len(drawn))


def _overlaps(plan: CompiledPlan, cell: int) -> bool:
    """Whether a cell is in a block, where totals overlap."""
    return int(plan.structure.part[plan.structure.region[cell]]) >= 0


def _simulated(plan: CompiledPlan, cell: int) -> IntArray:
    """The noise of a cell in simulated draws, from a seed of their own, so that they are always the same.

    One row per draw; in a table whose cells all have one law, a column for each of them.
    """
    choice, columns = _sampler_of(plan, cell)
    sampler = choice.sampler
    if sampler is None:
        raise AssertionError("a release has a sampler for every block")
    draws = max(FEWEST_DRAWS, min(MOST_DRAWS, EFFORT // max(1, choice.simulation_cost)))
    values = np.empty((draws, len(columns)), dtype=np.int64)
    source, batch = rng(seed="keepsum report"), max(1, min(draws, 2**22 // sampler.width))
    for start in range(0, draws, batch):
        noise = np.empty((min(batch, draws - start), sampler.width), dtype=np.int64)
        simulate_into(sampler, noise, source)
        values[start : start + len(noise)] = noise[:, columns]
    return values


def _sampler_of(plan: CompiledPlan, cell: int) -> tuple[Choice, IntArray]:
    """How a cell is sampled, and the columns of that sampler whose noise has the law of this cell's."""
    for group, choice in zip(plan.groups, plan.samplers, strict=True):
        place = np.flatnonzero(choice.cells == cell)
        if not len(place):
            continue
        if group.members and group.members[0].system.grid is not None:
            sizes = plan.structure.sizes[group.members[0].regions]
            if (sizes == sizes[0]).all():
                return choice, choice.first + np.arange(len(choice.cells))
        return choice, choice.first + place
    raise AssertionError("every cell with noise has a sampler")
