"""Keepsum: tables of counts under differential privacy, with the declared totals kept exactly.

Start here:

>>> import keepsum as ks
>>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
>>> release = ks.release(table, keep=["county"], mechanism=ks.Laplace(epsilon=1))
>>> release.marginal(["county"]).table.counts.tolist()  # kept exactly; the counts of release.table have noise
[16, 30]

``ks.read_table`` reads a file of counts, ``ks.tabulate`` counts records, ``ks.plan(...).explain()`` says what a release
would keep and guarantee, ``release.save("out/")`` writes it with its certificate, ``ks.verify("out/")`` checks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keepsum.accounting.series import series_epsilon
    from keepsum.accuracy.choose import AccuracyCurve
    from keepsum.accuracy.margins import Accuracy
    from keepsum.accuracy.shares import BudgetShares
    from keepsum.errors import (
        BudgetError,
        CategoriesFromDataWarning,
        DataError,
        DeclinedError,
        DomainError,
        FailedCheckError,
        InputError,
        InstallationError,
        KeepsumError,
        KeepsumWarning,
        LargeLossWarning,
        LedgerError,
        LedgerUnreachableError,
        LedgerWarning,
        NoSamplerError,
        OutputExistsError,
        PlanError,
        TooMuchWorkError,
        UnreachableError,
    )
    from keepsum.facade import postprocess
    from keepsum.facade.choosing import accuracy_curve, mechanism_for, share_budget
    from keepsum.facade.estimates import Marginal
    from keepsum.facade.functions import plan, read_release, release, tabulate
    from keepsum.facade.objects import Certificate, Plan, Release
    from keepsum.lattice import Lattice
    from keepsum.ledger.entries import Budget
    from keepsum.ledger.ledger import Ledger
    from keepsum.privacy import Gaussian, Laplace, OwnNoise
    from keepsum.releasing.verify import Verification, verify
    from keepsum.research import baselines, mcmc
    from keepsum.sampling.core.rng import Rng, rng
    from keepsum.sources.reading import read_table
    from keepsum.tables.domain import Domain
    from keepsum.tables.findings import UndeclaredError
    from keepsum.tables.invariants import Invariants
    from keepsum.tables.table import Table

__version__ = "0.1.0.dev0"

__all__ = [
    "Accuracy",
    "AccuracyCurve",
    "Budget",
    "BudgetError",
    "BudgetShares",
    "CategoriesFromDataWarning",
    "Certificate",
    "DataError",
    "DeclinedError",
    "Domain",
    "DomainError",
    "FailedCheckError",
    "Gaussian",
    "InputError",
    "InstallationError",
    "Invariants",
    "KeepsumError",
    "KeepsumWarning",
    "Laplace",
    "LargeLossWarning",
    "Lattice",
    "Ledger",
    "LedgerError",
    "LedgerUnreachableError",
    "LedgerWarning",
    "Marginal",
    "NoSamplerError",
    "OutputExistsError",
    "OwnNoise",
    "Plan",
    "PlanError",
    "Release",
    "Rng",
    "Table",
    "TooMuchWorkError",
    "UndeclaredError",
    "UnreachableError",
    "Verification",
    "accuracy_curve",
    "baselines",
    "mcmc",
    "mechanism_for",
    "plan",
    "postprocess",
    "read_release",
    "read_table",
    "release",
    "rng",
    "series_epsilon",
    "share_budget",
    "tabulate",
    "verify",
]

_HOMES = {
    "keepsum.accounting.series": ("series_epsilon",),
    "keepsum.accuracy.choose": ("AccuracyCurve",),
    "keepsum.accuracy.margins": ("Accuracy",),
    "keepsum.accuracy.shares": ("BudgetShares",),
    "keepsum.errors": (
        "BudgetError",
        "CategoriesFromDataWarning",
        "DataError",
        "DeclinedError",
        "DomainError",
        "FailedCheckError",
        "InputError",
        "InstallationError",
        "KeepsumError",
        "KeepsumWarning",
        "LargeLossWarning",
        "LedgerError",
        "LedgerUnreachableError",
        "LedgerWarning",
        "NoSamplerError",
        "OutputExistsError",
        "PlanError",
        "TooMuchWorkError",
        "UnreachableError",
    ),
    "keepsum.facade": ("postprocess",),
    "keepsum.facade.choosing": (
        "accuracy_curve",
        "mechanism_for",
        "share_budget",
    ),
    "keepsum.facade.estimates": ("Marginal",),
    "keepsum.facade.functions": (
        "plan",
        "read_release",
        "release",
        "tabulate",
    ),
    "keepsum.facade.objects": (
        "Certificate",
        "Plan",
        "Release",
    ),
    "keepsum.lattice": ("Lattice",),
    "keepsum.ledger.entries": ("Budget",),
    "keepsum.ledger.ledger": ("Ledger",),
    "keepsum.privacy": (
        "Gaussian",
        "Laplace",
        "OwnNoise",
    ),
    "keepsum.releasing.verify": (
        "Verification",
        "verify",
    ),
    "keepsum.research": (
        "baselines",
        "mcmc",
    ),
    "keepsum.sampling.core.rng": (
        "Rng",
        "rng",
    ),
    "keepsum.sources.reading": ("read_table",),
    "keepsum.tables.domain": ("Domain",),
    "keepsum.tables.findings": ("UndeclaredError",),
    "keepsum.tables.invariants": ("Invariants",),
    "keepsum.tables.table": ("Table",),
}
_MODULES = ("baselines", "mcmc", "postprocess")
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _imported(name: str) -> Any:
    """Import a public name at its first use: ``import keepsum`` takes no time, and each use only what it needs."""
    from importlib import import_module

    if name == "errors":
        return import_module("keepsum.errors")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = import_module(f"{_HOME[name]}.{name}") if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__ = _imported
