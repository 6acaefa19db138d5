"""The release: noise on a table by a plan, with everything that must be known before and after.

``prepare`` works out what a release would keep, promise and give away, and refuses what must not be published; nothing
is spent by it. ``Prepared.draw`` draws the noise.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keepsum._arguments import check_flag, check_path
from keepsum._text import shown_name, type_of
from keepsum.accuracy.disclosure import Bounds, bounded_cells
from keepsum.accuracy.margins import Accuracy
from keepsum.errors import DataError, InputError, KeepsumError, LargeLossWarning, PlanError
from keepsum.planning.plan import CompiledPlan, compile_plan
from keepsum.privacy.mechanism import Mechanism
from keepsum.privacy.numbers import Number, exact
from keepsum.privacy.numbers import three_digits_up
from keepsum.releasing.certificate import (
    Certificate,
    KeptRecord,
    TableRecord,
    TotalRecord,
)
from keepsum.releasing.codec import domain_record, invariants_file, mechanism_record, part_records
from keepsum.releasing.compare import exact_instead
from keepsum.releasing.explain import released_html
from keepsum.releasing.signing import read_private_key, sign
from keepsum.releasing.statements import (
    LEVEL,
    accuracy_record,
    concerns,
    exposure_record,
    guarantee_record,
    loss_concern,
)
from keepsum.sampling.core.rng import Rng, checked_rng
from keepsum.sources.atomic import check_new, check_new_folder, put_back, write_folder, write_release
from keepsum.sources.locking import BUSY, claimed
from keepsum.sources.writing import KINDS, kind_of, own_kind, table_bytes, table_hash
from keepsum.tables.axes import quoted
from keepsum.tables.invariants import Invariants
from keepsum.tables.table import Table

SHOWN = 8
SMALL_DELTA = Fraction(1, 10**6)  # what sampling may add to delta for one person unasked
UNSAVED = "This release is not saved, but still in memory: save it under another name."
ROOM = 2**62  # counts below this have room for any noise that a release can draw
SOFTWARE = ("keepsum", "numpy", "scipy", "numba", "python-flint", "cryptography")


class ReleasedTable(Table):
    """A table after its release: its counts are published, may be negative, and are shown."""

    def __repr__(self) -> str:
        return f"ReleasedTable({repr(self.domain)[7:-1]})"

    def _repr_html_(self) -> str:
        return released_html(self.columns())


@dataclass(frozen=True, eq=False)
class Destination:
    """Where a release is written: a folder, or a table with its certificate beside it."""

    folder: Path | None
    table: Path
    certificate: Path
    invariants: Path

    @classmethod
    def at(cls, output: str | PathLike[str], kind: str = "csv") -> Destination:
        """A folder if the name ends in a slash or is one, else the file of the table."""
        path = check_path(output, "Output")
        if not os.fspath(output):
            raise InputError("Output must be the name of a file or a folder, got an empty one.")
        if os.fspath(output).endswith(("/", os.sep)) or path.is_dir():
            return cls(path, path / f"table.{kind}", path / "certificate.json", path / "invariants.json")
        if path.suffix == "":
            raise InputError(
                f"Output must be a file such as 'released.csv' or a folder such as 'out/', got {str(path)!r}."
            )
        return cls(None, path, path.with_suffix(".certificate.json"), path.with_suffix(".invariants.json"))

    @property
    def key(self) -> Path:
        """What its lock is called after; tables of other kinds have the same certificate and so the same lock."""
        return self.certificate if self.folder is None else self.folder.resolve()

    def put_back(self) -> bool:
        """Put back a release that a killed process was replacing; True if there was one."""
        return bool(self.key.name) and put_back(self.key)

    @contextmanager
    def claimed(self, force: bool, busy: str = BUSY) -> Iterator[bool]:
        """Hold the lock, so that nobody else writes there; gives whether an orphan certificate will be replaced."""
        self.check(force)
        with claimed(self.key, busy, self.table if self.folder is None else self.folder):
            put_back(self.key, held=True)
            yield self.check(force)

    def check(self, force: bool) -> bool:
        """Refuse what cannot or must not be written; True if an orphan certificate will be replaced."""
        try:
            return self._check(force)
        except OSError as error:
            raise InputError(f"Output {str(self.key)!r} must be readable, but: {error.strerror or error}.") from None

    def _check(self, force: bool) -> bool:
        if self.folder is not None:
            check_new_folder(self.folder, force)
            return False
        kind_of(self.table)
        belongs = [self.table.with_suffix(ending) for ending in KINDS if ending != self.table.suffix]
        others = [path for path in belongs if os.path.lexists(path)]
        certified = self.certificate.exists() or self.invariants.exists()
        orphan = certified and not others and not os.path.lexists(self.table)
        if force and certified and others:  # which would stand beside the certificate of another
            raise InputError(
                f"Output {str(self.table)!r} must not take the certificate of {others[0].name!r}, which stands beside "
                f"it. Name another, or remove that file."
            )
        check_new(self.table, force)
        for path in (self.certificate, self.invariants):
            check_new(path, force or orphan)
        return orphan


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table and its certificate.

    Attributes
    ----------
    table
        The released table: integers, with every kept total exactly as it was.
    certificate
        What may be known of the release.
    plan
        The plan that it was made by.
    invariants
        The file of kept totals that are not margins, if there are any.
    """

    table: ReleasedTable
    certificate: Certificate
    plan: CompiledPlan
    invariants: bytes | None

    def accuracy(self, level: float = LEVEL) -> Accuracy:
        """The margin of error of every released count."""
        return self.plan.accuracy(level)

    def save(
        self, path: str | PathLike[str], *, sign_with: str | PathLike[str] | None = None, force: bool = False
    ) -> Path:
        """Write the table and its certificate, in whole or not at all.

        Parameters
        ----------
        path
            ``"released.csv"`` (or .parquet, .arrow) for a file with ``released.certificate.json`` beside it, ``"out/"``
            for a folder with ``table.csv`` and ``certificate.json``.
        sign_with
            The file of an Ed25519 private key.
        force
            Replace what stands there. Whatever happens meanwhile, the old release or the new one is there.

        Returns
        -------
        pathlib.Path
            The file of the table.

        Raises
        ------
        InputError
            If it cannot be written there, or another process is writing there. The release stays as it is, and can be
            saved elsewhere.

        Notes
        -----
        Ctrl-C waits until all is in its place: if it comes out of this call, the release is there.
        """
        check_flag(force, "force=")
        place = Destination.at(path, own_kind(self.table))
        key = None if sign_with is None else read_private_key(sign_with)
        with place.claimed(force, UNSAVED) as orphan:
            put(self, place, key, force, orphan)
        return place.table

    def __repr__(self) -> str:
        return f"Release({repr(self.table)[14:-1]}; {self.certificate.guarantee.words})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.certificate._repr_html_()


def put(
    release: Release,
    place: Destination,
    key: Ed25519PrivateKey | None = None,
    force: bool = False,
    orphan: bool = False,
) -> None:
    """Write a release where the caller holds the lock: in whole, or not at all and with an error."""
    signed = release.certificate if key is None else sign(release.certificate, key)
    files = {place.invariants: release.invariants} if release.invariants is not None else {}
    files |= {place.certificate: signed.to_json(), place.table: table_bytes(release.table, kind_of(place.table))}
    if place.folder is not None:
        write_folder(place.folder, {file.name: data for file, data in files.items()}, force)
        return
    stale = [place.certificate, place.invariants] if orphan else [place.invariants] if force else []
    write_release(place.key, files, force, stale)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A release that is ready to be drawn, and what must be known before it is.

    Attributes
    ----------
    plan, table
        What is to be released, and how.
    accuracy
        The margins of error.
    bounds
        The cells that the kept totals bound closely.
    warnings
        What the curator must be told and the certificate records.
    """

    plan: CompiledPlan
    table: Table
    accuracy: Accuracy
    bounds: Bounds
    warnings: tuple[str, ...]

    @cached_property
    def totals(self) -> list[int]:
        """The kept totals, which will be published."""
        totals = [int(total) for total in self.plan.invariants.totals(self.table)]
        if any(abs(total) >= 2**63 for total in totals):
            raise DataError("Kept totals must fit 64 bits, one does not. Use smaller weights.")
        return totals

    def draw(self, rng: Rng | None = None, threads: int = 1) -> Release:
        """Draw the noise: from here on a budget is spent."""
        source = checked_rng(rng)
        noise = self.plan.sample(rng=source, threads=threads)
        table = self.table
        released = ReleasedTable(table.domain, table.counts + noise, table.count, table.origin, table.rows)
        if not self.plan.invariants.holds(table, released):
            raise KeepsumError("A kept total was not kept, so nothing is released. Please report this as a bug.")
        file = invariants_file(self.plan.invariants)
        return Release(released, self._certificate(released, file, source.seeded), self.plan, file)

    def _certificate(self, released: ReleasedTable, file: bytes | None, seeded: bool) -> Certificate:
        invariants = self.plan.invariants
        totals = zip(invariants.names, self.totals, strict=True)
        return Certificate(
            schema="keepsum.certificate/1",
            released=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            table=TableRecord(cells=released.domain.size, count=released.count, sha256=table_hash(released)),
            domain=domain_record(self.table),
            kept=KeptRecord(
                words=invariants.describe(),
                parts=part_records(invariants, file),
                totals=[TotalRecord(name=name, value=value) for name, value in totals],
            ),
            mechanism=mechanism_record(self.plan.mechanism),
            guarantee=guarantee_record(self.plan),
            exposure=exposure_record(self.plan, self.bounds),
            accuracy=accuracy_record(self.accuracy),
            randomness="seeded, not for publication" if seeded else "operating system",
            postprocessing=[],
            ledger=None,
            warnings=list(self.warnings),
            software={"python": python_version()} | {name: version(name) for name in SOFTWARE},
            signature=None,
        )


def release(
    table: Table,
    keep: Invariants | Iterable[str | Iterable[str]],
    mechanism: Mechanism,
    *,
    accept_pinned: str | Iterable[Any] = (),
    accept_delta: Number | None = None,
    rng: Rng | None = None,
    threads: int = 1,
) -> Release:
    """Release a table with some totals kept exactly.

    Parameters
    ----------
    table
        The confidential table.
    keep
        The totals to keep: ``Invariants``, or a list of margins, each an axis or a list of axes, ``[]`` for the
        grand total.
    mechanism
        ``Laplace`` or ``Gaussian``.
    accept_pinned
        Cells that may be published as they are, by name, number or labels; or ``"all"``.
    accept_delta
        The largest delta that sampling may add at the distance of one person. Where noise is only estimated it is above
        1e-6, and must be accepted here or the noise be another.
    rng
        The source of randomness, by default the operating system's.
    threads
        How many threads to draw with.

    Examples
    --------
    >>> import keepsum as ks
    >>> table = ks.Table.from_array(
    ...     [[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "education": ["low", "high"]}
    ... )
    >>> out = ks.release(table, keep=["county", []], mechanism=ks.Laplace(epsilon=0.5))
    >>> out.table.counts.reshape(2, 2).sum(axis=1).tolist()
    [16, 30]
    >>> out.certificate.guarantee.person.reading
    'epsilon 2 at distance 4, for a change of any one attribute to any value'
    """
    if not isinstance(table, Table):
        raise InputError(f"The table must be a keepsum Table, got {type_of(table)}. See Table.from_frame.")
    if not isinstance(keep, (Invariants, Iterable)) or isinstance(keep, (bytes, Mapping)):
        raise InputError(f"Totals to keep must be Invariants or a list of margins, got {type_of(keep)}.")
    if isinstance(keep, Invariants):
        kept = keep.over(table.domain) if keep.domain is None else keep
    else:
        kept = table.keep(*([keep] if isinstance(keep, str) else keep))
    return compile_plan(kept, mechanism).release(
        table, accept_pinned=accept_pinned, accept_delta=accept_delta, rng=rng, threads=threads
    )


def prepare(
    plan: CompiledPlan,
    table: Table,
    accept_pinned: str | Iterable[Any] = (),
    seeded: bool = False,
    progress: Callable[[int, int], None] | None = None,
    accept_delta: Number | None = None,
) -> Prepared:
    """Work out what a release of this table would keep, promise and give away.

    Where noise is drawn by chains that have not been certified, they are here: ``progress`` is told the pairs done.

    Raises
    ------
    PlanError
        If pinned cells, or the delta of sampling, are not accepted, or a block has no sampler.
    """
    if not isinstance(table, Table):
        raise InputError(f"The table must be a keepsum Table, got {type_of(table)}. See Table.from_frame.")
    if isinstance(table, ReleasedTable):
        raise InputError("The table must be confidential, this one is released already. Release it only once.")
    if plan.invariants.domain is None:
        plan = plan.over(table.domain)
    if plan.invariants.domain != table.domain:
        raise InputError("The table must have the domain of the plan, it has another. CompiledPlan with table.keep.")
    # An error about counts is for the curator's eyes, and nothing is published with it.
    if table.counts.size and int(table.counts.max()) >= ROOM:
        raise DataError("Counts must be below 2^62 to leave room for noise, one is not. Check the units.")
    if not isinstance(accept_pinned, Iterable):
        raise InputError(f"Accepted cells must be a list of cells, or 'all', got {type_of(accept_pinned)}.")
    _check_pinned(plan, accept_pinned)
    plan.check_samplers()
    if plan.guarantee.sampling == "estimated" and plan.convergence is None:
        plan.certify(progress=progress)
    _check_delta(plan, accept_delta)
    accuracy = plan.accuracy(LEVEL)
    bounds = bounded_cells(plan, table.counts, accuracy.margins)
    for words in loss_concern(plan):
        warnings.warn(words, LargeLossWarning, stacklevel=4)
    return Prepared(plan, table, accuracy, bounds, tuple(concerns(plan, domain_record(table), bounds, seeded)))


def _check_delta(plan: CompiledPlan, accepted: Number | None) -> None:
    """What sampling adds to delta for one person is negligible, or accepted."""
    largest = SMALL_DELTA if accepted is None else exact(accepted, "The accepted delta")
    if largest >= 1:
        raise InputError("The accepted delta must be below 1: a delta of 1 is no guarantee at all.")
    delta = plan.guarantee.sampling_delta(plan.person)
    if delta <= largest:
        return
    amount = three_digits_up(float(delta))
    way = f"Accept it with accept_delta={amount}, or choose" if delta < 1 else "Choose"
    raise PlanError(
        f"Sampling adds delta {amount} for one person, {_how_known(plan)}. {way} noise that is drawn exactly. "
        f"{' '.join(exact_instead(plan))}".strip()
    )


def _how_known(plan: CompiledPlan) -> str:
    if plan.guarantee.sampling == "rounded":
        return "a proved limit"
    return "a confidence limit that pairs of chains showed, not proved"


def _check_pinned(plan: CompiledPlan, accepted: str | Iterable[Any]) -> None:
    """Every pinned cell must be accepted, and every accepted cell must be pinned."""
    if isinstance(accepted, str) and accepted == "all":
        return
    given = [accepted] if isinstance(accepted, (str, Mapping, int)) else list(accepted)
    if any(isinstance(cell, str) and cell == "all" for cell in given):
        return
    named: dict[str, list[int]] = {}
    for cell in plan.pinned.tolist():
        named.setdefault(plan.invariants.cell_name(cell), []).append(cell)
    pinned = set(plan.pinned.tolist())
    chosen = {_cell_number(plan, cell, named) for cell in given}
    if not chosen <= pinned:  # which is not said: a number may be a count that was given by mistake
        raise InputError("Accepted cells must be pinned ones, got one that is not. plan.pinned has them.")
    left = [plan.invariants.cell_name(cell) for cell in sorted(pinned - chosen)]
    if left:
        more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
        raise PlanError(
            f"The kept totals pin {len(left):,} cell{'s' * (len(left) != 1)}, which would be published without noise: "
            f"{quoted(left[:SHOWN])}{more}. Keep fewer totals, or accept each by name (or 'all')."
        )


def _cell_number(plan: CompiledPlan, cell: Any, named: Mapping[str, list[int]]) -> int:
    """The cell that a name, a number or labels mean."""
    if isinstance(cell, str):
        found = named.get(cell, [])
        if len(found) != 1:
            how = "means several cells; give its labels" if found else "is that of no pinned cell"
            raise InputError(f"Accepted cells must be pinned ones, but the name {shown_name(cell)} {how}.")
        return found[0]
    if isinstance(cell, Mapping) and plan.invariants.domain is not None:
        return plan.invariants.domain.index(cell)
    if isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) and 0 <= cell < plan.size:
        return int(cell)
    raise InputError(f"An accepted cell must be given by name, number or labels, got {type_of(cell)}.")
