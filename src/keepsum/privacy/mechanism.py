"""Mechanisms: the request as users write it, and the mechanism of a plan with every parameter known.

A new mechanism is one file with these two types, a selection of samplers for its ``kind`` (``planning/selection``), and
a line in ``privacy/__init__.py`` by which certificates find it. Users give one of their own without any of
that, and with a loss that they claim: ``own.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias

from keepsum.privacy.calibration import LatticeShape
from keepsum.privacy.distance import Distance, Neighbours, Norm
from keepsum.privacy.focus import Level
from keepsum.privacy.numbers import Loss

Kind: TypeAlias = Literal["laplace-l1", "laplace-l2", "gaussian", "own"]


@dataclass(frozen=True)
class Calibrated:
    """What Gaussian noise was calibrated to: the (epsilon, delta) of one person, at the farthest change of them.

    Attributes
    ----------
    epsilon, delta
        The guarantee at that change.
    length, rho
        Its squared length; with a focus, its zCDP loss instead.
    exact
        Whether some tables are so far apart; if not, none are farther.
    rule, version
        How the width follows from them: see ``privacy/profile.py``.
    """

    epsilon: Fraction
    delta: Fraction
    length: int | None
    rho: Fraction | None
    exact: bool
    rule: Literal["lines"] = "lines"
    version: Literal[1] = 1


@dataclass(frozen=True)
class Claim:
    """What a user says of noise of their own, which nobody checks (``own.py``).

    Attributes
    ----------
    name, version
        What the function that draws it is called.
    law
        Its distribution, in the user's words; None if only the sampler is the user's, and the target one of ours.
    parameters
        What else the user says of it, by name.
    source
        The SHA-256 of the file that the function is in; None if it is in none.
    """

    name: str
    version: str
    law: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    source: str | None = None

    @property
    def what(self) -> str:
        """What is the user's own, as a noun."""
        return "sampler" if self.law is None else "mechanism"

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class MechanismFacts:
    """A mechanism as a certificate holds it: its name, its norm, and its exact parameters as text.

    ``focus`` are totals with an epsilon, or a rho, of their own; ``calibrated`` what the noise was calibrated to.
    ``claim`` is that of noise of a user's own, whose claimed loss, that of ``loss``, the parameters are of.
    """

    name: str
    norm: Norm
    parameters: Mapping[str, str]
    focus: tuple[Level, ...] = ()
    calibrated: Calibrated | None = None
    claim: Claim | None = None
    loss: Literal["laplace", "gaussian"] | None = None


class Mechanism(Protocol):
    """Noise with every parameter known, per unit of distance."""

    @property
    def kind(self) -> Kind:
        """Which samplers and which closed-form law apply."""

    @property
    def norm(self) -> Norm:
        """How the distance between two tables is measured."""

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon per unit of distance, if the loss is stated as one."""

    @property
    def focus(self) -> tuple[Level, ...]:
        """Totals with an epsilon of their own."""

    @property
    def scale(self) -> Fraction:
        """The width of the noise: 1/epsilon of exp(-epsilon |z|), or sigma of exp(-|z|^2 / 2 sigma^2)."""

    @property
    def calibrated(self) -> Calibrated | None:
        """What the noise was calibrated to, if that was the loss of one person by the lines of the lattice."""

    @property
    def unit_loss(self) -> Loss:
        """The privacy loss per unit of distance, as it grows with the distance."""

    def loss(self, distance: Distance) -> Loss:
        """The privacy loss at a distance."""

    def law(self) -> str:
        """The weight of a noise vector z, in symbols."""

    def statement(self) -> str:
        """The privacy loss per unit of distance, as a phrase."""

    def facts(self) -> MechanismFacts:
        """The mechanism as a certificate states it."""

    def request(self) -> Request:
        """The request for it, per unit of distance; a plan may resolve it to other parameters."""

    def agrees(self, stated: Any) -> bool:
        """Whether a certificate may state that mechanism where this one is recomputed."""


class Request(Protocol):
    """A mechanism as users request it: its parameters may depend on the lattice, or on the distance of one person."""

    @property
    def norm(self) -> Norm:
        """How the distance between two tables is measured."""

    @property
    def neighbours(self) -> Neighbours | None:
        """Which changes of one person the loss covers; None for a loss per unit of distance."""

    @property
    def focus(self) -> tuple[Level, ...]:
        """Totals with a weight of their own."""

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Under a focus, what cells and the totals of each level weigh, up to a common factor; otherwise nothing."""

    def resolve(self, distance: Distance | None = None, lattice: Callable[[], LatticeShape] | None = None) -> Mechanism:
        """The mechanism, given the distance of those neighbours and the shape of the lattice."""
