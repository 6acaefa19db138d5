"""SDMX-CSV, the format in which statistical offices exchange tables: one row per observation.

Dimensions are axes and the measure is the count. Attributes are no part of the table. One that belongs to the whole
data set is published as it is. One that belongs to an observation may depend on its count (a suppressed cell has its
own status), so none of its values is published: the flags ``OBS_STATUS`` and ``CONF_STATUS`` get the value that is true
of every released count, and any other such attribute must be dropped or given one value for all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from keepsum._arguments import check_texts
from keepsum._text import MAX_NAMES, shown_name, shown_names, type_of
from keepsum.errors import DataError, InputError
from keepsum.tables.declared import Declared
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin, Text
from keepsum.tables.source import DEFAULT_COUNT, Source

if TYPE_CHECKING:
    from keepsum.sources.structures import DataStructure

MEASURE = "OBS_VALUE"
# The columns that say which data set it is: in SDMX-CSV 1.0, in 2.0, and in the files of Eurostat.
IDENTIFYING = ("DATAFLOW", "STRUCTURE", "STRUCTURE_ID", "ACTION", "LAST UPDATE")
# What SDMX-CSV 2.0 says of a row: I is an observation of a data set. A, M and R are updates (append, merge, replace),
# in which a cell without a row stays as it was and is not zero. D is an observation, or several, to delete.
ACTION, INFORMATION, DELETE, UPDATES = "ACTION", "I", "D", ("A", "M", "R")
# By the SDMX code lists CL_OBS_STATUS and CL_CONF_STATUS: a released count is an estimated value, and free for
# publication. OBS_FLAG is what Eurostat calls the status of an observation.
FLAGS = {"OBS_STATUS": "E", "OBS_FLAG": "e", "CONF_STATUS": "F"}
# Attributes that the SDMX cross-domain concepts define for series and data sets.
OF_DATA_SET = ("UNIT_MEASURE", "UNIT_MULT", "DECIMALS", "BASE_PER", "COLLECTION", "TIME_FORMAT", "TITLE", "CURRENCY")


def is_sdmx(names: Sequence[str]) -> bool:
    """Whether this is the header of an SDMX-CSV file.

    >>> is_sdmx(["DATAFLOW", "SEX", "OBS_VALUE"]), is_sdmx(["STRUCTURE[;]", "STRUCTURE_ID", "SEX", "OBS_VALUE"])
    (True, True)
    >>> is_sdmx(["SEX", "OBS_VALUE"])
    False
    """
    first = names[0].partition("[")[0] if names else ""
    return first == "DATAFLOW" or (first == "STRUCTURE" and "STRUCTURE_ID" in names)


def observations(
    source: Source,
    origin: Origin,
    declared: Declared,
    structure: str | PathLike[str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> tuple[Source, Origin, Declared]:
    """The table in an SDMX-CSV file, its form and its declaration; any other file as it is.

    Parameters
    ----------
    source, origin, declared
        The columns of the file, its form, and what is declared.
    structure
        An SDMX structure file. It tells dimensions from attributes, and its code lists are the categories of axes for
        which none are declared otherwise.
    flags
        The values of attributes in the release, one for all observations.
    """
    if not isinstance(origin, Text) or not is_sdmx(source.names):
        if structure is not None or flags:
            raise InputError(
                "structure= and flags= must be used with an SDMX-CSV file, whose first column is DATAFLOW or "
                "STRUCTURE. Leave them out."
            )
        return source, origin, declared
    _refuse_names(source.names)
    count = MEASURE if declared.count == DEFAULT_COUNT and DEFAULT_COUNT not in source.names else declared.count
    defined = None if structure is None else _structure(structure, source.names)
    if count in declared.drop_rows:
        raise DataError(
            f"Rows to drop must be chosen by a column of labels, never by a count, got {shown_name(count)}."
        )
    source = source.without_rows(declared.drop_rows)
    left_out = [*(declared.drop or ()), *declared.carry]
    axes = _axes(source.names, count, declared.axes, left_out, defined)
    attributes = [name for name in source.names if name not in (*axes, count, *left_out)]
    _check_actions(source, axes, dict(flags or {}))
    constants = _constants(source, attributes, dict(flags or {}), defined)
    return (
        replace(source, names=tuple(name for name in source.names if name not in constants)),
        replace(origin, constants=constants),
        replace(
            declared,
            count=count,
            axes=axes,
            domain=_domain(source, axes, declared.domain, declared.within, defined),
            drop_rows={},
        ),
    )


def _structure(path: str | PathLike[str], columns: Sequence[str]) -> DataStructure:
    from keepsum.sources.structures import read_structure  # XML takes a moment to load

    return read_structure(path, columns)


def without_attributes(source: Source, attributes: Mapping[str, str]) -> Source:
    """The columns of a released table without its attributes, which must have these values in all rows."""
    present = [name for name in source.names if name in attributes]  # other formats than CSV have none
    if present and len(present) < len(attributes):
        missing = next(name for name in attributes if name not in present)
        raise DataError(f"Attribute {missing!r} of the certificate must be a column of the table as the others are.")
    for name in present:
        if list(map(str, source.labels(name).values)) != [attributes[name]]:
            raise DataError(f"Attribute {name!r} must have the value in the certificate in every row, but has another.")
    return replace(source, names=tuple(name for name in source.names if name not in present))


def check_flags(flags: Any) -> dict[str, str]:
    """The values of attributes, as a mapping."""
    if not isinstance(flags, (Mapping, type(None))):
        raise InputError(f"flags= must be a mapping from attributes to their values, got {type_of(flags)}.")
    for name, value in (flags or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InputError(
                f"flags= must have a text for each attribute, got {type_of(value)} for {shown_name(name)}."
            )
        if value.encode("utf-8", "replace").decode() != value:
            raise InputError(f"The value of {shown_name(name)} in flags= must be text that UTF-8 can encode.")
    return dict(flags or {})


def _refuse_names(names: Sequence[str]) -> None:
    """Refuse a file with names beside the codes, which may be in any language."""
    if "STRUCTURE_NAME" in names or any(":" in name for name in names):
        raise DataError(
            "An SDMX-CSV file must have codes only, but this one has names as well. Export it again with labels=id."
        )


def _axes(
    names: Sequence[str],
    count: str,
    wanted: str | Sequence[str] | None,
    dropped: Collection[str],
    defined: DataStructure | None,
) -> list[str]:
    """The dimensions: those that are named or defined, else every column before the measure."""
    if wanted is not None:
        return check_texts(wanted, "Axes")
    if defined is not None:
        return [name for name in names if name in defined.dimensions and name not in dropped]
    before = names[: names.index(count)] if count in names else names
    identifying = {name for name in names if name.partition("[")[0] in IDENTIFYING}
    return [name for name in before if name not in identifying and name not in FLAGS and name not in dropped]


def _constants(
    source: Source, attributes: Sequence[str], flags: dict[str, str], defined: DataStructure | None
) -> dict[str, str]:
    """The attributes of a release with their values."""
    strange = [name for name in flags if name not in attributes]
    if strange:
        raise InputError(
            f"flags= must name attributes of the file, got {shown_names(strange)}. It has {_listed(attributes)}."
        )
    values = FLAGS | flags
    of_data_set = {*OF_DATA_SET, *(defined.data_set_attributes if defined is not None else ())}
    constants: dict[str, str] = {}
    unclear: list[str] = []
    for name in attributes:
        if name in values:
            constants[name] = values[name]
        elif name.partition("[")[0] in IDENTIFYING or name in of_data_set:
            constants[name] = _only_value(source, name)
        else:
            unclear.append(name)
    if unclear:
        raise DataError(
            f"Attributes of an SDMX-CSV file must belong to the whole data set, because others may depend on the "
            f"counts, got {_listed(unclear)}. Leave them out with drop=, give each one value with flags=, or list the "
            f"dimensions with axes= if these are among them."
        )
    return constants


def _check_actions(source: Source, axes: Sequence[str], flags: Mapping[str, str]) -> None:
    """Refuse rows that are not the observations of a data set, also where the column that says so is left out."""
    is_version_2 = source.names[0].partition("[")[0] == "STRUCTURE"
    if ACTION not in source.names or (ACTION in axes and not is_version_2):
        return
    written = [*map(str, source.labels(ACTION).values), *([flags[ACTION]] if ACTION in flags else [])]
    actions = [action.strip().upper() for action in written]  # d is a deletion too
    if DELETE in actions:
        raise DataError(
            f"ACTION in an SDMX-CSV file must not be D, because such rows are deletions and no data. Apply the file to "
            f"its data set and export that, or leave the rows out with drop_rows="
            f"{ {ACTION: written[actions.index(DELETE)]} }."
        )
    if not {*actions} <= {INFORMATION, *UPDATES, ""}:
        raise DataError(
            "ACTION in an SDMX-CSV file must be I, A, M, R or D, but some row has another code. Correct it."
        )
    if any(action != INFORMATION for action in written) and flags.get(ACTION) != INFORMATION:
        raise DataError(
            "ACTION in an SDMX-CSV file must be I in every row: others are updates, in which cells without a row are "
            "not zero. Apply the file to its data set and export that, or give ACTION the value I with flags= if no "
            "row is missing."
        )


def _listed(names: Sequence[str]) -> str:
    listed = shown_names(names)
    return f"{len(names):,} columns" if listed == "others" else listed


def _only_value(source: Source, name: str) -> str:
    values = source.labels(name).values
    if len(values) != 1:
        problem = "no rows" if not values else "several values"
        raise DataError(
            f"Attribute {name!r} of an SDMX-CSV file must have one value for the whole data set, but it has {problem}. "
            f"Leave it out with drop=, or give it one value with flags=."
        )
    return str(values[0])


def _domain(
    source: Source, axes: Sequence[str], declared: Any, within: Mapping[str, str], defined: DataStructure | None
) -> Any:
    """The declared categories, and the code lists of axes that have none declared."""
    if defined is None or not isinstance(declared, (Mapping, type(None))) or isinstance(declared, Domain):
        return declared
    categories = dict(declared or {})
    for name in axes:
        codes = None if name in categories or name in within or name not in source.names else defined.categories(name)
        if codes is None:
            continue
        labels = source.labels(name).values
        sums = [label for label in labels if label in codes.sums]
        if sums and len(labels) > 1:
            shown = sums[0] if len(sums) == 1 else sums[:MAX_NAMES]
            raise DataError(
                f"Rows with the code {sums[0]!r} in column {name!r} are totals by its code list, which would be "
                f"counted twice. Leave them out with drop_rows={{{name!r}: {shown!r}}}, or declare the categories of "
                f"{name!r} with domain= if it is one of them."
            )
        categories[name] = [str(sums[0])] if sums else list(codes.codes)
    return categories
