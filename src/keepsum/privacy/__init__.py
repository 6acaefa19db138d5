"""What is protected, how well: mechanisms, distances, losses and guarantees."""

from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.gaussian import Gaussian, GaussianMechanism
from keepsum.privacy.laplace import Laplace, LaplaceMechanism
from keepsum.privacy.mechanism import Mechanism, MechanismFacts, Request

# The mechanisms by the names that certificates know them under.
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
    """What a user gave as a mechanism; that of another plan is asked for anew, because its sigma may depend on it."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism)):
        return mechanism.request()
    if not isinstance(mechanism, (Laplace, Gaussian)):
        raise InputError(f"Mechanism must be Laplace or Gaussian, got {type_of(mechanism)}.")
    return mechanism


def as_mechanism(mechanism: Request | Mechanism) -> Mechanism:
    """What a user gave where there is no plan: every parameter must follow from it alone."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism)):
        return mechanism
    return as_request(mechanism).resolve()
