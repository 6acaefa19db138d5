"""The margin of error against epsilon as a picture above the slider, whose ends are those of its axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

LEAST, MOST = -2, 1  # powers of ten of epsilon: the ends of the slider
VALUES = ("10", "5", "2", "1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01")  # the quickest to work out first
WIDTH, HEIGHT = 420, 168
LEFT, RIGHT, TOP, BOTTOM = 9, 411, 14, 144  # of the frame; a slider's handle goes as near to the ends
FLOOR = 0.7  # where a margin of 0 is drawn


@dataclass(frozen=True)
class Scales:
    """Where an epsilon and a margin are in the picture; both axes are logarithmic."""

    high: float

    def x(self, epsilon: float) -> float:
        """How far to the right an epsilon is."""
        return LEFT + (RIGHT - LEFT) * (log10(epsilon) - LEAST) / (MOST - LEAST)

    def y(self, margin: float) -> float:
        """How far down a margin is."""
        share = (log10(max(margin, FLOOR)) - log10(FLOOR)) / (self.high - log10(FLOOR))
        return BOTTOM - (BOTTOM - TOP) * min(share, 1.0)


def curve_svg(points: Sequence[tuple[float, int]]) -> str:
    """The picture of margins at some epsilons; a script moves its mark, whose place the data attributes give.

    >>> curve_svg([(1.0, 6), (0.1, 63)]).count("<circle")
    3
    """
    points = sorted(points)
    scales = Scales(log10(max(20, 1.3 * max(margin for _, margin in points))))
    words = ", ".join(f"±{margin:,} at {epsilon:g}" for epsilon, margin in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'data-high="{scales.high:.6f}" data-low="{log10(FLOOR):.6f}" '
        f'data-left="{LEFT}" data-right="{RIGHT}" data-top="{TOP}" data-bottom="{BOTTOM}">',
        f"<title>Margin of error against epsilon</title><desc>Typical margins: {words}.</desc>",
    ]
    for power in range(floor(scales.high) + 1):
        y = scales.y(10**power)
        parts.append(f'<path class="s-grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="f-quiet" x="{RIGHT}" y="{y - 4:.1f}" text-anchor="end">±{10**power:,}</text>')
    for power in range(LEAST, MOST + 1):
        x, anchor = scales.x(10.0**power), "start" if power == LEAST else "end" if power == MOST else "middle"
        at = x - 5 if power == LEAST else x + 5 if power == MOST else x
        parts.append(f'<path class="s-quiet" d="M{x:.1f} {BOTTOM}v5"/>')
        parts.append(
            f'<text class="f-quiet" x="{at:.1f}" y="{BOTTOM + 19}" text-anchor="{anchor}">{10.0**power:g}</text>'
        )
    places = [(scales.x(epsilon), scales.y(margin)) for epsilon, margin in points]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts.append(f'<path class="s-quiet" d="M{LEFT} {BOTTOM}H{RIGHT}"/><path class="s-first line" d="M{line}"/>')
    parts += [f'<circle class="f-first" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
    parts.append('<g class="live"><path class="s-ink" d=""/><circle class="f-ink" cx="-9" cy="-9" r="5.5"/></g></svg>')
    return "".join(parts)
