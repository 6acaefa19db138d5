"""A per-person budget divided between levels: the shares with the least error, and the errors to expect."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.fft import next_fast_len

from keepsum._arguments import check_whole
from keepsum._arrays import Floats
from keepsum._progress import doing
from keepsum.accuracy.cell_noise import sum_variance
from keepsum.convergence.plot import COLOURS, GREY, STYLES, new_figure
from keepsum.errors import PlanError
from keepsum.lattice.structure import FORCED
from keepsum.planning.focus import KEPT, FocusTrees
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.planning.selection.choice import HIGHEST_EPSILON, LOWEST_EPSILON
from keepsum.privacy.focus import Level
from keepsum.privacy.laplace import Laplace
from keepsum.privacy.numbers import shown, shown_briefly
from keepsum.sampling.l1.focus.laws import reach_of
from keepsum.sampling.l1.focus.tree import ABSENT
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What one person loses with any shares of a budget: the largest of several sums of shares.
#
# A change of one person changes cells by a length, and the totals of each level by at most that. With some shares it
# costs the sum of all these, each times its share, and which change is the dearest may depend on the shares. If one
# of them changes every level by the longest length that there is, none costs more. Otherwise those that are the
# dearest where one share is far larger than the others show how much a change can do to each level. If for every
# attribute some change does all of that at once, those that are known are enough; if not, the dearest is looked for
# each time.


HEAVY = 10**6
Change: TypeAlias = tuple[int, ...]  # the length in cells, and in the totals of each level


class PersonLoss:
    """The loss of one person with shares of cells and of each level, per unit of them.

    Parameters
    ----------
    plan
        A plan for one person with a share for each level.
    """

    def __init__(self, plan: CompiledPlan) -> None:
        self._plan = plan
        self._axes = [level.axes for level in plan.mechanism.focus]
        found, places = [_changes(plan)], range(1 + len(self._axes))
        longest = (_longest(plan),) * len(places)
        self.complete = _covered(longest, found[0])
        if not self.complete:
            found += [_changes(self._planned([HEAVY if k == place else 1 for k in places])) for place in places]
            self.complete = _complete(found)
        self._known = {change for changes in found for change in changes}

    def __call__(self, shares: Sequence[Fraction | int]) -> Fraction:
        """The largest loss; shares of levels may be 0."""
        if self.complete:
            return Fraction(max(sum(n * share for n, share in zip(c, shares, strict=True)) for c in self._known))
        distance = self._planned(shares).asked_distance
        if distance is None:
            raise AssertionError("the plan is for one person")
        return distance.weighed([Fraction(share) for share in shares if share])

    def _planned(self, shares: Sequence[Fraction | int]) -> CompiledPlan:
        """A plan with these shares, those of 0 left out."""
        cells, *others = shares
        given = {axes: Fraction(share) for axes, share in zip(self._axes, others, strict=True) if share}
        request = Laplace(1, focus=given, cell_share=Fraction(cells)) if given else Laplace(1)
        return compile_plan(self._plan.invariants, request, self._plan.records, [self._plan])


def _changes(plan: CompiledPlan) -> list[Change]:
    """The dearest change of each attribute, and of a count alone, under a plan."""
    levels = len(plan.mechanism.focus)
    distances = [*(attribute.any_value for attribute in plan.attributes), plan.distances.alone]
    return [(0,) * (1 + levels) if d is None else (d.length, *(d.focused or (d.length,) * levels)) for d in distances]


def _longest(plan: CompiledPlan) -> int:
    """The length of the longest change of one person."""
    return max(attribute.any_value.length for attribute in plan.attributes if attribute.any_value is not None)


def _complete(found: Sequence[Sequence[Change]]) -> bool:
    """Whether the most that changes of each attribute do to each level is done by one change that is known."""
    known = [change for changes in found for change in changes]
    most = (tuple(map(max, zip(*changes, strict=True))) for changes in zip(*found, strict=True))
    return all(_covered(change, known) for change in most)


def _covered(change: Change, known: Sequence[Change]) -> bool:
    """Whether a change does to every level at least what another one does."""
    return any(all(n >= m for n, m in zip(other, change, strict=True)) for other in known)


# The mean squared error of cells and of the totals of each level, quickly, for any epsilons of theirs.
#
# Totals that contain alike ones are of one *shape*, whatever the epsilons. The weights of all sums below a shape are
# those of its cells and of the shapes in it, convolved, times e^(-epsilon |s|). What everything else adds to the law
# of a sum (``sampling/l1/focus/marginals.py``) is found from the roots down. Convolutions are products of Fourier
# transforms, on a circle that is wider than any sum that matters; what is smaller than their noise is dropped.
# Variances are right to a share of about 1e-9.


NOISE = 1e-14  # of a Fourier transform, relative to the largest number
BITS = 50  # weights matter down to 2^-50
MOST_POINTS = 2**22  # of the circle
SMALLEST = 200.0  # exponents end here: arithmetic with smaller numbers is slow


class Shape(NamedTuple):
    """The level of a total, its cells that are in no smaller one, and its parts: shapes, and how many of each."""

    level: int
    cells: int
    parts: tuple[tuple[int, int], ...]


class LevelErrors:
    """Mean squared errors under nested totals.

    Parameters
    ----------
    nested
        The focused totals, which must not cross, and the regions of the kept ones, which must not overlap.
    """

    def __init__(self, nested: FocusTrees) -> None:
        if nested.structure.blocks:
            raise PlanError(
                "Shares must be computed under kept totals that do not overlap, and some of these do. Keep fewer "
                "totals, or give shares of your own."
            )
        self._counts = [len(nested.part), *(margin.height for margin in nested.margins)]
        self.shapes, self.roots = _shapes(nested)
        forced = nested.structure.sizes[nested.structure.part == FORCED]
        self._regions = Counter(size for size in forced.tolist() if size > 1)

    def __call__(self, epsilons: Sequence[float]) -> Floats | None:
        """The mean squared error of cells, and of the totals of each level, with these epsilons; None if too wide.

        Totals that are kept have the error 0. The epsilon of a level may be 0.
        """
        circle = Circle.of(self.shapes, epsilons)
        if circle is None:
            return None
        sums = np.zeros(len(epsilons))
        sums[0] = sum(count * size * sum_variance(size, epsilons[0]) for size, count in self._regions.items())
        for root, count in self.roots.items():
            kept = self.shapes[root].level == KEPT
            circle.add(root, circle.nothing if kept else circle.anything, count, sums)
        return sums / self._counts


class Circle:
    """Laws of all shapes with some epsilons, as functions on a circle of so many points; 0 is the first one."""

    def __init__(self, shapes: Sequence[Shape], epsilons: Sequence[float], points: int) -> None:
        self._shapes, self._epsilons = shapes, epsilons
        place = np.arange(points)
        self._length = np.minimum(place, points - place).astype(np.float64)
        self._squares = self._length**2
        self.anything = np.ones(points)
        self.nothing = (place == 0).astype(np.float64)
        self._cell = self._fallen(epsilons[0])
        self._cell_transform = _transform(self._cell)
        self._laws: list[Floats] = []
        self._transforms: list[Floats] = []
        for shape in shapes:
            whole = math.prod((power for _, power in self._powers(shape)), start=np.ones(points // 2 + 1))
            law = self._back(whole) * (self.nothing if shape.level == KEPT else self._fallen(epsilons[1 + shape.level]))
            self._laws.append(law / law.sum())
            self._transforms.append(_transform(self._laws[-1]))

    @classmethod
    def of(cls, shapes: Sequence[Shape], epsilons: Sequence[float]) -> Circle | None:
        """A circle that is wide enough; None if that is too wide."""
        widths: list[tuple[float, float]] = []
        reach = 0.0
        for shape in shapes:
            parts = [(widths[part], count) for part, count in shape.parts]
            parts += [((0.5 / math.sinh(epsilons[0] / 2) ** 2, epsilons[0]), shape.cells)] * bool(shape.cells)
            variance, rate = sum(v * count for (v, _), count in parts), min(rate for (_, rate), _ in parts)
            reach = max(reach, reach_of(variance, rate, BITS))
            epsilon = 0.0 if shape.level == KEPT else epsilons[1 + shape.level]
            widths.append((1 / (1 / variance + epsilon**2 / 2), rate + epsilon))
        points = 2 * next_fast_len(math.ceil(1.5 * reach))
        return None if points > MOST_POINTS else cls(shapes, epsilons, points)

    def add(self, shape: int, outside: Floats, count: int, sums: Floats) -> None:
        """Add the variances of so many totals of a shape, and of all in them, given the weights of all else."""
        level, cells, parts = self._shapes[shape]
        if level != KEPT:
            sums[1 + level] += count * self._variance(outside * self._laws[shape])
            outside = outside * self._fallen(self._epsilons[1 + level])
        transform = _transform(outside)
        others = _but_one([power for _, power in self._powers(self._shapes[shape])])
        pieces = [*parts, *([(ABSENT, cells)] if cells else [])]
        for (part, copies), other in zip(pieces, others, strict=True):
            own = self._cell_transform if part == ABSENT else self._transforms[part]
            below = self._back(transform * other * _power(own, copies - 1))
            if part == ABSENT:
                sums[0] += count * copies * self._variance(below * self._cell)
            else:
                self.add(part, below, count * copies, sums)

    def _powers(self, shape: Shape) -> Iterable[tuple[int, Floats]]:
        """The transforms of all copies of each part together."""
        for part, count in shape.parts:
            yield part, _power(self._transforms[part], count)
        if shape.cells:
            yield ABSENT, _power(self._cell_transform, shape.cells)

    def _fallen(self, epsilon: float) -> Floats:
        return np.exp(-np.minimum(epsilon * self._length, SMALLEST))

    def _back(self, transform: Floats) -> Floats:
        """The function with a transform, as far as it is more than noise, with the largest value 1."""
        values = np.fft.irfft(transform, len(self._length))
        values /= values[0]
        return np.where(values > NOISE, values, 0.0)

    def _variance(self, weights: Floats) -> float:
        return float((weights * self._squares).sum() / weights.sum())


def _transform(values: Floats) -> Floats:
    """The Fourier transform of an even function, which is real; that of all values together is 1."""
    transform: Floats = np.fft.rfft(values).real
    normed: Floats = transform / transform[0]
    return normed


def _power(transform: Floats, count: int) -> Floats:
    """A power by squaring, without numbers so small that arithmetic with them is slow."""
    power, square = np.ones(1), transform
    while count:
        power = power * square if count % 2 else power
        count //= 2
        square = _large(square * square) if count else square
    return _large(power)


def _large(values: Floats) -> Floats:
    return np.where(np.abs(values) > 1e-60, values, 0.0)


def _but_one(factors: list[Floats]) -> list[Floats]:
    """For each factor, the product of all others."""
    before, after = [np.ones(1)], [np.ones(1)]
    for factor in factors[:-1]:
        before.append(_large(before[-1] * factor))
    for factor in factors[:0:-1]:
        after.append(_large(after[-1] * factor))
    return [_large(one * other) for one, other in zip(before, reversed(after), strict=True)]


def _shapes(nested: FocusTrees) -> tuple[list[Shape], Counter[int]]:
    """All shapes, those of parts first, and how many roots are of each."""
    shapes: list[Shape] = []
    numbers: dict[Shape, int] = {}
    roots: Counter[int] = Counter()
    parts: list[Counter[int]] = [Counter() for _ in nested.parents]
    levels, sizes, parents = nested.levels.tolist(), nested.sizes.tolist(), nested.parents.tolist()
    for node in reversed(range(len(parents))):  # parents come before their children
        shape = Shape(levels[node], sizes[node], tuple(sorted(parts[node].items())))
        if shape not in numbers:
            numbers[shape] = len(shapes)
            shapes.append(shape)
        (roots if parents[node] == ABSENT else parts[parents[node]])[numbers[shape]] += 1
    return shapes, roots


# The shares of a budget with the least weighted mean squared error, in thousandths.
#
# Shares are whole numbers of thousandths that add up to 1,000. From those that would be best if every level had noise
# of its own (proportional to the cube root of its weight), thousandths are moved from one level to another, as long
# as that lowers the error, in steps that become smaller. At the end no move of one thousandth does.


WHOLE = 1000
STEPS = (128, 64, 32, 16, 8, 4, 2, 1)
Parts: TypeAlias = tuple[int, ...]  # thousandths: of cells, then of each level


@dataclass(frozen=True, eq=False)
class SharedBudget:
    """A budget to be shared: all that the error depends on but the shares.

    Attributes
    ----------
    invariants, records
        The kept totals, and how many records one person has at most.
    axes
        The totals of each level.
    epsilon
        That of one person.
    weights
        How much the mean squared errors of cells, and of each level, count.
    """

    invariants: Invariants
    records: Records | None
    axes: tuple[tuple[str, ...], ...]
    epsilon: Fraction
    weights: tuple[Fraction, ...]

    def mechanism(self, parts: Parts) -> Laplace:
        """The noise with these shares; levels without any are left out."""
        shares = {axes: Fraction(part, WHOLE) for axes, part in zip(self.axes, parts[1:], strict=True) if part}
        if not shares:
            return Laplace(self.epsilon)
        return Laplace(self.epsilon, focus=shares, cell_share=Fraction(parts[0], WHOLE))


@dataclass(eq=False)
class ShareSearch:
    """Errors with any shares, and the best shares."""

    budget: SharedBudget
    _errors: LevelErrors
    _loss: PersonLoss
    _known: dict[tuple[float, ...], Floats | None] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: SharedBudget) -> ShareSearch:
        """The search for a budget.

        Raises
        ------
        PlanError
            If there is no such noise: totals cross, or all totals of a level are kept.
        """
        equal = Laplace(1, focus=dict.fromkeys(budget.axes, 1))
        plan = compile_plan(budget.invariants, equal, budget.records)
        if plan.blocks.nested is None or plan.blocks.nested.tables:
            raise PlanError(
                "Shares must be computed for nested levels under kept totals that do not overlap, and these cross, or "
                "overlap. Name fewer levels, keep fewer totals, or give shares of your own."
            )
        return cls(budget, LevelErrors(plan.blocks.nested), PersonLoss(plan))

    def best(self) -> Parts:
        """The shares with the least error."""
        doing("looking for the best shares")
        parts = self._start()
        for step in STEPS:
            while (better := min([parts, *_moved(parts, step)], key=self.error)) != parts:
                parts = better
        return parts

    def epsilons(self, parts: Sequence[Fraction | int]) -> list[Fraction]:
        """The epsilons of cells and levels, with shares of any sum."""
        loss = self._loss(parts)
        return [self.budget.epsilon * part / loss for part in parts]

    def errors(self, parts: Sequence[Fraction | int]) -> Floats | None:
        """The mean squared errors of cells and levels; None where there is no sampler for such noise."""
        epsilons = self.epsilons(parts)
        if not epsilons[0] or not all(LOWEST_EPSILON <= e <= HIGHEST_EPSILON for e in epsilons if e):
            return None
        key = tuple(map(float, epsilons))
        if key not in self._known:
            self._known[key] = self._errors(key)
        return self._known[key]

    def error(self, parts: Sequence[Fraction | int]) -> float:
        """The weighted mean of the mean squared errors; infinite where there is no such noise."""
        errors, weights = self.errors(parts), [float(weight) for weight in self.budget.weights]
        return float("inf") if errors is None else float((errors * weights).sum()) / sum(weights)

    def _start(self) -> Parts:
        roots = [float(weight) ** (1 / 3) for weight in self.budget.weights]
        parts = [max(1, round(WHOLE * root / sum(roots))) for root in roots]
        parts[parts.index(max(parts))] += WHOLE - sum(parts)
        for start in (tuple(parts), _equal(len(roots))):
            if self.error(start) < float("inf"):
                return start
        raise PlanError(
            f"Epsilon {shown(self.budget.epsilon)} per person must leave every level an epsilon from "
            f"{shown(LOWEST_EPSILON)} to {shown(HIGHEST_EPSILON)}, and sums that are not too wide, and does not. "
            f"Choose another epsilon, or fewer levels."
        )


def _moved(parts: Parts, step: int) -> Iterator[Parts]:
    """So many thousandths moved from one level to another; cells keep one at least."""
    for giver, taker in permutations(range(len(parts)), 2):
        moved = list(parts)
        moved[giver] -= step
        moved[taker] += step
        if moved[0] >= 1 and moved[giver] >= 0:
            yield tuple(moved)


def _equal(count: int) -> Parts:
    return tuple(WHOLE // count + (place < WHOLE % count) for place in range(count))


# The plot of errors against the shares of a budget, a panel for each level.


ACROSS = 3  # panels in a row
HEIGHT = 3.4  # inches of a row
TICKS = (0.25, 0.5, 0.75)


def _plot_shares(
    levels: Sequence[LevelShare], curves: Sequence[Sequence[SharePoint]], error: float, epsilon: str
) -> Figure:
    """Plot the error of every level, and the weighted one, against the share of each."""
    rows = math.ceil(len(levels) / ACROSS)
    figure = new_figure(HEIGHT * rows + 0.7)
    panels: list[Any] = []
    for place, (level, curve) in enumerate(zip(levels, curves, strict=True)):
        axes: Any = figure.add_subplot(rows, min(ACROSS, len(levels)), place + 1, sharey=panels[0] if panels else None)
        panels.append(axes)
        axes.set_yscale("log")
        shares = [float(point.share) for point in curve]
        for k, other in enumerate(levels):
            errors = [point.rmse[k] for point in curve]
            axes.plot(shares, errors, color=COLOURS[k % len(COLOURS)], linestyle=STYLES[k % len(STYLES)], linewidth=1.6,
                      label=other.name)  # fmt: skip
        axes.plot(shares, [point.error for point in curve], color="black", linewidth=2.6, label="weighted")
        axes.plot([float(level.share)], [error], "o", color="black", markersize=7, zorder=5)
        axes.annotate(
            f"{float(level.share):.3f}", (float(level.share), error), xytext=(0, -14), textcoords="offset points",
            ha="center", fontsize=9, zorder=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip
        _frame(axes, level, first=place % ACROSS == 0)
    panels[0].legend(frameon=False, fontsize=8, loc="upper center")
    figure.suptitle(f"Shares of epsilon {epsilon} per person: the weighted error is least, {error:,.1f}, at the dots")
    return figure


def _frame(axes: Any, level: LevelShare, first: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xlim(0, 1)
    axes.set_xticks([0, *TICKS, 1], ["0", *(f"{tick:g}" for tick in TICKS), "1"])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"share of {level.name}", color=GREY)
    if first:
        axes.set_ylabel("root mean squared error\n(log scale)")
    else:
        axes.tick_params(labelleft=False)


Key: TypeAlias = str | tuple[str, ...]
CURVE = (10, 20, 40, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800, 850, 900, 950, 980)  # thousandths
WIDEST = 30  # points of a curve with errors larger than so many times the least are left out


@dataclass(frozen=True)
class LevelShare:
    """What a level is given, and the error to expect.

    Attributes
    ----------
    key
        The totals as in ``focus``: an axis, several, or ``()``; None for cells.
    weight
        How much its mean squared error counts.
    share
        Its share of the per-person epsilon; 0 if an epsilon of its own would be worth less than it costs others.
    epsilon
        The epsilon per unit that follows.
    rmse
        The expected root mean squared error of its totals, those that are kept included.
    """

    key: Key | None
    weight: Fraction
    share: Fraction
    epsilon: Fraction
    rmse: float

    @property
    def name(self) -> str:
        """The level in words."""
        if self.key is None:
            return "cells"
        return Level((self.key,) if isinstance(self.key, str) else self.key, self.weight).totals


@dataclass(frozen=True)
class SharePoint:
    """The errors with one share changed and the others in proportion: of cells and of each level, and weighted."""

    share: Fraction
    rmse: tuple[float, ...]
    error: float


class BudgetShares:
    """The shares of a per-person epsilon with the least weighted mean squared error. Made by :func:`share_budget`.

    Attributes
    ----------
    levels
        The levels, cells last, each with its weight, share, epsilon and expected error.
    error
        The square root of the weighted mean of their mean squared errors.
    without_focus
        The same if cells had the whole epsilon, and no totals any of their own; None if there is no such noise.
    mechanism
        The noise with these shares.
    """

    def __init__(self, budget: SharedBudget) -> None:
        self._search = ShareSearch.of(budget)
        self._parts = self._search.best()
        self.mechanism: Laplace = budget.mechanism(self._parts)
        errors, epsilons = self._rmse(self._parts), self._search.epsilons(self._parts)
        keys: list[Key | None] = [None, *(axes[0] if len(axes) == 1 else axes for axes in budget.axes)]
        shares = [Fraction(part, WHOLE) for part in self._parts]
        cells, *levels = map(LevelShare, keys, budget.weights, shares, epsilons, errors)
        self.levels: tuple[LevelShare, ...] = (*levels, cells)
        self.error = self._search.error(self._parts) ** 0.5
        alone = self._search.error((WHOLE, *(0 for _ in levels))) ** 0.5
        self.without_focus = None if alone == float("inf") else alone

    @property
    def shares(self) -> dict[Key, Fraction]:
        """The share of each level, as in ``ks.Laplace``; it has no levels with a share of 0."""
        return {level.key: level.share for level in self.levels if level.key is not None and level.share}

    @property
    def cell_share(self) -> Fraction:
        """The share of cells."""
        return self.levels[-1].share

    @property
    def rmse(self) -> dict[Key, float]:
        """The expected root mean squared error of the totals of each level."""
        return {level.key: level.rmse for level in self.levels if level.key is not None}

    @property
    def cell_rmse(self) -> float:
        """The expected root mean squared error of cells."""
        return self.levels[-1].rmse

    def curve(self, level: int) -> list[SharePoint]:
        """The errors with other shares of a level, by its place in ``levels``, the others in proportion.

        Shares so small or large that there is no such noise, or errors are very large, are left out.
        """
        number = check_whole(level, "The number of a level", 0, len(self.levels) - 1)
        place = (number + 1) % len(self.levels)  # of the search, in which cells come first
        points = []
        for share in sorted({*CURVE, self._parts[place]}):
            parts = self._with_share(place, share)
            if parts is not None and self._search.error(parts) ** 0.5 < WIDEST * self.error:
                cells, *others = self._rmse(parts)
                points.append(SharePoint(Fraction(share, WHOLE), (*others, cells), self._search.error(parts) ** 0.5))
        return points

    def plot(self) -> Figure:
        """Plot the errors against the share of each level, the others in proportion; needs the extra ``report``.

        Returns
        -------
        matplotlib.figure.Figure
            ``.savefig("shares.svg")`` writes it.
        """
        curves = [self.curve(level) for level in range(len(self.levels))]
        return _plot_shares(self.levels, curves, self.error, shown(self._search.budget.epsilon))

    def lines(self) -> list[str]:
        """The shares as a table in text."""
        heads = ["", "weight", "share", "epsilon per unit", "expected rmse"]
        rows = [
            [
                level.name,
                shown_briefly(level.weight),
                shown(level.share),
                shown_briefly(level.epsilon),
                f"{level.rmse:,.1f}",
            ]
            for level in self.levels
        ]
        widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
        return [
            "  ".join(f"{cell:{'<' if k == 0 else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
            for row in [heads, *rows]
        ]

    def __repr__(self) -> str:
        return "\n".join([f"BudgetShares({self._title})", *(f"  {line}" for line in self.lines())])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._title)}</p><pre>{html.escape(chr(10).join(self.lines()))}</pre>"

    @property
    def _title(self) -> str:
        other = "" if self.without_focus is None else f"; {self.without_focus:,.1f} without a focus"
        return f"epsilon {shown(self._search.budget.epsilon)} per person: weighted rmse {self.error:,.1f}{other}"

    def _rmse(self, parts: Sequence[Fraction | int]) -> list[float]:
        errors = self._search.errors(parts)
        if errors is None:
            raise AssertionError("there is noise with these shares")
        return [error**0.5 for error in errors.tolist()]

    def _with_share(self, place: int, share: int) -> tuple[Fraction | int, ...] | None:
        """Shares with that of one level changed; None if the others have none, or there is no such noise."""
        others = WHOLE - self._parts[place]
        if share == self._parts[place] or not others:
            return self._parts if share == self._parts[place] else None
        factor = Fraction(WHOLE - share, others)
        parts = tuple(Fraction(share) if k == place else part * factor for k, part in enumerate(self._parts))
        return None if self._search.errors(parts) is None else parts
