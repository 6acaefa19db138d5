"""What the entries of a ledger hold: facts only, none of them a count.

A table and its kept totals (without their values) are an entry of their own, so that a table that is released a
thousand times is described once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from keepsum.accounting.cost import Cost
from keepsum.errors import InputError, LedgerError
from keepsum.ledger.budget import Budget
from keepsum.privacy.calibration import ceiling
from keepsum.releasing.facts import DomainRecord, RecordsRecord, RowsPart
from keepsum.releasing.guarantee_facts import MechanismRecord
from keepsum.releasing.record_types import Exactness, Hash, Parameter, Record

LONG = 10**18  # the largest denominator that is kept
Number: TypeAlias = Annotated[int, Meta(ge=1)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Note: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000, description="Who decided it, and why.")]


class BudgetRecord(Record, frozen=True):
    """A budget; quotients are exact."""

    epsilon: Parameter | None = None
    delta: Parameter | None = None
    rho: Parameter | None = None
    per_person: bool = False  # if it is not stated: per unit of distance, as all budgets were once

    @classmethod
    def of(cls, budget: Budget) -> BudgetRecord:
        """The record of a budget."""
        numbers = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
        quotients = {name: str(number) for name, number in numbers.items() if number is not None}
        return cls(**quotients, per_person=budget.per_person)

    def budget(self) -> Budget:
        """The budget."""
        epsilon, delta, rho = (None if n is None else Fraction(n) for n in (self.epsilon, self.delta, self.rho))
        return Budget(epsilon, delta, rho) if self.per_person else Budget.per_unit(epsilon, delta, rho)


class CostRecord(Record, frozen=True):
    """What a release costs per unit of distance; quotients are exact."""

    norm: Literal["l1", "l2"]
    epsilon: Parameter | None = None
    rho: Parameter | None = None
    stated: tuple[Parameter, Parameter] | None = None
    error: Parameter = "0"
    sampling: Exactness = "exact"
    levels: Annotated[
        tuple[Parameter, ...],
        Meta(
            description="How much of epsilon or rho counts for the totals of each focus of the mechanism alone, by how "
            "much these change. Without it, as in earlier entries, all of it counts at the l1 distance of cells."
        ),
    ] = ()

    @classmethod
    def of(cls, cost: Cost) -> CostRecord:
        """The record of a cost."""
        if cost.sampling == "no sampler":
            raise AssertionError("a cost is that of noise that can be drawn")
        levels = tuple(map(_short, cost.levels))
        loss = _short(cost.loss)
        if levels:  # each is rounded up by itself, if it is, so that what is left for cells is too
            loss = str(sum(map(Fraction, levels), Fraction(_short(cost.loss - sum(cost.levels)))))
        return cls(
            norm=cost.norm,
            epsilon=None if cost.epsilon is None else loss,
            rho=None if cost.rho is None else loss,
            stated=None if cost.stated is None else (_short(cost.stated[0]), _short(cost.stated[1])),
            error=_short(cost.error) if cost.error else "0",
            sampling=cost.sampling,
            levels=levels,
        )

    def cost(self) -> Cost:
        """The cost."""
        return Cost(
            self.norm,
            None if self.epsilon is None else Fraction(self.epsilon),
            None if self.rho is None else Fraction(self.rho),
            None if self.stated is None else (Fraction(self.stated[0]), Fraction(self.stated[1])),
            Fraction(self.error),
            self.sampling,
            tuple(map(Fraction, self.levels)),
        )


def _short(number: Fraction) -> str:
    """An exact quotient, or twelve digits, rounded up: sums of many long quotients would have endless digits."""
    return str(number if number.denominator <= LONG else ceiling(number))


class KeptMargin(Record, frozen=True, tag="margin", tag_field="kind"):
    """The totals over all combinations of these axes are kept; for no axes, the grand total."""

    axes: list[str]


class KeptRows(Record, frozen=True, tag="rows", tag_field="kind"):
    """Totals of subsets, or weighted ones, are kept."""

    rows: RowsPart


class LedgerEntry(Record, frozen=True, tag="ledger", tag_field="entry"):
    """The first entry; its random number tells ledgers apart that were made alike."""

    schema: Literal["keepsum.ledger/1"]
    software: str
    id: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class DatasetEntry(Record, frozen=True, tag="dataset", tag_field="entry"):
    """A dataset, its budget, and its full cross-classification if that was declared."""

    dataset: Name
    budget: BudgetRecord
    domain: DomainRecord | None = None
    note: Note | None = None


class BudgetEntry(Record, frozen=True, tag="budget", tag_field="entry"):
    """A budget was changed."""

    dataset: Name
    budget: BudgetRecord
    note: Note | None = None


class TableEntry(Record, frozen=True, tag="table", tag_field="entry"):
    """A table of a dataset, the totals to keep, and the records that it was counted from."""

    dataset: Name
    domain: DomainRecord
    kept: list[KeptMargin | KeptRows]
    records: RecordsRecord | None = None


class ImportedRecord(Record, frozen=True):
    """The release was made before, without this ledger."""

    released: str
    sha256: Annotated[Hash, Meta(description="Of the released table, as in its certificate.")]
    verified: Annotated[bool, Meta(description="Whether it was verified, with its table, when it was imported.")]
    certificate: Annotated[
        Hash,
        Meta(
            description="SHA-256 of the certificate in canonical form (RFC 8785), without signature and postprocessing."
        ),
    ]


class SpendEntry(Record, frozen=True, tag="spend", tag_field="entry"):
    """A release is charged; written before its noise is drawn."""

    dataset: Name
    table: Annotated[Number, Meta(description="The entry of the table and its kept totals.")]
    mechanism: MechanismRecord
    cost: CostRecord
    imported: ImportedRecord | None = None
    seeded: Annotated[bool, Meta(description="Whether the noise comes from a seed: not for publication.")] = False


class OutcomeEntry(Record, frozen=True, tag="outcome", tag_field="entry"):
    """What became of a release; without this entry nobody knows."""

    spend: Number
    outcome: Literal["released", "failed"]
    sha256: Annotated[Hash | None, Meta(description="Of the released table, as in its certificate.")] = None


Entry: TypeAlias = LedgerEntry | DatasetEntry | BudgetEntry | TableEntry | SpendEntry | OutcomeEntry

_DECODER = msgspec.json.Decoder(Entry)


def encoded(entry: Entry) -> str:
    """An entry as JSON.

    Raises
    ------
    InputError
        If it could not be read again: a ledger with such an entry would be of no use any more.
    """
    try:
        text = msgspec.json.encode(entry).decode()
        if _DECODER.decode(text) == entry:
            return text
    except (ValueError, OverflowError, msgspec.MsgspecError):
        pass
    raise InputError("An entry of a ledger must have shorter numbers and names: this one could not be read again.")


def decoded(number: int, content: str) -> Entry:
    """The entry in a text.

    Raises
    ------
    LedgerError
        If this version does not understand it.
    """
    try:
        entry: Entry = _DECODER.decode(content)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        pass
    else:
        return entry
    raise LedgerError(f"Entry {number:,} of the ledger must be one that this version knows. Update Keepsum.")
