"""The totals to keep exactly, each with a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from keepsum._arguments import check_texts, check_whole
from keepsum._arrays import IntArray
from keepsum._saying import the
from keepsum._text import how_many, printable, type_of
from keepsum.errors import InputError
from keepsum.lattice.matrix import as_integers, as_matrix, frozen, product
from keepsum.tables.axes import MAX_CELLS, Label
from keepsum.tables.domain import Domain

SHOWN_NAMES = 5  # of totals that somebody named
UNNAMED = re.compile(r"(?:total of subset|row|total) [0-9]+")  # names that totals have where nobody gave them one
RowsKind: TypeAlias = Literal["subsets", "weighted"]
ROWS: dict[RowsKind, tuple[str, str]] = {  # for one, and for several
    "subsets": ("total of a subset", "totals of subsets"),
    "weighted": ("weighted total", "weighted totals"),
}


def describe_margin(height: int, axes: Sequence[str], parents: Iterable[str | None] = ()) -> str:
    """The totals of a margin in words; parents of other axes go without saying.

    >>> describe_margin(12, ["state", "county", "sex"], ["state"]), describe_margin(1, [])
    ('12 totals of county × sex', 'the grand total')
    """
    if not axes:
        return "the grand total"
    innermost = [axis for axis in axes if axis not in set(parents)]
    return f"{how_many(height, 'total')} of {' × '.join(innermost)}"


def describe_rows(names: Sequence[str], kind: RowsKind) -> str:
    """Totals that are not those of a margin, in words: by name where somebody named them.

    >>> describe_rows(["total of subset 0", "total of subset 1"], "subsets"), describe_rows(["row 0"], "weighted")
    ('2 totals of subsets', '1 weighted total')
    >>> describe_rows(["coast"], "subsets"), describe_rows(["coast", "hills"], "weighted")
    ("total 'coast'", '2 named weighted totals: coast, hills')
    """
    height = len(names)
    if all(map(UNNAMED.fullmatch, names)):
        return f"{height:,} {ROWS[kind][height != 1]}"
    total = "weighted total" if kind == "weighted" else "total"
    if height == 1:
        return f"{total} {names[0]!r}"
    more = f" and {height - SHOWN_NAMES:,} more" if height > SHOWN_NAMES else ""
    return f"{height:,} named {total}s: {', '.join(names[:SHOWN_NAMES])}{more}"


class HasCounts(Protocol):
    """A count for every cell of a domain."""

    @property
    def domain(self) -> Domain:
        """The cells."""

    @property
    def counts(self) -> IntArray:
        """One count per cell."""


class DeclaredTotals(Protocol):
    """Totals that were declared together."""

    @property
    def height(self) -> int:
        """The number of totals."""

    def all_names(self) -> list[str]:
        """The names of all totals, in order."""

    def coefficients(self) -> sparse.csr_array:
        """The totals as rows over the cells."""

    def describe(self) -> str:
        """A short description of all totals."""


@dataclass(frozen=True)
class Margin:
    """The margin over some axes; over no axis, the grand total."""

    domain: Domain
    axes: tuple[str, ...]

    @cached_property
    def height(self) -> int:
        """The number of totals."""
        return self.domain.project(self.axes).size if self.axes else 1

    def all_labels(self) -> list[list[Label]]:
        """The labels of every total, one for each axis, in order."""
        if not self.axes:
            return [[]]
        margin = self.domain.project(self.axes)
        columns = [[margin.axis(axis).labels[code] for code in margin.codes(axis).tolist()] for axis in self.axes]
        return [list(labels) for labels in zip(*columns, strict=True)]

    def all_names(self) -> list[str]:
        """The names of all totals, in order."""
        if not self.axes:
            return ["grand total"]
        cells = (
            [f"{axis}={label}" for axis, label in zip(self.axes, labels, strict=True)] for labels in self.all_labels()
        )
        return [f"total of {', '.join(cell)}" for cell in cells]

    def coefficients(self) -> sparse.csr_array:
        """The totals as rows over the cells."""
        size = self.domain.size
        labels = self.domain.marginal_index(self.axes)
        by_cell = sparse.csc_array(
            (np.ones(size, dtype=np.int64), labels, np.arange(size + 1)), shape=(self.height, size)
        )
        return by_cell.tocsr()

    def describe(self) -> str:
        """A short description of all totals."""
        return describe_margin(self.height, self.axes, {self.domain.within.get(axis) for axis in self.axes})


@dataclass(frozen=True, eq=False)
class Rows:
    """Totals given as rows of a matrix."""

    rows: sparse.csr_array
    names: tuple[str, ...]
    kind: RowsKind

    @property
    def height(self) -> int:
        """The number of totals."""
        return len(self.names)

    def all_names(self) -> list[str]:
        """The names of all totals, in order."""
        return list(self.names)

    def coefficients(self) -> sparse.csr_array:
        """The totals as rows over the cells."""
        return self.rows

    def describe(self) -> str:
        """A short description of all totals."""
        return describe_rows(self.names, self.kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        return (
            (self.names, self.kind, self.rows.shape) == (other.names, other.kind, other.rows.shape)
            and np.array_equal(self.rows.indptr, other.rows.indptr)
            and np.array_equal(self.rows.indices, other.rows.indices)
            and np.array_equal(self.rows.data, other.rows.data)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.kind, self.rows.shape))


@dataclass(frozen=True)
class Invariants:
    """A set of totals that a release keeps exactly.

    Create one from a table (``table.keep``), from the margins of a domain, or, for cells without names, from subsets or
    from any integer matrix; ``+`` combines two over the same cells.

    Examples
    --------
    >>> import keepsum as ks
    >>> domain = ks.Domain({"county": ["Alpha", "Beta"], "education": ["low", "high"]})
    >>> keep = ks.Invariants.margins(domain, [["county"], ["education"], []])
    >>> keep
    Invariants(2 totals of county, 2 totals of education, the grand total; 4 cells)
    >>> keep.name(1), keep.name(4)
    ('total of county=Beta', 'grand total')
    >>> keep.holds([3, 1, 2, 0], [2, 2, 3, -1]), keep.holds([3, 1, 2, 0], [4, 1, 2, 0])
    (True, False)

    >>> overlap = ks.Invariants.subsets(5, [[0, 1, 2], [2, 3, 4]])
    >>> overlap.coefficients.toarray().tolist()
    [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
    >>> (overlap + ks.Invariants.matrix([[1, 2, 3, 4, 5]])).height
    3
    """

    size: int
    parts: tuple[DeclaredTotals, ...]
    domain: Domain | None = None

    # -- ways to declare totals ---------------------------------------------------------------------

    @classmethod
    def margins(cls, domain: Domain, margins: Iterable[Iterable[str]]) -> Invariants:
        """Keep the margin over each of these sets of axes; the empty set is the grand total."""
        if not isinstance(domain, Domain):
            raise InputError(
                f"Margins must be over a Domain, got {type_of(domain)}. Use {the.call('table.domain')} for a table."
            )
        if not isinstance(margins, Iterable):
            raise InputError(f"Margins must be a list of lists of axes, got {type_of(margins)}.")
        parts: list[DeclaredTotals] = []
        for axes in [margins] if isinstance(margins, str) else margins:
            margin = Margin(domain, domain.closure(axes))
            if margin not in parts:
                parts.append(margin)
        return cls(domain.size, tuple(parts), domain)

    @classmethod
    def subsets(cls, size: int, subsets: Iterable[Iterable[int]], names: Sequence[str] | None = None) -> Invariants:
        """Keep the total of each of these sets of cells, which are numbered from 0 to ``size - 1``."""
        size = check_whole(size, "The number of cells", 1, MAX_CELLS)
        if not isinstance(subsets, Iterable) or isinstance(subsets, (str, Mapping)):
            raise InputError(f"Subsets must be a list of lists of cells, got {type_of(subsets)}.")
        chosen = [_check_subset(k, subset, size) for k, subset in enumerate(subsets)]
        indptr = np.cumsum([0, *(len(cells) for cells in chosen)])
        indices = np.concatenate([np.empty(0, dtype=np.int64), *chosen])
        rows = sparse.csr_array((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(len(chosen), size))
        return cls(size, (Rows(rows, _row_names(names, len(chosen), "total of subset"), "subsets"),))

    @classmethod
    def matrix(cls, A: Any, names: Sequence[str] | None = None) -> Invariants:
        """Keep A x for any integer matrix A, dense or scipy sparse, with one row per total and one column per cell."""
        rows = as_matrix(A, "The matrix of invariants")
        return cls(rows.shape[1], (Rows(rows, _row_names(names, rows.shape[0], "row"), "weighted"),))

    def over(self, domain: Domain) -> Invariants:
        """The same totals with cells named by a domain of the same size."""
        if not isinstance(domain, Domain):
            raise InputError(f"Cells must be named by a Domain, got {type_of(domain)}.")
        if self.domain is not None and self.domain != domain:
            raise InputError("Invariants must not already have another domain. Declare them over the new domain.")
        if domain.size != self.size:
            raise InputError(f"The domain must have {self.size:,} cells like the invariants, got {domain.size:,}.")
        return replace(self, domain=domain)

    def __add__(self, other: Invariants) -> Invariants:
        if not isinstance(other, Invariants):
            return NotImplemented
        if self.size != other.size:
            raise InputError(f"Invariants to add must be over the same cells, got {self.size:,} and {other.size:,}.")
        if self.domain is not None and other.domain is not None and self.domain != other.domain:
            raise InputError("Invariants to add must be over the same domain, got two different domains.")
        parts = self.parts + tuple(part for part in other.parts if part not in self.parts)
        return Invariants(self.size, parts, self.domain or other.domain)

    # -- the totals ---------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """The number of kept totals."""
        return sum(part.height for part in self.parts)

    @cached_property
    def coefficients(self) -> sparse.csr_array:
        """The matrix A, with one row per total and one column per cell."""
        if not self.parts:
            return sparse.csr_array((0, self.size), dtype=np.int64)
        return frozen(sparse.vstack([part.coefficients() for part in self.parts], format="csr"))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all totals."""
        return tuple(name for part in self.parts for name in part.all_names())

    def name(self, row: int) -> str:
        """The name of a total."""
        return self.names[check_whole(row, "The index of a total", 0, self.height - 1)]

    def cell_name(self, index: int) -> str:
        """The name of a cell."""
        if self.domain is not None:
            return self.domain.name(index)
        return f"cell {check_whole(index, 'The index of a cell', 0, self.size - 1)}"

    def totals(self, counts: HasCounts | npt.ArrayLike) -> npt.NDArray[Any]:
        """The kept totals of a table, exactly."""
        return product(self.coefficients, self._values(counts))

    def holds(self, a: HasCounts | npt.ArrayLike, b: HasCounts | npt.ArrayLike) -> bool:
        """Whether two tables agree on every kept total."""
        return bool(np.array_equal(self.totals(a), self.totals(b)))

    def broken(self, a: HasCounts | npt.ArrayLike, b: HasCounts | npt.ArrayLike) -> list[str]:
        """The names of the totals on which two tables differ."""
        return [self.name(int(row)) for row in np.flatnonzero(self.totals(a) != self.totals(b))]

    def describe(self) -> str:
        """A short description of all kept totals."""
        return ", ".join(part.describe() for part in self.parts) or "nothing"

    def __repr__(self) -> str:
        return printable(f"Invariants({self.describe()}; {self.size:,} cells)")

    def _values(self, counts: HasCounts | npt.ArrayLike) -> IntArray:
        """The counts of a table over the cells of the invariants, as a flat array."""
        domain = getattr(counts, "domain", None)
        if domain is not None and self.domain is not None and domain != self.domain:
            raise InputError("The table must have the same domain as the invariants, got another domain.")
        values = as_integers(getattr(counts, "counts", counts), "Counts").reshape(-1)
        if values.size != self.size:
            raise InputError(f"The table must have {self.size:,} cells like the invariants, got {values.size:,}.")
        return values


def _check_subset(k: int, subset: Iterable[int], size: int) -> IntArray:
    if not isinstance(subset, Iterable) or isinstance(subset, (str, Mapping)):
        raise InputError(f"Subset {k} must be a list of cells, got {type_of(subset)}.")
    problem = f"Cells of subset {k} must be whole numbers from 0 to {size - 1}."
    members = list(subset)
    if not all(isinstance(cell, (int, np.integer)) and not isinstance(cell, bool) for cell in members):
        raise InputError(problem)
    cells = as_integers(members, f"Subset {k}")
    if cells.size and (cells.min() < 0 or cells.max() >= size):
        raise InputError(problem)
    if len(np.unique(cells)) != len(cells):
        raise InputError(f"Cells of subset {k} must be different, got one twice.")
    return np.sort(cells.astype(np.int64))


def _row_names(names: Sequence[str] | None, height: int, noun: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{noun} {k}" for k in range(height))
    row_names = check_texts(names, "Names of totals")
    if len(row_names) != height:
        totals, got = how_many(height, "total"), how_many(len(row_names), "name")
        raise InputError(f"Each total must have one name: {totals}, got {got}.")
    return tuple(row_names)
