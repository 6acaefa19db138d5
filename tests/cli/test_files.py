"""Files people have, from the shell: the same release as from plain CSV, and from Python."""

import gzip
import io
import json
import re

import openpyxl
import pyarrow as pa
import pytest

import keepsum as ks
from support import mostly_audit, refusal

SECRET = 8675309
ROWS = [("county", "sex", "n"), ("Côte", "f", SECRET), ("Côte", "m", 21), ("Ain", "f", 33), ("Ain", "m", 42)]
TEXT = "".join(",".join(map(str, row)) + "\n" for row in ROWS)
OPTIONS = ["--count", "n", "--keep", "county", "--epsilon", "0.5", "--seed", "7", "--yes"]
DECLARED = ["--categories", "county=Côte,Ain", "--categories", "sex=f,m"]


def workbook(*sheets):
    book = openpyxl.Workbook()
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in ROWS:
            sheet.append(row)
    del book["Sheet"]
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


FILES = {
    "in.xlsx": (workbook("Counts"), []),
    "several.xlsx": (workbook("Notes", "Counts of 2021"), ["--sheet", "Counts of 2021"]),
    "in.csv.gz": (gzip.compress(TEXT.encode(), mtime=0), []),
    "in.csv.zst": (pa.compress(TEXT.encode(), codec="zstd", asbytes=True), []),
    "windows.csv": (TEXT.encode("windows-1252"), ["--encoding", "windows-1252"]),
    "utf-16.csv": (b"\xff\xfe" + TEXT.encode("utf-16-le"), []),
    "15.0.csv": (re.sub(r",(\d+)\n", r",\1.0\n", TEXT).encode(), []),
}
PYTHON = {"--sheet": "sheet", "--encoding": "encoding"}


@mostly_audit("name", FILES)
def test_the_same_release_as_from_csv_and_from_python(run, tmp_path, name):
    data, options = FILES[name]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "plain.csv").write_text(TEXT)
    for file, some, output in (("plain.csv", [], "a.csv"), (name, options, "b.csv")):
        done = run("release", file, *OPTIONS, *DECLARED, *some, "--output", output)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        assert str(SECRET).encode() not in done.stdout
    mark = b"\xef\xbb\xbf" if name == "utf-16.csv" else b""
    assert (tmp_path / "b.csv").read_bytes() == mark + (tmp_path / "a.csv").read_bytes()
    certificates = [json.loads((tmp_path / f"{output}.certificate.json").read_text()) for output in "ab"]
    for certificate in certificates:
        del certificate["released"]
    assert certificates[0] == certificates[1]
    assert run("verify", "b.csv", "--allow-seeded").returncode == 0
    arguments = {PYTHON[options[0]]: options[1]} if options else {}
    domain = {"county": ["Côte", "Ain"], "sex": ["f", "m"]}
    table = ks.read_table(tmp_path / name, "n", domain=domain, **arguments)
    released = ks.release(table, keep=["county"], mechanism=ks.Laplace("0.5"), rng=ks.rng(seed="7"))
    assert released.save(tmp_path / "c.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_from_standard_input(run, tmp_path):
    done = run("release", "-", *OPTIONS, *DECLARED, "--output", "out.csv", stdin=FILES["in.xlsx"][0])
    assert (done.returncode, done.stderr) == (0, b"")
    done = run("release", "-", *OPTIONS, *DECLARED, "--output", "again.csv", stdin=FILES["in.csv.gz"][0])
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()


SDMX = (
    "STRUCTURE,STRUCTURE_ID,ACTION,SEX,AGE,OBS_VALUE,OBS_STATUS\n"
    f"dataflow,NSI:POP(1.0),I,F,Y0,{SECRET},A\ndataflow,NSI:POP(1.0),I,F,Y1,21,Q\n"
    "dataflow,NSI:POP(1.0),I,M,Y0,33,A\ndataflow,NSI:POP(1.0),I,M,Y1,42,A\n"
)
STRUCTURE = {
    "data": {
        "codelists": [
            {"id": "CL_SEX", "agencyID": "SDMX", "codes": [{"id": "_T"}, {"id": "TOTAL"}, {"id": "M"}, {"id": "F"}]},
            {"id": "CL_AGE", "agencyID": "NSI", "codes": [{"id": "Y1"}, {"id": "Y0"}]},
        ],
        "dataStructures": [
            {
                "dataStructureComponents": {
                    "dimensionList": {
                        "dimensions": [
                            {"id": "SEX", "localRepresentation": {"enumeration": "SDMX:CL_SEX(1.0)"}},
                            {"id": "AGE", "localRepresentation": {"enumeration": "NSI:CL_AGE(1.0)"}},
                        ]
                    }
                }
            }
        ],
    }
}
SDMX_OPTIONS = ["--keep", "SEX", "--epsilon", "0.5", "--yes"]


def test_sdmx_in_and_out(run, tmp_path):
    (tmp_path / "in.csv").write_text(SDMX)
    (tmp_path / "structure.json").write_text(json.dumps(STRUCTURE))
    options = [*SDMX_OPTIONS, "--structure", "structure.json"]
    done = run("release", "in.csv", *options, "--output", "out.csv", "--flag", "OBS_STATUS=U")
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == SDMX.splitlines()[0]
    pattern = r"dataflow,NSI:POP\(1.0\),I,(M|F),(Y0|Y1),-?\d+,U"
    codes = [re.fullmatch(pattern, line).groups() for line in lines[1:]]
    assert codes == [("M", "Y1"), ("M", "Y0"), ("F", "Y1"), ("F", "Y0")]  # in the order of the code lists
    certificate = json.loads((tmp_path / "out.certificate.json").read_text())
    assert certificate["table"]["count"] == "OBS_VALUE"
    assert run("verify", "out.csv").returncode == 0
    folder = run("release", "in.csv", *options, "--output", "out/")
    assert (folder.returncode, folder.stderr) == (0, b"")
    assert run("verify", "out/").returncode == 0
    parquet = run("release", "in.csv", *options, "--output", "other.parquet")
    assert (parquet.returncode, parquet.stderr) == (0, b"")
    assert run("verify", "other.parquet").returncode == 0


BAD = {
    "a total": (
        SDMX + f"dataflow,NSI:POP(1.0),I,_T,Y0,{SECRET},A\n",
        ["--structure", "structure.json"],
        "are totals by its code list, which would be counted twice. Leave them out with --drop-rows SEX=_T",
    ),
    "several totals": (
        SDMX + "".join(f"dataflow,NSI:POP(1.0),I,{code},Y0,{SECRET},A\n" for code in ("_T", "TOTAL")),
        ["--structure", "structure.json"],
        "Leave them out with --drop-rows SEX=_T,TOTAL, or declare the categories of 'SEX' with",
    ),
    "a total without a structure": (
        SDMX + f"dataflow,NSI:POP(1.0),I,_T,Y0,{SECRET},A\n",
        [],
        "look like totals, which would be counted twice. Leave them out with --drop-rows SEX=_T",
    ),
    "no structure": (SDMX, ["--structure", "in.csv"], "must be an SDMX structure message"),
    "a missing structure": (SDMX, ["--structure", "none.xml"], "must be readable"),
    "a structure of no SDMX": (
        "SEX,OBS_VALUE\nF,5\n",
        ["--structure", "structure.json", "--count", "OBS_VALUE"],
        "Options --structure and --flag must be used with an SDMX-CSV file",
    ),
    "a flag without a value": (SDMX, ["--flag", "OBS_STATUS"], "Option --flag must give an attribute one value"),
    "a flag twice": (SDMX, ["--flag", "OBS_STATUS=A", "--flag", "OBS_STATUS=E"], "must give an attribute one value"),
    "a flag of nothing": (SDMX, ["--flag", "SEX=A"], "Option --flag must name attributes of the file, got 'SEX'"),
    "a comment": (
        SDMX.replace("OBS_STATUS", "OBS_COMMENT"),
        [],
        "got 'OBS_COMMENT'. Leave them out with --drop, give each one value with --flag, or list the dimensions with",
    ),
    "two data flows": (SDMX.replace("POP", "OTHER", 1), [], "'STRUCTURE_ID' of an SDMX-CSV file must have one value"),
    "several sheets": (workbook("A", "B"), [], "or the sheet must be named with --sheet, got 'A', 'B'."),
    "no such sheet": (workbook("A", "B"), ["--sheet", "C"], "must be one of 'A', 'B', got 'C'."),
    "cut off": (gzip.compress(SDMX.encode(), mtime=0)[:-10], [], "must be a complete gzip file"),
}


@mostly_audit(("data", "options", "words"), BAD.values(), ids=BAD)
def test_bad_files_give_one_sentence(run, tmp_path, data, options, words):
    (tmp_path / "in.csv").write_bytes(data if isinstance(data, bytes) else data.encode())
    (tmp_path / "structure.json").write_text(json.dumps(STRUCTURE))
    for command in (
        ["release", "in.csv", *SDMX_OPTIONS, "--output", "out.csv"],
        ["plan", "in.csv", *SDMX_OPTIONS[:-1]],
    ):
        done = run(*command, *options)
        message = done.stderr.decode()
        assert done.returncode == refusal(done), done.stdout
        assert words in message
        assert "Traceback" not in message
        assert message.count("keepsum: ") == 1
        assert str(SECRET) not in message
        assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("option", [["--sheet", "A"], ["--encoding", "utf-8"], ["--structure", "s"], ["--flag", "A=B"]])
def test_options_of_files_need_a_file(run, option):
    done = run("plan", "--categories", "sex=f,m", "--keep-total", "--epsilon", "1", *option)
    assert done.returncode == refusal(done)
    assert f"Option {option[0]} requires a table. Leave it out.".encode() in done.stderr
