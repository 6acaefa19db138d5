"""Keepsum: tables of counts under differential privacy, with the declared totals kept exactly."""

from keepsum.domain import Domain
from keepsum.errors import (
    CategoriesFromDataWarning,
    DataError,
    DomainError,
    InputError,
    KeepsumError,
    KeepsumWarning,
    NoSamplerError,
    PlanError,
)
from keepsum.invariants import Invariants
from keepsum.lattice import Lattice
from keepsum.mechanisms import Gaussian, Laplace
from keepsum.planning import Plan, plan
from keepsum.reading import read_table
from keepsum.sampling.rng import Rng, rng
from keepsum.table import Table

__version__ = "0.1.0.dev0"

__all__ = [
    "CategoriesFromDataWarning",
    "DataError",
    "Domain",
    "DomainError",
    "Gaussian",
    "InputError",
    "Invariants",
    "KeepsumError",
    "KeepsumWarning",
    "Laplace",
    "Lattice",
    "NoSamplerError",
    "Plan",
    "PlanError",
    "Rng",
    "Table",
    "plan",
    "read_table",
    "rng",
]
