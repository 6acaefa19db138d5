"""The margin of error at any epsilon, for a slider, and as a picture above it: kept totals are compiled once."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import msgspec

from keepsum.accuracy.choose import Candidates, CurvePoint
from keepsum.desk.deriving import DraftState
from keepsum.errors import InputError, KeepsumError
from keepsum.privacy.numbers import exact_in_range
from keepsum.releasing.codec import LEVEL
from keepsum.specs.building import noise_of
from keepsum.specs.spec import NoiseSpec
from keepsum.tables.invariants import Invariants

# The margin of error against epsilon as a picture above the slider, whose ends are those of its axis.

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
        place, anchor = (
            (RIGHT, "end") if 10**power > 3 * points[-1][1] else (LEFT, "start")
        )  # above the curve, or below
        parts.append(f'<text class="f-quiet" x="{place}" y="{y - 4:.1f}" text-anchor="{anchor}">±{10**power:,}</text>')
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


# The margin of error at any epsilon, for a slider: kept totals are compiled once, each value is worked out once.

LONGEST = 1.0  # seconds of CPU for one point of the curve, after which none is simulated: a busy machine ends no curve
PATIENCE = 0.5  # seconds before what there is of the curve is shown


def work_so_far() -> float:
    """Seconds of CPU that this process has used."""
    return time.process_time()


class MarginCurves:
    """The candidates of the last kind of noise that was asked for."""

    def __init__(self) -> None:
        self._kept: Invariants | None = None
        self._key = b""
        self._candidates: Candidates | None = None
        self._slow_at = ""  # the epsilon that took so long that none is simulated after it
        self._lock = threading.Lock()

    def at(self, look: DraftState, noise: NoiseSpec, epsilon: str) -> dict[str, Any]:
        """The margins and the losses at an epsilon, as the page shows them."""
        with self._lock:
            point = self._point(look, noise, epsilon)
            is_stated = self._candidates is not None and self._candidates.first.person is not None
        if point is None:
            return {}
        return {
            "typical": point.typical,
            "largest": point.largest,
            "person": str(point.person) if is_stated else None,
            "little": point.person.excess is not None,
        }

    def curve(self, look: DraftState, noise: NoiseSpec) -> tuple[list[tuple[float, int]], bool]:
        """Typical margins at values along the slider, and whether these are all: the others come if asked again.

        Where a value takes so long that smaller ones would take longer, only those follow that are known, or scaled.
        """
        found: list[tuple[float, int]] = []
        first = time.monotonic()
        for value in VALUES:
            with self._lock:  # for one value at a time, so that the slider need not wait for all of them
                if found and look.kept is not self._kept:
                    break
                if found and time.monotonic() - first > PATIENCE:
                    return found, False
                begun = work_so_far()
                try:
                    if found and not self._may_follow(value):
                        continue
                    point = self._point(look, noise, value, sketched=True)
                except KeepsumError:  # there is no such noise at this epsilon
                    break
                if point is None:
                    break
                found.append((float(value), point.typical))
                if work_so_far() - begun > LONGEST and not point.scaled:
                    self._slow_at = value
        return found, True

    def _may_follow(self, value: str) -> bool:
        """Whether a value of the curve is worked out after one that took long, of which it may be one itself."""
        if self._candidates is None or not self._slow_at or VALUES.index(value) <= VALUES.index(self._slow_at):
            return True
        return self._candidates.is_quick(exact_in_range(value, "Epsilon"))

    def _point(self, look: DraftState, noise: NoiseSpec, epsilon: str, sketched: bool = False) -> CurvePoint | None:
        if look.kept is None or look.table is None:
            return None
        if noise.epsilon is None:
            raise InputError("Epsilon must be given to move it. Enter a number such as 1.")
        key = msgspec.json.encode(msgspec.structs.replace(noise, epsilon="1"))
        if self._candidates is None or look.kept is not self._kept or key != self._key:
            request = noise_of(msgspec.structs.replace(noise, epsilon=epsilon))
            self._candidates = Candidates.of(look.kept, request, look.table.records, LEVEL)
            self._kept, self._key, self._slow_at = look.kept, key, ""
        value = exact_in_range(epsilon, "Epsilon")
        return self._candidates.sketch(value) if sketched else self._candidates.point(value)
