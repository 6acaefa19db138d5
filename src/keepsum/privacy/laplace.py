"""Laplace noise: pure differential privacy, in the l1 or the l2 norm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from keepsum._arguments import check_choice
from keepsum._saying import arg
from keepsum.errors import InputError
from keepsum.privacy.calibration import LatticeShape
from keepsum.privacy.distance import Distance, Neighbours, Norm, epsilon_at, epsilon_per_unit, needs_distance
from keepsum.privacy.focus import Focus, Level, arguments_of, focus_by_key, focus_in, levels_and_share, levels_of
from keepsum.privacy.mechanism import Kind, MechanismFacts
from keepsum.privacy.numbers import Loss, Number, exact_in_range, shown

ONE = Fraction(1)


@dataclass(frozen=True, init=False)
class Laplace:
    """Noise with probability proportional to exp(-c |z|), in the l1 or the l2 norm: pure differential privacy.

    The plan derives c, epsilon per unit of distance, from the loss of one person. :meth:`per_unit` gives c itself.

    Parameters
    ----------
    epsilon
        The per-person privacy loss, for a change of any one attribute: positive, an int, Fraction, Decimal, text such
        as ``"1/3"``, or a float, which means its shortest decimal.
    norm
        ``"l1"`` or ``"l2"``: how the distance between two tables is measured.
    attributes
        Protect changes of these attributes only; by default of each attribute of the table.
    to
        ``"any value"``, or ``"some other value"`` to protect only a change to one other value, which the categories
        give, where the kept totals allow that one.
    focus, cell_share
        Totals whose noise is to be smaller, with their shares of epsilon, and that of cells: with
        ``focus={"county": 1}, cell_share=3`` the epsilon of cells is three times that of the totals of counties. A key
        is an axis, a tuple of axes, ``()`` for the grand total, or ``Invariants.subsets`` with no cell in common.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Laplace(epsilon=1)
    Laplace(epsilon=1, norm='l1')
    >>> ks.Laplace(epsilon=0.1).epsilon
    Fraction(1, 10)
    >>> ks.Laplace.per_unit(epsilon=0.25)
    Laplace.per_unit(epsilon=0.25, norm='l1')

    More accuracy in the totals of counties and states, and less in cells:

    >>> ks.Laplace(epsilon=1, focus={"state": 1, "county": 1}, cell_share=3)
    Laplace(epsilon=1, norm='l1', focus={'state': 1, 'county': 1}, cell_share=3)
    >>> ks.Laplace.per_unit(epsilon=0.3, focus={"state": 0.1, "county": 0.1})
    Laplace.per_unit(epsilon=0.3, norm='l1', focus={'state': 0.1, 'county': 0.1})
    """

    epsilon: Fraction
    norm: Norm
    neighbours: Neighbours | None  # None if epsilon is per unit of distance
    focus: tuple[Level, ...]  # with shares of epsilon, or with epsilons if that is per unit of distance
    cell_share: Fraction  # that of cells, unless epsilon is per unit of distance

    def __init__(
        self,
        epsilon: Number,
        norm: str = "l1",
        *,
        attributes: Iterable[str] | None = None,
        to: str = "any value",
        focus: Focus | None = None,
        cell_share: Number = 1,
    ) -> None:
        levels, share = levels_and_share(focus, cell_share)
        self._fill(epsilon, norm, Neighbours.of(attributes, to), levels, share)

    @classmethod
    def per_unit(cls, epsilon: Number, norm: str = "l1", *, focus: Focus | None = None) -> Laplace:
        """Noise by its epsilon per unit of distance between two tables, as in the paper.

        Parameters
        ----------
        epsilon, norm
            The privacy loss per unit of distance, and how distance is measured.
        focus
            Totals whose noise is to be smaller, each with an epsilon of its own: ``{"county": 0.1}``. The noise then
            has probability proportional to exp(-epsilon |z| - sum of epsilon_g |z(g)|), z(g) its sum over the cells of
            a total g, in the l1 norm.
        """
        request = object.__new__(cls)
        request._fill(epsilon, norm, None, levels_of(focus, f"{arg.focus}"))
        return request

    def _fill(
        self,
        epsilon: Number,
        norm: str,
        neighbours: Neighbours | None,
        focus: tuple[Level, ...],
        cell_share: Fraction = ONE,
    ) -> None:
        norm = check_choice(norm, f"{arg.norm.called('Norm')}", ("l1", "l2"))
        if focus and norm != "l1":
            raise InputError(
                f"A focus must be in the l1 norm, or that of Gaussian noise, got {arg.norm('l2')}. "
                f"{arg.norm.called('Leave the norm out')}."
            )
        exactly = exact_in_range(epsilon, f"{arg.epsilon.called('Epsilon')}")
        fields = {"epsilon": exactly, "norm": norm, "neighbours": neighbours, "focus": focus, "cell_share": cell_share}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Under a focus, what cells and the totals of each level weigh, up to a common factor; otherwise nothing."""
        if not self.focus:
            return ()
        cells = self.epsilon if self.neighbours is None else self.cell_share
        return (cells, *(level.weight for level in self.focus))

    def resolve(
        self, distance: Distance | None = None, lattice: Callable[[], LatticeShape] | None = None
    ) -> LaplaceMechanism:
        """The mechanism that gives neighbours at most the requested loss, rounded to the safe side."""
        if self.neighbours is None:
            return LaplaceMechanism(self.epsilon, self.norm, self.focus)
        if distance is None:
            raise InputError(needs_distance(self))
        if not self.focus:
            return LaplaceMechanism(exact_in_range(epsilon_per_unit(self.epsilon, distance), "Epsilon"), self.norm)
        unit = self.epsilon / distance.weighed(self.weights)
        focus = tuple(
            replace(level, weight=exact_in_range(level.weight * unit, f"The epsilon of {level.totals}"))
            for level in self.focus
        )
        return LaplaceMechanism(exact_in_range(self.cell_share * unit, "Epsilon"), self.norm, focus)

    def scaled(self, epsilon: Fraction) -> Laplace:
        """The same noise at another epsilon: those of a focus change by the same factor."""
        if self.neighbours is None:
            return Laplace.per_unit(epsilon, self.norm, focus=focus_by_key(self.focus, epsilon / self.epsilon) or None)
        attributes, to, shares = self.neighbours.attributes, self.neighbours.to, focus_by_key(self.focus) or None
        return Laplace(epsilon, self.norm, attributes=attributes, to=to, focus=shares, cell_share=self.cell_share)

    def __repr__(self) -> str:
        arguments = f"epsilon={shown(self.epsilon)}, norm={self.norm!r}"
        focus = arguments_of(self.focus)
        if self.neighbours is None:
            return f"Laplace.per_unit({arguments}{f', focus={focus}' if self.focus else ''})"
        shares = f", focus={focus}, cell_share={shown(self.cell_share)}" if self.focus else ""
        return f"Laplace({arguments}{self.neighbours.arguments()}{shares})"


@dataclass(frozen=True)
class LaplaceMechanism:
    """Noise with probability proportional to exp(-epsilon |z|), epsilon per unit of distance.

    Attributes
    ----------
    cell_epsilon
        The epsilon of cells; without a focus it is that per unit of distance.
    norm
        How distance is measured.
    focus
        Totals with an epsilon of their own, which adds to the exponent that epsilon times the change of each.
    """

    cell_epsilon: Fraction
    norm: Norm
    focus: tuple[Level, ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """Epsilon per unit of distance, at most: a change of one cell by 1 changes a total of each focus by 1."""
        return self.cell_epsilon + sum(level.weight for level in self.focus)

    @property
    def calibrated(self) -> None:
        """Epsilon is proportional to the distance, so there is nothing to calibrate."""
        return

    @property
    def unit_loss(self) -> Loss:
        """The privacy loss per unit of distance."""
        return Loss(self.epsilon)

    @property
    def kind(self) -> Kind:
        """Which samplers and which closed-form law apply."""
        return "laplace-l1" if self.norm == "l1" else "laplace-l2"

    @property
    def scale(self) -> Fraction:
        """The width of the noise of cells."""
        return 1 / self.cell_epsilon

    def loss(self, distance: Distance) -> Loss:
        """The privacy loss at a distance."""
        if not self.focus:
            return Loss(epsilon=epsilon_at(self.cell_epsilon, distance))
        return Loss(epsilon=distance.weighed((self.cell_epsilon, *(level.weight for level in self.focus))))

    def law(self) -> str:
        """The weight of a noise vector z, in symbols."""
        rate = "" if self.cell_epsilon == 1 else f"{shown(self.cell_epsilon)} "
        totals = "".join(f" - {shown(level.weight)} {level.symbol}" for level in self.focus)
        return f"exp(-{rate}|z|{'₁' if self.norm == 'l1' else '₂'}{totals})"

    def statement(self) -> str:
        """The privacy loss per unit of distance, as a phrase."""
        if not self.focus:
            return f"epsilon {shown(self.epsilon)} per unit of {self.norm} distance"
        totals = ", ".join(f"{shown(level.weight)} per unit in {level.totals}" for level in self.focus)
        return (
            f"epsilon {shown(self.cell_epsilon)} per unit of l1 distance in cells, plus {totals}; together at most "
            f"{shown(self.epsilon)} per unit of l1 distance"
        )

    def facts(self) -> MechanismFacts:
        """The mechanism as a certificate states it."""
        return MechanismFacts("laplace", self.norm, {"epsilon": str(self.cell_epsilon)}, self.focus)

    @classmethod
    def from_facts(cls, facts: MechanismFacts) -> LaplaceMechanism:
        """The mechanism that a certificate states."""
        if set(facts.parameters) != {"epsilon"}:
            raise InputError("A Laplace mechanism in a certificate must have an epsilon and nothing else.")
        return Laplace.per_unit(facts.parameters["epsilon"], facts.norm, focus=focus_in(facts.focus)).resolve()

    def request(self) -> Laplace:
        """The request for it, per unit of distance."""
        return Laplace.per_unit(self.cell_epsilon, self.norm, focus=focus_by_key(self.focus) or None)

    def agrees(self, stated: object) -> bool:
        """Whether a certificate may state that mechanism where this one is recomputed."""
        return self == stated

    def __repr__(self) -> str:
        return repr(self.request())
