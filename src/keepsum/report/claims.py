"""The strongest claim that a certificate supports: that of its weakest part.

A name such as "pure DP" is only used where everything behind it is proved. Numbers are only stated where they bound
something: not for noise from a seed, not where delta is 1, and not where chains were given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from keepsum.releasing.certificate import CertificateRecord
from keepsum.releasing.counted import is_bounded
from keepsum.releasing.person_statements import PersonStatements

Variant: TypeAlias = Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Custom"]
Unit: TypeAlias = Literal["person", "counted person", "declared person", "record", "change"]

CONDITIONS: dict[Unit, str] = {
    "person": ", in all records of that person that were counted",
    "counted person": ", if every person is counted once (the table was given as counts)",
    "declared person": ", if every record is of another person, as was declared and not checked",
    "record": "; a person with several records is protected less",
}


@dataclass(frozen=True)
class Claim:
    """What may be claimed of a release.

    Attributes
    ----------
    variant
        The variant of differential privacy; ``"Custom"`` where no usual name is proved to apply.
    unit
        What the loss is stated for.
    whole
        Whether it covers any change of the unit, because the table has one attribute; if not, of one attribute.
    epsilon, delta, rho
        The loss of one unit, with what sampling adds to delta; all None where nothing is guaranteed.
    reasons
        Why the variant is custom, or nothing is guaranteed.
    """

    variant: Variant
    unit: Unit
    whole: bool
    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    reasons: tuple[str, ...]

    @property
    def guaranteed(self) -> bool:
        """Whether there is a loss to state."""
        return self.epsilon is not None or self.rho is not None

    @property
    def subject(self) -> str:
        """The unit in words, with the condition that it stands under."""
        if self.unit == "change":
            return "two tables with the same kept totals at distance 1, neither a person nor a record"
        subject = "one record" if self.unit == "record" else "one person"
        return f"{'' if self.whole else 'one attribute of '}{subject}{CONDITIONS[self.unit]}"


def claim_of(certificate: CertificateRecord) -> Claim:
    """What may be claimed of a release."""
    statements = PersonStatements.of(certificate)
    guarantee, unit = statements.guarantee, _unit(certificate, statements)
    whole = len(certificate.guarantee.person.attributes) == 1
    void = _void(certificate, guarantee.stated_delta)
    if void:
        return Claim("Custom", unit, whole, None, None, None, void)
    loss, added = guarantee.stated_loss, guarantee.sampling_delta(guarantee.person)
    delta = guarantee.stated_delta or None
    if guarantee.sampling == "estimated":
        reason = (
            "Some noise is drawn by Markov chains, and how near they come to their target is estimated, not proved."
        )
        return Claim("Custom", unit, whole, loss.epsilon, delta, loss.rho, (reason,))
    if loss.rho is None:
        return Claim("Approximate DP" if delta else "Pure DP", unit, whole, loss.epsilon, delta, None, ())
    if added:
        reason = "The zCDP loss is that of the target of the noise; delta is the total variation from it."
        return Claim("Custom", unit, whole, None, delta, loss.rho, (reason,))
    return Claim("Zero-concentrated DP", unit, whole, None, None, loss.rho, ())


def _void(certificate: CertificateRecord, delta: Fraction) -> tuple[str, ...]:
    """Why nothing is guaranteed, if so."""
    reasons = []
    if certificate.randomness == "seed":
        reasons.append("The noise comes from a seed: whoever knows the seed can remove it.")
    if any(block.convergence is not None and block.convergence.unmet for block in certificate.guarantee.blocks):
        reasons.append("Pairs of Markov chains were given up before they met: their blocks have no guarantee.")
    if delta >= 1:
        reasons.append("With what sampling adds, delta is 1: nothing is guaranteed.")
    return tuple(reasons)


def _unit(certificate: CertificateRecord, statements: PersonStatements) -> Unit:
    if certificate.guarantee.person.stated is None:
        return "change"
    if statements.subject == "record":
        return "record"
    if statements.records is None:
        return "counted person"
    return "person" if is_bounded(statements.records) else "declared person"
