"""Every command of docs/inputs.md runs as it stands, and every release verifies."""

from __future__ import annotations

import csv
import gzip
import re
import shlex
import sqlite3
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from keepsum.cli.app import run

PAGE = (Path(__file__).parent.parent / "docs" / "inputs.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## Which command for my file")[1].split("\n\n")[1]
ROWS = [line.split("|")[1:3] for line in TABLE.splitlines()[2:]]
COMMANDS = {what.strip(): re.findall(r"`(keepsum [^`]*)`", commands) for what, commands in ROWS}
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)

PLACES = [("IL", "Cook", "17031"), ("IL", "Lake", "17097"), ("WI", "Lake", "55059"), ("WI", "Dane", "55025")]
CATEGORIES = (
    'county = ["Cook", "Dane", "Lake"]\nsex = ["f", "m"]\nclinic = ["North", "South"]\nmonth = ["May", "June"]\n'
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the page speaks of."""
    monkeypatch.chdir(tmp_path)
    rows = [(county, sex, k) for k, (_, county, _) in enumerate(PLACES[:2]) for sex in "fm"]
    write("counts.csv", ["county,sex,n", *(f"{county},{sex},{k}" for county, sex, k in rows)])
    write("counties.csv", ["state,county,n", *(f"{state},{county},{k}" for k, (state, county, _) in enumerate(PLACES))])
    write("coded.csv", ["county,fips,n", *(f"{county},{code},7" for _, county, code in (PLACES[0], *PLACES[2:]))])
    write("wide.csv", ["county,white,black,asian", "Cook,5,6,7", "Lake,1,0,2"])
    write("totals.csv", ["county,sex,n", *(f"{county},{sex},{k}" for county, sex, k in rows), "Total,f,1", "Total,m,1"])
    write("visits.csv", ["person,clinic,month", "1,North,May", "1,North,June", "2,South,May"])
    people = {"county": ["Cook", "Lake", "Lake"], "age": [3, 40, 80], "sex": ["f", "m", "f"]}
    parquet.write_table(pa.table(people), "people.parquet")
    visits = {"person_id": [1, 1, 2], "clinic": ["North", "South", "South"], "month": ["May", "May", "June"]}
    parquet.write_table(pa.table(visits), "visits.parquet")
    text = Path("counts.csv").read_text(encoding="utf-8")
    Path("counts.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    Path("old.csv").write_bytes(text.replace("Cook", "Doña Ana").encode("windows-1252"))
    workbook = openpyxl.Workbook()
    workbook.active.title = "Counts"
    workbook.create_sheet("Notes")
    for row in csv.reader(text.splitlines()):
        workbook.active.append(row)
    workbook.save("counts.xlsx")
    codes = [(sex, age) for sex in "FM" for age in ("Y0T14", "Y_GE15")]
    lines = [f"NSI:POP(1.0),{sex},{age},7,A,F" for sex, age in codes]
    write("population.csv", ["DATAFLOW,SEX,AGE,OBS_VALUE,OBS_STATUS,CONF_STATUS", *lines])
    Path("counties.toml").write_text('county = ["Cook", "Lake"]\n')
    with sqlite3.connect("people.db") as database:
        database.execute("create table people (county text)")
        database.executemany("insert into people values (?)", [("Cook",), ("Lake",), ("Lake",)])
    return tmp_path


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def needed_categories(arguments: list[str]) -> str:
    """The categories of the axes that a command counts by."""
    by = arguments[arguments.index("--by") + 1].split(",") if "--by" in arguments else []
    return "".join(line + "\n" for line in CATEGORIES.splitlines() if line.split(" = ")[0] in by)


def test_the_page_has_them_all():
    assert len(COMMANDS) == 15
    assert all(COMMANDS.values())
    assert len(BLOCKS) == 3


@pytest.mark.thinned
@pytest.mark.parametrize("commands", [*COMMANDS.values(), *([block] for block in BLOCKS)])
@pytest.mark.usefixtures("files")
def test_commands_run_and_verify(commands, capsys):
    for command in commands:
        program, *arguments = shlex.split(command.replace("\\\n", " "))
        assert program == "keepsum"
        Path("categories.toml").write_text(needed_categories(arguments))
        if "--spec" in arguments:
            Path("keepsum.toml").write_text("source.count = 'n'\nkeep.total = true\nmechanism.epsilon = 1\n")
        yes = ["--yes"] if arguments[0] == "release" else []
        assert run([*arguments, *yes]) == 0, capsys.readouterr().err
        if arguments[0] == "release":
            place = arguments[arguments.index("-o") + 1] if "-o" in arguments else "out/"
            assert run(["verify", place]) == 0, capsys.readouterr().out


SPECS = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("spec", [SPECS[0], SPECS[0] + SPECS[1], SPECS[2]])
@pytest.mark.usefixtures("files")
def test_specs_run_and_verify(spec, capsys):
    """A spec of the page, on the data that it names."""
    assert len(SPECS) == 3
    rows = [f"{state},{county},{sex},{k}" for k, (state, county, _) in enumerate(PLACES) for sex in "fm"]
    write("counts.csv", ["state,county,sex,n", *rows])
    people = {"county": ["Cook", "Lake", "Lake"], "age": [3, 40, 80], "sex": ["f", "m", "f"]}
    parquet.write_table(pa.table(people), "people.parquet")
    assert run(["keygen", "key.pem"]) == 0
    Path("keepsum.toml").write_text(spec, encoding="utf-8")
    assert run(["release", "--yes"]) == 0, capsys.readouterr().err
    places = re.findall(r'^(?:output\.)?path = "(.*?)"', spec, flags=re.MULTILINE)
    assert places
    for place in places:
        assert run(["verify", place]) == 0, capsys.readouterr().out
    assert Path("states.csv").exists() == ("states.csv" in spec)
