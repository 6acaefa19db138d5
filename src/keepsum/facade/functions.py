"""``ks.plan``, ``ks.release`` and ``ks.read_release``: what most users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import check_whole
from keepsum._text import type_of
from keepsum.errors import InputError
from keepsum.facade.objects import Plan, Release
from keepsum.facade.totals import as_invariants
from keepsum.lattice import Lattice
from keepsum.planning.plan import compile_plan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.release import check_confidential
from keepsum.sampling.core.rng import Rng
from keepsum.tables.invariants import Invariants
from keepsum.tables.records import LARGEST_BOUND, Records
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger

Totals: TypeAlias = Invariants | Lattice | npt.ArrayLike | sparse.sparray | sparse.spmatrix


def plan(invariants: Totals, mechanism: Request | Mechanism, *, max_rows_per_unit: int = 1) -> Plan:
    """Compile kept totals and a mechanism into a plan.

    Parameters
    ----------
    invariants
        The totals to keep: ``table.keep(...)`` or other ``Invariants``; or, for cells without names, a ``Lattice`` or
        any matrix of integers (NumPy, scipy sparse, nested lists) with one row per total and one column per cell.
    mechanism
        ``Laplace`` or ``Gaussian``; a per-person loss is converted to one per unit of distance here.
    max_rows_per_unit
        How many records one person has at most in the table; see :func:`keepsum.tabulate`. Per-person distances are
        multiplied by it.

    Raises
    ------
    PlanError
        If the totals determine every cell: there is then nothing to protect and no guarantee to state.

    Notes
    -----
    Linear in the cells times the totals that each is in, plus exact algebra on the blocks whose totals overlap.

    Examples
    --------
    >>> import keepsum as ks
    >>> plan = ks.plan([[1, 1, 1, 0], [0, 0, 1, 1]], ks.Laplace(epsilon=1))
    >>> plan
    Plan(4 cells, 2 independent totals kept, Laplace(epsilon=1, norm='l1'))
    >>> noise = plan.sample(1000)
    >>> noise.shape, set(noise[:, :3].sum(axis=1).tolist()), set(noise[:, 2:].sum(axis=1).tolist())
    ((1000, 4), {0}, {0})
    """
    most = check_whole(max_rows_per_unit, "The number of records per unit", 1, LARGEST_BOUND)
    return _plan(as_invariants(invariants), mechanism, None if most == 1 else Records(None, most))


def _plan(invariants: Invariants, mechanism: Request | Mechanism, records: Records | None) -> Plan:
    return Plan.of(compile_plan(invariants, mechanism, records=records))


def release(
    table: Table,
    keep: Invariants | Iterable[str | Iterable[str]],
    mechanism: Request | Mechanism,
    *,
    accept_pinned: str | Iterable[Any] = (),
    accept_delta: Number | None = None,
    rng: Rng | None = None,
    threads: int = 1,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
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
        Pinned cells to publish without noise, by name, number or labels; or ``"all"``.
    accept_delta
        The largest delta that sampling may add for one person. By default at most 1e-6 is accepted, which noise whose
        sampling is estimated usually exceeds.
    rng
        The source of randomness, by default the operating system's.
    threads
        How many threads to use.
    ledger
        The ``Ledger`` to charge, or its file; by default the one that the environment variable ``KEEPSUM_LEDGER``
        names, if it does. The release is charged before its noise is drawn.
    dataset
        Which dataset of the ledger is released; may be omitted if it has only one.

    Examples
    --------
    >>> import keepsum as ks
    >>> table = ks.Table.from_array(
    ...     [[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "education": ["low", "high"]}
    ... )
    >>> out = ks.release(table, keep=["county", []], mechanism=ks.Laplace(epsilon=0.5))
    >>> out.table.counts.reshape(2, 2).sum(axis=1).tolist()
    [16, 30]
    >>> out.certificate.guarantee.person.epsilon, out.certificate.guarantee.person.distance.length
    ('2', 4)
    """
    check_confidential(table)
    if not isinstance(keep, (Invariants, Iterable)) or isinstance(keep, (bytes, Mapping)):
        raise InputError(f"Totals to keep must be Invariants or a list of margins, got {type_of(keep)}.")
    if isinstance(keep, Invariants):
        kept = keep.over(table.domain) if keep.domain is None else keep
    else:
        kept = table.keep(*([keep] if isinstance(keep, str) else keep))
    return _plan(kept, mechanism, table.records).release(
        table,
        accept_pinned=accept_pinned,
        accept_delta=accept_delta,
        rng=rng,
        threads=threads,
        ledger=ledger,
        dataset=dataset,
    )
