"""The release: noise on a table by a plan, with everything that must be known before and after.

``prepare`` works out what a release would keep, promise and give away, and refuses what must not be published; nothing
is spent by it. ``Prepared.draw`` draws the noise.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from keepsum.accuracy import Accuracy
from keepsum.arguments import check_flag, check_path
from keepsum.axes import quoted
from keepsum.bounds import Bounds, bounded_cells
from keepsum.certificate import (
    Certificate,
    KeptRecord,
    TableRecord,
    TotalRecord,
)
from keepsum.errors import DataError, InputError, KeepsumError, LargeLossWarning, PlanError
from keepsum.explaining import released_html
from keepsum.invariants import Invariants
from keepsum.mechanisms import Mechanism
from keepsum.planning import Plan, plan
from keepsum.recording import domain_record, invariants_file, mechanism_record, part_records
from keepsum.sampling.rng import Rng, checked_rng
from keepsum.saving import check_new, check_new_folder, write_folder, write_release
from keepsum.showing import shown_name, type_of
from keepsum.signing import read_private_key, sign
from keepsum.stating import LEVEL, accuracy_record, concerns, exposure_record, guarantee_record, loss_concern
from keepsum.table import Table
from keepsum.writing import KINDS, kind_of, own_kind, table_bytes, table_hash

SHOWN = 8
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

    def check(self, force: bool) -> bool:
        """Refuse what cannot or must not be written; True if an orphan certificate will be replaced."""
        if self.folder is not None:
            check_new_folder(self.folder, force)
            return False
        kind_of(self.table)
        belongs = [self.table.with_suffix(ending) for ending in KINDS if ending != self.table.suffix]
        alone = not any(map(os.path.lexists, (self.table, *belongs)))
        orphan = alone and (self.certificate.exists() or self.invariants.exists())
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
    plan: Plan
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
            Replace what stands there.

        Returns
        -------
        pathlib.Path
            The file of the table.
        """
        check_flag(force, "force=")
        place = Destination.at(path, own_kind(self.table))
        orphan = place.check(force)
        signed = sign(self.certificate, read_private_key(sign_with)) if sign_with is not None else self.certificate
        files = {place.invariants: self.invariants} if self.invariants is not None else {}
        files |= {place.certificate: signed.to_json(), place.table: table_bytes(self.table, kind_of(place.table))}
        if place.folder is not None:
            write_folder(place.folder, {file.name: data for file, data in files.items()})
        else:
            if orphan:
                place.certificate.unlink(missing_ok=True)
                place.invariants.unlink(missing_ok=True)
            write_release(place.table, files, force, place.invariants if self.invariants is None and force else None)
        return place.table

    def __repr__(self) -> str:
        return f"Release({repr(self.table)[14:-1]}; {self.certificate.guarantee.words})"

    def _repr_html_(self) -> str:
        return self.table._repr_html_() + self.certificate._repr_html_()


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

    plan: Plan
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
            domain=domain_record(released.domain, self.table.undeclared),
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
    'distance 2, so epsilon 1: one person in another cell'
    """
    if not isinstance(table, Table):
        raise InputError(f"The table must be a keepsum Table, got {type_of(table)}. See Table.from_frame.")
    if not isinstance(keep, (Invariants, Iterable)) or isinstance(keep, (bytes, Mapping)):
        raise InputError(f"Totals to keep must be Invariants or a list of margins, got {type_of(keep)}.")
    kept = keep if isinstance(keep, Invariants) else table.keep(*([keep] if isinstance(keep, str) else keep))
    return plan(kept, mechanism).release(table, accept_pinned=accept_pinned, rng=rng, threads=threads)


def prepare(
    plan: Plan,
    table: Table,
    accept_pinned: str | Iterable[Any] = (),
    seeded: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Work out what a release of this table would keep, promise and give away.

    Where noise is drawn by chains that have not been certified, they are here: ``progress`` is told the pairs done.

    Raises
    ------
    PlanError
        If pinned cells are not accepted, or a block has no sampler.
    """
    if not isinstance(table, Table):
        raise InputError(f"The table must be a keepsum Table, got {type_of(table)}. See Table.from_frame.")
    if isinstance(table, ReleasedTable):
        raise InputError("The table must be confidential, this one is released already. Release it only once.")
    if plan.invariants.domain is None:
        plan = plan.over(table.domain)
    if plan.invariants.domain != table.domain:
        raise InputError("The table must have the domain of the plan, it has another. Plan with table.keep.")
    if table.counts.size and int(table.counts.max()) >= ROOM:
        raise DataError("Counts must be below 2^62 to leave room for noise, one is not. Check the units.")
    if not isinstance(accept_pinned, Iterable):
        raise InputError(f"Accepted cells must be a list of cells, or 'all', got {type_of(accept_pinned)}.")
    _check_pinned(plan, accept_pinned)
    plan.check_samplers()
    if plan.guarantee.sampling == "estimated" and plan.certification is None:
        plan.certify(progress=progress)
    accuracy = plan.accuracy(LEVEL)
    bounds = bounded_cells(plan, table.counts, accuracy.margins)
    for words in loss_concern(plan):
        warnings.warn(words, LargeLossWarning, stacklevel=4)
    return Prepared(plan, table, accuracy, bounds, tuple(concerns(plan, table.undeclared, bounds, seeded)))


def _check_pinned(plan: Plan, accepted: str | Iterable[Any]) -> None:
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


def _cell_number(plan: Plan, cell: Any, named: Mapping[str, list[int]]) -> int:
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
