"""SDMX structure files: code lists, totals among codes, attributes, constraints, and damage."""

import json
import re

import pytest
from pysdmx.io.json.sdmxjson2.writer.v2_0.structure import write as write_json
from pysdmx.io.xml.sdmx21.writer.structure import write as write_ml_21
from pysdmx.io.xml.sdmx30.writer.structure import write as write_ml_30
from pysdmx.model import (
    Code,
    Codelist,
    Component,
    Components,
    Concept,
    ConceptScheme,
    DataStructureDefinition,
)
from pysdmx.model.dataflow import Role
from pysdmx.model.message import Header

import keepsum as ks
from keepsum.sources.sdmx import read_structure
from keepsum.sources.writing import table_bytes
from sources.sdmx_files import DOMAIN, FLOW, HEADER, ROWS, SECRET, read, refused

ML_21 = """<?xml version="1.0" encoding="UTF-8"?>
<mes:Structure xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
 xmlns:str="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
 xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common"><mes:Structures>
<str:Codelists>
 <str:Codelist id="CL_FREQ" agencyID="SDMX" version="2.0"><str:Code id="A"/><str:Code id="M"/></str:Codelist>
 <str:Codelist id="CL_SEX" agencyID="SDMX" version="2.1"><str:Code id="M"/><str:Code id="F"/>
  <str:Code id="_T"><com:Name xml:lang="en">Total</com:Name></str:Code><str:Code id="_Z"/></str:Codelist>
 <str:Codelist id="CL_SEX" agencyID="OTHER" version="2.1"><str:Code id="X"/></str:Codelist>
 <str:Codelist id="CL_AGE" agencyID="NSI" version="1.0">
  <str:Code id="TOTAL"><com:Name xml:lang="en">All ages</com:Name></str:Code>
  <str:Code id="Y0T14"><str:Parent><Ref id="TOTAL"/></str:Parent></str:Code>
  <str:Code id="Y_GE15"><str:Parent><Ref id="TOTAL"/></str:Parent></str:Code></str:Codelist>
</str:Codelists>
<str:Concepts><str:ConceptScheme id="CS" agencyID="NSI" version="1.0">
 <str:Concept id="FREQ"><str:CoreRepresentation><str:Enumeration><Ref id="CL_FREQ" agencyID="SDMX" version="2.0"/>
 </str:Enumeration></str:CoreRepresentation></str:Concept>
 <str:Concept id="SEX"/><str:Concept id="AGE"/></str:ConceptScheme></str:Concepts>
<str:DataStructures><str:DataStructure id="DSD" agencyID="NSI" version="1.0"><str:DataStructureComponents>
 <str:DimensionList id="DimensionDescriptor">
  <str:Dimension id="FREQ"><str:ConceptIdentity><Ref id="FREQ" maintainableParentID="CS"
   maintainableParentVersion="1.0" agencyID="NSI"/></str:ConceptIdentity></str:Dimension>
  <str:Dimension id="SEX"><str:ConceptIdentity><Ref id="SEX" maintainableParentID="CS" agencyID="NSI"/>
   </str:ConceptIdentity><str:LocalRepresentation><str:Enumeration>
   <Ref id="CL_SEX" agencyID="SDMX" version="2.1" package="codelist" class="Codelist"/>
   </str:Enumeration></str:LocalRepresentation></str:Dimension>
  <str:Dimension><str:ConceptIdentity><Ref id="AGE" maintainableParentID="CS" agencyID="NSI"/></str:ConceptIdentity>
   <str:LocalRepresentation><str:Enumeration><URN>urn:sdmx:org.sdmx.infomodel.codelist.Codelist=NSI:CL_AGE(1.0)</URN>
   </str:Enumeration></str:LocalRepresentation></str:Dimension>
  <str:TimeDimension id="TIME_PERIOD"><str:ConceptIdentity><Ref id="TIME_PERIOD" maintainableParentID="CS"
   agencyID="NSI"/></str:ConceptIdentity><str:LocalRepresentation><str:TextFormat textType="ObservationalTimePeriod"/>
   </str:LocalRepresentation></str:TimeDimension>
 </str:DimensionList>
 <str:AttributeList id="AttributeDescriptor">
  <str:Attribute id="OBS_COMMENT"><str:ConceptIdentity><Ref id="OBS_COMMENT" maintainableParentID="CS" agencyID="NSI"/>
   </str:ConceptIdentity><str:AttributeRelationship><str:PrimaryMeasure><Ref id="OBS_VALUE"/></str:PrimaryMeasure>
   </str:AttributeRelationship></str:Attribute>
  <str:Attribute id="CONTACT"><str:ConceptIdentity><Ref id="CONTACT" maintainableParentID="CS" agencyID="NSI"/>
   </str:ConceptIdentity><str:AttributeRelationship><str:None/></str:AttributeRelationship></str:Attribute>
  <str:Attribute id="NOTE"><str:ConceptIdentity><Ref id="NOTE" maintainableParentID="CS" agencyID="NSI"/>
   </str:ConceptIdentity><str:AttributeRelationship><str:Dimension><Ref id="SEX"/></str:Dimension>
   </str:AttributeRelationship></str:Attribute>
 </str:AttributeList>
</str:DataStructureComponents></str:DataStructure></str:DataStructures>
CONSTRAINTS
</mes:Structures></mes:Structure>"""
CONSTRAINT = """<str:Constraints><str:ContentConstraint id="CC" agencyID="NSI" type="KIND">
<str:CubeRegion include="true">
<com:KeyValue id="FREQ"><com:Value>A</com:Value></com:KeyValue>
<com:KeyValue id="SEX"><com:Value>F</com:Value><com:Value>M</com:Value></com:KeyValue>
</str:CubeRegion></str:ContentConstraint></str:Constraints>"""
COLUMNS = ["DATAFLOW", "FREQ", "SEX", "AGE", "TIME_PERIOD", "OBS_VALUE"]


def urn(kind, reference):
    return f"urn:sdmx:org.sdmx.infomodel.{kind}={reference}"


def in_version_3():
    """The same structure in SDMX-ML 3.0, where references are URNs."""
    text = ML_21.replace("v2_1", "v3_0").replace("<str:None/>", "<str:Dataflow/>")
    text = text.replace('<str:PrimaryMeasure><Ref id="OBS_VALUE"/></str:PrimaryMeasure>', "<str:Observation/>")
    text = re.sub(r'<Ref id="(\w+)"\s+maintainableParentID[^>]*/>\s*', r"urn:sdmx:x.Concept=NSI:CS(1.0).\1", text)
    text = re.sub(
        r'<Ref id="(CL_\w+)" agencyID="(\w+)" version="([\d.]+)"[^>]*/>',
        r"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=\2:\1(\3+)",
        text,
    )
    return re.sub(r'<Ref id="(\w+)"/>', r"\1", re.sub(r"<URN>(.*?)</URN>", r"\1", text))


def in_json():
    def listed(identifier, agency, version, codes):
        return {"id": identifier, "agencyID": agency, "version": version, "codes": codes}

    def dimension(identifier, reference=None):
        entry = {"id": identifier, "conceptIdentity": urn("conceptscheme.Concept", f"NSI:CS(1.0).{identifier}")}
        if reference:
            entry["localRepresentation"] = {"enumeration": urn("codelist.Codelist", reference)}
        return entry

    def attribute(identifier, relation):
        return {"id": identifier, "conceptIdentity": "x", "attributeRelationship": relation}

    ages = [{"id": "TOTAL"}, {"id": "Y0T14", "parent": "TOTAL"}, {"id": "Y_GE15", "parent": "TOTAL"}]
    sexes = [{"id": "M"}, {"id": "F"}, {"id": "_T", "name": "Total"}, {"id": "_Z"}]
    return json.dumps(
        {
            "data": {
                "codelists": [
                    listed("CL_FREQ", "SDMX", "2.0", [{"id": "A"}, {"id": "M"}]),
                    listed("CL_SEX", "SDMX", "2.1", sexes),
                    listed("CL_SEX", "OTHER", "2.1", [{"id": "X"}]),
                    listed("CL_AGE", "NSI", "1.0", ages),
                ],
                "conceptSchemes": [
                    {
                        "id": "CS",
                        "concepts": [
                            {
                                "id": "FREQ",
                                "coreRepresentation": {"enumeration": urn("codelist.Codelist", "SDMX:CL_FREQ(2.0)")},
                            },
                            {"id": "SEX"},
                        ],
                    }
                ],
                "dataStructures": [
                    {
                        "id": "DSD",
                        "dataStructureComponents": {
                            "dimensionList": {
                                "dimensions": [
                                    dimension("FREQ"),
                                    dimension("SEX", "SDMX:CL_SEX(2.1)"),
                                    dimension("AGE", "NSI:CL_AGE(1.0)"),
                                ],
                                "timeDimension": dimension("TIME_PERIOD"),
                            },
                            "attributeList": {
                                "attributes": [
                                    attribute("OBS_COMMENT", {"observation": {}}),
                                    attribute("CONTACT", {"dataflow": {}}),
                                    attribute("NOTE", {"dimensions": ["SEX"]}),
                                ]
                            },
                        },
                    }
                ],
            }
        }
    )


STRUCTURES = {
    "SDMX-ML 2.1": ML_21.replace("CONSTRAINTS", ""),
    "SDMX-ML 3.0": in_version_3().replace("CONSTRAINTS", ""),
    "SDMX-JSON": in_json(),
}


@pytest.mark.parametrize("text", STRUCTURES.values(), ids=STRUCTURES)
def test_code_lists_are_categories_without_totals(tmp_path, text):
    (tmp_path / "structure").write_text(text)
    structure = read_structure(tmp_path / "structure", COLUMNS)
    assert list(structure.dimensions) == ["FREQ", "SEX", "AGE", "TIME_PERIOD"]
    assert structure.categories("FREQ").codes == ("A", "M")
    assert structure.categories("SEX").codes == ("M", "F", "_Z")
    assert structure.categories("SEX").sums == {"_T"}
    assert structure.categories("AGE").codes == ("Y0T14", "Y_GE15")
    assert structure.categories("AGE").sums == {"TOTAL"}
    assert structure.categories("TIME_PERIOD") is None
    assert structure.attributes == {"OBS_COMMENT", "CONTACT", "NOTE"}
    assert structure.data_set_attributes == {"CONTACT"}


@pytest.mark.parametrize("text", STRUCTURES.values(), ids=STRUCTURES)
def test_a_table_with_its_structure(tmp_path, text):
    structure = tmp_path / "structure"
    structure.write_text(text)
    declared = {"TIME_PERIOD": ["2021"]}
    table = read(tmp_path, structure=structure, domain=declared)
    assert table.undeclared == ()
    assert table.domain.categories("SEX") == ("M", "F", "_Z")  # in the order of the list
    assert table.domain.size == 2 * 3 * 2
    assert table.counts[table.domain.index({"FREQ": "A", "SEX": "M", "AGE": "Y_GE15", "TIME_PERIOD": "2021"})] == 8
    table = read(tmp_path, structure=structure, domain=declared | {"FREQ": ["A"], "SEX": ["F", "M"]})
    assert table.counts.tolist() == [SECRET, 6, 7, 8]
    assert read(tmp_path, structure=structure, domain=ks.Domain(DOMAIN)).counts.tolist() == [SECRET, 6, 7, 8]
    total = f"{FLOW},A,{{}},{{}},2021,{SECRET},A,C,PS\n"
    for code, axis in (("_T", "SEX"), ("TOTAL", "AGE")):
        row = total.format("_T", "Y0T14") if axis == "SEX" else total.format("F", "TOTAL")
        message = f"code '{code}' in column '{axis}' are totals by its code list.* drop_rows={{'{axis}': '{code}'}}"
        refused(tmp_path, HEADER + ROWS + row, message, structure=structure, domain=declared)
        dropped = read(tmp_path, HEADER + ROWS + row, structure=structure, domain=DOMAIN | {}, drop_rows={axis: code})
        assert dropped.counts.tolist() == [SECRET, 6, 7, 8]
    only = HEADER + ROWS.replace("Y0T14", "TOTAL").replace("Y_GE15", "TOTAL")
    one = "".join(line + "\n" for line in only.splitlines() if ",6," not in line and ",8," not in line)
    fixed = read(tmp_path, one, structure=structure, domain=declared)
    assert fixed.domain.categories("AGE") == ("TOTAL",)  # a dimension fixed at its total
    refused(tmp_path, HEADER + ROWS.replace("Y_GE15", "Y15"), "is not a declared", structure=structure, domain=declared)


def test_attributes_by_the_structure(tmp_path):
    structure = tmp_path / "structure.xml"
    structure.write_text(STRUCTURES["SDMX-ML 2.1"])
    header = "DATAFLOW,CONTACT,FREQ,SEX,AGE,TIME_PERIOD,NOTE,OBS_VALUE\n"
    rows = "".join(f"{FLOW},me@nsi,A,{sex},Y0T14,2021,n,{count}\n" for sex, count in (("F", 5), ("M", 6)))
    refused(tmp_path, header + rows, "may depend on the counts, got 'NOTE'", structure=structure)
    table = read(tmp_path, header + rows, structure=structure, flags={"NOTE": "noise"})
    assert table_bytes(table, "csv").decode().splitlines()[1] == f"{FLOW},me@nsi,A,F,Y0T14,2021,noise,5"


@pytest.mark.parametrize(("kind", "sexes"), [("Allowed", ("M", "F")), ("Actual", ("M", "F", "_Z"))])
def test_constraints_on_what_is_allowed_not_on_what_is_there(tmp_path, kind, sexes):
    (tmp_path / "s.xml").write_text(ML_21.replace("CONSTRAINTS", CONSTRAINT.replace("KIND", kind)))
    structure = read_structure(tmp_path / "s.xml", COLUMNS)
    assert structure.categories("SEX").codes == sexes
    assert structure.categories("FREQ").codes == (("A",) if kind == "Allowed" else ("A", "M"))
    document = json.loads(in_json())
    region = {"include": True, "keyValues": [{"id": "SEX", "values": ["F", {"value": "M"}]}]}
    document["data"]["dataConstraints"] = [{"role": kind, "cubeRegions": [region]}]
    (tmp_path / "s.json").write_text(json.dumps(document))
    assert read_structure(tmp_path / "s.json", COLUMNS).categories("SEX").codes == sexes


def by_pysdmx():
    codes = [Code("F", name="Female"), Code("M", name="Male"), Code("_T", name="_T")]
    sex = Codelist("CL_SEX", name="Sex", agency="SDMX", version="2.1", items=codes)
    names = ("SEX", "TIME_PERIOD", "OBS_VALUE")
    references = [urn("conceptscheme.Concept", f"NSI:CS(1.0).{name}") for name in names]
    concepts = [Concept(name, name=name, urn=place) for name, place in zip(names, references, strict=True)]
    enumeration = urn("codelist.Codelist", "SDMX:CL_SEX(2.1)")
    components = Components(
        [
            Component("SEX", True, Role.DIMENSION, concepts[0], local_codes=sex, local_enum_ref=enumeration),
            Component("TIME_PERIOD", True, Role.DIMENSION, concepts[1]),
            Component("OBS_VALUE", True, Role.MEASURE, concepts[2]),
        ]
    )
    structure = DataStructureDefinition("DSD", name="Population", agency="NSI", components=components)
    return [sex, ConceptScheme("CS", name="Concepts", agency="NSI", items=concepts), structure]


@pytest.mark.parametrize("write", [write_ml_21, write_ml_30, write_json], ids=["2.1", "3.0", "JSON"])
def test_structures_that_pysdmx_writes(tmp_path, write):
    text = write(by_pysdmx(), header=Header(id="test"))
    (tmp_path / "structure").write_text(text)
    structure = read_structure(tmp_path / "structure", ["DATAFLOW", "SEX", "TIME_PERIOD", "OBS_VALUE"])
    assert structure.categories("SEX").codes == ("F", "M")
    assert structure.categories("SEX").sums == {"_T"}
    assert structure.categories("TIME_PERIOD") is None


GOOD = STRUCTURES["SDMX-ML 2.1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be an SDMX structure message"),
        ("SEX,n\n", "must be an SDMX structure message"),
        ("{}", "must be an SDMX structure message"),
        ("[]", "must be an SDMX structure message"),
        ('{"data": {"dataStructures": [{}]}}', "must be an SDMX structure message"),
        ("{" * 100_000, "must be an SDMX structure message"),
        ("<a>" * 1000, "must be an SDMX structure message"),
        ("<html/>", "must be an SDMX structure message"),
        (GOOD[: len(GOOD) // 2], "must be an SDMX structure message"),
        ('<!DOCTYPE x [<!ENTITY a "aaaa">]>' + GOOD.split("?>", 1)[1], "must be an SDMX structure message"),
        (re.sub("<str:DataStructures>.*</str:DataStructures>", "", GOOD, flags=re.DOTALL), "none has"),
        (
            GOOD.replace('id="SEX"', 'id="GENDER"'),
            "none has. Its dimensions are 'FREQ', 'GENDER', 'AGE', 'TIME_PERIOD'",
        ),
        (re.sub("(<str:DataStructure .*</str:DataStructure>)", r"\1\1", GOOD, flags=re.DOTALL), "several have"),
    ],
)
def test_files_that_are_no_structures(tmp_path, text, message):
    (tmp_path / "structure.xml").write_text(text)
    refused(tmp_path, HEADER + ROWS, message, structure=tmp_path / "structure.xml")


@pytest.mark.parametrize("text", STRUCTURES.values(), ids=STRUCTURES)
def test_any_damage_of_a_structure_gives_a_sentence(tmp_path, text):
    """A byte changed, or the rest cut off; or another value for a part of a JSON document."""
    data = text.encode()
    damaged = [data[:k] + bytes([data[k] ^ 0x15]) + data[k + 1 :] for k in range(0, len(data), 13)]
    damaged += [data[:k] for k in range(0, len(data), 101)]
    if text.startswith("{"):
        for part in re.findall(r'\[[^][]*\]|"[^"]*"(?!:)|\{[^{}]*\}', text):
            damaged += [text.replace(part, wrong).encode() for wrong in ("5", "null", "[]", "{}", '"x"', "[[1]]")]
    for wrong in damaged:
        (tmp_path / "structure").write_bytes(wrong)
        try:
            structure = read_structure(tmp_path / "structure", COLUMNS)
            assert all(
                structure.categories(name) is None or structure.categories(name).codes is not None for name in COLUMNS
            )
        except ks.InputError as problem:
            assert str(problem).startswith("File 'structure' must")  # noqa: PT017


def test_a_structure_that_is_not_there(tmp_path):
    with pytest.raises(ks.InputError, match="must be readable, but: No such file"):
        read(tmp_path, structure=tmp_path / "none.xml")
