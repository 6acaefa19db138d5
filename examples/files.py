"""Write the made-up files that the pages and every command's help use: python examples/files.py FOLDER.

``make examples`` writes them to examples/files.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
from pyarrow import parquet

PLACES = [
    *(("IL", "Cook", "17031"), ("IL", "Kane", "17089"), ("IL", "Lake", "17097")),
    *(("WI", "Dane", "55025"), ("WI", "Lake", "55059"), ("WI", "Rock", "55105")),
]
COUNTIES = ["Cook", "Dane", "Kane", "Rock"]
SEXES, AGES = ["f", "m"], ["0-17", "18-64", "65+"]
CLINICS, MONTHS = ["North", "South"], ["May", "June"]


def main(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("children.csv"), folder)
    write_counts(folder)
    write_other_forms(folder)
    write_records(folder)
    write_declarations(folder)


def made_up(*numbers: int) -> int:
    """A count that is the same in every run."""
    return 40 + (37 * numbers[0] + 53 * numbers[1] + 29 * sum(numbers)) % 160


def counts() -> list[list[Any]]:
    """The table of most examples."""
    return [[county, sex, made_up(i, j)] for i, county in enumerate(COUNTIES) for j, sex in enumerate(SEXES)]


def lines(path: Path, header: str, rows: list[list[Any]]) -> None:
    """Write a CSV file."""
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    path.write_text(f"{header}\n{text}", encoding="utf-8")


def write_counts(folder: Path) -> None:
    """Counts, one row per cell: by county and sex, in states, with codes, with rows of totals; published totals."""
    lines(folder / "counts.csv", "county,sex,n", counts())
    nested = [[state, county, sex, made_up(i, j, 1)] for i, (state, county, _) in enumerate(PLACES)
              for j, sex in enumerate(SEXES)]  # fmt: skip
    lines(folder / "counties.csv", "state,county,sex,n", nested)
    codes = {county: code for _, county, code in PLACES}
    lines(folder / "coded.csv", "county,fips,sex,n", [[row[0], codes[row[0]], *row[1:]] for row in counts()])
    totals = [["Total", sex, sum(row[2] for row in counts() if row[1] == sex)] for sex in SEXES]
    lines(folder / "totals.csv", "county,sex,n", counts() + totals)
    published = [[county, "", sum(row[2] for row in counts() if row[0] == county)] for county in COUNTIES]
    lines(folder / "published.csv", "county,sex,n", published)
    cells = [[county, sex, age, made_up(i, j, k)] for i, county in enumerate(COUNTIES)
             for j, sex in enumerate(SEXES) for k, age in enumerate(AGES)]  # fmt: skip
    columns = dict(zip(["county", "sex", "age", "n"], map(list, zip(*cells, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), folder / "cells.parquet")


def write_other_forms(folder: Path) -> None:
    """The same counts in other forms: wide, compressed, in an old encoding, in a workbook, as SDMX-CSV."""
    lines(folder / "wide.csv", "county,white,black,asian", [[c, *(made_up(i, k) for k in range(3))]
                                                              for i, c in enumerate(COUNTIES)])  # fmt: skip
    text = (folder / "counts.csv").read_text(encoding="utf-8")
    (folder / "counts.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "old.csv").write_bytes(text.replace("Dane", "Doña Ana").encode("windows-1252"))
    write_workbook(folder / "counts.xlsx", {"Counts": [["county", "sex", "n"], *counts()], "Notes": [["made up"]]})
    codes = [[f"NSI:POP(1.0),{sex},{age}", made_up(j, k), "A,F"] for j, sex in enumerate("FM")
             for k, age in enumerate(["Y0T14", "Y_GE15"])]  # fmt: skip
    lines(folder / "population.csv", "DATAFLOW,SEX,AGE,OBS_VALUE,OBS_STATUS,CONF_STATUS", codes)


def write_records(folder: Path) -> None:
    """Records: people in a Parquet file and in a database, and visits of whom some made several."""
    people = [[COUNTIES[k % 4], SEXES[(k // 4) % 2], (k * 31) % 92] for k in range(240)]
    columns = dict(zip(["county", "sex", "age"], map(list, zip(*people, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), folder / "people.parquet")
    (folder / "people.db").unlink(missing_ok=True)
    with sqlite3.connect(folder / "people.db") as database:
        database.execute("create table people (county text, sex text, age integer)")
        database.executemany("insert into people values (?, ?, ?)", people)
    database.close()
    visits = [[f"p{k * 2 // 3}", CLINICS[k % 2], MONTHS[(k // 5) % 2]] for k in range(120)]
    lines(folder / "visits.csv", "person_id,clinic,month", visits)


def write_declarations(folder: Path) -> None:
    """Categories for ``--domain``, and sets of cells for ``--keep-file``."""

    def axis(name: str, labels: list[str]) -> str:
        return f"{name} = {json.dumps(labels)}\n"

    (folder / "categories.toml").write_text(axis("county", COUNTIES) + axis("sex", SEXES), encoding="utf-8")
    children = {"county": ["Alpha", "Beta", "Gamma", "Delta"], "education": ["Low", "Medium", "High", "Very High"]}
    (folder / "children.toml").write_text("".join(axis(*item) for item in children.items()), encoding="utf-8")
    (folder / "visits.toml").write_text(axis("clinic", CLINICS) + axis("month", MONTHS), encoding="utf-8")
    nested = {state: [county for other, county, _ in PLACES if other == state] for state, _, _ in PLACES}
    (folder / "domain.toml").write_text(
        axis("state", list(nested))
        + axis("sex", SEXES)
        + "[county]\n"
        + "".join(axis(*item) for item in nested.items()),
        encoding="utf-8",
    )
    flows = {
        "age": AGES,
        "work": ["office", "shop", "none"],
        "place": ["city", "town", "farm"],
        "home": ["own", "let", "other"],
    }
    (folder / "flows.toml").write_text("".join(axis(*item) for item in flows.items()), encoding="utf-8")


def write_workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    """Write an .xlsx file by hand: no library of Keepsum writes one."""
    main_ns = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    numbers = range(1, len(sheets) + 1)
    parts = "".join(f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{kind}.worksheet+xml"/>'
                    for k in numbers)  # fmt: skip
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{k}" r:id="rId{k}"/>'
                     for k, name in zip(numbers, sheets, strict=True))  # fmt: skip
    links = "".join(f'<Relationship Id="rId{k}" Type="{office}/worksheet" Target="worksheets/sheet{k}.xml"/>'
                    for k in numbers)  # fmt: skip
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>{parts}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main_ns}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
    }
    for k, rows in zip(numbers, sheets.values(), strict=True):
        body = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        files[f"xl/worksheets/sheet{k}.xml"] = f'<worksheet xmlns="{main_ns}"><sheetData>{body}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as workbook:
        for name, text in files.items():
            workbook.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')


def _cell(value: Any) -> str:
    if isinstance(value, int):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
