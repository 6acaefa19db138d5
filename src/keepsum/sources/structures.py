"""SDMX structure files: the dimensions and attributes of a data set, and the code lists of its dimensions.

SDMX-ML 2.1, 3.0 and 3.1 and SDMX-JSON 2.0 are read as far as a table needs them. The parents of codes matter, because a
code that has children is a sum of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any
from xml.etree import ElementTree

from keepsum._arguments import check_path
from keepsum._memory import check_room
from keepsum._text import shown_names
from keepsum.errors import DataError, InputError
from keepsum.sources.special_files import refuse_special
from keepsum.tables.total_labels import is_total

BYTES_A_BYTE = 30  # of XML, as a tree
REFERENCE = re.compile(r"(?:urn:.*=)?(?P<agency>[^:=]+):(?P<id>[^(]+)\((?P<version>[^)]*)\)(?:\.(?P<item>.+))?")
LISTS = {"Codelist", "GeoCodelist", "GeoGridCodelist", "ValueList"}
CODES = {"Code", "GeoFeatureSetCode", "GeoGridCode", "ValueItem"}
DIMENSIONS = {"Dimension", "MeasureDimension", "TimeDimension"}
OF_DATA_SET = {"None", "Dataflow", "NoSpecifiedRelationship"}  # the relationships of attributes of the whole data set


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
        raise InputError(f"File {str(path)!r} must be readable, but: {error.strerror or error}.") from None
    structures = _attempt(data)
    if structures is None:
        raise DataError(
            f"File {file.name!r} must be an SDMX structure message (SDMX-ML 2.1 or 3.0, or SDMX-JSON 2.0), but it "
            f"cannot be read as one."
        )
    fitting = [structure for structure in structures if set(structure.dimensions) <= set(columns)]
    if len(fitting) != 1:
        problem = "none has" if not fitting else "several have"
        dimensions = shown_names(dict.fromkeys(name for structure in structures for name in structure.dimensions))
        raise DataError(
            f"File {file.name!r} must define one data structure whose dimensions are columns of the table, but "
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
            components.attributes[name] = bool(relations & OF_DATA_SET)
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
        components.attributes[name] = bool(relations & OF_DATA_SET)
    return components


def _json_allowed(entry: Any) -> Iterator[tuple[str, list[str]]]:
    for region in entry.get("cubeRegions", []):
        if region.get("include", region.get("isIncluded", True)):
            for key in region.get("keyValues", []):
                values = [value if isinstance(value, str) else value["value"] for value in key.get("values", [])]
                if values and key.get("include", True):
                    yield key["id"], values
