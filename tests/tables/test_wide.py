"""Wide tables and carried columns: the release has the form of the table, and verifies."""

import csv
import io
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepsum as ks
from keepsum.cli.app import run

WIDE = "county,white,black,asian\nCook,5,6,7\nLake,1,0,2\n"
RACES = ["white", "black", "asian"]
LONG = {("Cook", "white"): 5, ("Cook", "black"): 6, ("Cook", "asian"): 7} | {
    ("Lake", "white"): 1,
    ("Lake", "black"): 0,
    ("Lake", "asian"): 2,
}
QUIET = pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")


def cells(table):
    names = table.domain.axes
    return {tuple(table.domain.cell(k)[name] for name in names): int(n) for k, n in enumerate(table.counts)}


def released(table):
    return ks.release(table, keep=["county"], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))


def rows_of(path):
    return list(csv.reader(io.StringIO(path.read_text())))


@QUIET
class TestWide:
    @pytest.mark.parametrize("wide", [{"race": RACES}, {"race": RACES[::-1]}])
    def test_it_is_the_long_table(self, tmp_path, wide):
        (tmp_path / "in.csv").write_text(WIDE)
        table = ks.read_table(tmp_path / "in.csv", wide=wide)
        assert cells(table) == LONG
        assert table.domain.categories("race") == tuple(wide["race"])
        assert table.undeclared == ("county",)

    def test_all_columns_but_the_axes(self, tmp_path):
        (tmp_path / "in.csv").write_text(WIDE)
        table = ks.read_table(tmp_path / "in.csv", axes=["county"], wide="race")
        assert cells(table) == LONG
        assert table.undeclared == ("county", "race")

    @pytest.mark.parametrize("name", ["fips", "County FIPS", "geoid", "county_id", "zip", "id"])
    def test_a_code_is_no_category(self, tmp_path, name):
        lines = WIDE.splitlines()
        coded = [f"{line},{name if k == 0 else 17030 + k}" for k, line in enumerate(lines)]
        (tmp_path / "in.csv").write_text("\n".join(coded) + "\n")
        with pytest.raises(ks.DataError, match=f"must be counts, but '{name}' may be codes .*carry=.*drop=.*wide="):
            ks.read_table(tmp_path / "in.csv", axes=["county"], wide="race")
        for options in ({"carry": {name: "county"}}, {"drop": [name]}):
            table = ks.read_table(tmp_path / "in.csv", axes=["county"], wide="race", **options)
            assert cells(table) == LONG
        assert cells(ks.read_table(tmp_path / "in.csv", axes=["county"], wide={"race": RACES})) == LONG
        domain = {"race": [*RACES, name]}
        assert ks.read_table(tmp_path / "in.csv", axes=["county"], wide="race", domain=domain).domain.size == 8

    @pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
    def test_the_release_comes_back_wide_and_verifies(self, tmp_path, kind):
        (tmp_path / "in.csv").write_text(WIDE)
        release = released(ks.read_table(tmp_path / "in.csv", wide={"race": RACES}))
        path = release.save(tmp_path / f"out.{kind}")
        frame = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}[kind](path)
        assert frame.columns == ["county", *RACES]
        assert frame["county"].to_list() == ["Cook", "Lake"]
        assert frame.select(pl.sum_horizontal(RACES)).to_series().to_list() == [18, 3]
        assert ks.verify(path, allow_seeded=True)

    @pytest.mark.parametrize("maker", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_frames(self, maker):
        frame = maker({"county": ["Cook", "Lake"], "white": [5, 1], "black": [6, 0], "asian": [7, 2]})
        release = released(ks.Table.from_frame(frame, wide={"race": RACES}))
        back = release.table.to_frame()
        assert type(back) is type(frame)
        columns = back.column_names if isinstance(back, pa.Table) else list(back.columns)
        assert columns == ["county", *RACES]

    def test_a_crosstab_needs_no_arguments(self):
        people = pd.DataFrame({"county": list("aabbb"), "race": list("xyxyy")})
        table = ks.Table.from_frame(pd.crosstab(people.county, people.race))
        assert cells(table) == {("a", "x"): 1, ("a", "y"): 1, ("b", "x"): 1, ("b", "y"): 2}
        assert list(released(table).table.to_frame().columns) == ["county", "x", "y"]

    def test_rows_in_the_order_of_the_file(self, tmp_path):
        (tmp_path / "in.csv").write_text("county,white,black\nLake,1,2\nCook,3,4\n")
        table = ks.read_table(tmp_path / "in.csv", wide={"race": ["white", "black"]}, keep_order=True)
        path = released(table).save(tmp_path / "out.csv")
        assert [row[0] for row in rows_of(path)] == ["county", "Lake", "Cook"]
        assert ks.verify(path, allow_seeded=True)

    def test_what_changes_is_noticed(self, tmp_path):
        (tmp_path / "in.csv").write_text(WIDE)
        path = released(ks.read_table(tmp_path / "in.csv", wide={"race": RACES})).save(tmp_path / "out.csv")
        lines = path.read_text().splitlines()
        lines[1] = ",".join([*lines[1].split(",")[:-1], "99"])
        path.write_text("\n".join(lines) + "\n")
        failed = [check.name for check in ks.verify(path, allow_seeded=True).checks if not check.passed]
        assert failed == ["hash", "kept totals"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"wide": {"race": ["white", "green"]}}, "column of a wide table must be one of the columns"),
            ({"wide": {"race": ["white"]}}, "at least two columns of counts"),
            ({"wide": "race"}, "axes of a wide table must be named with axes="),
            ({"wide": {"county": RACES}}, "axis of a wide table must not be one of its columns"),
            ({"wide": {"race": ["white", "white"]}}, "must be different"),
            ({"wide": {"a": ["white"], "b": ["black"]}}, "mapping from one axis"),
            ({"wide": 3}, "name of an axis, or a mapping"),
            ({"wide": {"race": RACES}, "count": "county"}, "a name that no column has"),
            ({"wide": {"race": ["white", "black"]}}, "'asian' must be declared, because it contains numbers"),
        ],
    )
    def test_bad_declarations(self, tmp_path, options, words):
        (tmp_path / "in.csv").write_text(WIDE)
        with pytest.raises(ks.InputError, match=words):
            ks.read_table(tmp_path / "in.csv", **options)

    TOTALS = "county,white,black,All\nCook,5,6,11\nLake,1,0,1\nTotal,6,6,12\n"

    def refused(self, path, **options):
        with pytest.raises(ks.DataError) as caught:
            ks.read_table(path, **options)
        return str(caught.value)

    def test_each_way_on_from_totals_works(self, tmp_path):
        """A row and a column of totals: whatever the sentences say is done, until there is a table."""
        path = tmp_path / "in.csv"
        path.write_text(self.TOTALS)
        options = {"axes": ["county"], "wide": "race"}
        assert "drop_rows={'county': 'Total'}, or declare the categories of 'county'" in self.refused(path, **options)
        for rows in ({"drop_rows": {"county": "Total"}}, {"domain": {"county": ["Cook", "Lake", "Total"]}}):
            said = self.refused(path, **options, **rows)
            assert "'All' may be. Leave them out with drop=['All'], or declare the categories of 'race' with d" in said
            domain = {**rows.get("domain", {}), "race": ["white", "black", "All"]}
            dropped = ks.read_table(path, **options, **rows, drop=["All"])
            declared = ks.read_table(path, **options, **(rows | {"domain": domain}))
            assert dropped.domain.categories("race") == ("black", "white")
            assert declared.domain.categories("race") == ("white", "black", "All")
            assert "All" not in released(dropped).table.to_frame("polars").columns
        assert "are columns. Leave out columns with drop=" in self.refused(path, **options, drop_rows={"race": "All"})

    def test_a_total_beside_the_listed_columns(self, tmp_path):
        """It must not be carried along: that would publish it."""
        path = tmp_path / "in.csv"
        path.write_text(self.TOTALS.replace("Total,6,6,12\n", ""))
        options = {"wide": {"race": ["white", "black"]}}
        for more in ({}, {"axes": ["county"], "drop": []}):
            said = self.refused(path, **options, **more)
            assert said.endswith("'All' may be totals. Leave them out with drop=['All'].")
        for more in ({"drop": ["All"]}, {"axes": ["county"]}):
            assert ks.read_table(path, **options, **more).domain.size == 4

    def test_rows_of_a_parent_that_is_not_listed_as_an_axis(self, tmp_path):
        (tmp_path / "in.csv").write_text("state,county,white,black\nIL,Cook,5,6\nTotal,,5,6\nIN,Clay,5,6\n")
        options = {"axes": ["county"], "within": {"county": "state"}, "wide": "race"}
        table = ks.read_table(tmp_path / "in.csv", **options, drop_rows={"state": "Total"})
        assert table.domain.size == 4

    def test_the_margins_of_a_crosstab(self):
        people = pd.DataFrame({"county": list("aabbb"), "race": list("xyxyy")})
        crosstab = pd.crosstab(people.county, people.race, margins=True)
        with pytest.raises(ks.DataError, match=r"drop_rows={'county': 'All'}"):
            ks.Table.from_frame(crosstab)
        with pytest.raises(ks.DataError, match=r"drop=\['All'\]"):
            ks.Table.from_frame(crosstab, drop_rows={"county": "All"})
        table = ks.Table.from_frame(crosstab, drop_rows={"county": "All"}, drop=["All"])
        assert table.counts.tolist() == [1, 1, 1, 2]

    def test_the_ways_on_in_the_shell(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "in.csv").write_text(self.TOTALS.replace("All", "All races"))
        command = ["plan", "in.csv", "--wide", "race", "--axes", "county", "--keep", "county", "--epsilon", "1"]
        for way in ("--drop-rows county=Total", "--drop 'All races'"):
            assert run(command) == 2
            assert way in capsys.readouterr().err
            command += shlex.split(way)
        assert run(command) == 0

    def test_a_bad_count_is_named_by_its_column(self, tmp_path):
        (tmp_path / "in.csv").write_text(WIDE.replace("6", "x"))
        with pytest.raises(ks.DataError, match="line 2 under 'black'"):
            ks.read_table(tmp_path / "in.csv", wide={"race": RACES})

    def test_the_shell(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "in.csv").write_text(WIDE.replace(",", ";"))
        options = ["--keep", "county", "--epsilon", "1", "--yes", "-o", "out.csv"]
        assert run(["release", "in.csv", "--wide", "race=white,black,asian", *options]) == 0
        assert rows_of(tmp_path / "out.csv")[0] == ["county;white;black;asian"]
        assert run(["verify", "out.csv"]) == 0
        assert run(["release", "in.csv", "--wide", "race", *options, "--force"]) == 2
        assert "named with --axes if its columns" in capsys.readouterr().err


@given(st.integers(1, 4), st.integers(2, 4), st.data())
def test_wide_and_long_are_the_same(height, width, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=height * width, max_size=height * width)))
    rows, columns = [f"r{k}" for k in range(height)], [f"c{k}" for k in range(width)]
    order = data.draw(st.permutations(range(height)))
    matrix = counts.reshape(height, width)[list(order)]
    frame = pl.DataFrame({"row": [rows[k] for k in order]} | {c: matrix[:, j] for j, c in enumerate(columns)})
    table = ks.Table.from_frame(frame, wide={"column": columns}, domain={"row": rows})
    assert table.counts.tolist() == counts.tolist()
    assert table.to_frame().rows() == [(name, *counts.reshape(height, width)[k]) for k, name in enumerate(rows)]


@QUIET
class TestCarried:
    ROWS = "state,county,fips,sex,n\n" + "".join(
        f"{state},{county},{code},{sex},{k}\n"
        for k, (state, county, code) in enumerate(
            [("IL", "Lake", "17097"), ("IL", "Cook", "17031"), ("IN", "Lake", "18089"), ("IN", "Clay", "18021")]
        )
        for sex in "fm"
    )

    def table(self, tmp_path, text=ROWS, **options):
        (tmp_path / "in.csv").write_text(text)
        return ks.read_table(
            tmp_path / "in.csv", count="n", within={"county": "state"}, **({"carry": {"fips": "county"}} | options)
        )

    def test_it_follows_from_the_county(self, tmp_path):
        table = self.table(tmp_path)
        (carried,) = table.carried
        assert (carried.name, carried.axis) == ("fips", "county")
        assert carried.values == ("17031", "17097", "18021", "18089")  # of Cook, Lake, Clay, Lake

    def test_the_release_has_it_and_says_so(self, tmp_path):
        release = released(self.table(tmp_path))
        path = release.save(tmp_path / "out.csv")
        rows = rows_of(path)
        assert rows[0] == ["state", "county", "fips", "sex", "n"]
        assert {(row[0], row[1], row[2]) for row in rows[1:]} == {
            ("IL", "Lake", "17097"), ("IL", "Cook", "17031"), ("IN", "Lake", "18089"), ("IN", "Clay", "18021"),
        }  # fmt: skip
        assert "Column 'fips' follows from 'county' and is published as it is, without noise." in (
            release.certificate.warnings
        )
        assert ks.verify(path, allow_seeded=True)

    def test_another_value_does_not_verify(self, tmp_path):
        path = released(self.table(tmp_path)).save(tmp_path / "out.csv")
        path.write_text(path.read_text().replace("17031", "17032"))
        assert [check.name for check in ks.verify(path, allow_seeded=True).checks if not check.passed] == ["table"]

    def test_the_axis_is_declared_never_found(self, tmp_path):
        """Which axes a column follows from depends on which cells have rows."""
        with pytest.raises(ks.DataError, match=r"with the axis that it follows from.*carry={'fips': 'county'}"):
            self.table(tmp_path, carry="fips")
        text = self.ROWS.replace(",f,", ",x,").replace(",m,", ",x,").replace("sex", "none")
        rows = dict.fromkeys(line.rsplit(",", 1)[0] for line in text.splitlines()[1:])
        one = "state,county,fips,n\n" + "".join(f"{row.rsplit(',', 1)[0]},3\n" for row in rows)
        assert self.table(tmp_path, one, carry="fips").carried[0].axis == "county"
        with pytest.raises(ks.DomainError, match="got 'town'"):
            self.table(tmp_path, carry={"fips": "town"})

    def test_a_column_that_does_not_follow(self, tmp_path):
        for text, carry in ((self.ROWS.replace("17097,f", "17098,f"), "county"), (self.ROWS, "sex")):
            with pytest.raises(ks.DataError, match="'fips' has several for one of"):
                self.table(tmp_path, text, carry={"fips": carry})

    def test_a_category_without_rows(self, tmp_path):
        """An empty value would show that the category has no row."""
        domain = {"state": ["IL", "IN"], "county": {"IL": ["Cook", "Lake", "Will"], "IN": ["Clay", "Lake"]}}
        with pytest.raises(ks.DataError, match="some categories of 'county' have no row"):
            self.table(tmp_path, domain=domain)

    def test_names_that_are_no_column(self, tmp_path):
        (tmp_path / "in.csv").write_text(self.ROWS)
        for name, words in (("fip", "A column to carry must be one of"), ("n", "must not be the count column 'n'")):
            with pytest.raises(ks.DataError, match=words):
                ks.read_table(tmp_path / "in.csv", count="n", carry=name, within={"county": "state"})

    def test_the_shell(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "in.csv").write_text(self.ROWS)
        options = ["--count", "n", "--within", "county:state", "--keep", "state", "--epsilon", "1", "--yes"]
        assert run(["release", "in.csv", *options, "--carry", "fips:county", "-o", "out/"]) == 0
        assert run(["verify", "out/"]) == 0
        assert run(["release", "in.csv", *options, "-o", "other/"]) == 2
        assert "publish it along with an axis with --carry" in capsys.readouterr().err
