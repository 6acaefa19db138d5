"""Mechanisms, distances, losses and guarantees."""

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.gaussian import Gaussian, GaussianMechanism
from keepsum.privacy.laplace import Laplace, LaplaceMechanism
from keepsum.privacy.mechanism import Mechanism, MechanismFacts, Request

# The mechanisms by their names in certificates.
MECHANISMS: dict[str, type[GaussianMechanism] | type[LaplaceMechanism]] = {
    "gaussian": GaussianMechanism,
    "laplace": LaplaceMechanism,
}

__all__ = [
    "MECHANISMS",
    "Gaussian",
    "GaussianMechanism",
    "Laplace",
    "LaplaceMechanism",
    "as_mechanism",
    "as_request",
    "mechanism_of",
]


def mechanism_of(facts: MechanismFacts) -> Mechanism:
    """The mechanism that a certificate states."""
    if facts.name not in MECHANISMS:
        raise InputError(f"The mechanism must be {' or '.join(sorted(MECHANISMS))}, got {facts.name!r}.")
    return MECHANISMS[facts.name].from_facts(facts)


def as_request(mechanism: Request | Mechanism) -> Request:
    """The request a user gave; the mechanism of another plan becomes a request, as its sigma may depend on the plan."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism)):
        return mechanism.request()
    if not isinstance(mechanism, (Laplace, Gaussian)):
        raise InputError(f"The mechanism must be Laplace or Gaussian, got {type_of(mechanism)}.")
    return mechanism


def as_mechanism(mechanism: Request | Mechanism) -> Mechanism:
    """The mechanism a user gave where there is no plan: every parameter must follow from it alone."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism)) and not mechanism.focus:
        return mechanism
    request = as_request(mechanism)
    if request.focus:
        raise InputError("A focus must be on the totals of a plan, and there is none here. Use ks.plan.")
    return request.resolve()
