"""l2 Laplace noise on a lattice, exactly: Gaussian noise whose width is itself random.

With r = |z|, exp(-eps r) is, up to a constant, the integral over w > 0 of exp(-eps^2 w^2 / 2 - r^2 / 2 w^2). So draw a
width w, then a lattice Gaussian of that width, coordinate by coordinate and all blocks with the same w, and accept

    exp(-eps^2 w^2 / 2) * product over coordinates of rho_s(Z - c) / H(w),

where H is a bound of the numerator: rho_s(Z - c) is at most rho_s(Z), which is sqrt(2 pi) s theta(s) with theta falling
to 1 as s grows. H is a staircase: a step is chosen by a word, and the digits of w within it are independent fair bits,
of which as many are drawn as comparisons need. So w is a true real number, and the law of z is exact.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from flint import arb, ctx

from keepsum._arrays import Floats, IntArray
from keepsum._progress import portion
from keepsum.sampling.core.balls import ball, digits
from keepsum.sampling.core.kernel_arguments import ACCEPT_BITS, Words
from keepsum.sampling.core.rng import LazyUniform, Rng, Stream
from keepsum.sampling.gaussian.parts import SamplerPart, Variances

MOST_STEPS, WASTE = 4000, 0.03  # how many steps a staircase may have, and what share of it may lie above the curve
TAIL_DEPTH = 60.0  # beyond e^-60 of the top the steps just halve
SAFETY = 1e-6  # by how much logarithms of bounds are raised: above what floats err by, up to 7 * 10^7 dimensions
EXTRA_ERROR = 0.0  # more than floats err by, to test that what is left open is settled rightly
LEADING = 2**54  # a width must have this many of its digits known
CHUNK_CELLS = 2**22  # cells drawn at a time


@dataclass(frozen=True, eq=False)
class Staircase:
    """Steps of a width: ``edges[i]`` to ``edges[i + 1]`` is chosen by words below ``upto[i]``; then comes the tail.

    The tail's steps have the width ``tail`` each, and each has half the chance of the one before.
    """

    edges: Floats
    upto: Words  # the last word of each step; that of the tail is 2^64 - 1
    heights: Floats  # logarithm of (chance of the step / its size), as a float for quick decisions
    tail: float
    level: float  # logarithm of the factor that brings the curve below the steps
    thetas: Floats  # an upper bound of the sum of log theta within each step

    def chance(self, step: int) -> Fraction:
        """The chance of a step."""
        below = int(self.upto[step - 1]) + 1 if step else 0
        return Fraction(int(self.upto[step]) + 1 - below, 2**64)


class LazyWidth:
    """A width w = start + size * U, U uniform, of which as many bits are drawn as anybody asks for."""

    def __init__(self, start: Fraction, size: Fraction, bits: int, count: int, stream: Stream) -> None:
        self._start, self._size, self._bits, self._count, self._stream = start, size, bits, count, stream

    def ball(self) -> arb:
        """The width at the working precision."""
        while self._count < ctx.prec + 32:
            self._bits = self._bits << 64 | self._stream.word()
            self._count += 64
        middle = self._start + self._size * Fraction(2 * self._bits + 1, 2 ** (self._count + 1))
        return ball(middle) + ball(self._size / 2 ** (self._count + 1)) * arb(0, 1)


class CommonScale:
    """l2 Laplace noise over all blocks of a lattice.

    Parameters
    ----------
    epsilon
        The privacy loss per unit of l2 distance.
    parts
        The blocks, each with its cells behind those of the ones before.

    Guarantee
    ---------
    Exact: P(z) is proportional to exp(-eps |z|_2) on the lattice. ``tests/statistical/test_gaussian.py``.
    """

    def __init__(self, epsilon: Fraction, parts: Sequence[SamplerPart]) -> None:
        self._epsilon, self._parts = epsilon, tuple(parts)
        self._dimension = sum(part.dimension for part in parts)
        self._offsets = np.cumsum([0, *(part.width for part in parts)]).tolist()
        self.width = int(self._offsets[-1])
        self._middle = Fraction(math.sqrt(self._dimension) / float(epsilon))
        # A logarithm of the curve is right to 8 m + 100 units, and e^-TAIL_DEPTH below its top to four times that.
        self._safety = max(SAFETY, 64 * self._dimension * 2.0**-52)

    # -- the curve, and the staircase above it ------------------------------------------------------

    def _log_top(self, w: Floats | float) -> Floats:
        """-eps^2 w^2 / 2 + m log w, relative to the middle: the curve but for the factors theta."""
        middle, epsilon = float(self._middle), float(self._epsilon)
        away = (np.asarray(w) - middle) / middle
        # Near the middle the difference tells, far below it the quotient.
        logs = np.where(away > -0.5, np.log1p(np.maximum(away, -0.5)), np.log(np.asarray(w) / middle))
        return np.asarray(self._dimension * logs - (epsilon * middle) ** 2 * away * (2 + away) / 2)

    def _log_theta(self, w: float) -> float:
        """An upper bound of the sum of log theta over all coordinates, at width w."""
        return sum(part.log_theta_bound(w * w) for part in self._parts)

    def _curve(self, w: float) -> float:
        """About the curve's logarithm where every centre is 0."""
        return float(self._log_top(w)) + self._log_theta(w)

    def _height(self, low: float, high: float) -> float:
        """An upper bound of the curve's logarithm between two widths."""
        best = math.inf
        if low > 0:
            peak = min(max(math.sqrt(self._dimension) / float(self._epsilon), low), high)
            best = float(self._log_top(peak)) + self._log_theta(low)
        # rho_s(Z) grows with s, and exp(-eps^2 w^2 / 2) falls.
        gain = (float(self._epsilon) ** 2) * (high * high - low * low) / 2
        return min(best, float(self._log_top(high)) + gain + self._log_theta(high)) + self._safety

    @cached_property
    def staircase(self) -> Staircase:
        """Steps under the curve's bound, split where they waste most, until little is wasted."""
        top, end = self._ends()
        steps: list[tuple[float, float, float, float]] = []
        area = wasted = 0.0

        def add(low: float, high: float) -> None:
            nonlocal area, wasted
            height = math.exp(self._height(low, high) - top)
            ends = [math.exp(self._curve(w) - top) if w > 0 else 0.0 for w in (low, high)]
            waste = (height - min(height, *ends)) * (high - low)
            heapq.heappush(steps, (-waste, low, high, height))
            area, wasted = area + height * (high - low), wasted + waste

        for low, high in pairwise(np.linspace(0, end, 65).tolist()):
            add(low, high)
        while len(steps) < MOST_STEPS and wasted > WASTE * area:
            waste, low, high, height = heapq.heappop(steps)
            area, wasted = area - height * (high - low), wasted + waste
            add(low, (low + high) / 2)
            add((low + high) / 2, high)
        return self._settled(sorted(step[1:] for step in steps), end, top)

    def _ends(self) -> tuple[float, float]:
        """The largest logarithm of the curve, about, and where it has fallen by TAIL_DEPTH and goes on falling."""
        middle = float(self._middle)
        grid = (middle * np.geomspace(1e-3, 2, 100)).tolist()
        top = max(self._curve(w) for w in grid)
        end = max(middle, 1 / float(self._epsilon)) * 1.01
        while self._curve(end) > top - TAIL_DEPTH:
            end *= 1.2 if self._dimension < 100 else 1 + 2 / math.sqrt(self._dimension)
        return top, end

    def _settled(self, steps: list[tuple[float, float, float]], end: float, top: float) -> Staircase:
        """Whole numbers of words for each step, rounded up, the rest given to the largest."""
        tail = math.log(2) / (float(self._epsilon) ** 2 * end - self._dimension / end)
        areas = [(high - low) * height for low, high, height in steps]
        areas.append(2 * tail * math.exp(self._height(end, end + tail) - top))
        total = sum(areas) * 1.001
        shares = [max(1, math.ceil(area / total * 2**64)) for area in areas]
        shares[int(np.argmax(areas))] += 2**64 - sum(shares)
        upto = np.array([words - 1 for words in accumulate(shares)], dtype=np.uint64)
        sizes = [*(high - low for low, high, _ in steps), 2 * tail]
        edges = [low for low, _, _ in steps] + [end]
        return Staircase(
            edges=np.array(edges),
            upto=upto,
            heights=np.array([math.log(share / 2**64 / size) for share, size in zip(shares, sizes, strict=True)]),
            tail=tail,
            level=top + math.log(total) + self._safety,
            thetas=np.array([self._log_theta(low) if low > 0 else math.inf for low in edges]),
        )

    # -- drawing ------------------------------------------------------------------------------------

    def draw_into(self, out: IntArray, rng: Rng, threads: int = 1) -> None:
        """Fill ``out``, one row per draw."""
        stream = rng.stream()
        most = max(1, CHUNK_CELLS // self.width)
        done = 0
        while done < len(out):
            with portion(done / len(out), done / len(out)):  # how many will be accepted is not known
                accepted = self._accepted(min(most, len(out) - done), rng, stream, threads)
            out[done : done + len(accepted)] = accepted
            done += len(accepted)

    def pilot(self, rng: Rng, most: int) -> tuple[int, int]:
        """How many of some tries are accepted."""
        tries = max(1, min(most, 400, CHUNK_CELLS // self.width))
        return len(self._accepted(tries, rng, rng.stream(), 1)), tries

    def _accepted(self, tries: int, rng: Rng, stream: Stream, threads: int) -> IntArray:
        """The accepted ones of some tries; widths that cannot be accepted are left before any cell is drawn."""
        widths = _Widths(self.staircase, tries, stream)
        logs = self._log_top(widths.floats) - self.staircase.level - widths.heights
        errors = (8.0 * self._dimension + 100.0) * 2.0**-52 + EXTRA_ERROR
        hope = logs + widths.thetas
        spare = (1 + errors + self._safety) * 2.0**ACCEPT_BITS
        alive = np.flatnonzero(widths.coins < np.exp(np.minimum(hope, 1.0)) * spare)
        rows = np.empty((len(alive), self.width), dtype=np.int64)
        floats = widths.floats[alive]
        variances = Variances(floats * floats, lambda row: widths.exact(int(alive[row])) ** 2)
        thetas = np.zeros(len(alive))
        for part, start in zip(self._parts, self._offsets, strict=False):
            cells = rows if part.width == self.width else np.empty((len(alive), part.width), dtype=np.int64)
            thetas += part.fill(cells, variances, False, rng, threads)
            if cells is not rows:
                rows[:, start : start + part.width] = cells
        errors += self._dimension * 1e-12 + 2.0**-50  # of the factors, and of the mismatch of forms
        chances = np.exp(logs[alive] + thetas) * 2.0**ACCEPT_BITS
        coins = widths.coins[alive]
        kept = coins + 1 <= chances * (1 - errors)
        for row in np.flatnonzero(~kept & (coins < chances * (1 + errors))).tolist():
            kept[row] = self._settle(rows[row], widths, int(alive[row]))
        return rows[kept]

    def _settle(self, row: IntArray, widths: _Widths, place: int) -> bool:
        """Whether a draw is accepted, decided exactly."""
        epsilon, middle = ball(self._epsilon), self._middle

        def chance() -> arb:
            w = widths.exact(place)
            total = self._dimension * (w / ball(middle)).log() - epsilon**2 * (w**2 - ball(middle**2)) / 2
            for part, start in zip(self._parts, self._offsets, strict=False):
                total += part.log_weight(row[start : start + part.width], w**2)
            step = ball(widths.chance(place) / Fraction(widths.size(place)))
            return (total - ball(Fraction(self.staircase.level)) - step.log()).exp()

        return LazyUniform(widths.extra, int(widths.coins[place]), ACCEPT_BITS).below(digits(chance))


class _Widths:
    """Some widths drawn from a staircase, each with a coin: as floats, and exactly where somebody asks."""

    def __init__(self, stairs: Staircase, count: int, stream: Stream) -> None:
        self._stairs, self.extra = stairs, stream.extra
        words = stream.take(3 * count).reshape(count, 3)
        self._steps = np.searchsorted(stairs.upto, words[:, 0])
        self._bits = words[:, 1]
        self.coins: Floats = (words[:, 2] >> np.uint64(64 - ACCEPT_BITS)).astype(np.float64)
        self._beyond = np.zeros(count, dtype=np.int64)  # steps into the tail
        for row in np.flatnonzero(self._steps == len(stairs.edges) - 1).tolist():
            while stream.bits(1):
                self._beyond[row] += 1
        starts = stairs.edges[self._steps] + self._beyond * stairs.tail
        sizes = np.append(np.diff(stairs.edges), stairs.tail)[self._steps]
        self.floats: Floats = starts + sizes * ((self._bits.astype(np.float64) + 0.5) * 2.0**-64)
        self._long: dict[int, tuple[int, int]] = {}
        for row in np.flatnonzero((starts == 0) & (self._bits < LEADING)).tolist():
            self._lengthen(row, float(sizes[row]))
        self.heights: Floats = stairs.heights[self._steps] - self._beyond * math.log(2)
        self.thetas: Floats = stairs.thetas[self._steps]
        self._lazy: dict[int, LazyWidth] = {}
        self._lock = threading.Lock()

    def _lengthen(self, row: int, size: float) -> None:
        """More digits for a width so near 0 that its first 64 have few that count."""
        bits, count = int(self._bits[row]), 64
        while bits < LEADING:
            bits, count = bits << 64 | self.extra.word(), count + 64
        self._long[row] = bits, count
        self.floats[row] = size * ((2 * bits + 1) / 2 ** (count + 1))

    def size(self, row: int) -> float:
        """The size of the step."""
        edges, step = self._stairs.edges, int(self._steps[row])
        return self._stairs.tail if step == len(edges) - 1 else float(edges[step + 1] - edges[step])

    def chance(self, row: int) -> Fraction:
        """The chance of the step."""
        step = int(self._steps[row])
        whole = self._stairs.chance(step)
        return whole / 2 ** (int(self._beyond[row]) + 1) if step == len(self._stairs.edges) - 1 else whole

    def exact(self, row: int) -> arb:
        """The width at the working precision."""
        with self._lock:
            if row not in self._lazy:
                start = Fraction(float(self._stairs.edges[self._steps[row]]))
                start += int(self._beyond[row]) * Fraction(self._stairs.tail)
                size = Fraction(self.size(row))
                bits, count = self._long.get(row, (int(self._bits[row]), 64))
                self._lazy[row] = LazyWidth(start, size, bits, count, self.extra)
            return self._lazy[row].ball()
