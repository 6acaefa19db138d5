"""A domain with a count for every cell. The counts are confidential: nothing here shows one."""

from __future__ import annotations

import html
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from keepsum._arguments import as_array, check_flag, check_within, plain_text
from keepsum._arrays import IntArray
from keepsum._saying import arg, the
from keepsum._text import shown_names, type_of
from keepsum.errors import CategoriesFromDataWarning, DataError, InputError
from keepsum.tables.axes import match_column_types, quoted
from keepsum.tables.cells import Carried, arrange, check_declared, check_labels, refuse_many_rows
from keepsum.tables.cells import carry as carry_along
from keepsum.tables.columns import check_frame, coded, values_of
from keepsum.tables.counts import check_counts
from keepsum.tables.declared import WITHIN_DIFFERS, DeclaredColumns
from keepsum.tables.domain import Domain
from keepsum.tables.invariants import Invariants
from keepsum.tables.origins import INDEX, Frame, Origin, Records, TextFile
from keepsum.tables.released import check_counted, columns_of, frame_of
from keepsum.tables.source import Coded, Source
from keepsum.tables.traps import refuse_near_labels, refuse_reversed_nesting, refuse_traps

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame


# Frames that are queries: those of polars are collected, others are refused with the call that runs them.

TO_MEMORY = {
    "pyspark": "toPandas()",
    "dask": "compute()",
    "dask_expr": "compute()",
    "ibis": "to_pyarrow()",
    "duckdb": "to_arrow_table()",
    "_duckdb": "to_arrow_table()",
    "sqlframe": "toPandas()",
    "daft": "to_arrow()",
    "vaex": "to_arrow_table()",
}


def eager(frame: Any) -> Any:
    """The frame in memory: a polars LazyFrame is collected, a record batch of pyarrow is a table."""
    library, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if library in TO_MEMORY:
        name = library.removeprefix("_")
        raise InputError(
            f"The frame must be in memory, as a pandas, polars or pyarrow table, got a query of {name}. Pass "
            f"{the.call(f'frame.{TO_MEMORY[library]}')}."
        )
    if (library, kind) == ("pyarrow", "RecordBatch"):
        import pyarrow

        return pyarrow.Table.from_batches([frame])
    if (library, kind) != ("polars", "LazyFrame"):
        return frame
    collected = None
    try:
        collected = frame.collect()
    except Exception:  # not passed on, because it may contain data
        del frame
    if collected is None:
        raise InputError("The LazyFrame must be a query that polars can collect, but it failed. Collect it to see why.")
    return collected


# Labels that a spreadsheet would run as formulas, such as ``=cmd()``: an apostrophe in front makes them text.
#
# Labels are quoted before anything is declared, hashed or published, so that a table, its certificate and a file of
# it that is read again have the same ones.

# What a formula begins with, in East Asian width too; a line end or a tab is skipped by some programs.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-][0-9]+([.,][0-9]+)?")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run this text; numbers with a sign are numbers.

    >>> [text for text in ("=cmd()", " +x", "-5 to 0", "@a", "-5", "+1.5", "5-9", "a=b") if is_formula(text)]
    ['=cmd()', ' +x', '-5 to 0', '@a']
    """
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def quoted_label(label: Any) -> Any:
    """A label with an apostrophe in front if a spreadsheet may run it; anything else as it is."""
    return f"'{label}" if isinstance(label, str) and is_formula(label) else label


def quoted_columns(columns: Mapping[str, Coded]) -> dict[str, Coded]:
    """Columns with quoted labels."""
    for name, column in columns.items():
        _check_different(name, _texts_in(column.values))
    return {name: column.translated(quoted_label) for name, column in columns.items()}


def quoted_origin(origin: Origin | None) -> Origin | None:
    """What a table came as; of a wide one, the names of columns are labels."""
    if origin is None or origin.wide is None:
        return origin
    changed = replace(origin, columns=tuple(map(quoted_label, origin.columns)))
    if isinstance(changed, TextFile):
        return replace(changed, quoted_names=frozenset(map(quoted_label, changed.quoted_names)))
    return changed


def quoted_categories(declared: Domain | Mapping[str, Any] | None) -> Domain | Mapping[str, Any] | None:
    """Declared categories with quoted labels; a mapping may be of any form that ``Domain`` takes."""
    if isinstance(declared, Domain):
        return quoted_domain(declared)
    for name, categories in (declared or {}).items():
        _check_different(name, _texts_in(categories))
    return None if declared is None else {name: _quoted_inside(categories) for name, categories in declared.items()}


def quoted_domain(domain: Domain) -> Domain:
    """The cells with quoted labels."""
    for name in domain.axes:
        _check_different(name, _texts_in(domain.axis(name).labels))
    return domain.relabelled(quoted_label)


def check_names(names: Iterable[str]) -> None:
    """Refuse names of columns that a spreadsheet may run: they are published as they are."""
    formulas = [name for name in names if is_formula(name)]
    if formulas:
        raise DataError(
            f"Names of columns must not be formulas if labels are quoted, got {shown_names(formulas)}. Rename them."
        )


def _quoted_inside(categories: Any) -> Any:
    if isinstance(categories, Mapping):
        return {_quoted_inside(parent): _quoted_inside(labels) for parent, labels in categories.items()}
    if isinstance(categories, (list, tuple)):
        return type(categories)(map(_quoted_inside, categories))
    return quoted_label(categories)


def _texts_in(categories: Any) -> list[str]:
    """The labels of an axis that are text; those of its parents are compared with each other elsewhere."""
    if isinstance(categories, Mapping):
        return [text for labels in categories.values() for text in _texts_in(labels)]
    if isinstance(categories, (list, tuple)):
        labels = [label[-1] if isinstance(label, (list, tuple)) and label else label for label in categories]
        return [label for label in labels if isinstance(label, str)]
    return []


def _check_different(name: str, labels: Iterable[str]) -> None:
    before = set(labels)
    if any(is_formula(label) and f"'{label}" in before for label in before):
        raise DataError(
            f"Labels of {name!r} must be different once formulas are quoted, but two differ by an apostrophe in front "
            f"alone. Rename one of them."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Confidential counts over a domain.

    Create one with ``from_frame``, ``from_array`` or ``keepsum.read_table``.

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
    carried: tuple[Carried, ...] = ()  # columns that follow from an axis
    records: Records | None = None  # whose records were counted; None for a table of counts

    def __post_init__(self) -> None:
        check_counted(self)
        object.__setattr__(self, "count", plain_text(self.count))
        self.counts.setflags(write=False)

    @classmethod
    def from_array(
        cls,
        counts: npt.ArrayLike,
        axes: Domain | Mapping[str, Any],
        *,
        within: Mapping[str, str] | None = None,
        count: str = "count",
    ) -> Table:
        """A table from an array and the categories of its axes.

        This declares the categories, so a release has them in this order. The array has one dimension per family of
        axes (``domain.shape``), or is flat with one count per cell. In the first form, structural zeros must be 0.
        """
        domain = axes if isinstance(axes, Domain) else Domain(axes, within)
        if isinstance(axes, Domain) and check_within(within) not in ({}, axes.within):
            raise InputError(WITHIN_DIFFERS)
        array = np.ma.asanyarray(counts) if isinstance(counts, np.ma.MaskedArray) else as_array(counts)
        if array is None:
            raise DataError("Counts must be an array with rows of one length, got rows of different lengths.")
        if array.shape not in (domain.shape, (domain.size,)):
            raise DataError(f"Counts must have shape {domain.shape} or ({domain.size},), got {array.shape}.")
        values = check_counts(array.ravel(), lambda i: _array_cell(i, array.shape), "counts")
        if values.size == domain.size:
            return cls(domain, values, count)
        stray = np.flatnonzero(~domain.is_cell & (values > 0))
        if len(stray):
            cell = _array_cell(int(stray[0]), array.shape)
            raise DataError(f"Count of {cell} must be 0, because it is declared a structural zero.")
        return cls(domain, values[domain.is_cell], count)

    @classmethod
    def from_frame(
        cls,
        frame: IntoDataFrame,
        count: str = "count",
        axes: str | Sequence[str] | None = None,
        *,
        within: Mapping[str, str] | None = None,
        domain: Domain | Mapping[str, Any] | None = None,
        keep_order: bool = False,
        dense: bool = False,
        drop: Collection[str] | None = None,
        drop_rows: Mapping[str, Any] | None = None,
        carry: str | Sequence[str] | Mapping[str, str] = (),
        wide: str | Mapping[str, Sequence[str]] | None = None,
        quote_formulas: bool = False,
    ) -> Table:
        """A table from a data frame (pandas, polars or pyarrow) with one row per cell.

        A release has all cells in the order of the declared categories, or in the natural order of the labels where
        none are declared, whatever the order of the rows. Its counts are 64-bit integers, whatever their type was: only
        the noise may depend on the counts.

        Parameters
        ----------
        frame
            One row per nonzero cell; cells without a row are zero. A LazyFrame of polars is collected. Dates and times
            are categories as text in ISO form; times must be whole microseconds of the years 1 to 9999.
        count
            The column of counts.
        axes
            The columns that are axes. By default all but the count; a column of numbers, which may be another measure,
            must then be declared. Parents of nested axes are added.
        domain
            The categories: a ``Domain``, or a mapping from some axes to their categories. Categories that are not
            declared are taken from the data, with a warning, because the list of them is published.
        within, drop, drop_rows, keep_order, dense, carry, wide, quote_formulas
            See :func:`keepsum.read_table`. A crosstab of pandas needs no arguments.
        """
        declared = DeclaredColumns.checked(
            count, axes, within=within, domain=domain, drop=drop, drop_rows=drop_rows, carry=carry, wide=wide,
            keep_order=keep_order, dense=dense, quote_formulas=quote_formulas,
        )  # fmt: skip
        source, origin, declared = frame_source(frame, declared)
        return table_of(source, declared, origin)

    def keep(self, *margins: str | Iterable[str], total: bool = False) -> Invariants:
        """The totals to keep: an axis, or a list of axes, per margin; ``total`` adds the grand total."""
        return Invariants.margins(self.domain, [*margins, []] if check_flag(total, f"{arg.total}") else margins)

    def to_frame(self, backend: str | None = None) -> Any:
        """All cells and counts as a data frame of the library that the table came from, or of another.

        Axes have their original types, if these can represent all categories; counts are 64-bit integers.

        Parameters
        ----------
        backend
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``; required if the table did not come from a frame.
        """
        return frame_of(self, backend)

    def to_dict(self) -> dict[str, list[Any]]:
        """The labels and the counts of every cell, column by column, in the order of a release."""
        return columns_of(self)

    def __repr__(self) -> str:
        return f"Table({repr(self.domain)[7:-1]}, counts not shown)"

    def _repr_html_(self) -> str:
        return f"<p><b>Table</b> {html.escape(repr(self.domain)[7:-1])}. The counts are confidential and not shown.</p>"


def table_of(source: Source, declared: DeclaredColumns, origin: Origin | None = None, stacklevel: int = 3) -> Table:
    """A table from named columns of any origin; otherwise like ``Table.from_frame``."""
    source, declared = declared.long(source)
    if origin is not None and declared.wide is not None:
        origin = replace(origin, wide=declared.wide[0])
    count, within, domain = declared.count, declared.within, declared.domain
    names = declared.axes_of(source)
    if isinstance(domain, Mapping):
        check_declared(domain, names)
        domain = match_column_types(domain, within, lambda name: name in source.names and source.whole(name))
    labels = {name: source.labels(name) for name in names}
    if not (isinstance(domain, Domain) and domain.structural_zeros):  # these may have several rows, all of 0
        refuse_many_rows(labels, source.where)
    columns = {name: check_labels(values, source.where, name, labels) for name, values in labels.items()}
    counts = check_counts(source.counts(count), source.where, count)
    if isinstance(domain, Domain) and set(names) != set(domain.axes):
        raise InputError(f"Axes must be those of the domain, {quoted(domain.axes)}, got {shown_names(names)}.")
    refuse_traps(columns, within, declared.declared_axes, declared.dense, declared.wide and declared.wide[0])
    refuse_near_labels(columns, within, declared.declared_axes)
    refuse_reversed_nesting(columns, within, declared.declared_axes)
    others = {name: check_labels(source.labels(name), source.where, name) for name in declared.carry}
    if declared.quote_formulas:
        check_names([*columns, *others, count])
        columns, others, domain = quoted_columns(columns), quoted_columns(others), quoted_categories(domain)
        origin = quoted_origin(origin)
    cells = arrange(columns, counts, within, domain or {}, source.where, declared.keep_order)
    carried = carry_along(others, declared.carry, cells.columns, cells.domain, source.where)
    if cells.taken:
        message = PUBLISHED_LIST.format(quoted(cells.taken))
        warnings.warn(message, CategoriesFromDataWarning, stacklevel=stacklevel)
    return Table(cells.domain, cells.counts, count, origin, cells.rows, tuple(cells.taken), carried)


def quoted_table(table: Table) -> Table:
    """A table over declared cells, with the labels quoted that a spreadsheet would run."""
    check_names([*table.domain.axes, table.count])
    return replace(table, domain=quoted_domain(table.domain))


def frame_source(frame: IntoDataFrame, declared: DeclaredColumns) -> tuple[Source, Frame, DeclaredColumns]:
    """The columns of a data frame, and its origin; a crosstab of pandas declares itself."""
    import narwhals as nw

    frame, declared = _crosstab(eager(frame), declared)
    # Check that the names of columns are different texts; data frames allow more than that
    columns = getattr(frame, "column_names", getattr(frame, "columns", ()))
    names = list(columns) if isinstance(columns, Iterable) else []
    if not all(isinstance(name, str) for name in names):
        raise InputError("Names of the frame's columns must be text, got other names. Rename the columns first.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"Columns of the frame must have different names, got {shown_names(sorted(twice))} twice.")
    data = nw.from_native(frame, eager_only=True, pass_through=True)
    if not isinstance(data, nw.DataFrame):
        raise InputError(f"The frame must be a pandas, polars or pyarrow table, got {type_of(frame)}.")
    check_frame(frame)
    # pandas writes its index as a column only if rows were removed or sorted. If it counted as an axis, whether a table
    # can be read would depend on the counts.
    data = data.drop([name for name in data.columns if INDEX.fullmatch(name)])
    machine = (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float64)

    def counts(name: str) -> Any:
        series = data[name]
        is_machine = series.dtype in machine and not series.null_count()
        return series.to_numpy() if is_machine else values_of(series, name)

    source = Source(
        names=tuple(data.columns),
        labels=lambda name: _labels(data[name]),
        counts=counts,
        where=lambda row: f"row {row + 1}",
        whole=lambda name: data.schema[name].is_integer(),
        height=len(data),
    )
    return source, Frame(data.implementation.value, source.names, dict(data.schema)), declared


def _crosstab(frame: Any, declared: DeclaredColumns) -> tuple[Any, DeclaredColumns]:
    """A crosstab of pandas, whose rows and columns are named after axes, as a wide frame with its declaration."""
    rows = list(getattr(getattr(frame, "index", None), "names", ()))
    spread = getattr(getattr(frame, "columns", None), "name", None)
    if type(frame).__module__.partition(".")[0] != "pandas" or spread is None or None in rows:
        return frame, declared
    if declared.wide is None:
        declared = replace(declared, wide=(spread, None), axes=declared.axes or [*rows, spread])
    return frame.rename(columns=str).rename_axis(columns=None).reset_index(), declared


def _labels(series: Any) -> Coded:
    """The labels of a column, by Arrow where it is installed and can represent them."""
    import narwhals as nw

    if series.dtype in (nw.String, nw.Categorical, nw.Enum) or series.dtype.is_integer():
        try:
            arrow = series.to_arrow()
        except Exception:  # without pyarrow, or a column of objects that only looks like text
            return Coded.of(series.to_list())
        return coded(arrow, series.name)
    return Coded.of(values_of(series, series.name))


def _array_cell(i: int, shape: tuple[int, ...]) -> str:
    return f"cell [{', '.join(str(int(k)) for k in np.unravel_index(i, shape))}]"


PUBLISHED_LIST = (
    "The categories of {} were taken from the data, so the list of them is published, and if the data has no rows for "
    f"counts of 0, it shows which counts are not 0. Declare them {arg.domain:with} if being in the list is "
    "confidential."
)
