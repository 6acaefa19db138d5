"""The law of the noise of a few cells, as numbers to be drawn: nothing here depends on a count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keepsum._arrays import Floats, IntArray
from keepsum.accuracy.margins import Accuracy
from keepsum.accuracy.noise import Noise
from keepsum.accuracy.query_laws import EstimatedLaw, ExactLaw
from keepsum.planning.plan import CompiledPlan

DRAWN = 2.5  # margins of error to each side that a curve shows
MOST_POINTS, MOST_BINS = 200, 60  # to each side: of a computed law, and of a simulated one


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

    Cells without noise are left out, and cells of which only a bound is known.
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
    noise = Noise(plan.blocks, plan.invariants)
    curves = [_curve(noise, which, cell, int(margins[cell])) for which, cell in chosen]
    return [curve for curve in curves if curve is not None]


def _curve(noise: Noise, which: str, cell: int, margin: int) -> NoiseCurve | None:
    """The law of a cell; None if only a bound on it is known."""
    reach = max(3, round(DRAWN * margin))
    law = noise.law(cell)
    if isinstance(law, ExactLaw):
        step = -(-reach // MOST_POINTS)
        values = np.arange(-(reach // step), reach // step + 1) * step
        within = law.cdf(margin) - law.cdf(-margin - 1)
        return NoiseCurve(which, cell, margin, values, np.array([law.pmf(int(v)) for v in values]), within, 0)
    if not isinstance(law, EstimatedLaw):
        return None
    width = 2 * (reach // MOST_BINS) + 1  # odd, so that a bin has a middle
    bins = reach // width
    place = ((np.abs(law.drawn) + width // 2) // width * np.sign(law.drawn) + bins).ravel()
    counted = np.bincount(place[(place >= 0) & (place <= 2 * bins)], minlength=2 * bins + 1)
    within = float((np.abs(law.drawn) <= margin).mean())
    values = np.arange(-bins, bins + 1) * width
    return NoiseCurve(which, cell, margin, values, counted / (width * law.drawn.size), within, law.draws)
