"""The privacy loss that a margin of error takes: the least one, candidates side by side, and the curve of both."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from keepsum._arguments import check_choice
from keepsum._progress import doing
from keepsum._saying import arg, the
from keepsum._text import percent, type_of
from keepsum.accuracy.margins import Accuracy, accuracy, before_rounding
from keepsum.convergence.plot import BLUE, GREY, ORANGE, new_figure, set_title
from keepsum.errors import InputError, PlanError
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.families import MechanismFamily
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import LARGEST_PARAMETER, SMALLEST_PARAMETER, Loss, exact_in_range, shown, shown_briefly
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import Records, subject_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The least privacy loss whose margin of error is small enough, among parameters of three digits.
#
# A margin is a whole number, and a step function of the parameter that does not rise with the loss, up to the error
# of simulated margins. So the answer is where it falls to the target: it is small enough there and too large one step
# before, and both are computed.


STEPS = 900  # numbers of three digits from one power of ten to the next
SHORTEST_STRIDE, LONGEST_STRIDE = 0.005, 0.2  # beyond where the answer is expected; then it is not where expected
ELSEWHERE = (Fraction(1), Fraction(1, 10), Fraction(10), Fraction(1, 100), Fraction(100))


def number_at(place: int) -> Fraction:
    """The number of three digits at a place of their order: 1.00 at 0, 1.01 at 1, 10.0 at 900.

    >>> number_at(0), number_at(1), number_at(900), number_at(-1)
    (Fraction(1, 1), Fraction(101, 100), Fraction(10, 1), Fraction(999, 1000))
    """
    power, digits = divmod(place, STEPS)
    return (100 + digits) * Fraction(10) ** (power - 2)


def place_of(number: Fraction) -> int:
    """The place of the largest number of three digits that is not larger than this one.

    >>> place_of(Fraction(1)), place_of(Fraction(999, 1000)), place_of(Fraction(9999, 1000))
    (0, -1, 899)
    """
    power = math.floor(math.log10(number))
    while Fraction(10) ** power > number:
        power -= 1
    while Fraction(10) ** (power + 1) <= number:
        power += 1
    return STEPS * power + math.floor(number / Fraction(10) ** (power - 2)) - 100


@dataclass(frozen=True)
class Answer:
    """The parameter of least loss that reaches a target.

    Attributes
    ----------
    value
        The parameter.
    before
        The parameter one step before it, and the margin there; no margin if there is no such noise.
    """

    value: Fraction
    before: tuple[Fraction, int | None]


@dataclass
class Search:
    """Find the least loss; ``margin_at`` may raise an error of ours where there is no such noise.

    Attributes
    ----------
    margin_at
        The margin of error for a value of the parameter.
    target
        The largest margin that will do.
    start
        Where to begin.
    power
        The margin grows about as this power of the parameter; if it is positive, so does privacy.
    name
        What the parameter is called.
    width_at
        A margin before it is rounded, where that is known: simulated ones are, to a part in hundreds, so that the
        answer follows from one of them, and has only to be confirmed. Called after ``margin_at``.
    """

    margin_at: Callable[[Fraction], int]
    target: int
    start: Fraction
    power: float
    name: str
    width_at: Callable[[Fraction], float | None] = lambda _: None
    _margins: dict[int, int | None] = field(default_factory=dict)
    _problems: dict[int, InputError | PlanError] = field(default_factory=dict)

    def answer(self) -> Answer:
        """The answer.

        Raises
        ------
        PlanError
            If no value reaches the target.
        """
        known = self._first_known()

        def reaches(place: int) -> bool:
            """Where there is no such noise, it is too wide on one side of the known place, too narrow on the other."""
            margin = self._margin(place)
            return place > known if margin is None else margin <= self.target

        low: int | None = None
        high: int | None = None
        place, strides, step = known, self._strides(), 1
        while low is None or high is None or high - low > 1:
            low, high = (low, place) if reaches(place) else (place, high)
            scaled = self._scaled()
            if scaled is None:
                place = self._next(low, high, next(strides))
            else:
                place, step = _beside(scaled, low, high, step)
        if self._margin(high) is None:
            smallest = min(margin for margin in self._margins.values() if margin is not None)
            raise PlanError(
                f"No {self.name} gives a margin of error of at most {self.target:,}: the smallest is {smallest:,}, at "
                f"{self.name} {shown(self._value(low))}. {self._problems[high]:marked}"
            )
        return Answer(self._value(high), (self._value(low), self._margin(low)))

    def _value(self, place: int) -> Fraction:
        """Places are in the order of the loss."""
        return number_at(place if self.power < 0 else -place)

    def _place(self, value: Fraction) -> int:
        return place_of(value) if self.power < 0 else -place_of(value)

    def _margin(self, place: int) -> int | None:
        """The margin at a place; None if there is no such noise."""
        if place not in self._margins:
            self._margins[place] = None
            try:
                self._margins[place] = self.margin_at(self._value(place))
            except (InputError, PlanError) as error:
                self._problems[place] = error
        return self._margins[place]

    def _first_known(self) -> int:
        """A place where there is such noise."""
        places = [self._place(value) for value in (self.start, *ELSEWHERE)]
        for place in places:
            if self._margin(place) is not None:
                return place
        raise self._problems[places[0]]

    def _scaled(self) -> int | None:
        """Where the target is reached first, to judge by the widths that are known; None if there are none.

        A margin is the target as long as its width is below target + 1/2. Widths are a power of the parameter, but for
        noise as narrow as one count: from the two nearest to the target it is told which one.
        """
        half = self.target + 0.5
        known = [place for place, margin in self._margins.items() if margin is not None]
        widths = {place: width for place in known if (width := self.width_at(self._value(place)))}
        if not widths:
            return None
        place, *others = sorted(widths, key=lambda place: abs(math.log(widths[place] / half)))
        power = abs(self.power)
        for other in others[:1]:
            slope = math.log(widths[place] / widths[other]) / math.log(self._loss_of(other) / self._loss_of(place))
            power = min(max(slope, power / 2), 2 * power)
        return self._place_of_loss(self._loss_of(place) * (widths[place] / half) ** (1 / power)) + 1

    def _strides(self) -> Iterator[float]:
        """How far beyond the expected answer to look: margins near a small target are less nearly a power."""
        stride = max(SHORTEST_STRIDE, 0.1 / self.target)
        while True:
            yield stride
            stride *= 2

    def _next(self, low: int | None, high: int | None, stride: float) -> int:
        """Where to look next: on one side of where the answer is expected, on the other, then halfway between."""
        least, most = self._expected()
        below, above = self._place_of_loss(least / (1 + stride)), self._place_of_loss(most * (1 + stride))
        if low is None or high is None:
            return max(above, low + 1) if low is not None else min(below, (high or 0) - 1)
        if stride < LONGEST_STRIDE and low < above < high:
            return above
        return below if stride < LONGEST_STRIDE and low < below < high else (low + high) // 2

    def _expected(self) -> tuple[float, float]:
        """Between which losses the target is expected, if margins are a power of the parameter.

        A margin m is a whole number: without rounding it is from m - 1/2 to m + 1/2, and the one sought target + 1/2.
        Of the margins that are known, the one that says most is taken: a large one, or one close to the target.
        """
        half, power = self.target + 0.5, 1 / abs(self.power)
        ranges = [
            (loss * (max(margin - 0.5, 0.1) / half) ** power, loss * ((margin + 0.5) / half) ** power)
            for loss, margin in ((self._loss_of(place), margin) for place, margin in self._margins.items())
            if margin is not None
        ]
        return min(ranges, key=lambda ends: ends[1] / ends[0])

    def _loss_of(self, place: int) -> float:
        """The parameter, or its inverse if privacy grows with it."""
        value = float(self._value(place))
        return value if self.power < 0 else 1 / value

    def _place_of_loss(self, loss: float) -> int:
        return self._place(Fraction(loss if self.power < 0 else 1 / loss))


def _beside(place: int, low: int | None, high: int | None, step: int) -> tuple[int, int]:
    """A place, if it is between two others; else the nearest, a step away from them; and how long the next step is.

    >>> _beside(5, 2, None, 1), _beside(5, 2, 5, 1), _beside(5, 5, None, 2), _beside(5, 5, 7, 2)
    ((5, 1), (4, 2), (7, 4), (6, 4))
    """
    if (low is None or low < place) and (high is None or place < high):
        return place, step
    beside = low + step if low is not None and place <= low else (high or 0) - step
    if low is not None and high is not None and not low < beside < high:
        beside = (low + high) // 2
    return beside, 2 * step


# One kind of noise at several losses, under the same kept totals: what each costs and how accurate it is.


LARGEST_TARGET = 10**9
KEPT_PLANS = 3  # the answer of a search is among the last ones looked at
MARGINS_OF = ("typical", "largest")
COSTLY = 100  # cells: plans of smaller tables take hundredths of a second
WIDE = 8  # from this margin on that of smaller losses is that of a real number: a part in some hundred less or more


@dataclass(frozen=True)
class CurvePoint:
    """One loss and its margins of error.

    Attributes
    ----------
    value
        The parameter of the request.
    mechanism
        The noise, per unit of distance.
    person
        The loss for one person, whose any attribute changes to any value.
    smallest, typical, largest
        Margins of error of the cells; the typical one is the median.
    draws
        The simulated draws behind them; 0 if all were computed.
    thousandths
        The same three margins as if noise were not whole numbers, in thousandths, where they are simulated.
    scaled
        Whether the margins are about those of another loss, scaled.
    """

    value: Fraction
    mechanism: Mechanism
    person: Loss
    smallest: int
    typical: int
    largest: int
    draws: int
    thousandths: tuple[int, int, int] | None = None
    scaled: bool = False

    def margin(self, of: str) -> int:
        """The typical margin, or the largest."""
        return self.typical if of == "typical" else self.largest

    def width(self, of: str) -> float | None:
        """The same before it is rounded, where it is simulated."""
        return None if self.thousandths is None else self.thousandths[1 if of == "typical" else 2] / 1000


@dataclass(frozen=True, eq=False)
class Candidates:
    """Plans that differ only in one parameter of their noise; they share their structure and distances."""

    family: MechanismFamily
    first: CompiledPlan
    level: float
    _points: dict[Fraction, CurvePoint] = field(default_factory=dict)
    _sketches: dict[Fraction, CurvePoint] = field(default_factory=dict)
    _last: dict[Fraction, CompiledPlan] = field(default_factory=dict)  # the plans made last: samplers may be large

    @classmethod
    def of(
        cls, invariants: Invariants, mechanism: Request | Mechanism, records: Records | None, level: float
    ) -> Candidates:
        """The candidates of which this mechanism is one."""
        family = MechanismFamily.of(mechanism)
        return cls(family, compile_plan(invariants, family.member, records=records), level)

    def around(self, value: Fraction) -> Candidates:
        """The same candidates, with this one as the first."""
        return replace(self, family=MechanismFamily(self.family.at(value)), first=self.plan(value))

    def plan(self, value: Fraction) -> CompiledPlan:
        """The plan with this parameter."""
        if value == self.family.value:
            return self.first
        if value not in self._last:
            while len(self._last) >= KEPT_PLANS:
                self._last.pop(next(iter(self._last)))
            mechanism = self.family.at(value)
            self._last[value] = compile_plan(self.first.invariants, mechanism, self.first.records, [self.first])
        return self._last[value]

    def person(self, value: Fraction) -> Loss:
        """The loss for one person with this parameter."""
        return self.plan(value).stated_loss

    def accuracy(self, plan: CompiledPlan) -> Accuracy:
        """The margins of error of a plan, which must have a sampler for every block."""
        plan.check_samplers()
        return accuracy(plan.blocks, self.level)

    def point(self, value: Fraction) -> CurvePoint:
        """What the parameter costs and how accurate it is."""
        if value not in self._points:
            plan = self.plan(value)
            doing(f"working out margins of error at {self.family.parameter} {shown(value)}")
            found = self.accuracy(plan)
            finer = before_rounding(plan.blocks, found)
            self._points[value] = CurvePoint(
                value,
                plan.mechanism,
                plan.stated_loss,
                *_three(found),
                found.draws,
                None if finer is None else _three(finer),
            )
        return self._points[value]

    def sketch(self, value: Fraction) -> CurvePoint:
        """The same, or about the same where that takes long: a smaller loss, scaled from one that is known.

        Wide noise grows as one over epsilon; margins of ``WIDE`` and more are scaled to a part in hundreds. That is
        done where draws are simulated and an exact sampler fits the smaller loss, too.
        """
        if value in self._sketches:
            return self._sketches[value]
        nearest = self._wider_than(value)
        if nearest is None or nearest.thousandths is None:
            return self.point(value)
        plan = self.plan(value)
        wider = [each * nearest.value / value for each in nearest.thousandths]
        smallest, typical, largest = (max(0, math.ceil(each / 1000 - Fraction(1, 2))) for each in wider)
        loss, draws = plan.stated_loss, nearest.draws
        self._sketches[value] = CurvePoint(value, plan.mechanism, loss, smallest, typical, largest, draws, scaled=True)
        return self._sketches[value]

    def is_quick(self, value: Fraction) -> bool:
        """Whether a sketch simulates nothing."""
        return value in self._points or value in self._sketches or self._wider_than(value) is not None

    def _wider_than(self, value: Fraction) -> CurvePoint | None:
        """The point of the nearest larger loss from which the margins are scaled, if they may be."""
        if value in self._points or self.first.mechanism.kind != "laplace-l1" or self.first.size < COSTLY:
            return None
        known = [point for point in self._points.values() if point.thousandths and point.typical >= WIDE]
        known = [point for point in known if point.value > value and not point.scaled]
        if not known or not self.plan(value).blocks.fits_exactly:
            return None
        return min(known, key=lambda point: point.value)

    def least_loss(self, margin: int, of: str) -> Answer:
        """The least loss whose typical, or largest, margin is at most this one.

        Raises
        ------
        PlanError
            If there is none, or if the typical cell has no noise at any loss.
        """
        if of == "typical" and len(self.first.pinned) > self.first.size // 2:
            raise PlanError(
                f"The typical margin of error is 0 at any {self.family.parameter}, because the kept totals determine "
                f"most cells. Ask for the largest margin, {arg.of('largest'):with}."
            )
        family = self.family
        return Search(
            lambda value: self.point(value).margin(of),
            margin,
            family.value,
            family.power,
            family.parameter,
            lambda value: self.point(value).width(of),
        ).answer()


def _three(found: Accuracy) -> tuple[int, int, int]:
    """The smallest, the typical and the largest margin."""
    return int(found.margins.min()), found.typical, int(found.margins.max())


# The plot of a curve of margins of error against the privacy loss.


HEIGHT = 4.6  # inches
TICKS = 9  # values below the axis, at most
TOO_NEAR = 1.5  # a point within this factor of the curve's own has no name, which would be hidden


def _plot_curve(curve: AccuracyCurve) -> Figure:
    """Plot the typical margin, and the largest where it differs, against the parameter, on log axes."""
    figure = new_figure(HEIGHT)
    axes = figure.add_subplot()
    values = [float(point.value) for point in curve.points]
    typical, largest = [point.typical for point in curve.points], [point.largest for point in curve.points]
    # A margin of 0 has no place on a log scale: such points are drawn at the bottom and labelled.
    bottom = 0.5
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: list[tuple[list[int], str, str, Any]] = [(typical, "typical", BLUE, "-")]
    if largest != typical:
        lines.insert(0, (largest, "largest", ORANGE, (0, (5, 2))))
    for margins, name, colour, style in lines:
        heights = [max(bottom, margin) for margin in margins]
        axes.plot(values, heights, color=colour, linestyle=style, linewidth=2, marker="o", markersize=4, label=name)
    _name_points(axes, curve, bottom)
    _frame(axes, curve, values, [*typical, *largest], bottom)
    if len(lines) > 1:
        axes.legend(frameon=False, loc="lower right" if curve.family.power > 0 else "lower left")
    _set_heading(axes, curve)
    return figure


def _name_points(axes: Axes, curve: AccuracyCurve, bottom: float) -> None:
    """Each typical margin above its point, where a falling line leaves room; the curve's own with its parameter."""
    rises = curve.family.power > 0
    has_own = any(point.value == curve.family.value for point in curve.points)
    for point in curve.points:
        x, y, name = float(point.value), max(bottom, point.typical), f"±{point.typical:,}"
        is_own = point.value == curve.family.value
        ratio = point.value / curve.family.value
        if has_own and not is_own and max(ratio, 1 / ratio) < TOO_NEAR:
            continue
        if is_own:
            name = f"{curve.family.parameter} {shown_briefly(point.value)}: {name}"
            axes.plot([x], [y], "o", color=BLUE, markersize=9, zorder=4)
        axes.annotate(
            name, (x, y), xytext=(-6 if rises else 6, 7), textcoords="offset points", ha="right" if rises else "left",
            color=BLUE, fontsize=10 if is_own else 9, fontweight="bold" if is_own else "normal", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
        )  # fmt: skip


def _frame(axes: Any, curve: AccuracyCurve, values: list[float], margins: list[int], bottom: float) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    others = [point.value for point in curve.points if point.value != curve.family.value]  # its own is on the curve
    ticks = (others or [curve.family.value])[:: max(1, -(-len(others) // TICKS))]
    axes.set_xticks([float(tick) for tick in ticks], [shown_briefly(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / 1.6, values[-1] * 1.6)
    axes.set_ylim(0.7 * min(max(bottom, margin) for margin in margins), 1.6 * max(bottom, *margins))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"±{value:,.0f}" if value >= 1 else "±0"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    source = f"\nmargins from {curve.draws:,} simulated draws or more" if curve.draws else ""
    axes.set_xlabel(f"{curve.heading} (log scale){source}")
    axes.set_ylabel(f"{percent(curve.level)} margin of error of a count\n(log scale)")
    _shade(axes, curve)


def _shade(axes: Any, curve: AccuracyCurve) -> None:
    """Where the loss is so large that it protects little."""
    little = [float(point.value) for point in curve.points if point.person.excess is not None]
    if not little:
        return
    left, right = axes.get_xlim()
    start, end = (left, max(little)) if curve.family.power > 0 else (min(little), right)
    axes.axvspan(start, end, color="#EEEEEE", zorder=0)
    axes.annotate(
        "little protection", (start, 0.97), xycoords=("data", "axes fraction"), xytext=(4, 0),
        textcoords="offset points", va="top", ha="left", rotation=90, color=GREY, fontsize=9,
    )  # fmt: skip


def _set_heading(axes: Axes, curve: AccuracyCurve) -> None:
    own = next((point for point in curve.points if point.value == curve.family.value), None)
    title = "Margins of error against the privacy loss"
    if own is not None:
        whose = f"{shown_briefly(own.value)} {curve.family.whose(curve.subject)}".rstrip()
        title = f"{curve.family.parameter.capitalize()} {whose} gives a typical margin of ±{own.typical:,}"
    set_title(axes, title, fontsize=12)


# Margins of error against the privacy loss: what each epsilon buys, before any budget is spent.


EACH_SIDE = 4  # values in steps of 1, 2, 5 below and above a given one
MOST_VALUES = 200
BACKENDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyCurve:
    """Margins of error of one kind of noise, under the same kept totals, at several losses.

    Made by :func:`accuracy_curve`.

    Attributes
    ----------
    family
        The noise; its members differ in ``family.parameter``.
    points
        The losses, in the order of the parameter, each with its margins.
    level
        The level of the margins.
    subject
        Whose loss ``person`` is: a person, a record, or, where none is stated for those, a unit of distance.
    """

    family: MechanismFamily
    points: tuple[CurvePoint, ...]
    level: float
    subject: str

    @property
    def draws(self) -> int:
        """The fewest simulated draws behind a simulated margin; 0 if all were computed."""
        return min((point.draws for point in self.points if point.draws), default=0)

    def to_dict(self) -> dict[str, list[Any]]:
        """The curve column by column: the parameter, the margins, and the losses per unit and of one person."""
        columns: dict[str, list[Any]] = {
            self.family.parameter: [float(point.value) for point in self.points],
            "typical": [point.typical for point in self.points],
            "smallest": [point.smallest for point in self.points],
            "largest": [point.largest for point in self.points],
            "draws": [point.draws for point in self.points],
            "scaled": [point.scaled for point in self.points],
            "per_unit": [point.mechanism.statement() for point in self.points],
        }
        for name in ("epsilon", "delta", "rho"):
            losses = [getattr(point.person, name) for point in self.points]
            if all(loss is not None for loss in losses):
                columns[f"{self.subject.replace(' ', '_')}_{name}"] = [float(loss) for loss in losses]
        return columns

    def to_frame(self, backend: str = "pandas") -> Any:
        """The curve as a data frame, one row for each loss.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``.
        """
        import narwhals as nw

        library: Any = check_choice(backend, "The library", BACKENDS)
        return nw.from_dict(self.to_dict(), backend=library).to_native()

    def plot(self) -> Figure:
        """Plot the typical and the largest margin against the parameter; needs the extra ``report``.

        Returns
        -------
        matplotlib.figure.Figure
            ``.savefig("curve.svg")`` writes it.
        """
        return _plot_curve(self)

    def lines(self, marked: Fraction | None = None) -> list[str]:
        """The curve as text, a line for each loss below a heading, with a mark at one of them.

        The largest margin has a column where it is not always the typical one. A loss that is so large that it protects
        little is followed by that remark.
        """
        heads = [self.heading, "typical", "largest", self._other_head]
        rows = [
            [shown_briefly(p.value), _margin(p, p.typical), _margin(p, p.largest), self._other_loss(p)]
            for p in self.points
        ]
        shown_columns = [0, 1, 2, 3] if any(p.largest != p.typical for p in self.points) else [0, 1, 3]
        widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(4)]
        lines = []
        for point, row in zip([None, *self.points], [heads, *rows], strict=True):
            mark = ">" if point is not None and point.value == marked else " "
            little = "little protection" if point is not None and point.person.excess is not None else ""
            cells = [f"{row[k]:{'>' if k in (1, 2) else '<'}{widths[k]}}" for k in shown_columns]
            lines.append("  ".join([f"{mark} {cells[0]}", *cells[1:], little]).rstrip())
        return lines

    @property
    def heading(self) -> str:
        """What the parameter is called, and whose loss it is."""
        return f"{self.family.parameter} {self.family.whose(self.subject)}".rstrip()

    @property
    def _other_head(self) -> str:
        if self.family.per_person:
            return "per unit of distance"
        return f"one {self.subject}" if self.subject in ("person", "record") else f"per {self.subject}"

    def _other_loss(self, point: CurvePoint) -> str:
        return per_unit_words(point) if self.family.per_person else str(point.person)

    def __repr__(self) -> str:
        return "\n".join([f"AccuracyCurve({self._title})", *self.lines(self.family.value)])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._title)}</p><pre>{html.escape(chr(10).join(self.lines(self.family.value)))}</pre>"

    @property
    def _title(self) -> str:
        source = f", from {self.draws:,} simulated draws or more" if self.draws else ""
        return f"{percent(self.level)} margins of error per cell{source}"


def _margin(point: CurvePoint, margin: int) -> str:
    return f"about ±{margin:,}" if point.scaled else f"±{margin:,}"


def per_unit_words(point: CurvePoint) -> str:
    """The loss per unit of distance, briefly."""
    return str(point.mechanism.unit_loss)


def curve_of(candidates: Candidates, values: Iterable[Any] | None = None) -> AccuracyCurve:
    """The curve at these values of the parameter; by default at the candidates' own and at round ones around it.

    Of the round ones, those are left out that protect little, and those for which there is no such noise.
    """
    family, first = candidates.family, candidates.first
    points = [candidates.point(family.value)] if values is None else []
    at = candidates.point if values is not None else candidates.sketch
    for place, value in enumerate(around(family.value) if values is None else _checked(values)):
        point = _point_if_any(candidates, at, value, protecting=values is None)
        if point is None and values is not None:
            raise InputError(
                f"Values must be such that there is this noise under these totals, and number {place + 1:,} in their "
                f"order is not. {the.call('plan.explain()')} says why."
            )
        points += [] if point is None or point in points else [point]
    subject = "unit of distance" if first.person is None else subject_of(first.records)
    return AccuracyCurve(family, tuple(sorted(points, key=lambda point: point.value)), candidates.level, subject)


def _point_if_any(
    candidates: Candidates, at: Callable[[Fraction], CurvePoint], value: Fraction, protecting: bool
) -> CurvePoint | None:
    """What a value costs and how accurate it is; None if this noise cannot have it, or has no sampler for it.

    If it must be ``protecting``, also None if the loss for one person is so large that it protects little.
    """
    try:
        if protecting and candidates.person(value).excess is not None:
            return None
        return at(value)
    except (InputError, PlanError):
        return None


def around(value: Fraction, each_side: int = EACH_SIDE) -> list[Fraction]:
    """A value, with round ones in steps of 1, 2, 5 below and above it.

    >>> [float(number) for number in around(Fraction(1, 4))]
    [0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0]
    """
    power = place_of(value) // STEPS
    powers = range(power - each_side, power + each_side + 2)
    round_values = [digit * number_at(STEPS * p) for p in powers for digit in (1, 2, 5)]
    below = [number for number in round_values if number < value][-each_side:]
    above = [number for number in round_values if number > value][:each_side]
    return [n for n in (*below, value, *above) if SMALLEST_PARAMETER <= n <= LARGEST_PARAMETER]


def _checked(values: Iterable[Any]) -> Sequence[Fraction]:
    """Distinct values in order; messages repeat none of them, because they may be a column of data."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"Values must be a list of numbers, got {type_of(values)}.")
    given_values = list(values)
    if not 1 <= len(given_values) <= MOST_VALUES:
        raise InputError(f"Values must be from 1 to {MOST_VALUES} numbers, got {len(given_values):,}.")
    numbers = [_number(value) for value in given_values]
    if None in numbers:
        raise InputError(f"Values must be numbers from 1e-12 to 1e12; value {numbers.index(None) + 1:,} is not.")
    return sorted({number for number in numbers if number is not None})


def _number(value: Any) -> Fraction | None:
    try:
        return exact_in_range(value, "A value")
    except InputError:
        return None
