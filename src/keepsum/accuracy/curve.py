"""Margins of error against the privacy loss: what each epsilon buys, before any budget is spent."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from keepsum._arguments import check_choice
from keepsum._text import percent, type_of
from keepsum.accuracy.candidates import Candidates, Point
from keepsum.accuracy.targets import STEPS, number_at, place_of
from keepsum.errors import InputError, PlanError
from keepsum.privacy.families import Family
from keepsum.privacy.numbers import LARGEST_PARAMETER, SMALLEST_PARAMETER, exact_in_range, shown_briefly
from keepsum.tables.records import subject_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

    family: Family
    points: tuple[Point, ...]
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
        from keepsum.accuracy.curve_plot import Picture, plot_curve

        return plot_curve(Picture(self.family, self.points, self.level, self.subject, self.heading, self.draws))

    def lines(self, marked: Fraction | None = None) -> list[str]:
        """The curve as text, a line for each loss below a heading, with a mark at one of them.

        The largest margin has a column where it is not always the typical one. A loss that is so large that it protects
        little is followed by that remark.
        """
        heads = [self.heading, "typical", "largest", self._other_head]
        rows = [
            [shown_briefly(p.value), f"±{p.typical:,}", f"±{p.largest:,}", self._other_loss(p)] for p in self.points
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

    def _other_loss(self, point: Point) -> str:
        return per_unit_words(point) if self.family.per_person else str(point.person)

    def __repr__(self) -> str:
        return "\n".join([f"AccuracyCurve({self._title})", *self.lines(self.family.value)])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._title)}</p><pre>{html.escape(chr(10).join(self.lines(self.family.value)))}</pre>"

    @property
    def _title(self) -> str:
        source = f", from {self.draws:,} simulated draws or more" if self.draws else ""
        return f"{percent(self.level)} margins of error per cell{source}"


def per_unit_words(point: Point) -> str:
    """The loss per unit of distance, briefly."""
    return str(point.mechanism.unit_loss)


def curve_of(candidates: Candidates, values: Iterable[Any] | None = None) -> AccuracyCurve:
    """The curve at these values of the parameter; by default at the candidates' own and at round ones around it.

    Of the round ones, those are left out that protect little, and those for which there is no such noise.
    """
    family, first = candidates.family, candidates.first
    points = [candidates.point(family.value)] if values is None else []
    for place, value in enumerate(around(family.value) if values is None else _checked(values)):
        point = _point_if_any(candidates, value, protecting=values is None)
        if point is None and values is not None:
            raise InputError(
                f"Values must be such that there is this noise under these totals, and number {place + 1:,} in their "
                f"order is not. plan.explain() says why."
            )
        points += [] if point is None or point in points else [point]
    subject = "unit of distance" if first.person is None else subject_of(first.records)
    return AccuracyCurve(family, tuple(sorted(points, key=lambda point: point.value)), candidates.level, subject)


def _point_if_any(candidates: Candidates, value: Fraction, protecting: bool) -> Point | None:
    """What a value costs and how accurate it is; None if this noise cannot have it, or has no sampler for it.

    If it must be ``protecting``, also None if the loss for one person is so large that it protects little.
    """
    try:
        if protecting and candidates.person(value).excess is not None:
            return None
        return candidates.point(value)
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
