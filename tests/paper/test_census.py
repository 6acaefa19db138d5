"""Both layouts of county files, and the disclosure avoidance system's, with small made-up files."""

from __future__ import annotations

import pytest

from experiments.census import midwest, races, read_counties, read_das


def test_plain_layout(tmp_path):
    path = tmp_path / "counties.csv"
    path.write_text("state,county,fips,population_2010\nOz,Emerald,01001,900\nOz,Gale,01003,82\nIb,Only,02001,5\n")
    oz, ib = read_counties(path)
    assert (oz.name, oz.counties, oz.population.tolist()) == ("Oz", ("Gale", "Emerald"), [82, 900])
    assert (ib.name, ib.population.tolist(), ib.das) == ("Ib", [5], None)


@pytest.mark.parametrize("level", ["050", "50"])
def test_the_bureaus_layout(tmp_path, level):
    path = tmp_path / "co-est.csv"
    rows = [
        "SUMLEV,STATE,COUNTY,STNAME,CTYNAME,CENSUS2010POP",
        "040,35,000,Nuevo,Nuevo,1000",
        f"{level},35,013,Nuevo,Do\u00f1a County,700",
        f"{level},35,015,Nuevo,Eddy County,300",
    ]
    path.write_bytes("\n".join(rows).encode("latin-1"))
    (state,) = read_counties(path)
    assert state.counties == ("Eddy County", "Do\u00f1a County")
    assert state.population.tolist() == [300, 700]


def test_das_layout(tmp_path):
    path = tmp_path / "das.csv"
    path.write_text(
        "state,county,fips,population_2010,das_population,das_vintage\n"
        "Oz,Emerald,01001,900,890,v1\nOz,Gale,01003,82,92,v1\nIb,Only,02001,5,5,v2\n"
    )
    oz, ib = read_das(path)
    assert (oz.population.tolist(), oz.das.tolist(), oz.vintage) == ([82, 900], [92, 890], "v1")
    assert ib.vintage == "v2"


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"other\.csv has a, b"):
        read_counties(path)
    with pytest.raises(ValueError, match="das_vintage"):
        read_das(path)


def test_midwest():
    states = midwest()
    assert sum(len(state.counties) for state in states) == 437
    assert [len(state.counties) for state in states if state.name == "Illinois"] == [102]
    names, tables = races()
    assert len(names) == 5
    assert tables["IL"].sum() == next(state.population.sum() for state in states if state.name == "Illinois")
