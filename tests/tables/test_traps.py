"""Rows of totals and nested columns are noticed by their labels, unless they are declared."""

import numpy as np
import polars as pl
import pytest

import keepsum as ks
from keepsum.cli.app import run
from keepsum.tables.findings import Following, NestedAxes, Numbers, Sparse, TotalLabels, UndeclaredError
from keepsum.tables.total_labels import ANYWHERE, ENDINGS, TOTALS, is_total
from support import mostly_audit

STATES = {"Illinois": ["Cook", "Lake", "Will"], "Iowa": ["Polk", "Linn"], "Ohio": ["Lucas", "Stark", "Summit"]}
PLACES = [(state, county) for state, counties in STATES.items() for county in counties]
NOT_TOTALS = [
    "Allen",
    "All Saints",
    "Sumter",
    "Totnes",
    "Sum 41",
    "alliance",
    "Ensenada",
    "other",
    "All others",
    "all other races",
    "Alle anderen",
    "Gesamtschule",
    "Ensemble Theatre",
    "Summit",
    "T",
    "Totem",
    "家計",
    "Total knee replacement",
    "Total hip arthroplasty",
    "Total loss",
    "Total blindness",
    "Subtotal thyroidectomy",
    "Persons",
    "Both",
    "Sumo1",
]


def frame(rows, names=("state", "county", "n")):
    return pl.DataFrame(rows, schema=list(names), orient="row")


def read(rows, names=("state", "county", "n"), **options):
    return ks.Table.from_frame(frame(rows, names), count="n", **options)


def places(*more):
    return [(state, county, k) for k, (state, county) in enumerate(PLACES)] + list(more)


# -- nested columns ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
class TestNested:
    def test_a_forgotten_parent_is_named(self):
        with pytest.raises(
            ks.DataError, match=r"Each 'county' has one 'state'.*within={'county': 'state'}.*dense=True"
        ):
            read(places())
        assert read(places(), within={"county": "state"}).domain.size == len(PLACES)
        assert read(places(), dense=True).domain.size == len(STATES) * len(PLACES)

    def test_a_name_that_occurs_twice_does_not_hide_it(self):
        """Lake is in Illinois and in Wisconsin: 14 cells were made of 8 counties."""
        states = {"IL": ["Cook", "Lake", "Will", "Kane"], "WI": ["Lake", "Dane", "Rock", "Dodge"]}
        rows = [(state, county, 1) for state, counties in states.items() for county in counties]
        with pytest.raises(
            UndeclaredError, match=r"Most labels of 'county' have one 'state'.*to nest it, or pass dense=True if"
        ) as caught:
            read(rows)
        assert caught.value.finding == NestedAxes((("county", "state"),), (("county", "state"),), nearly=True)
        assert read(rows, within={"county": "state"}).domain.size == 8
        assert read(rows, dense=True).domain.size == 14
        by_sex = [(*row[:2], sex, 1) for row in rows for sex in "fm"]
        with pytest.raises(ks.DataError, match=r"within={'county': 'state'}"):
            read(by_sex, ("state", "county", "sex", "n"))

    @mostly_audit("shape", [(4, 2), (9, 2), (12, 3), (30, 4), (40, 8), (6, 5, 4), (20, 5, 2)], ids=str)
    @pytest.mark.parametrize("density", [0.5, 0.6, 0.75, 0.9, 1])
    def test_sparse_tables_of_independent_columns_are_not_taken_for_nested_ones(self, shape, density):
        """What is stopped has no row for most of its cells, but for a few small tables with two parents.

        A label of two has one parent with probability 2 (1 - q) / (2 - q) at density q: 2/3 at 1/2. That of 8 of 9
        labels or more is then 14%, which gives 6 of 40 tables.
        """
        random = np.random.default_rng(5)
        stopped = 0
        for _ in range(40):
            cells = np.argwhere(random.random(shape) < density)
            rows = [(*(f"{axis}{k}" for axis, k in zip("abc", cell, strict=False)), 1) for cell in cells.tolist()]
            try:
                read(rows, (*"abc"[: len(shape)], "n"))
            except UndeclaredError as error:
                are_most_absent = 2 * len(rows) < np.prod([len(set(labels)) for labels in cells.T.tolist()])
                stopped += isinstance(error.finding, NestedAxes) and error.finding.nearly and not are_most_absent
        assert stopped <= (8 if shape in ((4, 2), (9, 2)) else 0)

    def test_all_parents_are_named_at_once(self):
        rows = [("Midwest" if state != "Ohio" else "East", state, county, 1) for state, county in PLACES]
        with pytest.raises(ks.DataError, match=r"within={'state': 'region', 'county': 'state'} to nest them"):
            read(rows, ("region", "state", "county", "n"))
        nested = read(rows, ("region", "state", "county", "n"), within={"state": "region", "county": "state"})
        assert nested.domain.size == len(PLACES)

    def test_another_axis_does_not_hide_it(self):
        rows = [(*place, sex, 1) for place in PLACES for sex in "fm"]
        with pytest.raises(ks.DataError, match=r"within={'county': 'state'}"):
            read(rows, ("state", "county", "sex", "n"))

    def test_what_is_declared_is_meant(self):
        counties = {"county": [county for _, county in PLACES]}
        assert read(places(), domain={"state": list(STATES), **counties}).domain.size == 24
        with pytest.raises(ks.DataError, match="within="):
            read(places(), domain={"state": list(STATES)})

    def test_columns_that_name_the_same(self):
        rows = [(county, f"id {county}", 1) for _, county in PLACES]
        with pytest.raises(ks.DataError, match=r"determine each other.*carry=.*drop=.*dense=True"):
            read(rows, ("county", "id", "n"))

    def test_what_a_nested_axis_determines_is_carried(self):
        """Lake is in two states: with its parent it determines a zone, alone it does not."""
        rows = [("IL", "Lake", "north"), ("IL", "Cook", "south"), ("IN", "Lake", "south"), ("IN", "Clay", "north")]
        with pytest.raises(ks.DataError, match=r"Each 'county' has one 'zone' in the data, so .*carry=.*drop="):
            read([(*row, 1) for row in rows], ("state", "county", "zone", "n"), within={"county": "state"})

    def test_counts_do_not_matter(self):
        """The same labels with other counts are refused in the same words."""
        messages = set()
        for count in (0, 1, 10**6):
            with pytest.raises(ks.DataError) as caught:
                read([(state, county, count) for state, county in PLACES])
            messages.add(str(caught.value))
        assert len(messages) == 1

    def test_independent_columns_pass(self):
        assert read([(a, b, 1) for a in "xyz" for b in "uv"]).domain.size == 6
        assert read([(a, b, 1) for a in "xyz" for b in "uv"][:-1]).domain.size == 6
        assert read([(a, "only", 1) for a in "xyz"]).domain.size == 3

    def test_mostly_absent_cells(self):
        diagonal = [(f"a{k}", f"b{(k + j) % 9}", 1) for k in range(9) for j in range(3)]
        with pytest.raises(ks.DataError, match=r"Most of the 81 combinations of categories have no row.*dense=True"):
            read(diagonal)
        assert read(diagonal, dense=True).domain.size == 81


# -- rows of totals ---------------------------------------------------------------------------------


WORDS = [word for labels in (*TOTALS.values(), *ANYWHERE.values()) for word in labels.split(", ")]


@pytest.mark.parametrize("label", [*WORDS, *ENDINGS])
def test_totals_in_many_languages(label):
    full_width = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in label)
    for text in (label, label.upper(), f" {label}: ", f"{label}.", f"({label})", full_width):
        assert is_total(text, "x"), text


@pytest.mark.parametrize("word", [word for labels in ANYWHERE.values() for word in labels.split(", ")])
def test_a_total_of_something(word):
    assert is_total(f"Cook {word}", "x")
    assert is_total(f"{word.title()}: Cook", "x")
    assert not is_total(f"Cook{word}", "x")
    assert not is_total(f"Cook {word} Lake", "x")


@pytest.mark.parametrize(
    "label",
    ["Grand-Total", "sub_total", "__all__", "Tot.", "All ages", "ALL PERSONS", "Both sexes", "All races combined",
     "All industries", "男性合計", "总计（人）", "합계(명)", "Gesamtergebnis", "总数", "總數", "男女計",
     "Total¹", "TOTAL1", "Total*", "Total (1)", "Total [a]", "Total 1)", "All ages²", "Ge\u00adsamt", "Итог", "Samtals",
     "Hele landet", "Вкупно", "Σ", "∑", "Combined", "Total nonfarm", "Total population", "Total Cook", "Total men"],
)  # fmt: skip
def test_spellings_of_totals(label):
    assert is_total(label, "x")


@pytest.mark.parametrize("label", ["Persons", "Both", "people", "T"])
def test_totals_of_sexes(label):
    for axis in ("sex", "SEX", "gender", "sex_code"):
        assert is_total(label, axis)
    assert not is_total(label, "place")


@pytest.mark.parametrize("label", NOT_TOTALS)
def test_what_is_no_total(label):
    assert not is_total(label, "county")


@pytest.mark.parametrize(
    ("axis", "label"),
    [("vehicle", "All vehicles"), ("parish_name", "all parishes"), ("age_band", "All age bands"),
     ("blood", "All blood"), ("tenureType", "All tenure types"), ("Kreis", "Alle Kreise"),
     ("canton", "Tous les cantons"), ("sex", "T")],
)  # fmt: skip
def test_all_of_an_axis(axis, label):
    assert is_total(label, axis)
    assert not is_total(label, "other")


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
class TestTotals:
    def test_a_row_of_totals(self):
        with pytest.raises(
            ks.DataError, match=r"label 'Total' in column 'state'.*drop_rows={'state': 'Total'}.*domain="
        ):
            read(places(("Total", "All", 136)), within={"county": "state"})

    def test_subtotals(self):
        rows = places(*((state, "All counties", 5) for state in STATES))
        with pytest.raises(ks.DataError, match=r"drop_rows={'county': 'All counties'}"):
            read(rows, within={"county": "state"})
        table = read(rows, within={"county": "state"}, drop_rows={"county": "All counties"})
        assert table.domain.size == len(PLACES)
        assert table.counts.sum() == sum(range(len(PLACES)))

    def test_all_are_named_at_once(self):
        rows = [("f", 1), ("m", 2), ("all", 3), ("Total", 3)]
        with pytest.raises(ks.DataError, match=r"drop_rows={'sex': \['all', 'Total'\]}"):
            read(rows, ("sex", "n"))
        assert read(rows, ("sex", "n"), drop_rows={"sex": ["all", "Total"]}).counts.tolist() == [1, 2]

    @pytest.mark.parametrize("label", ["All {}", "{} (all)", "{} total", "{}"])
    def test_the_parent_by_name(self, label):
        labels = [label.format(state) for state in STATES]
        rows = places(*((state, name, 5) for state, name in zip(STATES, labels, strict=True)))
        with pytest.raises(ks.DataError, match="look like totals") as caught:
            read(rows, within={"county": "state"})
        assert f"drop_rows={{'county': {labels!r}}}" in str(caught.value)
        table = read(rows, within={"county": "state"}, drop_rows={"county": labels})
        assert table.domain.size == len(PLACES)

    def test_some_places_are_called_like_what_they_are_in(self):
        rows = places(("Iowa", "Iowa", 5), ("New York", "New York", 1), ("DC", "DC", 1))
        assert read(rows, within={"county": "state"}).domain.size == len(PLACES) + 3
        codes = [(state, county, 1) for state in "123" for county in "123"]
        assert read(codes, within={"county": "state"}).domain.size == 9

    def test_declared_it_is_a_category(self):
        rows = [("f", 1), ("m", 2), ("all", 3)]
        assert read(rows, ("sex", "n"), domain={"sex": ["f", "m", "all"]}).domain.size == 3
        assert read(rows[2:], ("sex", "n")).domain.size == 1

    def test_rows_to_drop(self):
        rows = [("f", 1), ("Total", 3), ("m", 2)]
        table = read(rows, ("sex", "n"), drop_rows={"sex": ["Total"]})
        assert dict(zip(table.domain.categories("sex"), table.counts.tolist(), strict=True)) == {"f": 1, "m": 2}
        with pytest.raises(ks.DataError, match="column 'sex' has no label 'Totl'"):
            read(rows, ("sex", "n"), drop_rows={"sex": "Totl"})
        with pytest.raises(ks.DataError, match="rows to drop must be one of the columns 'sex', 'n', got 'size'"):
            read(rows, ("sex", "n"), drop_rows={"size": "Total"})

    def test_never_by_a_count(self):
        """Which categories are published would depend on the counts."""
        with pytest.raises(ks.DataError, match="never by a count, got 'n'"):
            read([("f", 1), ("m", 0)], ("sex", "n"), drop_rows={"n": 0})
        wide = {"frame": frame([("A", 1, 2), ("B", 0, 4)], ("county", "f", "m"))}
        for chosen in ({"sex": ["f", "m"]}, "sex"):
            with pytest.raises(ks.DataError, match="never by a count, got 'f'"):
                ks.Table.from_frame(**wide, axes=["county"], wide=chosen, drop_rows={"f": 0})

    def test_errors_still_name_the_row(self):
        rows = [("Total", 3), ("f", 1), ("m", -2)]
        with pytest.raises(ks.DataError, match="Count in row 3"):
            read(rows, ("sex", "n"), drop_rows={"sex": "Total"})


# -- the shell --------------------------------------------------------------------------------------


@pytest.fixture
def counties(tmp_path):
    path = tmp_path / "counties.csv"
    path.write_text("state,county,n\n" + "".join(f"{s},{c},{k}\n" for s, c, k in places(("Total", "All", 28))))
    return str(path)


def plan(capsys, *arguments):
    status = run(["plan", *arguments, "--count", "n", "--keep", "state", "--epsilon", "1"])
    return status, capsys.readouterr().err


def test_the_way_on_is_an_option(counties, capsys):
    status, said = plan(capsys, counties)
    assert status == 2
    assert "--drop-rows state=Total" in said
    status, said = plan(capsys, counties, "--drop-rows", "state=Total")
    assert status == 2
    assert "Pass --within county:state to nest it, or pass --dense if" in said
    for more in (["--within", "county:state"], ["--dense"]):
        assert plan(capsys, counties, "--drop-rows", "state=Total", *more)[0] == 0


def test_a_bad_option(counties, capsys):
    status, said = plan(capsys, counties, "--drop-rows", "Total")
    assert status == 2
    assert "Option --drop-rows must be COLUMN=LABEL,LABEL such as 'county=Total', got 'Total'." in said


# -- as data ----------------------------------------------------------------------------------------


def found(rows, names, **options):
    """What is noticed in a table; its sentence is the refusal's."""
    with pytest.raises(UndeclaredError) as caught:
        read(rows, names, **options)
    assert caught.value.finding is not None
    assert str(caught.value) == caught.value.finding.sentence
    return caught.value.finding


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
def test_what_is_noticed_is_data():
    assert found([("f", 1), ("m", 2), ("all", 3)], ("sex", "n")) == TotalLabels("sex", ("all",))
    parents = (("county", "state"),)
    assert found(places(), ("state", "county", "n")) == NestedAxes(parents, parents)
    diagonal = [(f"a{k}", f"b{(k + j) % 9}", 1) for k in range(9) for j in range(3)]
    assert found(diagonal, ("x", "y", "n")) == Sparse(81, ("x", "y"))
    numbers = [("Cook", "031", 1), ("Lake", "097", 2)]
    assert found(numbers, ("county", "fips", "n")) == Numbers(("fips",), ("county", "fips"))
    zones = [("IL", "Lake", "north"), ("IL", "Cook", "south"), ("IN", "Lake", "south"), ("IN", "Clay", "north")]
    rows = [(*row, 1) for row in zones]
    names = ("state", "county", "zone", "n")
    assert found(rows, names, within={"county": "state"}) == Following("county", "zone")


@pytest.mark.filterwarnings("ignore::keepsum.CategoriesFromDataWarning")
@pytest.mark.parametrize("names", [("county", "id", "n"), ("id", "county", "n")])
def test_the_code_is_the_column_with_digits(names):
    rows = [{"county": county, "id": f"id {k}", "n": 1} for k, (_, county) in enumerate(PLACES)]
    same = found([tuple(row[name] for name in names) for row in rows], names)
    assert (same.axis, same.code) == ("county", "id")
