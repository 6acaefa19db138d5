"""Keepsum: tables of counts under differential privacy, with the declared totals kept exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepsum.accuracy.margins import Accuracy
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
)
from keepsum.facade.functions import plan, release
from keepsum.facade.objects import Certificate, Plan, Release
from keepsum.lattice import Lattice
from keepsum.privacy import Gaussian, Laplace
from keepsum.releasing.verify import Verification, verify
from keepsum.sampling.core.rng import Rng, rng
from keepsum.sources.reading import read_table
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from keepsum.research import baselines, mcmc

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
    "Table",
    "Verification",
    "baselines",
    "mcmc",
    "plan",
    "read_table",
    "release",
    "rng",
    "verify",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    """Import ``ks.mcmc`` and ``ks.baselines`` at their first use: for research, which most programs do not do.

    ``ks.mcmc`` brings numba.
    """
    if name in ("baselines", "mcmc"):
        from importlib import import_module

        return import_module(f"keepsum.research.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
