"""A domain with a count for every cell. The counts are confidential: nothing here prints one."""

from __future__ import annotations

import html
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_flag, check_within
from keepsum._text import shown_names, type_of
from keepsum.errors import CategoriesFromDataWarning, DataError, InputError
from keepsum.tables.axes import IntArray, quoted
from keepsum.tables.cells import Source, arrange, check_counts, check_declared, check_labels, refuse_many_rows
from keepsum.tables.columns import check_frame
from keepsum.tables.domain import Domain
from keepsum.tables.frames import check_counted, columns_of, frame_of
from keepsum.tables.invariants import Invariants
from keepsum.tables.labels import as_columns_have_them
from keepsum.tables.origins import INDEX, Frame, Origin

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Confidential counts over a domain.

    Make one with ``from_frame``, ``from_array`` or ``keepsum.read_table``.

    Examples
    --------
    >>> import keepsum as ks
    >>> table = ks.Table.from_array(
    ...     [[15, 1], [20, 10]], axes={"county": ["Alpha", "Beta"], "education": ["low", "high"]}
    ... )
    >>> table
    Table(county 2, education 2: 4 cells, counts not shown)
    >>> table.keep("county", "education", total=True)
    Invariants(2 totals of county, 2 totals of education, the grand total; 4 cells)
    """

    domain: Domain
    counts: IntArray
    count: str = "count"
    origin: Origin | None = field(default=None)
    rows: IntArray | None = field(default=None)  # the cell of each row, if their order is public; else cells in order
    undeclared: tuple[str, ...] = ()  # axes whose categories were taken from the data

    def __post_init__(self) -> None:
        check_counted(self)
        self.counts.setflags(write=False)

    @classmethod
    def from_array(
        cls,
        counts: npt.ArrayLike,
        axes: Domain | Mapping[str, Any],
        within: Mapping[str, str] | None = None,
        count: str = "count",
    ) -> Table:
        """A table from an array and the categories of its axes.

        The categories are declared by this, so a release has them in this order. The array has one dimension for each
        family of axes (``domain.shape``) or is flat with a count for each cell. On the places of structural zeros the
        full form must hold 0.
        """
        domain = axes if isinstance(axes, Domain) else Domain(axes, within)
        if isinstance(axes, Domain) and check_within(within) not in ({}, axes.within):
            raise InputError("within= must agree with the domain, which says already what is nested. Leave it out.")
        array = _as_array(counts)
        if array.shape not in (domain.shape, (domain.size,)):
            raise DataError(f"Counts must have shape {domain.shape} or ({domain.size},), got {array.shape}.")
        values = check_counts(array.ravel(), lambda i: _array_place(i, array.shape), "counts")
        if values.size == domain.size:
            return cls(domain, values, count)
        stray = np.flatnonzero(~domain.is_cell & (values > 0))
        if len(stray):
            place = _array_place(int(stray[0]), array.shape)
            raise DataError(f"Count of {place} must be 0, because it is declared a structural zero.")
        return cls(domain, values[domain.is_cell], count)

    @classmethod
    def from_frame(
        cls,
        frame: IntoDataFrame,
        axes: str | Sequence[str] | None = None,
        count: str = "count",
        *,
        within: Mapping[str, str] | None = None,
        domain: Domain | Mapping[str, Any] | None = None,
        keep_order: bool = False,
    ) -> Table:
        """A table from a data frame (pandas, polars or pyarrow) with one row a cell.

        A release has all cells in the order of the declared categories, else in the natural order of the labels,
        whatever the order of the rows, and its counts as 64-bit integers, whatever their type was: only the noise may
        depend on the counts.

        Parameters
        ----------
        frame
            One row for each cell that is not zero; cells without a row are zero.
        axes
            The columns that are axes; by default all but the count, unless one holds numbers and is not declared:
            it may be another measure. Parents of nested axes are added.
        count
            The column of counts.
        within
            Which axis is nested in which.
        domain
            The categories: a ``Domain``, or a mapping from some axes to their categories. Categories that are
            not declared are taken from the data, with a warning, because the list is then itself published.
        keep_order
            Say that the order of the rows is public: a release then has its rows, and categories that are not
            declared, in the order of the frame. Every cell must have a row. The certificate records it.
        """
        source, origin = frame_source(frame)
        return cls.from_source(source, axes, count, within, domain, origin, keep_order)

    @classmethod
    def from_source(
        cls,
        source: Source,
        axes: str | Sequence[str] | None,
        count: str,
        within: Mapping[str, str] | None,
        domain: Domain | Mapping[str, Any] | None,
        origin: Origin | None = None,
        keep_order: bool = False,
    ) -> Table:
        """A table from named columns, wherever they come from; the rest is as in ``from_frame``."""
        check_flag(keep_order, "keep_order=")
        parents = check_within(within)
        if not isinstance(domain, (Domain, Mapping, type(None))):
            raise InputError(f"domain= must be a Domain or a mapping from axes to categories, got {type_of(domain)}.")
        if isinstance(domain, Domain):
            if within is not None and parents != domain.within:
                raise InputError("within= must agree with the domain, which says already what is nested. Leave it out.")
            parents, axes = domain.within, axes if axes is not None else domain.axes
        names = source.axes(count, axes, parents, domain if isinstance(domain, Mapping) else ())
        if isinstance(domain, Mapping):
            check_declared(domain, names)
            domain = as_columns_have_them(domain, parents, lambda name: name in source.names and source.whole(name))
        labels = {name: source.labels(name) for name in names}
        if not (isinstance(domain, Domain) and domain.structural_zeros):  # whose rows may stand twice, if they are 0
            refuse_many_rows(labels, source.where)
        columns = {name: check_labels(values, source.where, name) for name, values in labels.items()}
        counts = check_counts(source.counts(count), source.where, count)
        if isinstance(domain, Domain) and set(names) != set(domain.axes):
            raise InputError(f"Axes must be those of the domain, {quoted(domain.axes)}, got {shown_names(names)}.")
        cells = arrange(columns, counts, parents, domain or {}, source.where, keep_order)
        if cells.taken:
            words = PUBLISHED_LIST.format(quoted(cells.taken))
            warnings.warn(words, CategoriesFromDataWarning, stacklevel=3)
        return cls(cells.domain, cells.counts, count, origin, cells.rows, tuple(cells.taken))

    def keep(self, *margins: str | Iterable[str], total: bool = False) -> Invariants:
        """The totals to keep: each an axis, or a list of axes for a joint margin; ``total`` adds the grand total."""
        return Invariants.margins(self.domain, [*margins, []] if check_flag(total, "total=") else margins)

    def to_frame(self, backend: str | None = None) -> Any:
        """All cells and counts as a data frame of the caller's own kind, or of the kind named.

        Axes have the types that they came with, where these have room for all categories; counts are 64-bit integers.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; needed if the table did not come from a frame.
        """
        return frame_of(self, backend)

    def columns(self) -> dict[str, list[Any]]:
        """The labels and the counts of every cell, column by column, in the order in which a release has them."""
        return columns_of(self)

    def __repr__(self) -> str:
        return f"Table({repr(self.domain)[7:-1]}, counts not shown)"

    def _repr_html_(self) -> str:
        return f"<p><b>Table</b> {html.escape(repr(self.domain)[7:-1])}. Its counts are confidential and not shown.</p>"


def frame_source(frame: IntoDataFrame) -> tuple[Source, Frame]:
    """The columns of a data frame, and what it was."""
    import narwhals as nw

    _check_column_names(frame)
    data = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(data, nw.DataFrame):
        raise InputError(f"The frame must be a pandas, polars or pyarrow table, got {type_of(frame)}.")
    check_frame(frame)
    # pandas adds its index as a column to what it writes only where rows were left out or sorted, so that it would
    # decide by the counts whether a table can be read.
    data = data.drop([name for name in data.columns if INDEX.fullmatch(name)])
    machine = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float64)

    def counts(name: str) -> Any:
        series = data[name]
        plain = series.dtype in machine and not series.null_count()
        return series.to_numpy() if plain else series.to_list()

    source = Source(
        names=tuple(data.columns),
        labels=lambda name: data[name].to_list(),
        counts=counts,
        where=lambda row: f"row {row + 1}",
        whole=lambda name: data.schema[name].is_integer(),
        height=len(data),
    )
    return source, Frame(data.implementation.value, source.names, dict(data.schema))


def _check_column_names(frame: Any) -> None:
    """Columns must have names that can be told apart; frames allow more than that."""
    found = getattr(frame, "column_names", getattr(frame, "columns", ()))
    names = list(found) if isinstance(found, Iterable) else []
    if not all(isinstance(name, str) for name in names):
        raise InputError("Columns of the frame must be named by text, got other names. Rename them first.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"Columns of the frame must have different names, got {shown_names(sorted(twice))} twice.")


def _as_array(counts: Any) -> npt.NDArray[Any]:
    array = np.ma.asanyarray(counts) if isinstance(counts, np.ma.MaskedArray) else as_array(counts)
    if array is None:
        raise DataError("Counts must be an array with rows of one length, got rows of several.")
    return array


def _array_place(i: int, shape: tuple[int, ...]) -> str:
    return f"cell [{', '.join(str(int(k)) for k in np.unravel_index(i, shape))}]"


PUBLISHED_LIST = (
    "The categories of {} were taken from the data, so the list itself is published. "
    "Declare them with domain= if being on it is confidential."
)
