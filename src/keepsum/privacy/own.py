"""Noise of a user's own: another sampler for a mechanism of ours, or another mechanism altogether.

The user gives a function that draws, and claims a loss, as that of Laplace or Gaussian noise: what it is per unit of
distance, and how it grows with it. Distances are ours, so what is stated for one person follows from the claim; the
claim itself is nobody's but the user's, and every face says so. A certificate states it (``Claim``), but not the
function.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from keepsum._saying import arg
from keepsum._text import printable, type_of
from keepsum.errors import InputError
from keepsum.privacy.calibration import LatticeShape
from keepsum.privacy.distance import Distance, Neighbours, Norm
from keepsum.privacy.focus import Level
from keepsum.privacy.gaussian import Gaussian, GaussianMechanism
from keepsum.privacy.laplace import Laplace, LaplaceMechanism
from keepsum.privacy.mechanism import Claim, Kind, Mechanism, MechanismFacts
from keepsum.privacy.numbers import Loss

if TYPE_CHECKING:
    from keepsum._arrays import IntArray
    from keepsum.lattice.lattice import Lattice
    from keepsum.sampling.core.rng import Rng

NAME = r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,79}"  # of a claim, and its version
KEY, VALUE = r"[a-z][a-z0-9_]{0,39}", r"[A-Za-z0-9 ._+/-]{1,200}"  # of its parameters
LONGEST_LAW = 200  # characters
_Inner: TypeAlias = LaplaceMechanism | GaussianMechanism
_INNER: dict[str, type[LaplaceMechanism] | type[GaussianMechanism]] = {
    "laplace": LaplaceMechanism,
    "gaussian": GaussianMechanism,
}


class Draw(Protocol):
    """What a user gives: a function that draws noise, from what is public alone."""

    def __call__(self, lattice: Lattice, mechanism: Mechanism, draws: int, rng: Rng) -> IntArray:
        """Noise that keeps every total, an int64 array with one row per draw and one column per cell.

        Parameters
        ----------
        lattice
            The vectors that keep every total; ``lattice.matrix`` has the totals, ``lattice.basis`` a short basis.
        mechanism
            The mechanism whose loss is claimed, and, for a sampler, the target: ``mechanism.epsilon`` per unit of
            distance in ``mechanism.norm``, or ``mechanism.scale``, the sigma of Gaussian noise.
        draws
            How many rows.
        rng
            The only randomness it may use: equal sources must give equal noise.
        """


@dataclass(frozen=True, init=False)
class OwnNoise:
    """Noise of your own: your sampler of Laplace or Gaussian noise, or a mechanism of your own with a loss you claim.

    Parameters
    ----------
    mechanism
        ``Laplace``, or ``Gaussian`` with rho or sigma, without a focus. For a sampler it is the target. With ``law`` it
        only says which loss you claim for your noise: the epsilon, or the rho, of this one, at every distance.
    draw
        The function ``draw(lattice, mechanism, draws, rng)`` that draws: see ``keepsum.privacy.own.Draw``. It never
        sees a count.
    name, version
        What it is called, in a certificate.
    law
        The distribution of your noise, in words or symbols, if it is not that of ``mechanism``.
    parameters
        What else a reader should know of it: short texts, or numbers, by their names.

    Notes
    -----
    Keepsum checks what it can: that noise is int64, keeps every total exactly, and depends on nothing but ``rng``, by a
    trial before anything is charged. That its distribution is the stated one, and its loss at most the one claimed, is
    your claim. The plan, the certificate and ``verify`` say so.

    Examples
    --------
    >>> import keepsum as ks
    >>> import numpy as np
    >>> def flips(lattice, mechanism, draws, rng):  # one fair coin per draw: an example, and not private
    ...     coins = [2 * rng.below(2) - 1 for _ in range(draws)]
    ...     return np.outer(coins, lattice.basis[:, 0])
    >>> own = ks.OwnNoise(ks.Laplace.per_unit(epsilon=1), flips, name="coin", version="1", law="a fair sign")
    >>> own
    OwnNoise(Laplace.per_unit(epsilon=1, norm='l1'), name='coin', version='1', law='a fair sign')
    >>> plan = ks.plan(keep=[[1, 1]], mechanism=own)
    >>> sorted(set(map(tuple, plan.sample(50).tolist())))
    [(-1, 1), (1, -1)]
    >>> plan.guarantee.sampling
    'claimed'
    """

    mechanism: Laplace | Gaussian
    claim: Claim
    draw: Draw | None = field(compare=False)  # None where all that is known is a certificate

    def __init__(
        self,
        mechanism: Laplace | Gaussian,
        draw: Draw,
        *,
        name: str,
        version: str,
        law: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(mechanism, (Laplace, Gaussian)):
            raise InputError(
                f"The mechanism of noise of your own must be Laplace or Gaussian, got {type_of(mechanism)}."
            )
        if mechanism.focus or (isinstance(mechanism, Gaussian) and mechanism.epsilon is not None):
            raise InputError(
                "The loss of noise of your own must be claimed as that of Laplace noise, or of Gaussian noise by its "
                "rho or sigma, without a focus."
            )
        if not callable(draw):
            raise InputError(f"{arg.draw} must be a function that draws, got {type_of(draw)}.")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"{arg.parameters} must be a mapping of names to values, got {type_of(parameters)}.")
        pairs = [
            (key, value if isinstance(value, str) else _number(value)) for key, value in (parameters or {}).items()
        ]
        claim = Claim(name, version, law, tuple(pairs), _source_of(draw))
        check_claim(claim)
        self._fill(mechanism, claim, draw)

    def _fill(self, mechanism: Laplace | Gaussian, claim: Claim, draw: Draw | None) -> None:
        for name, value in {"mechanism": mechanism, "claim": claim, "draw": draw}.items():
            object.__setattr__(self, name, value)

    @property
    def norm(self) -> Norm:
        """How the distance between two tables is measured."""
        return "l2" if isinstance(self.mechanism, Gaussian) else self.mechanism.norm

    @property
    def neighbours(self) -> Neighbours | None:
        """Which changes of one person the claimed loss covers; None for a loss per unit of distance."""
        return self.mechanism.neighbours

    @property
    def focus(self) -> tuple[Level, ...]:
        """None: noise of your own has no focus."""
        return ()

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """None, without a focus."""
        return ()

    def resolve(
        self, distance: Distance | None = None, lattice: Callable[[], LatticeShape] | None = None
    ) -> ClaimedMechanism:
        """The noise with the claimed loss per unit of distance."""
        return ClaimedMechanism(self.mechanism.resolve(distance, lattice), self.claim, self.draw)

    def __repr__(self) -> str:
        law = "" if self.claim.law is None else f", law={printable(self.claim.law)!r}"
        return f"OwnNoise({self.mechanism!r}, name={self.claim.name!r}, version={self.claim.version!r}{law})"


@dataclass(frozen=True)
class ClaimedMechanism:
    """Noise of a user's own, whose loss is claimed to be at most that of another mechanism.

    Attributes
    ----------
    stated
        That mechanism; without a law of its own also the target.
    claim
        What the noise is called, and what else its user says of it.
    draw
        The function that draws it; None where all that is known is a certificate.
    """

    stated: _Inner
    claim: Claim
    draw: Draw | None = field(default=None, compare=False)

    @property
    def kind(self) -> Kind:
        """Neither samplers of ours nor closed-form laws apply."""
        return "own"

    @property
    def norm(self) -> Norm:
        """How the distance between two tables is measured."""
        return self.stated.norm

    @property
    def epsilon(self) -> Fraction | None:
        """Claimed epsilon per unit of distance, if the loss is claimed as one."""
        return self.stated.epsilon

    @property
    def focus(self) -> tuple[Level, ...]:
        """None."""
        return ()

    @property
    def scale(self) -> Fraction:
        """The width of the mechanism whose loss is claimed."""
        return self.stated.scale

    @property
    def calibrated(self) -> None:
        """Nothing was calibrated to an epsilon and a delta."""
        return

    @property
    def unit_loss(self) -> Loss:
        """The claimed loss per unit of distance."""
        return self.stated.unit_loss

    def loss(self, distance: Distance) -> Loss:
        """The claimed loss at a distance."""
        return self.stated.loss(distance)

    def law(self) -> str:
        """The weight of a noise vector z, as its user says."""
        return self.stated.law() if self.claim.law is None else printable(self.claim.law)

    def statement(self) -> str:
        """The claimed loss per unit of distance, as a phrase."""
        return self.stated.statement()

    def facts(self) -> MechanismFacts:
        """The mechanism as a certificate states it: the parameters are those of the claimed loss."""
        stated = self.stated.facts()
        loss: Literal["laplace", "gaussian"] = "gaussian" if isinstance(self.stated, GaussianMechanism) else "laplace"
        return MechanismFacts("own", stated.norm, stated.parameters, claim=self.claim, loss=loss)

    @classmethod
    def from_facts(cls, facts: MechanismFacts) -> ClaimedMechanism:
        """The mechanism that a certificate states, without the function that draws it."""
        if facts.claim is None or facts.loss is None or facts.focus or facts.calibrated is not None:
            raise InputError(
                "Noise of a publisher's own in a certificate must have a claim, and neither focus nor goal."
            )
        check_claim(facts.claim)
        stated = _INNER[facts.loss].from_facts(replace(facts, name=facts.loss, claim=None, loss=None))
        if isinstance(stated, GaussianMechanism) and stated.epsilon is not None:
            raise InputError("The claimed loss of a Gaussian mechanism in a certificate must be a rho.")
        return cls(stated, facts.claim)

    def request(self) -> OwnNoise:
        """The request for it, per unit of distance."""
        request = object.__new__(OwnNoise)
        request._fill(self.stated.request(), self.claim, self.draw)
        return request

    def agrees(self, stated: object) -> bool:
        """Whether a certificate may state that mechanism where this one is recomputed."""
        return isinstance(stated, ClaimedMechanism) and self.claim == stated.claim and self.stated.agrees(stated.stated)

    def __repr__(self) -> str:
        return repr(self.request())


def check_claim(claim: Claim) -> None:
    """Names must be short plain texts, so that they can stand in a certificate, on a page and in a terminal."""
    for what, text in (("name", claim.name), ("version", claim.version)):
        _check(text, NAME, f"The {what} of noise of your own", "up to 80 letters, digits, spaces, and . _ + -")
    for key, value in claim.parameters:
        _check(key, KEY, "A parameter's name", "a short word of small letters, digits and _")
        _check(value, VALUE, "A parameter", "a number, or a short text of letters and digits")
    law = claim.law
    if law is not None and not (isinstance(law, str) and 0 < len(law) <= LONGEST_LAW and law.isprintable()):
        raise InputError(f"The law of noise of your own must be a text of up to {LONGEST_LAW} printable characters.")


def _check(text: object, pattern: str, what: str, form: str) -> None:
    if not isinstance(text, str) or re.fullmatch(pattern, text) is None:
        raise InputError(f"{what} must be {form}.")


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise InputError(f"A parameter must be a number or a text, got {type_of(value)}.")
    if not -(10**100) < value < 10**100:
        raise InputError("A parameter must be below 10^100, got a larger number.")
    return str(value)


def _source_of(draw: object) -> str | None:
    """The SHA-256 of the file that a function, or the class of an object, is defined in; None if there is none."""
    try:
        file = inspect.getsourcefile(draw if inspect.isroutine(draw) or inspect.isclass(draw) else type(draw))
        return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (TypeError, OSError, ValueError):  # a built-in, or typed in at a prompt
        return None
