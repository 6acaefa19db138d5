"""``ks.Ledger``: the file, the datasets in it, and what is charged to them."""

from __future__ import annotations

import contextlib
import os
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from keepsum._arguments import check_flag, check_path, check_text, check_whole
from keepsum._holding import record_in
from keepsum._saying import arg, the
from keepsum._text import type_of
from keepsum.accounting.events import composed_event, event_of_several
from keepsum.errors import BudgetError, InputError, LedgerError, LedgerUnreachableError, LedgerWarning, UnreachableError
from keepsum.ledger.assessment import Assessment, Charge, Standing, assess, assessed, charge_of, standing
from keepsum.ledger.entries import (
    Budget,
    BudgetEntry,
    BudgetRecord,
    DatasetEntry,
    DomainEntry,
    ImportedRecord,
    LedgerEntry,
    OutcomeEntry,
    SpendEntry,
    WithdrawnEntry,
    as_budget,
    encoded,
)
from keepsum.ledger.importing import (
    LedgerCheck,
    charge_for,
    charged_as,
    check_new,
    checked,
    disclosed,
    past_of,
    published,
)
from keepsum.ledger.person import KeptTable, each_for_one_person, newly_fixed_in
from keepsum.ledger.state import Dataset, Spend, State
from keepsum.ledger.store import Link, Store, Transaction
from keepsum.planning.plan import AnyPlan, CompiledPlan
from keepsum.privacy.distance import Distance
from keepsum.privacy.numbers import Number
from keepsum.releasing.certificate import AnyCertificate, CertificateRecord
from keepsum.releasing.codec import cells_record, check_axes
from keepsum.releasing.facts import DomainRecord, LedgerRecord
from keepsum.sampling.core.rng import rng
from keepsum.tables.domain import Domain

if TYPE_CHECKING:
    from dp_accounting import DpEvent

DATASET = "data"  # the name of a dataset that was given none
EXISTS = (
    f"Ledger {{}} must be new, but there is such a file. Open it with {the.call('ks.Ledger.open(path)')}, and declare "
    f"another dataset with {the.call('ledger.add_dataset')}."
)


@dataclass
class Receipt:
    """A release that is charged: its noise may be drawn."""

    record: LedgerRecord
    assessment: Assessment
    sha256: str | None = None  # of the released table, once there is one

    def released(self, sha256: str) -> None:
        """Say that the release exists."""
        self.sha256 = sha256


class Ledger:
    """All releases of some datasets, each charged to the budget of its dataset before its noise is drawn.

    :meth:`create` makes the file with its first dataset, :meth:`open` opens one that is there.

    Examples
    --------
    >>> import tempfile, keepsum as ks
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = ks.Ledger.create(f"{folder.name}/ledger.db", budget=1)
    >>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> plan = ks.plan(table, keep=["county"], mechanism=ks.Laplace(epsilon=0.65))
    >>> release = plan.release(table, ledger=ledger)
    >>> print(ledger.standing())
    epsilon 0.65 of 1 per person spent by 1 release, 0.35 left.
    >>> plan.release(table, ledger=ledger)
    Traceback (most recent call last):
    ...
    keepsum.errors.BudgetError: The budget of 'data' must allow for the release: 0.35 of 1 left; this release needs 0.65
    per person. Epsilon 0.35 per person would fit.
    >>> ledger.check().passed
    True
    >>> folder.cleanup()
    """

    def __init__(self, store: Store) -> None:
        if not isinstance(store, Store):
            raise InputError(
                f"A ledger must be made with {the.call('ks.Ledger.create(path, budget=...)')} or "
                f"{the.call('ks.Ledger.open(path)')}."
            )
        self._store = store
        self._guard = threading.RLock()  # of what this object knows; the file has its own lock
        self._state = State()
        self._state.add(store.read())

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """The ledger in a file that is there.

        Raises
        ------
        LedgerError
            If there is none, or it cannot be used.
        """
        return cls(Store(check_path(path, "The file of a ledger")))

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        budget: Budget | Number,
        *,
        dataset: str | None = None,
        domain: Domain | None = None,
        note: str | None = None,
    ) -> Self:
        """A new ledger with its first dataset; :meth:`add_dataset` declares more.

        Parameters
        ----------
        path
            The file, which must not exist yet.
        budget
            The budget of the dataset: a ``Budget``, or an epsilon per person.
        dataset
            The name of the dataset; ``"data"`` if omitted.
        domain
            The dataset's full cross-classification: what kept totals of different tables fix together is then checked.
        note
            Who decided the budget, and why.

        Raises
        ------
        LedgerError
            If there is such a file already, or it cannot be written.
        """
        store = Store(check_path(path, "The file of a ledger"))
        _create(store, _dataset_entry(DATASET if dataset is None else dataset, budget, domain, note))
        return cls(store)

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets."""
        with self._guard:
            return tuple(self._known().datasets)

    @property
    def head(self) -> tuple[int, str]:
        """The number and the hash of the last entry: who keeps them can tell later whether any entry is missing."""
        last = self._known().last
        return (0, "") if last is None else (last.number, last.hash)

    def standing(self, dataset: str | None = None) -> Standing:
        """How a dataset stands: its budget, what is spent, and what is left."""
        with self._guard:
            return standing(self._known().dataset(dataset))

    def spends(self, dataset: str | None = None) -> tuple[Spend, ...]:
        """Every release that was charged to a dataset, with what became of it."""
        with self._guard:
            return tuple(self._known().dataset(dataset).spends.values())

    def dataset(self, name: str | None = None) -> Dataset:
        """All that the ledger knows of a dataset."""
        return self._known().dataset(name)

    # -- what is declared ---------------------------------------------------------------------------

    def add_dataset(
        self, name: str, budget: Budget | Number, domain: Domain | None = None, note: str | None = None
    ) -> None:
        """Declare another dataset with its budget; ``note`` says who decided it, and why."""
        entry = _dataset_entry(name, budget, domain, note)
        with self._writing() as (transaction, state):
            if entry.dataset in state.datasets:
                raise InputError(
                    f"Dataset {entry.dataset!r} must be new, and is in the ledger already. Use "
                    f"{the.call('ledger.set_budget')} to change its budget, or {the.call('ledger.set_domain')} for its "
                    "cells: under another name, losses of the same people would not be added up."
                )
            transaction.append(encoded(entry))

    def set_budget(self, name: str, budget: Budget | Number, note: str | None = None) -> None:
        """Change the budget of a dataset; the old one stays in the ledger. ``note`` says who decided it, and why.

        A number alone is an epsilon per person, and refused where the budget so far is per unit of distance.
        """
        with self._writing() as (transaction, state):
            dataset = state.dataset(name)
            if not isinstance(budget, Budget) and not dataset.budget.per_person:
                raise InputError(
                    f"The budget of {dataset.name!r} must say what it is per, as the one so far is "
                    f"{dataset.budget.unit}. Pass {the.call('ks.Budget.per_unit(...)')}, or "
                    f"{the.call('ks.Budget(...)')} for a budget per person."
                )
            record = BudgetRecord.of(as_budget(budget))
            transaction.append(encoded(BudgetEntry(dataset=dataset.name, budget=record, note=_checked_note(note))))

    def set_domain(
        self, name: str | None, domain: Domain | None = None, *, same_people: bool = False, note: str | None = None
    ) -> None:
        """Declare what the tables of a dataset are tables of, later or anew.

        Parameters
        ----------
        name
            The dataset.
        domain
            Its full cross-classification: every table so far must be a table of it.
        same_people
            Instead: every table counts the same people, each of whom has one category of each axis; axes of one name
            have the same categories in every table. The cells are then all combinations of all axes.
        note
            Who says so, and why.

        Raises
        ------
        InputError
            If a table so far does not fit, or less would count as spent.
        """
        if (domain is None) != check_flag(same_people, f"{arg.same_people}"):
            raise InputError(f"Cells must be given by {arg.domain}, or by {arg.same_people(True)}, and not both.")
        cells = None if domain is None else _cells(domain)
        with self._writing() as (transaction, state):
            dataset = state.dataset(name)
            entry = DomainEntry(dataset=dataset.name, domain=cells, same_people=same_people, note=_checked_note(note))
            after = replace(dataset, distances={}, focused={}, checked=[])
            after.declare(entry)
            _check_cells(dataset, after)
            transaction.append(encoded(entry))
        for sentence in newly_fixed_in(self.dataset(name)):
            warnings.warn(f"The cells are declared, but: {sentence}", LedgerWarning, stacklevel=2)

    def withdraw(self, release: AnyCertificate | int, note: str | None = None) -> Spend:
        """Mark a release as a mistake that is not to be used, by its certificate or the number of its entry.

        It stays charged, because somebody may have seen it. ``keepsum verify --ledger`` says that it is withdrawn.
        """
        with self._writing() as (transaction, state):
            if isinstance(release, int) and not isinstance(release, bool):
                if release not in state.spends:
                    raise InputError(f"The entry must be the charge of a release, and {_shown(release)} is not.")
                spend = state.spends[release]
            else:
                certificate = record_in(release, CertificateRecord)
                if not isinstance(certificate, CertificateRecord):
                    raise InputError(
                        "A release must be given by its certificate or the number of its entry, got "
                        f"{type_of(release)}."
                    )
                spend = charged_as(certificate, state)
            if spend.withdrawn is not None:
                raise InputError(
                    f"The release of entry {spend.number:,} is withdrawn already, in {spend.withdrawn.number:,}."
                )
            transaction.append(encoded(WithdrawnEntry(spend=spend.number, note=_checked_note(note))))
        return spend

    # -- what is charged ----------------------------------------------------------------------------

    def assess(self, plans: AnyPlan | Sequence[AnyPlan], dataset: str | None = None) -> list[Assessment]:
        """What releases by these plans would cost, one after the other; nothing is charged.

        Raises
        ------
        BudgetError
            If one costs more than is then left.
        PlanError
            If its kept totals, with those of earlier releases, fix too much.
        """
        given = plans if isinstance(plans, Sequence) else [plans]
        several = [record_in(plan, CompiledPlan) for plan in given]
        if isinstance(plans, (str, bytes)) or not all(isinstance(plan, CompiledPlan) for plan in several):
            raise InputError(f"Releases must be assessed by their plans, got {type_of(plans)}.")
        with self._guard:
            return assessed(self._known().dataset(dataset), several)

    @contextlib.contextmanager
    def charged(self, plan: AnyPlan, dataset: str | None = None, seeded: bool = False) -> Iterator[Receipt]:
        """Charge a release, and only then let its noise be drawn.

        Within this context the noise is drawn and the release is made; ``receipt.released`` says that it exists. If it
        ends without that, the release has failed: it stays charged, and is marked so.
        """
        self.assess(plan, dataset)  # what takes long is worked out before the file is locked, and remembered
        with self._writing() as (transaction, state):
            known = state.dataset(dataset)
            charge = replace(charge_of(record_in(plan, CompiledPlan), known.name), seeded=seeded)
            assessment = assess(known, charge)
            link = _append_spend(transaction, known, charge, None)
        receipt = Receipt(LedgerRecord(dataset=known.name, entry=link.number, head=link.hash), assessment)
        try:
            yield receipt
        finally:
            self._conclude(receipt)

    def import_release(
        self, release: str | PathLike[str] | AnyCertificate, dataset: str | None = None, invariants: bytes | None = None
    ) -> Standing:
        """Take in a release that was made before, or without this ledger.

        It is charged even if the budget does not allow for it, because it has happened. If its kept totals, with those
        of other releases, determine cells, there is a warning.

        Parameters
        ----------
        release
            The released table or its folder, which must verify; or a certificate alone, which is taken at its word, and
            ``show`` says so.
        dataset
            The dataset that was released.
        invariants
            With a certificate, the bytes of its file of invariants, where it has one.
        """
        certificate, file, verified = published(record_in(release, CertificateRecord), invariants)
        with self._writing() as (transaction, state):
            known = state.dataset(dataset)
            check_new(certificate, state)
            charge = charge_for(certificate, file, known)
            disclosure = disclosed(known, charge)
            _append_spend(transaction, known, charge, past_of(certificate, verified))
        if disclosure is not None:
            warnings.warn(f"The release is imported, but: {disclosure}", LedgerWarning, stacklevel=2)
        return self.standing(known.name)

    # -- the ledger as a whole ----------------------------------------------------------------------

    def check(self, against: Iterable[AnyCertificate] = (), head: str | None = None) -> LedgerCheck:
        """Check every entry, and that the ledger has the entries which published certificates name.

        The chain of hashes shows whether an entry was changed, removed or inserted. That the last entries were cut off,
        or that an older copy was restored, only certificates can show, or a hash that was noted down.

        Parameters
        ----------
        against
            Certificates of releases: ``release.certificate``, or ``ks.Certificate.from_json(bytes)``.
        head
            The hash of an entry that was the last one once: ``ledger.head``.
        """
        if not isinstance(against, Iterable):
            raise InputError(f"A ledger must be checked against a list of certificates, got {type_of(against)}.")
        certificates = [record_in(certificate, CertificateRecord) for certificate in against]
        return checked(self._store, certificates, self._state.last, head)

    def dp_event(self, dataset: str | None = None, distance: int | None = None) -> DpEvent:
        """All releases of a dataset as one event of ``dp_accounting``, between datasets that differ by one person.

        Needs the extra ``accounting``. It holds between datasets that agree on the kept totals of all of them.

        Parameters
        ----------
        dataset
            The name of the dataset.
        distance
            An l1 distance instead of that of one person under all kept totals together. 1 gives the loss per unit.
            Where tables count different records of a person, it is the largest in any of them.

        Raises
        ------
        InputError
            If no distance is given and that of one person is not known.
        """
        known = self._known().dataset(dataset)
        costs = [spend.entry.cost.cost() for spend in known.spends.values()]
        if not costs:
            raise InputError(f"Dataset {known.name!r} must have a release to be an event, and has none.")
        if distance is not None:
            return composed_event(costs, Distance("l1", check_whole(distance, "The distance", 1)), same_table=False)
        each = None
        with contextlib.suppress(BudgetError):
            each = each_for_one_person(known)
        if each is None:
            raise InputError(
                f"The distance must be given for dataset {known.name!r}, as that of one person is not known for all "
                f"its releases together. {arg.distance:Pass}, which is 1 for the loss per unit."
            )
        return event_of_several(each)

    def export(self) -> list[dict[str, Any]]:
        """Every entry with its hashes; ``content`` is the text that is hashed."""
        return [
            {"number": link.number, "time": link.time, "content": link.content, "previous": link.previous}
            | {"hash": link.hash}
            for link in self._store.read()
        ]

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}: {', '.join(map(repr, list(self._state.datasets))) or 'no dataset'})"

    # -- internals ----------------------------------------------------------------------------------

    def _known(self) -> State:
        """The state, with what others have added meanwhile."""
        with self._guard:
            self._state.add(self._store.read(self._state.last))
            return self._state

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[Transaction, State]]:
        """The file's lock, the state at that moment, and afterwards the state with what was added."""
        with self._guard:
            with self._store.writing(self._state.last) as transaction:
                self._state.add(transaction.new)
                yield transaction, self._state
            self._state.add(transaction.added)

    def _conclude(self, receipt: Receipt) -> None:
        """Say what became of a release; it is charged in any case."""
        released = receipt.sha256 is not None
        entry = OutcomeEntry(
            spend=receipt.record.entry, outcome="released" if released else "failed", sha256=receipt.sha256
        )
        problem = None
        try:
            with self._writing() as (transaction, _):
                transaction.append(encoded(entry))
        except LedgerError as error:
            problem = f"{error:marked}"
        if problem is not None and released:
            warnings.warn(
                f"The release is made and charged as entry {entry.spend:,}, but the ledger could not be told that it "
                f"exists: {problem}",
                LedgerWarning,
                stacklevel=6,
            )


def _create(store: Store, entry: DatasetEntry) -> None:
    from importlib.metadata import version  # slow to import, and needed once

    number = f"{rng().below(2**128):032x}"
    first = LedgerEntry(schema="keepsum.ledger/1", software=f"keepsum {version('keepsum')}", id=number)
    problem, kind = EXISTS.format(store.name) if _exists(store.path) else "", LedgerError
    try:
        if not problem:
            store.create([encoded(first), encoded(entry)])
    except InputError as error:
        problem = EXISTS.format(store.name) if _exists(store.path) else str(error)
        kind = LedgerUnreachableError if isinstance(error, UnreachableError) else kind
    except OSError as error:
        problem = f"Ledger {store.name} must be in a folder that can be used, but: {error.strerror}."
        kind = LedgerUnreachableError
    if problem:
        raise kind(problem)


def _exists(path: Path) -> bool:
    return os.path.lexists(path) and not path.is_dir()


def _append_spend(transaction: Transaction, dataset: Dataset, charge: Charge, imported: ImportedRecord | None) -> Link:
    number = dataset.number_of(charge.table)
    if number is None:
        number = transaction.append(encoded(charge.table)).number
    entry = SpendEntry(
        dataset=dataset.name,
        table=number,
        mechanism=charge.mechanism,
        cost=charge.cost,
        imported=imported,
        seeded=charge.seeded,
    )
    return transaction.append(encoded(entry))


def _checked_name(name: str) -> str:
    name = unicodedata.normalize("NFC", check_text(name, "The name of a dataset"))  # which look alike, and are alike
    if len(name) > 200 or not name.isprintable() or name != name.strip():
        raise InputError("The name of a dataset must be at most 200 printable characters, without spaces around it.")
    return name


def _checked_note(note: str | None) -> str | None:
    if note is None:
        return None
    check_text(note, "A note")
    if len(note) > 1000 or not note.isprintable():
        raise InputError("A note must be one line of at most 1,000 printable characters.")
    return note


def _dataset_entry(name: str, budget: Budget | Number, domain: Domain | None, note: str | None) -> DatasetEntry:
    checked_name, record = _checked_name(name), BudgetRecord.of(as_budget(budget))
    cells = None if domain is None else _cells(domain)
    return DatasetEntry(dataset=checked_name, budget=record, domain=cells, note=_checked_note(note))


def _check_cells(before: Dataset, after: Dataset) -> None:
    """Refuse cells that not every table is a table of, or under which less counts as spent."""
    together = after.cells
    if after.tables and together.domain is None:
        raise InputError(f"Tables of the dataset must be ones whose cells can be put together: {together.problem}.")
    for number, table in after.tables.items():
        kept = KeptTable.of(table, number, together.domain)
        if len(np.unique(kept.place[kept.place >= 0])) < kept.cells.size:
            raise InputError(f"Every cell of the table of {kept.shown} must be one of the dataset, and some are not.")
    old, new = standing(before).spent, standing(after).spent
    if old is not None and new is not None and before.budget.amount(new) < before.budget.amount(old):
        raise InputError(
            "What counts as spent must not become less, and with these cells it would. Declare all categories that a "
            "person may have."
        )


def _shown(number: int) -> str:
    return f"{number:,}" if 0 <= number < 10**12 else "another number"


def _cells(domain: Domain) -> DomainRecord:
    if not isinstance(domain, Domain):
        raise InputError(f"The cells of a dataset must be given by a Domain, got {type_of(domain)}.")
    check_axes(domain)
    return cells_record(domain)
