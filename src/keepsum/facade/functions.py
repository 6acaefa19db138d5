"""``ks.plan``, ``ks.release``, ``ks.read_release`` and ``ks.tabulate``: what most users call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import check_flag, check_text, check_whole
from keepsum._saying import arg, marked, the
from keepsum._text import shown_name, type_of
from keepsum.errors import FailedCheckError, InputError
from keepsum.facade.objects import Plan, Release
from keepsum.lattice import Lattice
from keepsum.planning.plan import compile_plan
from keepsum.privacy.mechanism import Mechanism, Request
from keepsum.privacy.numbers import Number
from keepsum.releasing.codec import plan_of
from keepsum.releasing.release import check_confidential
from keepsum.sampling.core.rng import Rng
from keepsum.sources.records.counting import count_records
from keepsum.sources.records.declaring import declare_cells
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import LARGEST_BOUND, Records, changes_of
from keepsum.tables.released import ReleasedTable
from keepsum.tables.table import Table, quoted_table

if TYPE_CHECKING:
    from keepsum.ledger.ledger import Ledger


# Which cells a plan is for, and what it keeps, in every form that users have: declared totals, lattices, matrices.

Matrix: TypeAlias = Lattice | npt.ArrayLike | sparse.sparray | sparse.spmatrix
Keep: TypeAlias = Invariants | Iterable[str | Iterable[str]] | Matrix
MARGINS = "Totals to keep must be Invariants or a list of margins"
EXPECTED = "Totals to keep must be Invariants, a Lattice or a matrix of whole numbers"


def kept_totals(table: Any, keep: Any) -> Invariants:
    """The totals to keep in a table or its domain; without either, those of cells that only the totals know.

    >>> kept_totals(Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]}), ["county", []])
    Invariants(2 totals of county, the grand total; 4 cells)
    >>> kept_totals(None, [[1, 1, 0], [0, 1, 1]])
    Invariants(2 weighted totals; 3 cells)
    """
    if table is None:
        return _alone(keep)
    if not isinstance(table, (Table, Domain)):
        raise InputError(f"The table must be a keepsum Table or its Domain, got {_instead_of_table(table)}")
    domain = table.domain if isinstance(table, Table) else table
    if isinstance(keep, Invariants):
        return keep.over(domain)
    if isinstance(keep, (Lattice, np.ndarray)) or sparse.issparse(keep):
        return _alone(keep).over(domain)
    if not isinstance(keep, Iterable) or isinstance(keep, (bytes, Mapping)):
        raise InputError(f"{MARGINS}, got {type_of(keep)}.")
    return Invariants.margins(domain, [[axes] if isinstance(axes, str) else axes for axes in _listed(keep)])


def records_of(table: Any, max_rows_per_unit: Any) -> Records | None:
    """The records behind a table; for other cells, as many of one person as are given."""
    if max_rows_per_unit is None:
        return table.records if isinstance(table, Table) else None
    most = check_whole(max_rows_per_unit, "The number of records per unit", 1, LARGEST_BOUND)
    if not isinstance(table, Table):
        return None if most == 1 else Records(None, most)
    if table.records is None and most != 1:
        raise InputError(
            f"{arg.max_rows_per_unit} must be left out for a table of counts, in which one person is one count. Count "
            f"records with {the.call('ks.tabulate(..., unit=, max_rows_per_unit=)')}, or plan for the table's domain."
        )
    if changes_of(table.records) != most:
        raise InputError(
            f"{arg.max_rows_per_unit} must be that of the table, which was counted with another bound. Leave it out."
        )
    return table.records


def _alone(keep: Any) -> Invariants:
    """Totals that have their cells: as declared, of a lattice, or the rows of a matrix, whose cells have no names."""
    if isinstance(keep, Invariants):
        return keep
    if isinstance(keep, Lattice):
        return Invariants.matrix(keep.matrix)
    if isinstance(keep, np.ndarray) or sparse.issparse(keep) or _is_nested(keep):
        return Invariants.matrix(keep)
    raise InputError(f"{EXPECTED}, got {_instead_of_totals(keep)}")


def _listed(keep: Any) -> list[Any]:
    return [keep] if isinstance(keep, str) else list(keep)


def _is_nested(totals: Any) -> bool:
    """Whether it is a list of lists, and none of them has text, which would be names of axes."""
    if not isinstance(totals, (list, tuple)) or not totals:
        return False
    rows = [row for row in totals if isinstance(row, (list, tuple, np.ndarray))]
    texts = any(isinstance(entry, str) for row in rows if not isinstance(row, np.ndarray) for entry in row)
    return len(rows) == len(totals) and any(map(len, rows)) and not texts


def _instead_of_table(table: Any) -> str:
    """What was given for a table instead, and the call that was probably meant."""
    if isinstance(table, ReleasedTable):
        return "a released table, which is not confidential any more. Plan with the original table."
    if isinstance(table, (Invariants, Lattice, np.ndarray)) or sparse.issparse(table) or _is_nested(table):
        return f"{type_of(table)}. Totals that have their cells are given alone, without a table."
    if isinstance(table, (str, PathLike)):
        return f"{shown_name(str(table))}. Read the table first: {the.call('ks.read_table')}."
    if hasattr(type(table), "columns"):  # of the type, because a lazy frame would have to find out
        return f"a data frame. Use {the.call('ks.Table.from_frame(frame, ...)')}."
    return f"{type_of(table)}."


def _instead_of_totals(totals: Any) -> str:
    """What was given for totals instead, and the call that was probably meant."""
    if isinstance(totals, Table):
        axis = shown_name(totals.domain.axes[0])
        margins = f"[{axis}]" if axis.startswith(chr(39)) else "[...]"
        return f"a Table. Say which totals of it: {the.call(f'ks.plan(table, keep={margins}, mechanism=...)')}."
    if isinstance(totals, ReleasedTable):
        return "a released table, which is not confidential any more. Plan with the original table."
    if isinstance(totals, Domain):
        return f"a Domain. Say which margins of it: {the.call('ks.plan(domain, keep=[...], mechanism=...)')}."
    if isinstance(totals, (str, PathLike)) or (isinstance(totals, (list, tuple, set)) and _names_axes(totals)):
        return f"names of axes. Axes belong to a table: {the.call('ks.plan(table, keep=[...], mechanism=...)')}."
    if hasattr(type(totals), "columns"):  # of the type, because a lazy frame would have to find out
        return (
            f"a data frame. Use table = {the.call('ks.Table.from_frame(frame, ...)')}, then "
            f"{the.call('ks.plan(table, keep=[...], ...)')}."
        )
    return f"{type_of(totals)}. For a table, {the.call('ks.plan(table, keep=[...], mechanism=...)')}."


def _names_axes(totals: Iterable[Any]) -> bool:
    return any(
        isinstance(entry, str) or (isinstance(entry, (list, tuple)) and any(isinstance(name, str) for name in entry))
        for entry in totals
    )


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
        ``Laplace`` or ``Gaussian``; or ``OwnNoise``, with a sampler or a mechanism of your own.
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
        ``Laplace`` or ``Gaussian``; or ``OwnNoise``, with a sampler or a mechanism of your own.
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


# ``ks.read_release``: a saved release, from its files alone.


def read_release(
    path: str | PathLike[str],
    certificate: str | PathLike[str] | None = None,
    *,
    key: str | PathLike[str] | None = None,
    allow_seeded: bool = False,
    patient: bool = False,
) -> Release:
    """Read a release that was saved, after it has been verified.

    Parameters
    ----------
    path
        The released table, or the folder of a release.
    certificate
        Its certificate; by default the one beside it.
    key
        The publisher's public key. Without it a signature shows only that the certificate is unchanged.
    allow_seeded
        Accept noise that came from a seed.
    patient
        Work everything out again, however long that takes; see :func:`verify`.

    Raises
    ------
    InputError
        If a check of :func:`verify` fails.

    Examples
    --------
    >>> import keepsum as ks, tempfile
    >>> table = ks.Table.from_array([[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = ks.release(table, keep=["county"], mechanism=ks.Laplace(1)).save(f"{folder}/out.csv")
    ...     release = ks.read_release(path)
    >>> release.marginal(["county"]).table.counts.tolist()
    [16, 30]
    """
    from keepsum.releasing.verify import read_verified  # signatures, which plans do not need

    verification, drawn = read_verified(path, certificate, key=key, allow_seeded=allow_seeded, patient=patient)
    if drawn is None:
        failed = ", ".join(f"{check.name} ({marked(check.words)})" for check in verification.checks if not check.passed)
        raise FailedCheckError(f"A release must verify before it is used, but this one fails: {failed}.")
    return Release(drawn, Plan(plan_of(drawn.certificate, drawn.invariants)))


# ``ks.tabulate``: a table from records.


def tabulate(
    source: Any,
    by: str | Sequence[str],
    domain: Domain | Mapping[str, Any] | None = None,
    *,
    within: Mapping[str, str] | None = None,
    bins: Mapping[str, Any] | None = None,
    missing: Mapping[str, Any] | None = None,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    table: str | None = None,
    count: str = "count",
    quote_formulas: bool = False,
) -> Table:
    """Count records (one row per person, or several) into a table.

    The records are grouped where they are, by DuckDB in this process or by their own database, and only read. The cells
    come from what you declare, never from the data: a cell without records has the count 0, and a record that belongs
    to no declared cell is an error that names the column.

    Parameters
    ----------
    source
        A CSV or Parquet file, a list, pattern or folder of them; a DuckDB or SQLite file; ``sqlite:///people.db`` or
        ``postgres://user@host/database`` (the password comes from PGPASSWORD or a password file); a pandas, polars or
        pyarrow frame; or a table of ibis.
    by
        The columns to count by: the axes of the table.
    domain
        The categories of every column that is not cut into bins: a ``Domain``, or a mapping. Values of CSV files are
        text; whole numbers match their digits, dates match 2020-01-31, and booleans ``"true"`` and ``"false"``.
    within
        The parent of each nested axis: ``{"county": "state"}``.
    bins
        The edges of columns of numbers or dates: ``{"age": [0, 18, 65, None]}`` has the categories 0-17, 18-64 and 65+.
    missing
        The category of missing values (null, empty or NaN) of a column: ``{"race": "unknown"}``. It must be declared;
        that of a column with bins is added as its last.
    unit, max_rows_per_unit
        The column that identifies a person by text or whole numbers, and how many records of each are counted at most:
        the first in the order of their labels and bins, so that totals of late labels lose most. A release then
        protects persons, and otherwise single records. ``max_rows_per_unit=1`` alone declares that every record is of
        another person.
    table
        The table of a database: ``"people"`` or ``"census.people"``.
    count
        The name of the column of counts.
    quote_formulas
        Put an apostrophe before labels that a spreadsheet would run as formulas; see :func:`keepsum.read_table`.

    Examples
    --------
    >>> import keepsum as ks, pyarrow as pa
    >>> people = pa.table({"sex": ["f", "m", "f"], "age": [3, 44, 17]})
    >>> ks.tabulate(people, by=["sex", "age"], domain={"sex": ["f", "m"]}, bins={"age": [0, 18, 65, None]})
    Table(sex 2, age 3: 6 cells, counts not shown)

    Raises
    ------
    DataError
        If the records cannot be read, or one of them belongs to no declared cell.

    Notes
    -----
    On two cores, ten million records take about 2 s from Parquet, 3 s with a unit of whole numbers, and 4 s from CSV,
    of which DuckDB's own grouping takes two thirds (``benchmarks/cases/records.py``). Which records of a unit are
    counted depends on the records of that unit alone, so that a change of one unit changes at most
    ``max_rows_per_unit`` counted records.
    """
    check_text(count, "The name of the count column")
    cells = declare_cells(
        by, domain, within=within, bins=bins, missing=missing, unit=unit, max_rows_per_unit=max_rows_per_unit
    )
    quotes = check_flag(quote_formulas, f"{arg.quote_formulas}")
    counted = count_records(source, cells, table, count)
    return quoted_table(counted) if quotes else counted
