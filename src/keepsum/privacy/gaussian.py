"""Gaussian noise: approximate or zero-concentrated differential privacy in the l2 norm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from keepsum._arguments import check_choice
from keepsum._saying import arg, the
from keepsum.errors import InputError
from keepsum.privacy import profile
from keepsum.privacy.calibration import LatticeShape, floor, of_rho, paper, tight, zcdp
from keepsum.privacy.distance import (
    Distance,
    Neighbours,
    Norm,
    delta_at,
    delta_per_unit,
    epsilon_at,
    epsilon_per_unit,
    needs_distance,
)
from keepsum.privacy.focus import Focus, Level, arguments_of, focus_by_key, focus_in, levels_and_share, levels_of
from keepsum.privacy.mechanism import Calibrated, Kind, MechanismFacts
from keepsum.privacy.numbers import Loss, Number, exact, exact_in_range, shown, shown_briefly

CALIBRATIONS = (profile.RULE, "zcdp", "tight", "paper")
VOLUME_TOLERANCE = Fraction(1, 10**9)  # relative: another machine may round volumes differently


@dataclass(frozen=True, init=False)
class Gaussian:
    """Noise with probability proportional to exp(-|z|^2 / 2 sigma^2) in the l2 norm.

    The plan derives sigma from the loss of one person; :meth:`per_unit` takes the loss per unit of distance.

    Parameters
    ----------
    epsilon, delta
        Approximate differential privacy of one person, for a change of any one attribute: sigma is the smallest that
        the lines of any lattice need at the farthest such change (``docs/gaussian.md``).
    rho
        The same in zero-concentrated differential privacy (zCDP).
    sigma
        The width of the noise itself. Give exactly one of the three: epsilon and delta, rho, or sigma.
    calibration
        How sigma follows from epsilon and delta. ``"lines"``, the default, is within 1% of the smallest that works.
        Earlier rules are for a loss per unit of distance: ``"zcdp"``, (2 ln(1/delta) + eps)/eps^2 for sigma^2 on any
        lattice; ``"tight"``, a little less where the lattice has no short vectors; ``"paper"``, with the paper's factor
        that grows with the dimension.
    attributes, to
        To protect less, as in :class:`Laplace`.
    focus, cell_share
        Totals whose noise is to be smaller, with their shares of rho, or of the rho that epsilon and delta stand for,
        and that of cells; keys as in :class:`Laplace`.

    Attributes
    ----------
    sigma
        The width, rounded up to twelve digits; None if only a plan knows it.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Gaussian(epsilon=0.5, delta="1e-6")
    Gaussian(epsilon=0.5, delta=1e-6)
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> keep = ks.Invariants.margins(domain, [["county"], ["sex"]])
    >>> ks.plan(keep=keep, mechanism=ks.Gaussian(rho=1)).mechanism
    Gaussian.per_unit(rho=0.25)
    >>> ks.Gaussian(sigma=2).sigma
    Fraction(2, 1)
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    sigma: Fraction | None
    calibration: str
    neighbours: Neighbours | None  # None if the loss is per unit of distance, or sigma is given
    focus: tuple[Level, ...]  # with shares of rho, or with rhos if that is per unit of distance
    cell_share: Fraction | None  # that of cells, where there is a focus with shares
    calibrated: Calibrated | None  # what the noise of a plan was calibrated to

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        sigma: Number | None = None,
        calibration: str = profile.RULE,
        attributes: Iterable[str] | None = None,
        to: str = "any value",
        focus: Focus | None = None,
        cell_share: Number = 1,
    ) -> None:
        neighbours: Neighbours | None = Neighbours.of(attributes, to)
        levels, share = levels_and_share(focus, cell_share)
        if sigma is not None:
            if neighbours != Neighbours():
                raise InputError(f"{arg.attributes} and {arg.to} must be given with a loss, rho or epsilon and delta.")
            neighbours = None
        given = {"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": sigma}
        self._fill(given, calibration, neighbours, levels, share if levels else None)

    @classmethod
    def per_unit(
        cls,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        rho: Number | None = None,
        calibration: str = profile.RULE,
        focus: Focus | None = None,
    ) -> Gaussian:
        """Noise by its loss per unit of l2 distance, as in the paper: give epsilon and delta, or rho.

        Parameters
        ----------
        epsilon, delta, calibration
            The loss at distance 1, in the form of the paper's definition, and how sigma follows from it.
        rho
            The zCDP loss at l2 distance 1; it grows with the square of the distance.
        focus
            With rho, totals whose noise is to be smaller, each with a rho of its own beside that of cells:
            ``{"county": 0.1}``. The noise then has probability proportional to
            exp(-rho |z|^2 - sum of rho_g z(g)^2), z(g) its sum over the cells of a total g.

        Examples
        --------
        >>> import keepsum as ks
        >>> float(ks.Gaussian.per_unit(epsilon=0.5, delta="1e-6").sigma)
        8.06437
        >>> ks.Gaussian.per_unit(rho="1/2").sigma
        Fraction(1, 1)
        >>> ks.Gaussian.per_unit(rho=0.3, focus={"county": 0.1})
        Gaussian.per_unit(rho=0.3, focus={'county': 0.1})
        """
        if focus is not None and rho is None:
            raise InputError(
                f"{arg.focus} must be given {arg.rho:with} per unit of distance, as its values are rhos. Give "
                f"{arg.rho}, or the loss of one person, of which a focus has shares."
            )
        request = object.__new__(cls)
        given: dict[str, Number | None] = {"epsilon": epsilon, "delta": delta, "rho": rho, "sigma": None}
        request._fill(given, calibration, None, levels_of(focus, f"{arg.focus}"), None)
        return request

    def _fill(
        self,
        given: dict[str, Number | None],
        calibration: str,
        neighbours: Neighbours | None,
        focus: tuple[Level, ...],
        cell_share: Fraction | None,
    ) -> None:
        names = {name for name, value in given.items() if value is not None}
        if names not in ({"epsilon", "delta"}, {"rho"}, {"sigma"}):
            raise InputError(
                f"Gaussian noise must be given epsilon and delta, or rho, or sigma, "
                f"got {' and '.join(sorted(names)) or 'none of them'}."
                f"{f' Add {arg.delta}, for example 1e-6.' if names == {'epsilon'} else ''}"
            )
        calibration = check_choice(calibration, f"{arg.calibration.called('Calibration')}", CALIBRATIONS)
        for name, value in given.items():
            check = exact if name == "delta" else exact_in_range
            object.__setattr__(
                self, name, None if value is None else check(value, f"{arg[name].called(name.capitalize())}")
            )
        if self.delta is not None and not Fraction(1, 10**300) <= self.delta < 1:
            raise InputError(
                f"{arg.delta.called('Delta')} must be below 1 and at least 1e-300, got {shown(self.delta)}."
            )
        if focus and self.sigma is not None:
            raise InputError(f"{arg.focus} must be given with a loss, rho or epsilon and delta, got sigma.")
        if focus and calibration != profile.RULE:
            raise InputError(
                f"{arg.calibration.called('Calibration')} must be {profile.RULE!r} where there is a focus, got "
                f"{calibration!r}. {arg.calibration.called('Leave it out')}."
            )
        fields = {"calibration": calibration, "neighbours": neighbours, "focus": focus, "cell_share": cell_share}
        for name, field in {**fields, "calibrated": None}.items():
            object.__setattr__(self, name, field)
        if self.sigma is None and neighbours is None and not focus:
            object.__setattr__(self, "sigma", self._sigma_on_any_lattice())

    def _sigma_on_any_lattice(self) -> Fraction | None:
        """Sigma where no lattice is needed for it."""
        if self.rho is not None:
            return of_rho(self.rho)
        if self.epsilon is None or self.delta is None:
            return None
        if self.calibration == profile.RULE:
            return profile.per_unit_sigma(self.epsilon, self.delta)
        return zcdp(self.epsilon, self.delta) if self.calibration == "zcdp" else None

    @property
    def norm(self) -> Norm:
        """Gaussian noise is measured in the l2 norm."""
        return "l2"

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Under a focus, what cells and the totals of each level weigh, up to a common factor; otherwise nothing."""
        cells = self.rho if self.cell_share is None else self.cell_share
        return (cells, *(level.weight for level in self.focus)) if self.focus and cells is not None else ()

    def resolve(
        self, distance: Distance | None = None, lattice: Callable[[], LatticeShape] | None = None
    ) -> GaussianMechanism:
        """The mechanism, with sigma calibrated to the lattice where it depends on it."""
        if self.neighbours is not None:
            if distance is None:
                raise InputError(needs_distance(self))
            if self.epsilon is not None and self.calibration == profile.RULE:
                return self._for_person(self.epsilon, self.delta or Fraction(0), distance)
            return self._per_unit(distance).resolve(None, lattice)
        if self.focus:
            return replace(self._focused(Fraction(1)), calibrated=self.calibrated)
        sigma = self.sigma if self.sigma is not None else self._sigma_for(lattice)
        return GaussianMechanism(sigma, self.epsilon, self.delta, self.rho, self.calibration, (), self.calibrated)

    def _for_person(self, epsilon: Fraction, delta: Fraction, distance: Distance) -> GaussianMechanism:
        """The mechanism that is (epsilon, delta)-private at the farthest change of one person, by the lines."""
        calibrated = Calibrated(epsilon, delta, distance.length, None, distance.exact)
        if not self.focus:
            sigma = profile.smallest_sigma(epsilon, delta, distance.length)
            return GaussianMechanism(sigma, calibrated=calibrated)
        found = self._focused(profile.largest_rho(epsilon, delta) / distance.weighed(self.weights))
        return replace(found, calibrated=replace(calibrated, length=None, rho=found.rho_at(distance)))

    def _focused(self, unit: Fraction) -> GaussianMechanism:
        """The mechanism whose rhos are the weights times this unit, rounded down if they follow from epsilon."""
        rhos = [weight * unit for weight in self.weights]
        if self.epsilon is not None:
            rhos = [floor(rho) for rho in rhos]
        names = ["Rho", *(f"The rho of {level.totals}" for level in self.focus)]
        rho, *weights = (exact_in_range(rho, name) for rho, name in zip(rhos, names, strict=True))
        focus = (replace(level, weight=weight) for level, weight in zip(self.focus, weights, strict=True))
        return GaussianMechanism(of_rho(rho), rho=rho, focus=tuple(focus))

    def _sigma_for(self, lattice: Callable[[], LatticeShape] | None) -> Fraction:
        if lattice is None or self.epsilon is None or self.delta is None:
            raise InputError(
                f"The mechanism must have a known sigma, got {the.noise(self)}. Use {the.call('plan.mechanism')}."
            )
        shape = lattice()
        if self.calibration == "tight":
            return tight(self.epsilon, self.delta, shape.shortest)
        if shape.log_volume is None:
            raise InputError(
                "The paper's calibration needs the lattice's volume, and a block is too large to compute it. Use "
                f"{arg.calibration('zcdp')}."
            )
        return paper(self.epsilon, self.delta, shape.dimension, shape.log_volume)

    def _per_unit(self, distance: Distance) -> Gaussian:
        """At distance r, delta grows by (e^(eps r) - 1)/(e^eps - 1) and rho by r^2; rounded to the safe side."""
        if self.rho is not None and self.focus:
            return self._focused(self.rho / distance.weighed(self.weights)).request()
        if self.epsilon is None or self.delta is None:
            return Gaussian.per_unit(rho=None if self.rho is None else self.rho / distance.length)
        epsilon = epsilon_per_unit(self.epsilon, distance)
        return Gaussian.per_unit(epsilon, delta_per_unit(epsilon, self.delta, distance), calibration=self.calibration)

    def scaled(self, **loss: Fraction) -> Gaussian:
        """The same noise at another epsilon, rho or sigma: the rhos of a focus change by the same factor."""
        ((parameter, value),) = loss.items()
        given: dict[str, Any] = {parameter: value, "calibration": self.calibration}
        if parameter == "epsilon":
            given["delta"] = self.delta
        if self.neighbours is None:
            if parameter == "sigma":
                return Gaussian(**given)
            factor = Fraction(1) if self.rho is None else value / self.rho
            return Gaussian.per_unit(**given, focus=focus_by_key(self.focus, factor) or None)
        if self.focus:
            given |= {"focus": focus_by_key(self.focus), "cell_share": self.cell_share}
        return Gaussian(**given, attributes=self.neighbours.attributes, to=self.neighbours.to)

    def __repr__(self) -> str:
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        is_loss = any(given.values())
        parts = [f"{name}={shown(value)}" for name, value in given.items() if value is not None]
        if self.sigma is not None and not is_loss:
            parts.append(f"sigma={shown(self.sigma)}")
        if self.epsilon is not None and self.calibration != profile.RULE:
            parts.append(f"calibration={self.calibration!r}")
        arguments = ", ".join(parts)
        focus = f", focus={arguments_of(self.focus)}" if self.focus else ""
        if self.neighbours is None:
            return f"Gaussian{'.per_unit' if is_loss else ''}({arguments}{focus})"
        if self.cell_share is not None:
            focus += f", cell_share={shown(self.cell_share)}"
        return f"Gaussian({arguments}{self.neighbours.arguments()}{focus})"


@dataclass(frozen=True)
class GaussianMechanism:
    """Noise with probability proportional to exp(-|z|^2 / 2 sigma^2), and the guarantee that sigma was calibrated to.

    Attributes
    ----------
    sigma
        The width of the noise, exactly as it is drawn.
    epsilon, delta
        The guarantee per unit of distance, if requested in this form; else None.
    rho
        The zCDP loss at distance 1, if requested; else None.
    calibration
        How sigma follows from epsilon and delta per unit of distance.
    focus
        Totals with a rho of their own, which takes that rho times the square of each off the exponent; sigma and rho
        are then those of cells.
    calibrated
        The epsilon and delta of one person that sigma, or the rhos of a focus, were calibrated to.
    """

    sigma: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    calibration: str = profile.RULE
    focus: tuple[Level, ...] = ()
    calibrated: Calibrated | None = None

    @property
    def kind(self) -> Kind:
        """Which samplers and which closed-form law apply."""
        return "gaussian"

    @property
    def norm(self) -> Norm:
        """Gaussian noise is measured in the l2 norm."""
        return "l2"

    @property
    def scale(self) -> Fraction:
        """The width of the noise of cells."""
        return self.sigma

    @property
    def unit_rho(self) -> Fraction:
        """The zCDP loss at l2 distance 1; under a focus, at most that if one count changes by 1."""
        cells = self.rho if self.rho is not None else 1 / (2 * self.sigma**2)
        return cells + sum(level.weight for level in self.focus)

    @property
    def unit_loss(self) -> Loss:
        """The privacy loss per unit of distance: in rho, where epsilon and delta are those of one person."""
        if self.calibrated is not None:
            return Loss(rho=self.unit_rho)
        return self.loss(Distance("l2", 1))

    def loss(self, distance: Distance) -> Loss:
        """The privacy loss at a distance; at the delta of one person, where sigma was calibrated to that."""
        if self.epsilon is not None and self.delta is not None:
            return Loss(epsilon_at(self.epsilon, distance), delta_at(self.epsilon, self.delta, distance))
        rho, goal = self.rho_at(distance), self.calibrated
        if goal is None:
            return Loss(rho=rho)
        if distance.length == goal.length or rho == goal.rho:
            return Loss(goal.epsilon, goal.delta)
        return Loss(profile.smallest_epsilon(rho, goal.delta), goal.delta)

    def rho_at(self, distance: Distance) -> Fraction:
        """The zCDP loss at a distance."""
        if self.focus and self.rho is not None:
            return distance.weighed((self.rho, *(level.weight for level in self.focus)))
        return self.unit_rho * distance.length

    def law(self) -> str:
        """The weight of a noise vector z, in symbols."""
        totals = "".join(f" - {shown(level.weight)} {level.square}" for level in self.focus)
        return f"exp(-|z|₂² / (2·{shown(self.sigma)}²){totals})"

    def statement(self) -> str:
        """The privacy loss per unit of distance, as a phrase."""
        if self.epsilon is not None and self.delta is not None:
            return f"epsilon {shown(self.epsilon)}, delta {shown_briefly(self.delta)} per unit of l2 distance"
        if self.focus and self.rho is not None:
            totals = ", ".join(f"{shown(level.weight)} in {level.totals}" for level in self.focus)
            return (
                f"rho {shown(self.rho)} (zCDP) at l2 distance 1 in cells, plus {totals}, each growing with the square "
                f"of its distance; together at most {shown(self.unit_rho)} where one count changes by 1"
            )
        if self.rho is not None:
            return f"rho {shown(self.rho)} (zCDP) at l2 distance 1, growing with the square of the distance"
        growth = "" if self.calibrated is None else ", growing with the square of the distance"
        return f"sigma {shown(self.sigma)}: rho {shown_briefly(self.unit_rho)} (zCDP) at l2 distance 1{growth}"

    def facts(self) -> MechanismFacts:
        """The mechanism as a certificate states it."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "sigma": self.sigma}
        parameters = {name: str(number) for name, number in numbers.items() if number is not None}
        if self.epsilon is not None:
            parameters["calibration"] = self.calibration
            if self.calibration == profile.RULE:
                parameters["version"] = f"{profile.VERSION}"
        return MechanismFacts("gaussian", "l2", parameters, self.focus, self.calibrated)

    @classmethod
    def from_facts(cls, facts: MechanismFacts) -> GaussianMechanism:
        """The mechanism that a certificate states, with the sigma that it states."""
        rules = {"calibration", "version"}
        given = {name: value for name, value in facts.parameters.items() if name not in rules}
        if facts.norm != "l2" or set(given) not in ({"epsilon", "delta", "sigma"}, {"rho", "sigma"}, {"sigma"}):
            raise InputError(
                "A Gaussian mechanism in a certificate must have a sigma and the parameters it follows from."
            )
        sigma = exact_in_range(given["sigma"], "Sigma")
        if facts.focus and set(given) != {"rho", "sigma"}:
            raise InputError("A Gaussian mechanism with a focus in a certificate must have a sigma and a rho.")
        _check_rule(facts, set(given))
        if len(given) == 1:
            return cls(sigma, calibrated=facts.calibrated)
        focus = levels_of(focus_in(facts.focus), f"{arg.focus}")
        request = _stated(given | {"sigma": None}, facts.parameters.get("calibration", profile.RULE), focus, sigma)
        rule, goal = request.calibration, facts.calibrated
        return cls(sigma, request.epsilon, request.delta, request.rho, rule, request.focus, goal)

    def request(self) -> Gaussian:
        """The request for it, per unit of distance; a plan may resolve it to another sigma, unless it is by lines."""
        if self.epsilon is None and self.rho is None:
            request = Gaussian(sigma=self.sigma)
        else:
            given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "sigma": None}
            request = _stated(given, self.calibration, self.focus, self.sigma)
        object.__setattr__(request, "calibrated", self.calibrated)
        return request

    def agrees(self, stated: object) -> bool:
        """Whether a certificate may state that mechanism where this one is recomputed.

        That by lines is right if the stated width is enough, and one less by the resolution of the rule is not: two
        evaluations, and no width is looked for.
        The calibration ``"tight"`` rests on a lower bound on the shortest vectors, which may be weaker in another
        version, but is at least 1; ``"paper"`` on a volume in floating-point arithmetic.
        """
        if not isinstance(stated, GaussianMechanism):
            return False
        if self == stated:
            return self._is_calibrated()
        if self.calibration == "zcdp" or self.epsilon is None or self.delta is None:
            return False
        largest = self.sigma if self.calibration == "paper" else tight(self.epsilon, self.delta, 1)
        if self.calibration == profile.RULE:
            return False
        in_range = self.sigma * (1 - VOLUME_TOLERANCE) <= stated.sigma <= largest * (1 + VOLUME_TOLERANCE)
        return in_range and replace(stated, sigma=self.sigma) == self

    def _is_calibrated(self) -> bool:
        """Whether the width is that of the rule for what it was calibrated to, where that is by lines."""
        if self.epsilon is not None and self.delta is not None:
            if self.calibration != profile.RULE:
                return True
            return profile.is_smallest_per_unit(self.epsilon, self.delta, self.sigma)
        goal = self.calibrated
        if goal is None:
            return True
        rho = goal.rho if goal.length is None else goal.length / (2 * self.sigma**2)
        return rho is not None and profile.is_smallest(goal.epsilon, goal.delta, rho)

    def __repr__(self) -> str:
        return repr(self.request())


def _stated(given: Mapping[str, Any], calibration: str, focus: tuple[Level, ...], sigma: Fraction) -> Gaussian:
    """The request, per unit of distance, of noise whose sigma is known if it is by lines."""
    request = object.__new__(Gaussian)
    if given.get("epsilon") is None or calibration != profile.RULE:
        request._fill({"epsilon": None, "delta": None, "rho": None, **given}, calibration, None, focus, None)
    else:
        request._fill({**given, "rho": None}, calibration, Neighbours(), focus, None)  # solves for nothing
        object.__setattr__(request, "neighbours", None)
        object.__setattr__(request, "sigma", sigma)
    return request


def _check_rule(facts: MechanismFacts, given: set[str]) -> None:
    """Refuse a rule, or a version of it, that this version does not know."""
    goal, rule, version = facts.calibrated, facts.parameters.get("calibration"), facts.parameters.get("version")
    if goal is None:
        if (version is not None) != (rule == profile.RULE) or version not in (None, f"{profile.VERSION}"):
            raise InputError("Calibration in a certificate must have a version that this version of Keepsum knows.")
        return
    if "epsilon" in given or (goal.length is None) == (goal.rho is None) or (goal.rho is not None) != bool(facts.focus):
        raise InputError(
            "Noise calibrated for one person in a certificate must have a squared length, or a rho with a focus."
        )
    if not 0 < goal.epsilon <= profile.LARGEST_EPSILON or not 0 < goal.delta < 1:
        raise InputError("Noise calibrated for one person in a certificate must have an epsilon and a delta in range.")
