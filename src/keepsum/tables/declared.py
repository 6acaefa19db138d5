"""What a user says about the columns of a table of counts, checked before any column is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keepsum._arguments import check_flag, check_text, check_texts, check_within
from keepsum._saying import arg, the
from keepsum._text import shown_name, shown_names, type_of
from keepsum.errors import DataError, InputError
from keepsum.tables.domain import Domain
from keepsum.tables.source import Source
from keepsum.tables.total_labels import is_total

WITHIN_DIFFERS = f"{arg.within} must agree with the domain, which already declares the nesting. Leave it out."
CODES = frozenset({"code", "fips", "geoid", "zip", "zipcode", "postcode"})  # in the names of columns


@dataclass(frozen=True)
class DeclaredColumns:
    """The meaning of the columns of a table of counts."""

    count: str  # the column of counts; of a wide table, the name that the counts get
    axes: list[str] | None = None  # the columns that are axes; by default all that are nothing else
    # The parent of each nested axis, and the categories.
    within: dict[str, str] = field(default_factory=dict)
    domain: Domain | Mapping[str, Any] | None = None
    drop: list[str] | None = None  # columns to leave out. If given, every column must be accounted for
    drop_rows: Mapping[str, Any] = field(default_factory=dict)  # labels whose rows are left out, by column
    # Columns that follow from an axis and are published with it, and that axis; None for the innermost one.
    carry: Mapping[str, str | None] = field(default_factory=dict)
    # The axis whose categories are columns, and these; None for all columns that are nothing else.
    wide: tuple[str, list[str] | None] | None = None
    # Whether the order of the rows is public, and whether every combination of categories is a cell.
    keep_order: bool = False
    dense: bool = False
    quote_formulas: bool = False  # whether labels that a spreadsheet would run are quoted
    named: frozenset[str] = frozenset()  # columns that other declarations name, so that numbers in them are labels

    @classmethod
    def checked(
        cls,
        count: Any,
        axes: Any = None,
        *,
        within: Any = None,
        domain: Any = None,
        drop: Any = None,
        drop_rows: Any = None,
        carry: Any = (),
        wide: Any = None,
        keep_order: Any = False,
        dense: Any = False,
        quote_formulas: Any = False,
        named: Sequence[str] = (),
    ) -> DeclaredColumns:
        """The declaration, if every argument is of a kind that can be used."""
        parents = check_within(within)
        chosen = None if axes is None else check_texts(axes, "Axes")
        if not isinstance(domain, (Domain, Mapping, type(None))):
            raise InputError(
                f"{arg.domain} must be a Domain or a mapping from axes to categories, got {type_of(domain)}."
            )
        if isinstance(domain, Domain):
            if within is not None and parents != domain.within:
                raise InputError(WITHIN_DIFFERS)
            parents, chosen = domain.within, list(domain.axes) if chosen is None else chosen
        return cls(
            check_text(count, "The count column"),
            chosen,
            parents,
            domain,
            None if drop is None else check_texts(drop, "Columns to drop"),
            _check_drop_rows(drop_rows),
            _check_carry(carry),
            _check_wide(wide),
            check_flag(keep_order, f"{arg.keep_order}"),
            check_flag(dense, f"{arg.dense}"),
            check_flag(quote_formulas, f"{arg.quote_formulas}"),
            frozenset(named),
        )

    @property
    def declared_axes(self) -> list[str]:
        """The axes whose categories are declared."""
        if isinstance(self.domain, Domain):
            return list(self.domain.axes)
        spread = [self.wide[0]] if self.wide is not None and self.wide[1] is not None else []
        return [*(self.domain or {}), *spread]

    def axes_of(self, source: Source) -> list[str]:
        """The axes, with the parents of nested ones first."""
        for name in self.carry:
            source.check_column(name, "A column to carry", self.count)
        for name in self.drop or ():
            source.check_column(name, "A column to drop", self.count)
        left_out = {*self.carry, *(self.drop or ())}
        both = [name for name in (*(self.axes or ()), *self.within, *self.within.values()) if name in left_out]
        if both:
            raise DataError(f"A column to drop or to carry must not be an axis, got {shown_names(both)}.")
        rest = replace(source, names=tuple(name for name in source.names if name not in left_out))
        known = [*self.declared_axes, *self.named]
        names = rest.axes(self.count, self.axes, self.within, known)
        extra = [name for name in rest.names if name not in names and name != self.count]
        if extra and self.drop is not None:
            raise DataError(
                f"Every column must be an axis, a parent, the count, carried or dropped, got {shown_names(extra)} as "
                f"well. Include more columns {arg.axes:with}, carry them along {arg.carry:with}, or leave them out "
                f"{arg.drop:with}."
            )
        return names

    def long(self, source: Source) -> tuple[Source, DeclaredColumns]:
        """The table without the rows to drop, a wide one as a long one with a row per count, and its declaration."""
        self._check_drop_rows_of_wide(source)
        counts = [self.count] if self.wide is None or self.wide[1] is None else self.wide[1]
        for name in self.drop_rows:
            labels = [] if self.wide is None or self.wide[1] is not None else self._columns_of_labels
            if name in counts or (labels and name in source.names and name not in labels):
                raise DataError(
                    f"Rows to drop must be chosen by a column of labels, never by a count, got {the.name(name)}."
                )
        source = source.without_rows(self.drop_rows)
        if self.wide is None:
            return source, self
        axis, columns = self.wide
        if axis in source.names:
            raise DataError(f"The axis of a wide table must not be one of its columns, got {the.name(axis)}.")
        if columns is None:
            others = {*self._columns_of_labels, *(self.drop or ())}
            if self.axes is None:
                raise InputError(
                    f"The axes of a wide table must be named {arg.axes:with} if its columns of counts are not listed."
                )
            columns = [name for name in source.names if name not in others]
            self._refuse_codes(axis, columns)
        for name in columns:
            source.check_column(name, "A column of a wide table")
        if len(columns) < 2:
            raise DataError(f"A wide table must have at least two columns of counts, got {len(columns)}.")
        self._refuse_total_column(source, columns)
        domain = self.domain
        if self.wide[1] is not None and not isinstance(domain, Domain) and axis not in (domain or {}):
            domain = {**(domain or {}), axis: list(columns)}
        axes = None if self.axes is None else [*(name for name in self.axes if name != axis), axis]
        return source.melted(axis, columns, self.count), replace(self, axes=axes, domain=domain)

    @property
    def _columns_of_labels(self) -> list[str]:
        return [*(self.axes or ()), *self.within, *self.within.values(), *self.carry]

    def _check_drop_rows_of_wide(self, source: Source) -> None:
        if self.wide is not None and self.wide[0] in self.drop_rows and self.wide[0] not in source.names:
            raise DataError(
                f"Rows to drop must be chosen by a column, but the categories of {shown_name(self.wide[0])} are "
                f"columns. Leave out columns {arg.drop:with}."
            )

    def _refuse_codes(self, axis: str, columns: Sequence[str]) -> None:
        """Refuse a column that is a code by its name, but would be a category because no columns are listed."""
        codes = [] if axis in self.declared_axes else [name for name in columns if _names_code(name)]
        if codes:
            raise DataError(
                f"Columns of a wide table must be counts, but {shown_names(codes)} may be codes by their names. Carry "
                f"them along {arg.carry:with}, leave them out {arg.drop:with}, or list the columns of counts "
                f"{arg.wide:with}."
            )

    def _refuse_total_column(self, source: Source, columns: Sequence[str]) -> None:
        """Refuse a column beside those of a wide table that is called a total, with the one sensible way on."""
        if self.axes is not None and self.drop is None:
            return  # other columns are left out
        known = {*self._columns_of_labels, *(self.drop or ()), *columns, *self.declared_axes, *self.named}
        totals = [name for name in source.names if name not in known and is_total(name, "")]
        if totals:
            raise DataError(
                f"Columns beside the counts of a wide table must be axes, but {shown_names(totals)} may be totals. "
                f"Leave them out {arg.drop(totals):with}."
            )


def _names_code(column: str) -> bool:
    """Whether the name of a column says that it holds codes; ID alone may be Idaho.

    >>> [_names_code(name) for name in ("fips", "State FIPS", "county_id", "GEOID", "ID", "white", "decoded")]
    [True, True, True, True, False, False, False]
    """
    words = re.split(r"[\W_]+", column.lower())
    return not CODES.isdisjoint(words) or (words[-1] == "id" and column != "ID")


def _check_carry(carry: Any) -> dict[str, str | None]:
    """Columns to carry, each with its axis where that is declared."""
    if not isinstance(carry, Mapping):
        return dict.fromkeys(check_texts(carry, "Columns to carry"))
    return {
        check_text(name, "A column to carry"): check_text(axis, "The axis of a column to carry")
        for name, axis in carry.items()
    }


def _check_drop_rows(chosen: Any) -> Mapping[str, Any]:
    if not isinstance(chosen, (Mapping, type(None))):
        raise InputError(f"{arg.drop_rows} must be a mapping from columns to labels, got {type_of(chosen)}.")
    for name, labels in (chosen or {}).items():
        several = labels if isinstance(labels, (list, tuple, set, frozenset)) else [labels]
        if not all(isinstance(label, (str, int)) for label in several):
            raise InputError(f"{arg.drop_rows} must have a label or a list of labels for column {shown_name(name)}.")
    return chosen or {}


def _check_wide(wide: Any) -> tuple[str, list[str] | None] | None:
    """The axis of a wide table and its columns: ``"race"``, or ``{"race": ["white", "black"]}``."""
    if wide is None:
        return None
    if isinstance(wide, str):
        return check_text(wide, "The axis of a wide table"), None
    if not isinstance(wide, Mapping) or len(wide) != 1:
        raise InputError(f"{arg.wide} must be the name of an axis, or a mapping from one axis to its columns.")
    ((axis, columns),) = wide.items()
    names = check_texts(columns, "Columns of a wide table")
    if len(set(names)) < len(names):
        raise InputError("Columns of a wide table must be different, got one twice.")
    return check_text(axis, "The axis of a wide table"), names
