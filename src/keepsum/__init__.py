"""Keepsum: tables of counts under differential privacy, with the declared totals kept exactly."""

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
    "plan",
    "read_table",
    "release",
    "rng",
    "verify",
]
