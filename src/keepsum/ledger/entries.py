"""What a ledger holds: budgets and entries, facts only, none of them a count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from keepsum._saying import the
from keepsum.accounting.total import Cost, Total
from keepsum.errors import BudgetError, InputError, LedgerError
from keepsum.privacy.calibration import SMALLEST_DELTA, ceiling, epsilon_of, rounded_up
from keepsum.privacy.distance import Distance, epsilon_at
from keepsum.privacy.numbers import Loss, Number, exact, exact_in_range, shown, shown_briefly, three_digits_up
from keepsum.releasing.facts import DomainRecord, Hash, MechanismRecord, Parameter, Record, RecordsRecord, RowsPart
from keepsum.sampling.core.balls import ball

# Budgets: how much all releases of a dataset may lose together, and in which currency.

UNIT = Distance("l1", 1)
NO_DELTA = (
    "Gaussian noise must be charged to a budget with a delta or in rho, and this one has an epsilon alone. Change the "
    "budget, or use Laplace noise."
)
PURE_FIRST = (
    "Noise must be Laplace in this dataset, as its first release was: a budget with a delta counts all releases as "
    "epsilon, or all as zCDP. Use Laplace noise, or a budget in rho, which counts both."
)


@dataclass(frozen=True, init=False)
class Budget:
    """What all releases of a dataset may lose together, per person: see :meth:`per_unit` for the other unit.

    It holds for any change of one attribute of one person, under the kept totals of all releases together.

    Parameters
    ----------
    epsilon
        Per person. Gaussian noise and sampling that is not exact need a delta too.
    delta
        The delta that may go with epsilon. If the first release has Gaussian noise, all are counted as zCDP, and
        epsilon is what follows at this delta; otherwise epsilons are added, and delta is for sampling that is not
        exact. With rho: how far all noise together may be from its target, in total variation.
    rho
        Instead of epsilon: zero-concentrated differential privacy. Laplace noise counts as epsilon^2 / 2.

    Attributes
    ----------
    per_person
        Whether it is per person; otherwise it is per unit of l1 distance.

    Examples
    --------
    >>> import keepsum as ks
    >>> ks.Budget(1)
    Budget(epsilon=1)
    >>> print(ks.Budget(epsilon=1, delta="1e-6"))
    epsilon 1, delta 1e-6 per person
    >>> ks.Budget.per_unit(1)
    Budget.per_unit(epsilon=1)
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    per_person: bool

    def __init__(self, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> None:
        self._fill(epsilon, delta, rho, per_person=True)

    @classmethod
    def per_unit(cls, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None) -> Budget:
        """A budget per unit of l1 distance between two tables, and rho at l1 distance 1.

        >>> print(Budget.per_unit(rho=0.5))
        rho 0.5 (zCDP) at l1 distance 1
        """
        budget = object.__new__(cls)
        budget._fill(epsilon, delta, rho, per_person=False)
        return budget

    def _fill(self, epsilon: Number | None, delta: Number | None, rho: Number | None, *, per_person: bool) -> None:
        if (epsilon is None) == (rho is None):
            raise InputError("A budget must have an epsilon or a rho, and not both.")
        set_field = object.__setattr__
        set_field(self, "epsilon", None if epsilon is None else exact_in_range(epsilon, "The budget's epsilon"))
        set_field(self, "delta", None if delta is None else exact(delta, "The budget's delta"))
        set_field(self, "rho", None if rho is None else exact_in_range(rho, "The budget's rho"))
        set_field(self, "per_person", per_person)
        if self.delta is not None and not SMALLEST_DELTA <= self.delta < 1:
            raise InputError(f"The budget's delta must be below 1 and at least 1e-300, got {shown(self.delta)}.")

    def __repr__(self) -> str:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        parts = [f"{name}={shown(number)}" for name, number in numbers.items() if number is not None]
        return f"Budget{'' if self.per_person else '.per_unit'}({', '.join(parts)})"

    def __str__(self) -> str:
        return f"{Loss(self.epsilon, self.delta, self.rho)} {self.unit}"

    @property
    def unit(self) -> str:
        """What it is per, in words."""
        if self.per_person:
            return "per person"
        return "at l1 distance 1" if self.rho is not None else "per unit of l1 distance"

    def spent(self, total: Total | None, distance: Distance, gaussian: bool = False) -> Loss:
        """What these releases have cost together, in the currency of the budget; it may be more than the budget.

        A limit must hold for releases that are chosen after seeing the ones before. Sums of epsilons and sums of rho
        do; the smallest epsilon of several rules does not. So with a delta everything is counted as zCDP, or everything
        as epsilon, and the first release decides which.

        Parameters
        ----------
        total, distance
            The releases, and at which distance they count.
        gaussian
            With a delta: whether they are counted as zCDP, as the first one had Gaussian noise.

        Raises
        ------
        BudgetError
            If it cannot be stated in this currency, whatever the amount.
        """
        zero = Fraction(0)
        if total is None:
            return Loss(rho=zero) if self.rho is not None else Loss(zero)
        square = distance.length if distance.norm == "l2" else distance.length**2
        if self.rho is not None:
            self._check_error(total.error)
            return Loss(rho=total.zcdp * square)
        if self.delta is None or not gaussian:
            if total.rho:
                raise BudgetError(NO_DELTA if self.delta is None else PURE_FIRST)
            epsilon = epsilon_at(total.epsilon, distance)
            if self.delta is None:
                self._check_error(total.error)
                return Loss(epsilon)
            return Loss(epsilon, self._sampling(total.error, epsilon) or None)
        left = self.delta - self._sampling(total.error, self.limit())
        if left < SMALLEST_DELTA:
            raise BudgetError(self._inexact())
        epsilon = epsilon_of(total.zcdp * square, left)
        return Loss(epsilon, min(Fraction(1), left + self._sampling(total.error, max(epsilon, self.limit()))))

    def allows(self, loss: Loss) -> bool:
        """Whether so much may be spent."""
        if self.rho is not None:
            return loss.rho is not None and loss.rho <= self.rho
        if loss.epsilon is None or self.epsilon is None or loss.epsilon > self.epsilon:
            return False
        if loss.delta is not None and loss.delta > (self.delta or 0):
            raise BudgetError(self._inexact())
        return True

    def limit(self) -> Fraction:
        """The epsilon or rho that may be spent."""
        limit = self.rho if self.rho is not None else self.epsilon
        if limit is None:
            raise AssertionError("a budget has an epsilon or a rho")
        return limit

    def amount(self, loss: Loss) -> Fraction:
        """The number of a loss that counts."""
        amount = loss.rho if self.rho is not None else loss.epsilon
        if amount is None:
            raise AssertionError("a loss in another currency")
        return amount

    def _check_error(self, error: Fraction) -> None:
        """Sampling that is not exact must be allowed for by a delta."""
        if error > (self.delta or 0):
            limit = "with a delta" if self.delta is None else f"with a delta of more than {shown_briefly(self.delta)}"
            needed = error if self.epsilon is None else self._sampling(error, self.epsilon)
            enough = next((k for k in range(300, 0, -1) if Fraction(1, 10**k) >= needed), None)
            give = "Change the budget" if enough is None else f"Give the budget a delta of 1e-{enough}"
            raise BudgetError(
                f"Noise whose sampling is not exact must be charged to a budget {limit}: all noise together is within "
                f"total variation {three_digits_up(float(error))} of its target. {give} "
                f"({the.call('ledger.set_budget')}), or use exact sampling."
            )

    def _inexact(self) -> str:
        return (
            f"Noise must be near enough to its target: all sampling together adds more than the budget's delta "
            f"{shown_briefly(self.delta or Fraction(0))}. Use exact sampling, or change the budget."
        )

    def _sampling(self, error: Fraction, epsilon: Fraction) -> Fraction:
        """What sampling adds to delta at this epsilon: (1 + e^epsilon) times its total variation, at most 1."""
        if not error:
            return Fraction(0)
        return Fraction(1) if epsilon > 1000 else rounded_up(lambda: ball(error) * (1 + ball(epsilon).exp()))


def as_budget(value: Budget | Number) -> Budget:
    """A budget, given as one or as its epsilon per person."""
    return value if isinstance(value, Budget) else Budget(value)


# A table and its kept totals (without their values) are an entry of their own, so that a table that is released a
# thousand times is described once.

LONG = 10**18  # the largest denominator that is kept
EntryNumber: TypeAlias = Annotated[int, Meta(ge=1)]
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
    sampling: Literal["exact", "rounded", "estimated"] = "exact"
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
        if cost.sampling == "no sampler" or cost.sampling == "claimed":
            raise AssertionError("a cost is that of noise of ours that can be drawn")
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


class DomainEntry(Record, frozen=True, tag="domain", tag_field="entry"):
    """What the tables of a dataset are tables of was declared, or declared anew, after it was entered."""

    dataset: Name
    domain: Annotated[DomainRecord | None, Meta(description="The full cross-classification.")] = None
    same_people: Annotated[
        bool, Meta(description="Instead: every table counts the same people, so that it is one of all axes together.")
    ] = False
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
    table: Annotated[EntryNumber, Meta(description="The entry of the table and its kept totals.")]
    mechanism: MechanismRecord
    cost: CostRecord
    imported: ImportedRecord | None = None
    seeded: Annotated[bool, Meta(description="Whether the noise comes from a seed: not for publication.")] = False


class OutcomeEntry(Record, frozen=True, tag="outcome", tag_field="entry"):
    """What became of a release; without this entry nobody knows."""

    spend: EntryNumber
    outcome: Literal["released", "failed"]
    sha256: Annotated[Hash | None, Meta(description="Of the released table, as in its certificate.")] = None


class WithdrawnEntry(Record, frozen=True, tag="withdrawn", tag_field="entry"):
    """A release was a mistake and is not to be used. It was seen, so it stays charged."""

    spend: EntryNumber
    note: Note | None = None


Entry: TypeAlias = (
    LedgerEntry | DatasetEntry | BudgetEntry | DomainEntry | TableEntry | SpendEntry | OutcomeEntry | WithdrawnEntry
)

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
