"""SDMX-CSV in and out: dimensions, code lists, totals, and attributes that are true of the release."""

import io
import json
import re

import pandas as pd
import pytest
from pysdmx.io import read_sdmx
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
from keepsum.sources.structures import read_structure
from keepsum.sources.writing import table_bytes

SECRET = 8675309
HEADER = "DATAFLOW,FREQ,SEX,AGE,TIME_PERIOD,OBS_VALUE,OBS_STATUS,CONF_STATUS,UNIT_MEASURE\n"
FLOW = "NSI:DF_POP(1.0)"
ROWS = (
    f"{FLOW},A,F,Y0T14,2021,{SECRET},A,C,PS\n"
    f"{FLOW},A,F,Y_GE15,2021,6,A,C,PS\n"
    f"{FLOW},A,M,Y0T14,2021,7,E,N,PS\n"
    f"{FLOW},A,M,Y_GE15,2021,8,A,C,PS\n"
)
DOMAIN = {"FREQ": ["A"], "SEX": ["F", "M"], "AGE": ["Y0T14", "Y_GE15"], "TIME_PERIOD": ["2021"]}


def read(tmp_path, text=HEADER + ROWS, name="population.csv", **arguments):
    file = tmp_path / name
    file.write_text(text)
    return ks.read_table(file, **({"count": "OBS_VALUE", "domain": DOMAIN} | arguments))


def refused(tmp_path, text, message, **arguments):
    with pytest.raises(ks.InputError, match=message) as caught:
        read(tmp_path, text, **arguments)
    assert caught.value.__context__ is None
    assert str(SECRET) not in str(caught.value)
    return str(caught.value)


# -- the file -----------------------------------------------------------------------------------------


def test_a_release_is_sdmx_csv_with_flags_that_are_true_of_it(tmp_path):
    table = read(tmp_path)
    assert table.domain.axes == ("FREQ", "SEX", "AGE", "TIME_PERIOD")
    assert table.counts.tolist() == [SECRET, 6, 7, 8]
    lines = table_bytes(table, "csv").decode().splitlines()
    assert lines[0] + "\n" == HEADER
    assert lines[1] == f"{FLOW},A,F,Y0T14,2021,{SECRET},E,F,PS"  # estimated, and free for publication
    assert all(line.endswith(",E,F,PS") for line in lines[1:])


def test_the_measure_is_the_count_unless_another_is_named(tmp_path):
    assert read(tmp_path, count="count").count == "OBS_VALUE"
    refused(tmp_path, HEADER + ROWS, "The count column must be one of the columns .* got 'n'", count="n")
    text = HEADER.replace("OBS_VALUE", "PERSONS") + ROWS
    assert read(tmp_path, text, count="PERSONS").counts.tolist() == [SECRET, 6, 7, 8]


def test_version_2(tmp_path):
    text = (
        "STRUCTURE[;],STRUCTURE_ID,ACTION,SEX,OBS_VALUE,OBS_STATUS\n"
        "dataflow,NSI:DF_POP(1.0.0),I,F,5,A\ndataflow,NSI:DF_POP(1.0.0),I,M,6,\n"
    )
    table = read(tmp_path, text, domain={"SEX": ["F", "M"]})
    assert table.domain.axes == ("SEX",)
    assert table_bytes(table, "csv").decode() == text.replace("I,F,5,A", "I,F,5,E").replace("6,\n", "6,E\n")


ACTIONS = (
    "STRUCTURE,STRUCTURE_ID,ACTION,SEX,OBS_VALUE\n"
    "dataflow,NSI:DF_POP(1.0.0),{},F,5\ndataflow,NSI:DF_POP(1.0.0),{},M,6\ndataflow,NSI:DF_POP(1.0.0),{},M,7\n"
)


@pytest.mark.parametrize("actions", ["DDD", "IID", "MMD", "IId", ["I", "I", " D"], ["I", "I", "d "]])
@pytest.mark.parametrize(
    "more", [{}, {"drop": ["ACTION"]}, {"flags": {"ACTION": "I"}}, {"axes": ["SEX"]}, {"axes": ["SEX", "ACTION"]}]
)
def test_deletions_are_no_data(tmp_path, actions, more):
    """Whatever becomes of the column that says so."""
    refused(tmp_path, ACTIONS.format(*actions), "must not be D, .* no data", domain=None, **more)


def test_codes_of_no_action(tmp_path):
    for actions in ("IIX", "XXX", ["I", "I", "Delete"]):
        for more in ({}, {"flags": {"ACTION": "I"}}, {"drop": ["ACTION"]}):
            refused(tmp_path, ACTIONS.format(*actions), "must be I, A, M, R or D", domain={"SEX": ["F", "M"]}, **more)
    for flag in ("X", "", "i"):
        text = ACTIONS.format(*"III").replace("I,M,7", "I,X,7")
        refused(tmp_path, text, "ACTION in an SDMX-CSV file must be I", domain=None, flags={"ACTION": flag})


def test_deletions_can_be_left_out(tmp_path):
    table = read(tmp_path, ACTIONS.format(*"IID"), domain={"SEX": ["F", "M"]}, drop_rows={"ACTION": "D"})
    assert table.counts.tolist() == [5, 6]
    assert table_bytes(table, "csv").decode().splitlines()[1].split(",")[2] == "I"


@pytest.mark.parametrize("action", ["A", "M", "R", "", "i"])
def test_updates_must_be_said_to_be_complete(tmp_path, action):
    """By the field guide of SDMX-CSV 2.0 an observation without a row is not changed by an update: it is not zero."""
    text = ACTIONS.format("I", action, action).replace(f"{action},M,7", f"{action},X,7")
    for more in ({}, {"drop": ["ACTION"]}, {"flags": {"ACTION": action}}, {"flags": {"ACTION": "D"}}):
        refused(tmp_path, text, "ACTION in an SDMX-CSV file must ", domain={"SEX": ["F", "M", "X"]}, **more)
    table = read(tmp_path, text, domain={"SEX": ["F", "M", "X"]}, flags={"ACTION": "I"})
    assert table.counts.tolist() == [5, 6, 7]
    assert {line.split(",")[2] for line in table_bytes(table, "csv").decode().splitlines()[1:]} == {"I"}


def test_an_action_of_version_1_is_a_column_like_others(tmp_path):
    text = HEADER.replace("SEX", "ACTION") + ROWS
    domain = {("ACTION" if name == "SEX" else name): labels for name, labels in DOMAIN.items()}
    assert read(tmp_path, text, domain=domain, axes=list(domain)).counts.tolist() == [SECRET, 6, 7, 8]


def test_a_file_of_eurostat(tmp_path):
    text = (
        "DATAFLOW,LAST UPDATE,freq,sex,geo,TIME_PERIOD,OBS_VALUE,OBS_FLAG,CONF_STATUS\n"
        "ESTAT:DEMO(1.0),01/02/26 23:00:00,A,F,AT,2021,5,,\nESTAT:DEMO(1.0),01/02/26 23:00:00,A,M,AT,2021,6,p,C\n"
    )
    with pytest.warns(ks.CategoriesFromDataWarning):
        table = read(tmp_path, text, domain=None)
    assert table.domain.axes == ("freq", "sex", "geo", "TIME_PERIOD")
    assert [line.split(",")[-2:] for line in table_bytes(table, "csv").decode().splitlines()[1:]] == [["e", "F"]] * 2


def test_flags_are_declared(tmp_path):
    table = read(tmp_path, flags={"OBS_STATUS": "A", "UNIT_MEASURE": "PERSONS, all"})
    assert table_bytes(table, "csv").decode().splitlines()[1].endswith(',A,F,"PERSONS, all"')
    refused(tmp_path, HEADER + ROWS, "flags= must name attributes of the file, got 'COMMENT'", flags={"COMMENT": "x"})
    refused(tmp_path, HEADER + ROWS, "flags= must name attributes of the file, got 'SEX'", flags={"SEX": "F"})
    for wrong in (5, ["OBS_STATUS"], {"OBS_STATUS": 1}, {1: "A"}, {"OBS_STATUS": "\ud800"}):
        refused(tmp_path, HEADER + ROWS, "flags=", flags=wrong)
    refused(tmp_path, "SEX,OBS_VALUE\nF,5\n", "must be used with an SDMX-CSV file", flags={"OBS_STATUS": "A"})
    refused(tmp_path, "SEX,OBS_VALUE\nF,5\n", "must be used with an SDMX-CSV file", structure="x.xml")


def test_attributes_that_may_depend_on_counts(tmp_path):
    """A column of comments, even an empty one, may be about the counts."""
    header = HEADER.replace("UNIT_MEASURE", "OBS_COMMENT,UNIT_MEASURE")
    for comments in (["", "", "", ""], ["", "small", "", ""]):
        rows = ROWS
        for comment in comments:
            rows = rows.replace(",PS\n", f",{comment},ps\n", 1)
        message = refused(tmp_path, header + rows, "may depend on the counts, got 'OBS_COMMENT'")
        assert "small" not in message
        table = read(tmp_path, header + rows, drop=["OBS_COMMENT"])
        assert table_bytes(table, "csv").decode().splitlines()[0] + "\n" == HEADER
        table = read(tmp_path, header + rows, flags={"OBS_COMMENT": "with noise"})
        assert table_bytes(table, "csv").decode().splitlines()[1].endswith(",E,F,with noise,ps")


def test_attributes_of_the_data_set_are_the_same_in_all_rows(tmp_path):
    two = HEADER + ROWS.replace(",7,E,N,PS", ",7,E,N,1000PS")
    refused(tmp_path, two, "Attribute 'UNIT_MEASURE' of an SDMX-CSV file must have one value .* several values")
    refused(tmp_path, HEADER + ROWS.replace(FLOW, "NSI:OTHER(1.0)", 1), "Attribute 'DATAFLOW' .* several values")
    refused(tmp_path, HEADER, "Attribute 'DATAFLOW' .* no rows")


@pytest.mark.parametrize("first", ["DATAFLOW", "STRUCTURE"])
def test_names_beside_codes_are_refused(tmp_path, first):
    text = (
        "DATAFLOW,SEX:Sex,OBS_VALUE:Value\nNSI:POP(1.0): Population,F: Women,5\n"
        if first == "DATAFLOW"
        else "STRUCTURE,STRUCTURE_ID,STRUCTURE_NAME,SEX,Sex,OBS_VALUE\ndataflow,NSI:POP(1.0),Population,F,Women,5\n"
    )
    refused(tmp_path, text, "must have codes only.* labels=id", count="OBS_VALUE", domain=None)


def test_axes_that_are_named(tmp_path):
    text = "DATAFLOW,OBS_VALUE,SEX,OBS_STATUS\nNSI:POP(1.0),5,F,A\nNSI:POP(1.0),6,M,A\n"
    refused(tmp_path, text, "got 'SEX'. .* list the dimensions with axes=", domain={})
    table = read(tmp_path, text, axes=["SEX"], domain={"SEX": ["F", "M"]})
    assert table_bytes(table, "csv").decode() == text.replace(",A\n", ",E\n")


def test_rows_of_totals_are_refused_without_a_structure(tmp_path):
    text = HEADER + ROWS + f"{FLOW},A,_T,Y0T14,2021,{SECRET},A,C,PS\n"
    refused(tmp_path, text, "label '_T' in column 'SEX' look like totals.* drop_rows={'SEX': '_T'}", domain=None)
    assert read(tmp_path, text, drop_rows={"SEX": "_T"}).counts.tolist() == [SECRET, 6, 7, 8]


def test_no_attribute_depends_on_the_counts(tmp_path):
    """Two tables with other counts and other flags, one with a row less: the files differ in the counts alone."""
    other = HEADER + "".join(
        re.sub(r",\d+,[AE],[CN],", f",{k},{flag},", row) + "\n"
        for k, (row, flag) in enumerate(zip(ROWS.splitlines(), ("Q,C", "M,S", "A,F"), strict=False))
    )
    files = [table_bytes(read(tmp_path, text), "csv").decode() for text in (HEADER + ROWS, other)]
    assert files[0] != files[1]
    assert len({re.sub(r",\d+,E,F,", ",n,E,F,", text) for text in files}) == 1


def test_pysdmx_reads_a_release(tmp_path):
    released = ks.release(read(tmp_path), keep=["SEX"], mechanism=ks.Laplace(1), rng=ks.rng(seed=1))
    text = released.save(tmp_path / "released.csv").read_text()
    (data,) = read_sdmx(io.BytesIO(text.encode()), validate=False).data
    assert "NSI:DF_POP(1.0)" in str(data.structure)
    assert pd.to_numeric(data.data["OBS_VALUE"]).tolist() == released.table.counts.tolist()
    assert set(data.data["OBS_STATUS"]) == {"E"}


def test_verification_covers_the_attributes(tmp_path):
    """Whoever changes a unit changes every count."""
    released = ks.release(read(tmp_path), keep=["SEX"], mechanism=ks.Laplace(1), rng=ks.rng(seed=1))
    out = released.save(tmp_path / "released.csv")
    text = out.read_text()
    stated = {"DATAFLOW": FLOW, "OBS_STATUS": "E", "CONF_STATUS": "F", "UNIT_MEASURE": "PS"}
    assert released.certificate.table.attributes == stated
    assert ks.verify(out, allow_seeded=True)
    changes = [
        (",E,F,PS", ",A,F,PS", 1),
        (",E,F,PS", ",A,F,PS", -1),
        (",PS\n", ",1000PS\n", -1),
        (FLOW, "NSI:OTHER(1.0)", -1),
        ("UNIT_MEASURE", "UNIT_MULT", 1),
    ]
    for old, new, times in changes:
        assert text.replace(old, new, times) != text
        out.write_text(text.replace(old, new, times))
        assert not ks.verify(out, allow_seeded=True)
    out.write_text(text)
    assert ks.verify(out, allow_seeded=True)
    added = released.save(tmp_path / "other.csv")
    added.write_text("".join(f"{line},{k}\n" for k, line in enumerate(text.splitlines())))
    assert not ks.verify(added, allow_seeded=True)


# -- structure files ------------------------------------------------------------------------------------

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
