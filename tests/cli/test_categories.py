"""Categories declared in a command, and the order of what is released."""

import contextlib
import io
import json
from pathlib import Path

import polars as pl
import pytest

from keepsum.cli.app import run
from keepsum.specs.option import parse_categories
from support import mostly_audit, refused_in_shell


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a command in an empty folder, in this process: status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def keepsum(*arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            status = run([str(argument) for argument in arguments])
        return status, out.getvalue(), err.getvalue()

    return keepsum


@mostly_audit(
    ("texts", "within", "declared"),
    [
        (["sex=f,m", "age=1"], {}, {"sex": ["f", "m"], "age": ["1"]}),
        ([" sex = f , m "], {}, {"sex": ["f", "m"]}),
        (['town="Rome, NY",Utica', 'size="5"" pipe"'], {}, {"town": ["Rome, NY", "Utica"], "size": ['5" pipe']}),
        (['town=" a ",b'], {}, {"town": [" a ", "b"]}),
        (["a=x=y,z"], {}, {"a": ["x=y", "z"]}),
        (['"a=b:c"=1,2'], {}, {"a=b:c": ["1", "2"]}),
        (["a:b=1,2"], {}, {"a:b": ["1", "2"]}),  # a colon is one unless the axis is nested
        (["c:IL=Cook,Lake", "c:WI=Lake"], {"c": "s"}, {"c": {("IL",): ["Cook", "Lake"], ("WI",): ["Lake"]}}),
        (['c:"A:B"=x'], {"c": "s"}, {"c": {("A:B",): ["x"]}}),
        (["t:IL:Cook=1,2"], {"t": "c", "c": "s"}, {"t": {("IL", "Cook"): ["1", "2"]}}),
        (["sex=f,m\n"], {}, {"sex": ["f", "m"]}),
    ],
)
def test_forms(texts, within, declared):
    assert parse_categories(texts, within) == declared


@mostly_audit(
    "text", ["", "a", "a=", "=x", "a=x,,y", "a=x,", 'a=""', 'a="x', 'a="x"y', 'a=x"y', "a= ,x", "a:=x", ":a=x", '"a=x']
)
def test_what_is_no_list(text):
    with refused_in_shell("^Option --categories must be AXIS=LABEL,LABEL such as"):
        parse_categories([text], {"a": "b"} if ":" in text else {})


def test_a_plan_from_the_command_alone(call):
    options = ["--categories", "sex=f,m", "--categories", "county:x=A,B", "--categories", "county:y=A"]
    options += ["--categories", "state=x,y", "--within", "county:state", "--keep", "state", "--epsilon", "1"]
    status, out, err = call("plan", *options, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["cells"] == 6
    assert json.loads(out)["kept"]["totals"] == ["total of state=x", "total of state=y"]
    status, _, err = call("plan", *options, "--keep-order")
    assert status == 2
    assert "--keep-order requires a table" in err


LEVELS = "county,level,n\nB,Top,1\nB,Low,2\nB,Mid,3\nA,Mid,4\nA,Low,5\nA,Top,6\n"


@pytest.mark.parametrize(
    ("options", "counties", "levels"),
    [
        ([], "AB", ["Low", "Mid", "Top"]),
        (["--categories", "level=Top,Mid,Low"], "AB", ["Top", "Mid", "Low"]),
        (["--categories", "level=Top,Mid,Low,None", "--categories", "county=B,A"], "BA", ["Top", "Mid", "Low", "None"]),
        (["--domain", "c.toml", "--categories", "county=B,A"], "BA", ["Mid", "Top", "Low"]),
    ],
)
def test_the_order_of_a_release_is_the_declared_one(call, options, counties, levels):
    Path("in.csv").write_text(LEVELS)
    Path("c.toml").write_text('level = ["Mid", "Top", "Low"]\n')
    base = ["in.csv", "--count", "n", "--keep", "county", "--epsilon", "1", "-o", "out.csv", "--yes"]
    status, out, err = call("release", *base, *options)
    assert (status, err) == (0, "")
    table = pl.read_csv("out.csv")
    assert table.select("county", "level").rows() == [(county, level) for county in counties for level in levels]
    assert "order of the file" not in out
    assert call("verify", "out.csv")[0] == 0


def test_an_order_that_is_public_is_kept_and_recorded(call):
    Path("in.csv").write_text(LEVELS)
    base = ["in.csv", "--count", "n", "--keep", "county", "--epsilon", "1", "-o", "out.csv", "--yes", "--keep-order"]
    status, out, err = call("release", *base)
    assert (status, err) == (0, "")
    assert "in the order of the file, declared public" in " ".join(out.split())
    lines = [line.rsplit(",", 1)[0] for line in Path("out.csv").read_text().splitlines()]
    assert lines == [line.rsplit(",", 1)[0] for line in LEVELS.splitlines()]
    certificate = json.loads(Path("out.certificate.json").read_bytes())
    assert certificate["domain"]["keeps_file_order"] is True
    assert call("verify", "out.csv")[0] == 0


def test_categories_fit_columns_of_whole_numbers(call):
    """A command knows texts only; the type of the column decides."""
    frame = pl.DataFrame({"state": [17, 17, 55], "county": [31, 7, 1], "n": [3, 4, 5]})
    frame.write_parquet("in.parquet")
    options = ["--categories", "state=55,17", "--categories", "county:17=7,31", "--categories", "county:55=1,2"]
    base = ["in.parquet", "--count", "n", "--within", "county:state", "--keep", "state", "--epsilon", "1"]
    status, _, err = call("release", *base, *options, "-o", "out.parquet", "--yes")
    assert (status, err) == (0, "")
    table = pl.read_parquet("out.parquet")
    assert table.select("state", "county").rows() == [(55, 1), (55, 2), (17, 7), (17, 31)]
    assert table.schema == frame.schema
    assert call("verify", "out.parquet")[0] == 0


def test_whatever_an_option_names_is_an_axis(call):
    """A column of numbers is refused unless some option says that it is one."""
    Path("in.csv").write_text("town,age,n\na,10,3\na,9,4\nb,9,5\n")
    base = ["plan", "in.csv", "--count", "n", "--epsilon", "1", "--json"]
    status, _, err = call(*base, "--keep", "town")
    assert status == 2
    assert "Column 'age' must be declared, because it contains numbers" in err
    assert "with --axes, declare its categories with --categories or --domain, publish it along with an axis" in err
    assert "with --carry, or drop it with --drop." in err
    for options in (["--keep", "age"], ["--axes", "town,age", "--keep", "town"]):
        status, _, err = call(*base, *options)
        assert status == 0, err
    status, out, _ = call(*base, "--keep", "town", "--categories", "age=9,10,11")
    assert (status, json.loads(out)["cells"]) == (0, 6)


NESTED = ["--within", "level:county", "--categories"]
BAD = {
    "an order of some cells": (["--drop", "x", "--keep-order"], "leave out --keep-order"),
    "no axis": (["--categories", "A,B"], "must be AXIS=LABEL,LABEL such as"),
    "another axis": (["--categories", "town=A,B"], "one of 'county', 'level', got 'town'"),
    "a dropped axis": (["--drop", "level", "--categories", "level=Low"], "one of 'county', got 'level'"),
    "the count": (["--categories", "n=1,2"], "one of 'county', 'level', got 'n'"),
    "an axis twice": (["--categories", "county=A,B", "--categories", "county=B,A"], "of 'county' once"),
    "a category twice": (["--categories", "county=A,B,A"], "different labels"),
    "a blank category": (["--categories", "county=A,,B"], "must be AXIS=LABEL,LABEL such as"),
    "here and in a file": (["--categories", "county=A,B", "--domain", "c.toml"], "'county' must be declared once"),
    "a category left out": (["--categories", "county=A"], "line 2, column 'county', is not a declared category"),
    "no parent": ([*NESTED, "level=Low,Mid"], "within which 'county'"),
    "an undeclared parent": ([*NESTED, "level:C=Low,Mid"], "'county': 'C' is not a declared category"),
    "a parent too many": (
        [*NESTED, "level:A:B=Low,Mid"],
        "must be within a category of 'county': 'B' is not a declared category",
    ),
    "a parent twice": ([*NESTED, "level:A=Low", "--categories", "level:A=Mid"], "of 'level:A' once"),
}


@mostly_audit(("options", "message"), BAD.values(), ids=BAD)
def test_bad_declarations_give_one_sentence_and_no_file(call, options, message):
    rows = LEVELS if "--keep-order" not in options else LEVELS.replace("A,Low,5\n", "")
    header, *lines = rows.splitlines()
    Path("in.csv").write_text("\n".join([f"{header},x", *(f"{line},-" for line in lines)]) + "\n")
    Path("c.toml").write_text('county = ["A", "B"]\n')
    drop = [] if options[:2] == ["--drop", "x"] else ["--drop", "x"]
    base = ["release", "in.csv", "--count", "n", "--keep-total", "--epsilon", "1", "-o", "out.csv", "--yes"]
    status, out, err = call(*base, *drop, *options)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(Path().glob("out*"))
