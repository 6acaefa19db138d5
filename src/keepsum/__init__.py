"""Keepsum: tables of counts under differential privacy, with the declared totals kept exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsum.accuracy import Accuracy
from keepsum.certificate import Certificate
from keepsum.domain import Domain
from keepsum.errors import (
    CategoriesFromDataWarning,
    DataError,
    DomainError,
    InputError,
    KeepsumError,
    KeepsumWarning,
    LargeLossWarning,
    NoSamplerError,
    PlanError,
    RowOrderWarning,
)
from keepsum.invariants import Invariants
from keepsum.lattice import Lattice
from keepsum.mechanisms import Gaussian, Laplace
from keepsum.planning import Plan, plan
from keepsum.reading import read_table
from keepsum.releasing import Release, release
from keepsum.sampling.rng import Rng, rng
from keepsum.table import Table
from keepsum.verifying import Verification, verify

if TYPE_CHECKING:
    from keepsum import mcmc

__version__ = "0.1.0.dev0"

__all__ = [
    "Accuracy",
    "CategoriesFromDataWarning",
    "Certificate",
    "DataError",
    "Domain",
    "DomainError",
    "Gaussian",
    "InputError",
    "Invariants",
    "KeepsumError",
    "KeepsumWarning",
    "Laplace",
    "LargeLossWarning",
    "Lattice",
    "NoSamplerError",
    "Plan",
    "PlanError",
    "Release",
    "Rng",
    "RowOrderWarning",
    "Table",
    "Verification",
    "mcmc",
    "plan",
    "read_table",
    "release",
    "rng",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import ``ks.mcmc`` at its first use: it brings numba, which most programs do not need at once."""
    if name == "mcmc":
        import keepsum.mcmc

        return keepsum.mcmc
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
