"""What ``keepsum init`` asks on a terminal; a wrong answer is told and asked for again, and never ends it."""

from __future__ import annotations

import gzip
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pytest

from keepsum._text import are_showable
from keepsum.cli.asking import with_options
from keepsum.cli.questions import groups
from keepsum.errors import InputError
from keepsum.specs.options import with_typed
from keepsum.specs.spec import Axes, Keep, SourceSpec, Spec
from support import refusal

COUNTS = "county,sex,n\n" + "".join(f"{county},{sex},{7 * k}\n" for k, county in enumerate("ABC") for sex in "fm")
NESTED = "state,county,n\nIL,Cook,1\nIL,Kane,2\nWI,Lake,3\nWI,Dane,4\nWI,Total,7\n"
END = ["total", "1", "n", "n", "out/"]  # totals, epsilon, categories, negative counts, output


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "counts.csv").write_text(COUNTS)
    (tmp_path / "nested.csv").write_text(NESTED)
    return tmp_path


def spec_in(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "keepsum.toml").read_text(encoding="utf-8"))


def test_answers_on_a_terminal(run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    """What is noticed in the table is met by Enter; a wrong answer is told and asked again."""
    answers = [
        "none.csv",  # is not there
        "postgres://me:secret@host/db",  # has a password
        "nested.csv",
        "y",  # rows have counts
        "",  # n, by its name
        "",  # rows of totals are dropped
        "",  # counties are nested
        "town",  # no axis
        "county",  # leaves no noise
        "state total",
        "-1",  # no epsilon
        "0.5",
        "y",  # the categories are public
        "n",  # counts may be negative
        "y",  # no place
        "",  # out/
    ]
    done = answered(answers)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "File 'none.csv' must be readable" in said
    assert "must not contain a password" in said
    assert "secret" not in said
    assert "Columns: state, county, n." in said
    assert "Leave out the rows with county=Total? [Y/n]" in said
    assert "Is county within state? [Y/n]" in said
    assert "Options to add" not in said
    assert "Which totals are kept exactly? Axes: state, county, several with a blank between; total for the" in said
    assert "An axis must be one of 'state', 'county', got 'town'" in said
    assert "The kept totals determine every cell" in said
    assert "Epsilon, the privacy loss of one person" in said
    assert "Epsilon must be a positive number, got '-1'" in said
    assert "Output must be a file such as 'released.csv' or a folder such as 'out/', got 'y'" in said
    assert spec_in(here) == {
        "version": 1,
        "source": {"data": "nested.csv", "count": "n", "drop_rows": {"county": ["Total"]}},
        "axes": {
            "within": {"county": "state"},
            "categories": {"state": ["IL", "WI"], "county": {"IL": ["Cook", "Kane"], "WI": ["Dane", "Lake"]}},
        },
        "keep": {"margins": ["state"], "total": True},
        "mechanism": {"epsilon": 0.5},
        "output": {"path": "out/"},
    }
    assert run("release", "--yes").returncode == 0


def test_what_is_not_there_is_told_before_anything_is_asked(answered: Callable[..., Any], here: Path) -> None:
    for table in ("none.csv", "sqlite:///none.db", "none-*.parquet", "host=x password=secret"):
        failed = answered(["y"], table)
        assert failed.returncode == refusal(failed)
        assert b"?" not in failed.stderr
        assert b"secret" not in failed.stderr


def test_leaving_in_the_middle_writes_nothing(answered: Callable[..., Any], here: Path) -> None:
    done = answered(["y"], "counts.csv")
    assert done.returncode != 0
    assert not (here / "keepsum.toml").exists()


# -- records ----------------------------------------------------------------------------------------


def test_records_and_persons(run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    (here / "visits.csv").write_text("person,clinic,age\n1,North,3\n1,South,3\n2,North,40\n")
    answers = ["y", "clinic,town", "clinic,age", "", "North,North", "North,South", "", "bins 18,0", "bins 0,18,"]
    answers += ["n", "", "", "maybe", "y", "clinic", "person", "some", "1", "", "", "n", "visits/"]
    done = answered(answers, "visits.csv")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "must be one of person, clinic, age, got 'town'" in said
    assert "Categories of clinic, with commas between them (or: bins 0,18,65," in said
    assert "must have different labels" in said
    assert said.count("Can one person have several records? [y/n]") == 3  # Enter is no answer
    assert said.count("The answer must be y for yes or n for no.") == 2
    assert "Which column identifies a person? (- if none does: the guarantee is then for one record" in said
    assert "The column of the unit must not be an axis" in said
    assert "At most how many records of each person are counted?" in said
    assert "Epsilon, the privacy loss of one person" in said
    written = spec_in(here)
    assert written["records"] == {
        "by": ["clinic", "age"], "bins": {"age": ["0", "18", ""]}, "unit": "person", "max_rows_per_unit": 1,
    }  # fmt: skip
    assert written["axes"] == {"categories": {"clinic": ["North", "South"]}}
    assert run("release", "--yes").returncode == 0


def test_nested_records_and_one_record_per_person(
    run: Callable[..., Any], answered: Callable[..., Any], here: Path
) -> None:
    (here / "people.csv").write_text("county;state\nCook;IL\nLake;WI\n")
    (here / "states.toml").write_text('state = ["IL", "WI"]\n')
    answers = ["y", "county,state", "county:town", "county:state", "file none.toml", "file states.toml", ""]
    answers += ["Cook,Lake", "Lake", "", "n", "state", "n", "state", "y", "1", "n", "people/"]
    done = answered(answers, "people.csv")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Categories of county in IL, with commas" in said
    assert "Epsilon, the privacy loss of one person" in said
    assert spec_in(here)["records"] == {"by": ["county", "state"], "max_rows_per_unit": 1}
    assert "1 cell is determined by these totals, and would be published without noise: state=WI, county=Lake." in said
    assert spec_in(here)["output"] == {"path": "people/", "accept_pinned": ["state=WI, county=Lake"]}
    assert spec_in(here)["axes"] == {
        "within": {"county": "state"}, "domain": "states.toml",
        "categories": {"county": {"IL": ["Cook", "Lake"], "WI": ["Lake"]}},
    }  # fmt: skip
    assert run("release", "--yes").returncode == 0


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database(kind: str, run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    """Its tables are listed, and its columns."""
    database: Any = (sqlite3 if kind == "sqlite" else duckdb).connect(str(here / "people.db"))
    for command in ("CREATE TABLE people (county TEXT)", "CREATE TABLE other (x TEXT)"):
        database.execute(command)
    database.execute("INSERT INTO people VALUES ('A'), ('B')")
    database.commit()
    database.close()
    done = answered(["peopl", "people", "town", "county", "A,B", "", "n", "total", "1", "n", "out/"], "people.db")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Which table of the database? (other, people)" in said
    assert "it has no such table" in said
    assert "Columns: county." in said
    assert "Does each row have a count" not in said
    assert spec_in(here)["source"] == {"data": "people.db", "table": "people"}
    assert run("release", "--yes").returncode == 0


def test_a_column_of_records_alone(answered: Callable[..., Any], here: Path) -> None:
    (here / "one.csv").write_text("county\nA\nB\n")
    done = answered(["county", "A,B", "", "n", *END[:3], "n", "out/"], "one.csv")
    assert done.returncode == 0, done.stderr
    assert spec_in(here)["records"] == {"by": ["county"], "max_rows_per_unit": 1}


# -- files of any kind ------------------------------------------------------------------------------


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    sheet = book.create_sheet("Counts")
    for line in COUNTS.splitlines():
        county, sex, n = line.split(",")
        sheet.append([county, sex, int(n) if n.isdecimal() else n])
    book.save(path)


FILES: dict[str, tuple[Callable[[Path], object], list[str], dict[str, str]]] = {
    "counts.xlsx": (workbook, ["Totals", "Counts"], {"sheet": "Counts"}),
    "counts.csv.gz": (lambda path: path.write_bytes(gzip.compress(COUNTS.encode(), mtime=0)), [], {}),
    "old.csv": (
        lambda path: path.write_bytes(COUNTS.replace("A", "Köln").encode("windows-1252")),
        ["none", ""],
        {"encoding": "windows-1252"},
    ),
    "half.csv": (
        lambda path: path.write_bytes(COUNTS.encode("utf-16-le")),
        [""],
        {"encoding": "utf-16-le"},
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_release_reads(name: str, run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    write, answers, form = FILES[name]
    write(here / name)
    done = answered([*answers, "y", "n", *END], name)
    assert done.returncode == 0, done.stderr
    assert "Columns: county, sex, n." in done.stderr.decode()
    assert spec_in(here)["source"] == {"data": name, "count": "n", **form}
    assert run("release", "--yes").returncode == 0


def test_a_choice_may_be_in_quotes(answered: Callable[..., Any], here: Path) -> None:
    workbook(here / "counts.xlsx")
    done = answered(['"Counts', '"Counts"', "y", '"n"', *END], "counts.xlsx")
    assert done.returncode == 0, done.stderr
    assert b"The answer must be one of Notes, Counts, got '\"Counts'." in done.stderr
    assert spec_in(here)["source"] == {"data": "counts.xlsx", "sheet": "Counts", "count": "n"}


def test_a_file_that_is_no_table_is_asked_for_again(answered: Callable[..., Any], here: Path) -> None:
    (here / "photo.csv").write_bytes(bytes(range(256)) * 10)
    (here / "paper.pdf").write_bytes(b"%PDF-1.4\nx\n")
    (here / "empty.csv").write_bytes(b"")
    done = answered(["photo.csv", "paper.pdf", "empty.csv", "counts.csv", "y", "n", *END])
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    for words in ("neither text nor a format that is known", "it is a PDF file", "but it is empty"):
        assert words in said
    assert spec_in(here)["source"]["data"] == "counts.csv"


def test_records_in_a_sheet_are_refused(answered: Callable[..., Any], here: Path) -> None:
    workbook(here / "counts.xlsx")
    done = answered(["n"], "counts.xlsx", "--sheet", "Counts")
    assert done.returncode == refusal(done)
    assert b"Records must be in a CSV file in UTF-8, a Parquet file or a database" in done.stderr


def test_a_row_of_data_instead_of_a_header_is_not_shown(answered: Callable[..., Any], here: Path) -> None:
    (here / "bare.csv").write_text("A,f,4711\nB,m,4712\n")
    done = answered(["y", "x"], "bare.csv")
    assert done.returncode != 0
    assert b"471" not in done.stderr


# -- what is noticed --------------------------------------------------------------------------------


def test_a_code_is_published_or_left_out(answered: Callable[..., Any], here: Path) -> None:
    rows = [f"{county},id-{k},{sex},5\n" for k, county in enumerate("ABC") for sex in "fm"]
    (here / "coded.csv").write_text("county,code,sex,n\n" + "".join(rows))
    done = answered(["", *END], "coded.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert b"Publish code along with county, as it is? [Y/n]" in done.stderr
    assert spec_in(here)["source"]["carry"] == {"code": "county"}
    done = answered(["n", "", *END], "coded.csv", "--count", "n", "--force")
    assert done.returncode == 0, done.stderr
    assert b"Leave out code? [Y/n]" in done.stderr
    assert spec_in(here)["source"]["drop"] == ["code"]


def test_columns_of_numbers(run: Callable[..., Any], answered: Callable[..., Any], here: Path) -> None:
    """Enter leaves a column out, because it may be another measure; if that cannot be, it is asked again."""
    rows = [f"{county},0{k},{year},{k}7,5\n" for k, county in enumerate("ABC") for year in (2020, 2021)]
    (here / "numbers.csv").write_text("county,fips,year,births,n\n" + "".join(rows))
    answers = ["code", "", "", "", "code", "", "axis", "", *END]
    done = answered(answers, "numbers.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "fips has numbers: is it an axis of the table" in said
    assert "Which axis does fips follow from? (county) [county]" in said
    written = spec_in(here)
    assert written["source"] == {
        "data": "numbers.csv", "count": "n", "drop": ["births"], "carry": {"fips": "county"}
    }  # fmt: skip
    assert written["axes"] == {"names": ["county", "year"]}
    assert run("release", "--yes").returncode == 0


def test_a_sparse_table_is_not_dense_by_default(answered: Callable[..., Any], here: Path) -> None:
    rows = [f"a{k},b{(k + j) % 9},1\n" for k in range(9) for j in range(3)]
    (here / "sparse.csv").write_text("x,y,n\n" + "".join(rows))
    done = answered(["", "y:z", "y:x", *END], "sparse.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Which axis is within which? (such as y:x" in said
    assert "got 'z'" in said
    assert spec_in(here)["axes"] == {"within": {"y": "x"}}
    assert answered(["dense", *END], "sparse.csv", "--count", "n", "--force").returncode == 0
    assert spec_in(here)["axes"] == {"dense": True}


def test_totals_with_any_label(answered: Callable[..., Any], here: Path) -> None:
    """Labels that an option must quote, and labels with digits, which are not shown."""
    (here / "totals.csv").write_text('town,n\nRome,1\nUtica,2\n"Total, ""NY"" 4711",3\n')
    done = answered(["", *END], "totals.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert b"Leave out the rows with a label of town that looks like a total?" in done.stderr
    assert b"4711" not in done.stderr
    assert spec_in(here)["source"]["drop_rows"] == {"town": ['Total, "NY" 4711']}


def test_options_are_asked_for_until_they_help(answered: Callable[..., Any], here: Path) -> None:
    """Nothing typed ends it or gets it stuck: a wrong option is told, replaced by the right one, or taken back."""
    answers = [
        "n",  # the rows of totals stay
        "--withn a:b",  # unknown
        "other.csv",  # no option
        "--drop-rows 'county=Total",  # an open quote
        "--drop-rows county=Totl",  # no such label
        "--drop-rows county=Total",  # replaces it
        "n",  # not nested
        "n",  # nor dense
        "--drop town",  # no such column
        "--within county:state",  # instead of it
        *END,
    ]
    done = answered(answers, "nested.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    for words in (
        "No such option",
        "got 'other.csv' as well. Leave out 'other.csv'.",
        "every quotation mark closed",
        "has no label 'Totl'",
    ):
        assert words in said
    assert "A column to drop must be one of the columns" in said
    assert spec_in(here)["source"] == {"data": "nested.csv", "count": "n", "drop_rows": {"county": ["Total"]}}
    assert spec_in(here)["axes"] == {"within": {"county": "state"}}
    assert "other.csv" not in (here / "keepsum.toml").read_text()


def test_options_are_taken_back_by_enter(answered: Callable[..., Any], here: Path) -> None:
    answers = ["n", "--encoding utf-16", "", "--drop-rows county=Total", "", *END]
    done = answered(answers, "nested.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert b"Options to add (Enter: take the last ones back)" in done.stderr
    assert "encoding" not in spec_in(here)["source"]


# -- how answers are read ---------------------------------------------------------------------------


def test_more_options_are_added_to_those_there_are() -> None:
    before = Spec(source=SourceSpec(data="x.csv", count="n"), keep=Keep(margins=["a"]))
    both = with_options(before, "--keep b --dense --count m")
    after = Spec(source=SourceSpec(data="x.csv", count="m"), axes=Axes(dense=True), keep=Keep(margins=["a", "b"]))
    assert both == after
    nested = with_options(Spec(axes=Axes(within={"a": "b", "c": "d"})), "--within a:e")
    assert nested.axes.within == {"a": "e", "c": "d"}
    more = with_options(nested, "--categories a:x=1,2 --categories a:y=3")
    assert with_options(more, "--categories a:x=4").axes.categories == {"a": {("x",): ["4"], ("y",): ["3"]}}
    for wrong in ("--withn a:b", "y.csv", "--help", "--spec x", "--max-rows-per-unit x"):
        with pytest.raises(InputError, match="Options must be like within=county:state"):
            with_options(Spec(), wrong)


def test_answers_are_read_as_in_a_shell() -> None:
    assert groups("county sex,age total", ",") == ["county", "sex,age", "total"]
    assert with_options(Spec(), "--within 'a b:c'").axes.within == {"a b": "c"}
    for wrong in ('a "b', "a,"):
        with pytest.raises(InputError):
            groups(wrong, ",")
    with pytest.raises(InputError, match="must be CHILD:PARENT such as county:state, got 'a:b:c'"):
        with_typed(Spec(), "axes.within", groups("a:b:c", ":"))
    with pytest.raises(InputError, match="every quotation mark closed"):
        with_options(Spec(), "'")
    assert not are_showable(["a", "15"])


def test_nothing_may_be_kept_and_blanks_are_no_answer(answered: Callable[..., Any], here: Path) -> None:
    done = answered(["nothing", *END[1:]], "counts.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert spec_in(here)["keep"] == {"nothing": True}
    done = answered([" ", *END[1:]], "counts.csv", "--count", "n", "--force")
    assert done.returncode == 0, done.stderr
    assert spec_in(here)["keep"] == {"total": True}


def test_an_axis_may_be_called_nothing(answered: Callable[..., Any], here: Path) -> None:
    (here / "x.csv").write_text("nothing,sex,n\na,f,1\na,m,2\nb,f,3\nb,m,4\n")
    done = answered(["nothing", *END[1:]], "x.csv", "--count", "n")
    assert done.returncode == 0, done.stderr
    assert spec_in(here)["keep"] == {"margins": ["nothing"]}


def test_one_problem_after_the_other_is_one_question_after_the_other(answered: Callable[..., Any], here: Path) -> None:
    """A code, a row of totals with empty labels, and a nesting: each answer settles its own question alone."""
    rows = ["IL,Cook,17031,f,5", "IL,Cook,17031,m,6", "IL,Kane,17089,f,2", "WI,Dane,55025,f,1", "WI,Dane,55025,m,0"]
    (here / "coded.csv").write_text("\n".join(["state,county,fips,sex,n", *rows, "Total,Total,,,14", ""]))
    answers = ["", "", "code", "county", "", "", "state", "1", "n", "n", ""]
    done = answered(answers, "coded.csv")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "Leave out the rows with state=Total? [Y/n]" in said
    assert said.count("fips has numbers") == 1
    source = spec_in(here)["source"]
    assert (source["carry"], source["drop_rows"]) == ({"fips": "county"}, {"state": ["Total"]})


def test_a_problem_of_the_data_is_not_blamed_on_an_answer(answered: Callable[..., Any], here: Path) -> None:
    """After the sheet is named, a count that is none is told, and the sheet is not asked for for ever."""
    book = openpyxl.Workbook()
    book.create_sheet("Notes")
    for row in (("county", "n"), ("A", 1), ("B", "many")):
        book.worksheets[0].append(row)
    book.save(here / "counts.xlsx")
    done = answered(["Sheet", "", "", "--dense"], "counts.xlsx")
    assert done.returncode != 0
    said = done.stderr.decode()
    assert said.count("Which sheet?") == 1
    assert "column 'n'" in said
