"""Mechanisms, distances, losses and guarantees.

``Laplace``, ``Gaussian`` and ``OwnNoise`` are what users ask for, and ``mechanism.Mechanism`` is what a plan makes of
it, with every parameter known; ``distance.Distance`` is how far apart tables are, ``guarantee`` what a release
promises, and ``profile`` the (epsilon, delta) of Gaussian noise on any lattice.
"""

from keepsum._saying import the
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.privacy.gaussian import Gaussian, GaussianMechanism
from keepsum.privacy.laplace import Laplace, LaplaceMechanism
from keepsum.privacy.mechanism import Mechanism, MechanismFacts, Request
from keepsum.privacy.own import ClaimedMechanism, OwnNoise

# The mechanisms by their names in certificates.
MECHANISMS: dict[str, type[GaussianMechanism] | type[LaplaceMechanism] | type[ClaimedMechanism]] = {
    "gaussian": GaussianMechanism,
    "laplace": LaplaceMechanism,
    "own": ClaimedMechanism,
}

__all__ = [
    "MECHANISMS",
    "ClaimedMechanism",
    "Gaussian",
    "GaussianMechanism",
    "Laplace",
    "LaplaceMechanism",
    "OwnNoise",
    "as_mechanism",
    "as_request",
    "mechanism_of",
]


def mechanism_of(facts: MechanismFacts) -> Mechanism:
    """The mechanism that a certificate states."""
    if facts.name not in MECHANISMS:
        raise InputError(f"The mechanism must be {' or '.join(sorted(MECHANISMS))}, got {facts.name!r}.")
    if facts.name != "own" and (facts.claim is not None or facts.loss is not None):
        raise InputError("Only noise of a publisher's own may have a claim in a certificate.")
    return MECHANISMS[facts.name].from_facts(facts)


def as_request(mechanism: Request | Mechanism) -> Request:
    """The request a user gave; the mechanism of another plan becomes a request, as its sigma may depend on the plan."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism, ClaimedMechanism)):
        return mechanism.request()
    if not isinstance(mechanism, (Laplace, Gaussian, OwnNoise)):
        raise InputError(f"The mechanism must be Laplace or Gaussian, got {type_of(mechanism)}.")
    return mechanism


def as_mechanism(mechanism: Request | Mechanism) -> Mechanism:
    """The mechanism a user gave where there is no plan: every parameter must follow from it alone."""
    if isinstance(mechanism, (LaplaceMechanism, GaussianMechanism)) and not mechanism.focus:
        return mechanism
    request = as_request(mechanism)
    if request.focus:
        raise InputError(f"A focus must be on the totals of a plan, and there is none here. Use {the.call('ks.plan')}.")
    return request.resolve()
