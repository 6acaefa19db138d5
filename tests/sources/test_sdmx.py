"""SDMX-CSV in and out: dimensions, code lists, totals, and attributes that are true of the release."""

import io
import re

import pandas as pd
import pytest
from pysdmx.io import read_sdmx

import keepsum as ks
from keepsum.sources.writing import table_bytes
from sources.sdmx_files import DOMAIN, FLOW, HEADER, ROWS, SECRET, read, refused


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
    released = ks.release(read(tmp_path), keep=["SEX"], mechanism=ks.Laplace.per_unit(1), rng=ks.rng(seed=1))
    text = released.save(tmp_path / "released.csv").read_text()
    (data,) = read_sdmx(io.BytesIO(text.encode()), validate=False).data
    assert "NSI:DF_POP(1.0)" in str(data.structure)
    assert pd.to_numeric(data.data["OBS_VALUE"]).tolist() == released.table.counts.tolist()
    assert set(data.data["OBS_STATUS"]) == {"E"}


def test_verification_covers_the_attributes(tmp_path):
    """Whoever changes a unit changes every count."""
    released = ks.release(read(tmp_path), keep=["SEX"], mechanism=ks.Laplace.per_unit(1), rng=ks.rng(seed=1))
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
