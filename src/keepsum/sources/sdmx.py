"""SDMX: tables with one row per observation, and the code lists of their dimensions."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any
from xml.etree import ElementTree

from keepsum._arguments import check_path, check_texts
from keepsum._memory import check_room
from keepsum._saying import arg, the
from keepsum._text import MAX_NAMES, shown_name, shown_names, type_of
from keepsum.errors import DataError, InputError, UnreachableError
from keepsum.sources.uploads import refuse_special
from keepsum.tables.declared import DeclaredColumns
from keepsum.tables.domain import Domain
from keepsum.tables.origins import Origin, TextFile
from keepsum.tables.source import DEFAULT_COUNT, Source
from keepsum.tables.total_labels import is_total

# SDMX structure files: the dimensions and attributes of a data set, and the code lists of its dimensions.
#
# SDMX-ML 2.1, 3.0 and 3.1 and SDMX-JSON 2.0 are read as far as a table needs them. The parents of codes matter,
# because a code that has children is a sum of them.

BYTES_A_BYTE = 30  # of XML, as a tree
REFERENCE = re.compile(r"(?:urn:.*=)?(?P<agency>[^:=]+):(?P<id>[^(]+)\((?P<version>[^)]*)\)(?:\.(?P<item>.+))?")
LISTS = {"Codelist", "GeoCodelist", "GeoGridCodelist", "ValueList"}
CODES = {"Code", "GeoFeatureSetCode", "GeoGridCode", "ValueItem"}
DIMENSIONS = {"Dimension", "MeasureDimension", "TimeDimension"}
OF_WHOLE_DATA_SET = {
    "None",
    "Dataflow",
    "NoSpecifiedRelationship",
}  # the relationships of attributes of the whole data set


@dataclass(frozen=True)
class Code:
    """A code of a list, its name if it has one, and the code that it is part of."""

    id: str
    name: str = ""
    parent: str | None = None


@dataclass(frozen=True)
class Categories:
    """The categories of a dimension in the order of its code list, and the codes that are sums of others."""

    codes: tuple[str, ...]
    sums: frozenset[str]


@dataclass(frozen=True)
class DataStructure:
    """The dimensions of a data set, each with its code list or None, and the attributes of the data set as a whole."""

    dimensions: Mapping[str, Sequence[Code] | None]
    attributes: frozenset[str]
    data_set_attributes: frozenset[str]

    def categories(self, dimension: str) -> Categories | None:
        """The categories of a dimension that has a code list: codes that are no totals and have no parts."""
        codes = self.dimensions.get(dimension)
        if not codes:
            return None
        parents = {code.parent for code in codes}
        sums = {
            code.id
            for code in codes
            if code.id in parents or is_total(code.id, dimension) or is_total(code.name, dimension)
        }
        return Categories(tuple(code.id for code in codes if code.id not in sums), frozenset(sums))


def read_structure(path: str | PathLike[str], columns: Collection[str]) -> DataStructure:
    """The data structure in a file whose dimensions are among these columns."""
    file = check_path(path, "The structure file")
    refuse_special(file, "File")
    try:
        check_room(file.stat().st_size, f"File {file.name!r}", BYTES_A_BYTE)
        data = file.read_bytes()
    except OSError as error:
        raise UnreachableError(f"File {the.file(path)} must be readable, but: {error.strerror or error}.") from None
    structures = _attempt(data)
    if structures is None:
        raise DataError(
            f"File {the.file(file.name)} must be an SDMX structure message (SDMX-ML 2.1 or 3.0, or SDMX-JSON 2.0), "
            "but it cannot be read as one."
        )
    fitting = [structure for structure in structures if set(structure.dimensions) <= set(columns)]
    if len(fitting) != 1:
        problem = "none has" if not fitting else "several have"
        dimensions = shown_names(dict.fromkeys(name for structure in structures for name in structure.dimensions))
        raise DataError(
            f"File {the.file(file.name)} must define one data structure whose dimensions are columns of the table, but "
            f"{problem}. Its dimensions are {dimensions}."
        )
    return fitting[0]


@dataclass
class Message:
    """What a structure file defines."""

    lists: dict[tuple[str, str, str], list[Code]] = field(default_factory=dict)  # by agency, identifier and version
    concepts: dict[str, str] = field(default_factory=dict)  # the code list that a concept has of its own
    components: list[Components] = field(default_factory=list)
    allowed: dict[str, set[str]] = field(default_factory=dict)  # by dimension: the codes that a constraint allows

    @property
    def structures(self) -> list[DataStructure]:
        """The data structures, with the codes of their dimensions."""
        return [
            DataStructure(
                {name: self._codes(name, *references) for name, references in components.dimensions.items()},
                frozenset(components.attributes),
                frozenset(name for name, of_data_set in components.attributes.items() if of_data_set),
            )
            for components in self.components
        ]

    def _codes(self, name: str, enumeration: str, concept: str) -> list[Code] | None:
        """The codes of a dimension: of its own list or that of its concept, as far as they are allowed."""
        reference = enumeration or self.concepts.get(_item(concept), "")
        match = REFERENCE.fullmatch(reference.strip())
        if match is None:
            return None
        same = {key: codes for key, codes in self.lists.items() if key[:2] == (match["agency"], match["id"])}
        exact = (match["agency"], match["id"], match["version"])
        codes = same.get(exact) or next(reversed(same.values()), None)  # 1.0+ is the latest, which is listed last
        if codes is None or name not in self.allowed:
            return codes
        return [code for code in codes if code.id in self.allowed[name]]


@dataclass
class Components:
    """The dimensions of a data structure with references to their code lists and concepts, and its attributes."""

    dimensions: dict[str, tuple[str, str]] = field(default_factory=dict)
    attributes: dict[str, bool] = field(default_factory=dict)  # whether they belong to the whole data set


def _item(reference: str) -> str:
    """The identifier of a concept, which is the last part of a reference."""
    return reference.strip().rpartition(".")[2]


def _attempt(data: bytes) -> list[DataStructure] | None:
    """What a structure file defines; None if it is none, or has entities, which could expand to very much."""
    try:
        if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            message = _from_json(json.loads(data.decode("utf-8-sig")))
        elif b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            message = None
        else:
            message = _from_xml(ElementTree.fromstring(data))  # noqa: S314 - entities are refused above
        return None if message is None else message.structures
    except (ElementTree.ParseError, ValueError, TypeError, KeyError, AttributeError, RecursionError, LookupError):
        return None


# -- SDMX-ML ----------------------------------------------------------------------------------------


def _from_xml(root: Any) -> Message | None:
    if _tag(root) != "Structure":
        return None
    message = Message()
    for entry in root.iter():
        if _tag(entry) in LISTS:
            key = (entry.get("agencyID", ""), entry.get("id", ""), entry.get("version", "1.0"))
            message.lists[key] = [_xml_code(code) for code in entry if _tag(code) in CODES]
        elif _tag(entry) == "Concept" and (enumeration := _xml_reference(entry, "Enumeration")):
            message.concepts[entry.get("id")] = enumeration
        elif _tag(entry) == "DataStructureComponents":
            message.components.append(_xml_components(entry))
        elif _tag(entry) in ("ContentConstraint", "DataConstraint") and "Actual" not in entry.attrib.values():
            # Not what is there actually, because that may depend on the counts.
            for dimension, values in _xml_allowed(entry):
                message.allowed.setdefault(dimension, set()).update(values)
    return message


def _tag(entry: Any) -> str:
    return str(entry.tag).rpartition("}")[2]


def _xml_code(entry: Any) -> Code:
    name = next((str(child.text or "") for child in entry if _tag(child) == "Name"), "")
    parent = next((child for child in entry if _tag(child) == "Parent"), None)
    if parent is None:
        return Code(entry.attrib["id"], name)
    reference = next(iter(parent), None)
    return Code(entry.attrib["id"], name, _item(parent.text or "") if reference is None else reference.get("id"))


def _xml_reference(entry: Any, kind: str) -> str:
    """A reference as text: in SDMX-ML 2.1 it is an element, in 3.0 a URN."""
    place = next((child for child in entry.iter() if _tag(child) == kind), None)
    if place is None:
        return ""
    reference = next((child for child in place if _tag(child) == "Ref"), None)
    if reference is None:
        return next((str(child.text) for child in place if _tag(child) == "URN"), str(place.text or ""))
    scheme = reference.get("maintainableParentID")
    if scheme is not None:
        return (
            f"{reference.get('agencyID')}:{scheme}({reference.get('maintainableParentVersion')}).{reference.get('id')}"
        )
    return f"{reference.get('agencyID')}:{reference.get('id')}({reference.get('version', '1.0')})"


def _xml_components(entry: Any) -> Components:
    components = Components()
    for child in entry.iter():
        concept = _xml_reference(child, "ConceptIdentity") if _tag(child) in (*DIMENSIONS, "Attribute") else ""
        name = child.get("id") or _item(concept)
        if _tag(child) in DIMENSIONS and concept:  # a reference to a dimension has no concept
            components.dimensions[name] = (_xml_reference(child, "Enumeration"), concept)
        elif _tag(child) == "Attribute" and concept:
            relations = {_tag(part) for place in child if _tag(place) == "AttributeRelationship" for part in place}
            components.attributes[name] = bool(relations & OF_WHOLE_DATA_SET)
    return components


def _xml_allowed(entry: Any) -> Iterator[tuple[str, list[str]]]:
    for region in entry:
        if _tag(region) == "CubeRegion" and region.get("include", "true") == "true":
            for key in region:
                values = [str(value.text) for value in key if _tag(value) == "Value"]
                if values and key.get("include", "true") == "true":
                    yield key.attrib["id"], values


# -- SDMX-JSON --------------------------------------------------------------------------------------


def _from_json(document: Any) -> Message | None:
    content = document.get("data", document)
    if not {"codelists", "dataStructures", "conceptSchemes"} & set(content):
        return None
    message = Message()
    for entry in [*content.get("codelists", []), *content.get("valueLists", []), *content.get("valuelists", [])]:
        key = (entry.get("agencyID", ""), entry["id"], entry.get("version", "1.0"))
        codes = entry.get("codes", entry.get("valueItems", []))
        message.lists[key] = [_json_code(code) for code in codes]
    for scheme in content.get("conceptSchemes", []):
        for concept in scheme.get("concepts", []):
            if enumeration := concept.get("coreRepresentation", {}).get("enumeration"):
                message.concepts[concept["id"]] = enumeration
    message.components = [_json_components(entry) for entry in content.get("dataStructures", [])]
    for entry in [*content.get("dataConstraints", []), *content.get("contentConstraints", [])]:
        if "Actual" not in (entry.get("role"), entry.get("type")):
            for dimension, values in _json_allowed(entry):
                message.allowed.setdefault(dimension, set()).update(values)
    return message


def _json_code(entry: Any) -> Code:
    parent = entry.get("parent")
    return Code(str(entry["id"]), str(entry.get("name", "")), None if parent is None else _item(str(parent)))


def _json_components(entry: Any) -> Components:
    parts = entry["dataStructureComponents"]
    lists = parts["dimensionList"]
    components = Components()
    times = [lists["timeDimension"]] if "timeDimension" in lists else lists.get("timeDimensions", [])
    for dimension in [*lists["dimensions"], *times]:
        concept = dimension.get("conceptIdentity", "")
        representation = dimension.get("localRepresentation", {})
        components.dimensions[dimension.get("id") or _item(concept)] = (representation.get("enumeration", ""), concept)
    for attribute in parts.get("attributeList", {}).get("attributes", []):
        relations = {name[:1].upper() + name[1:] for name in attribute.get("attributeRelationship", {})}
        name = attribute.get("id") or _item(attribute.get("conceptIdentity", ""))
        components.attributes[name] = bool(relations & OF_WHOLE_DATA_SET)
    return components


def _json_allowed(entry: Any) -> Iterator[tuple[str, list[str]]]:
    for region in entry.get("cubeRegions", []):
        if region.get("include", region.get("isIncluded", True)):
            for key in region.get("keyValues", []):
                values = [value if isinstance(value, str) else value["value"] for value in key.get("values", [])]
                if values and key.get("include", True):
                    yield key["id"], values


# SDMX-CSV, the format in which statistical offices exchange tables: one row per observation.
#
# Dimensions are axes and the measure is the count. Attributes are no part of the table. One that belongs to the whole
# data set is published as it is. One that belongs to an observation may depend on its count (a suppressed cell has
# its own status), so none of its values is published: the flags ``OBS_STATUS`` and ``CONF_STATUS`` get the value that
# is true of every released count, and any other such attribute must be dropped or given one value for all.

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
    declared: DeclaredColumns,
    structure: str | PathLike[str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> tuple[Source, Origin, DeclaredColumns]:
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
    if not isinstance(origin, TextFile) or not is_sdmx(source.names):
        if structure is not None or flags:
            raise InputError(
                f"{arg.structure} and {arg.flags} must be used with an SDMX-CSV file, whose first column is DATAFLOW "
                "or STRUCTURE. Leave them out."
            )
        return source, origin, declared
    # Refuse a file with names beside the codes, which may be in any language
    if "STRUCTURE_NAME" in source.names or any(":" in name for name in source.names):
        raise DataError(
            "An SDMX-CSV file must have codes only, but this one has names as well. Export it again with labels=id."
        )
    count = MEASURE if declared.count == DEFAULT_COUNT and DEFAULT_COUNT not in source.names else declared.count
    defined = None if structure is None else read_structure(structure, source.names)
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
        raise InputError(f"{arg.flags} must be a mapping from attributes to their values, got {type_of(flags)}.")
    for name, value in (flags or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InputError(
                f"{arg.flags} must have a text for each attribute, got {type_of(value)} for {shown_name(name)}."
            )
        if value.encode("utf-8", "replace").decode() != value:
            raise InputError(f"The value of {shown_name(name)} {arg.flags:in} must be text that UTF-8 can encode.")
    return dict(flags or {})


def _axes(
    names: Sequence[str],
    count: str,
    wanted: str | Sequence[str] | None,
    dropped: Collection[str],
    defined: DataStructure | None,
) -> list[str]:
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
    strange = [name for name in flags if name not in attributes]
    if strange:
        raise InputError(
            f"{arg.flags} must name attributes of the file, got {shown_names(strange)}. It has {_listed(attributes)}."
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
            "Attributes of an SDMX-CSV file must belong to the whole data set, because others may depend on the "
            f"counts, got {_listed(unclear)}. Leave them out {arg.drop:with}, give each one value {arg.flags:with}, "
            f"or list the dimensions {arg.axes:with} if these are among them."
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
            "ACTION in an SDMX-CSV file must not be D, because such rows are deletions and no data. Apply the file to "
            "its data set and export that, or leave the rows out "
            f"{arg.drop_rows({ACTION: written[actions.index(DELETE)]}):with}."
        )
    if not {*actions} <= {INFORMATION, *UPDATES, ""}:
        raise DataError(
            "ACTION in an SDMX-CSV file must be I, A, M, R or D, but some row has another code. Correct it."
        )
    if any(action != INFORMATION for action in written) and flags.get(ACTION) != INFORMATION:
        raise DataError(
            "ACTION in an SDMX-CSV file must be I in every row: others are updates, in which cells without a row are "
            f"not zero. Apply the file to its data set and export that, or give ACTION the value I {arg.flags:with} "
            "if no row is missing."
        )


def _listed(names: Sequence[str]) -> str:
    listed = shown_names(names)
    return f"{len(names):,} columns" if listed == "others" else listed


def _only_value(source: Source, name: str) -> str:
    values = source.labels(name).values
    if len(values) != 1:
        problem = "no rows" if not values else "several values"
        raise DataError(
            f"Attribute {name!r} of an SDMX-CSV file must have one value for the whole data set, but it has "
            f"{problem}. Leave it out {arg.drop:with}, or give it one value {arg.flags:with}."
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
                f"Rows with the code {sums[0]!r} in column {the.column(name)} are totals by its code list, which "
                f"would be counted twice. Leave them out {arg.drop_rows({name: shown}):with}, or declare the "
                f"categories of {name!r} {arg.domain:with} if it is one of them."
            )
        categories[name] = [str(sums[0])] if sums else list(codes.codes)
    return categories
