"""``ks.plan``, ``ks.release`` and ``ks.read_release``: what most users call."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from keepsum.facade.objects import Plan, Release
from keepsum.facade.totals import Keep, kept_totals, records_of
from keepsum.planning.plan import compile_plan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.release import check_confidential
from keepsum.sampling.core.rng import Rng
from keepsum.tables.domain import Domain
from keepsum.tables.table import Table

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger


def plan(
    table: Table | Domain | None = None,
    *,
    keep: Keep,
    mechanism: Request | Mechanism,
    max_rows_per_unit: int | None = None,
) -> Plan:
    """Plan the release of a table with some totals kept exactly: no count is read, and no budget is spent.

    Parameters
    ----------
    table
        The table, of which only the cells are used, or its ``Domain``. Left out for totals that have their cells.
    keep
        The totals to keep, as in :func:`release`: a list of margins, each an axis or a list of axes, ``[]`` for the
        grand total; or ``Invariants``. Cells without names may have a ``Lattice`` or any matrix of integers (NumPy,
        scipy sparse, nested lists), with one row per total and one column per cell.
    mechanism
        ``Laplace`` or ``Gaussian``.
    max_rows_per_unit
        How many records one person has at most, see :func:`keepsum.tabulate`: distances of one person are multiplied by
        it. A table that was counted from records knows it.

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
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "education": ["low", "middle", "high"]})
    >>> plan = ks.plan(domain, keep=["county", "education"], mechanism=ks.Laplace(epsilon=1))
    >>> plan.size, plan.person_distance
    (6, 4)

    Totals of cells without names:

    >>> plan = ks.plan(keep=[[1, 1, 1, 0], [0, 0, 1, 1]], mechanism=ks.Laplace.per_unit(epsilon=1))
    >>> plan
    Plan(4 cells, 2 independent totals kept, Laplace.per_unit(epsilon=1, norm='l1'))
    >>> noise = plan.sample(1000)
    >>> noise.shape, set(noise[:, :3].sum(axis=1).tolist()), set(noise[:, 2:].sum(axis=1).tolist())
    ((1000, 4), {0}, {0})
    """
    return Plan(compile_plan(kept_totals(table, keep), mechanism, records=records_of(table, max_rows_per_unit)))


def release(
    table: Table,
    *,
    keep: Keep,
    mechanism: Request | Mechanism,
    accept_pinned: str | Iterable[Any] = (),
    accept_delta: Number | None = None,
    rng: Rng | None = None,
    threads: int | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
) -> Release:
    """Release a table with some totals kept exactly.

    Parameters
    ----------
    table
        The confidential table.
    keep
        The totals to keep: a list of margins, each an axis or a list of axes, ``[]`` for the grand total; or
        ``Invariants``, or others as in :func:`plan`.
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
        How many threads to use; by default one for each core. A seed gives the same noise for any number of them.
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
    >>> out = ks.release(table, keep=["county", []], mechanism=ks.Laplace(epsilon=2))
    >>> out.table.counts.reshape(2, 2).sum(axis=1).tolist()
    [16, 30]
    >>> out.certificate.guarantee.person.epsilon, out.certificate.guarantee.person.distance.length
    ('2', 4)
    """
    check_confidential(table)
    return plan(table, keep=keep, mechanism=mechanism).release(
        table,
        accept_pinned=accept_pinned,
        accept_delta=accept_delta,
        rng=rng,
        threads=threads,
        ledger=ledger,
        dataset=dataset,
    )
