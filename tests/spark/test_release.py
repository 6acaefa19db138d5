"""Tables released through a cluster: totals kept, every declared cell there, verified on one machine and in Spark."""

from __future__ import annotations

import re
import threading
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import keepsum as ks
from keepsum import spark as kss

STATES = {"a": ["x", "y"], "b": ["x"], "c": ["u", "v", "w"]}
PLACES = {"state": list(STATES), "county": STATES, "sex": ["f", "m"], "age": [0, 1, 2]}
WITHIN = {"county": "state"}
AXES = list(PLACES)
SCHEMA = "state string, county string, sex string, age int, n long"
ROWS = [
    ("a", "x", "f", 0, 5),
    ("a", "y", "m", 2, 7),
    ("c", "w", "m", 1, 100),
    ("b", "x", "f", 2, 1),
    ("c", "u", "f", 0, 0),
]
CELLS = [(s, c, x, a) for s in STATES for c in STATES[s] for x, a in product("fm", range(3))]


def totals(rows, axes):
    """The sums of rows by some of their columns."""
    sums = Counter()
    for row in rows:
        sums[tuple(row[AXES.index(axis)] for axis in axes)] += row[-1]
    return {key: total for key, total in sums.items() if total}


@pytest.mark.parametrize(
    ("keep", "mechanism"),
    [
        ([["state"], []], ks.Laplace.per_unit(epsilon=0.5)),
        ([["county"], ["state"]], ks.Laplace(epsilon=1)),
        ([["county"], ["sex", "age"]], ks.Laplace.per_unit(epsilon=0.5)),
        ([[]], ks.Laplace.per_unit(epsilon=1)),
        ([], ks.Laplace.per_unit(epsilon=1)),
        ([["county", "sex"]], ks.Gaussian(sigma=4)),
        ([["state"], ["age"]], ks.Gaussian(sigma=4)),
    ],
    ids=["states", "nested", "crossed", "all", "free", "gaussian", "gaussian crossed"],
)
def test_totals_are_kept_and_the_saved_release_verifies(spark, frame, tmp_path, keep, mechanism):
    released = kss.release(
        frame(ROWS, SCHEMA),
        axes=AXES,
        count="n",
        keep=keep,
        mechanism=mechanism,
        domain=PLACES,
        within=WITHIN,
        staging=tmp_path / "staging",
    )
    rows = [tuple(row) for row in released.table.collect()]
    assert released.table.columns == [*AXES, "n"]
    assert sorted(row[:-1] for row in rows) == sorted(CELLS)
    for axes in keep:
        assert totals(rows, axes) == totals(ROWS, axes)
    assert totals(rows, AXES) != totals(ROWS, AXES)
    released.save(tmp_path / "out")
    assert sorted(map(tuple, released.table.collect())) == sorted(rows)
    assert kss.verify(tmp_path / "out", spark)
    assert ks.verify(tmp_path / "out"), ks.verify(tmp_path / "out")
    assert not any((tmp_path / "staging").iterdir())


def test_the_certificate_is_that_of_one_machine(frame, tmp_path):
    """In all but what is drawn: the hash of the table, when it was released, and by what software."""
    keep, mechanism = [["state"], ["sex", "age"]], ks.Laplace(epsilon=1)
    released = kss.release(
        frame(ROWS, SCHEMA),
        axes=AXES,
        count="n",
        keep=keep,
        mechanism=mechanism,
        domain=PLACES,
        within=WITHIN,
        staging=tmp_path / "staging",
    )
    table = ks.Table.from_frame(_polars_or_arrow(ROWS), axes=AXES, count="n", domain=ks.Domain(PLACES, WITHIN))
    alone = ks.release(table, keep=keep, mechanism=mechanism)
    for name in alone.certificate._record.__struct_fields__:
        if name not in ("released", "software", "table"):
            assert getattr(released.certificate, name) == getattr(alone.certificate, name), name
    assert released.certificate.table.cells == alone.certificate.table.cells


def _polars_or_arrow(rows):
    import pyarrow as pa

    return pa.table({name: list(column) for name, column in zip([*AXES, "n"], zip(*rows, strict=True), strict=True)})


def test_records_are_counted(spark, frame, tmp_path):
    people = [("a", "x", "f", 0)] * 5 + [("c", "w", "m", 1)] * 3 + [("b", "x", "f", 2)]
    schema = SCHEMA.removesuffix(", n long")
    released = kss.release(
        frame(people, schema, 3),
        axes=AXES,
        count=None,
        keep=[["state"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
        domain=PLACES,
        within=WITHIN,
        max_rows_per_unit=1,
        staging=tmp_path / "staging",
    )
    rows = [tuple(row) for row in released.table.collect()]
    assert released.table.columns == [*AXES, "count"]
    assert len(rows) == len(CELLS)
    assert totals(rows, ["state"]) == {("a",): 5, ("b",): 1, ("c",): 3}
    assert released.certificate.records.max_rows_per_unit == 1


def test_a_release_is_verified_by_the_names_of_its_files(unsaved, tmp_path):
    """Its table is a folder too."""
    unsaved().save(tmp_path / "out")
    table, certificate = tmp_path / "out" / "table.parquet", tmp_path / "out" / "certificate.json"
    assert ks.verify(table, certificate)
    assert ks.verify(table)
    assert ks.verify(certificate)
    (tmp_path / "empty.parquet").mkdir()
    assert not ks.verify(tmp_path / "empty.parquet", certificate)


def test_no_release_among_the_files_of_another(unsaved, tmp_path):
    """A second table would make the folder unusable."""
    released = unsaved()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "certificate.json").write_text("{}")
    with pytest.raises(ks.InputError, match="must not be among the files of another release"):
        released.save(tmp_path / "out" / "table.parquet")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["certificate.json"]
    released.save(tmp_path / "elsewhere")


def test_an_existing_folder_is_never_overwritten(unsaved, tmp_path):
    first, second = unsaved(), unsaved()
    first.save(tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(ks.InputError, match="must not exist yet"):
        second.save(tmp_path / "out")
    with pytest.raises(ks.InputError, match="saved once"):
        first.save(tmp_path / "elsewhere")
    with pytest.raises(ks.InputError, match="folder that exists"):
        second.save(tmp_path / "nowhere" / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    second.save(tmp_path / "other")
    assert ks.verify(tmp_path / "other")
    assert len(list((tmp_path / "staging").iterdir())) == 0


def test_two_saves_at_once_make_one(unsaved, tmp_path):
    released = unsaved()
    outcomes = []

    def save(name):
        try:
            outcomes.append(released.save(tmp_path / name))
        except ks.InputError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=save, args=(f"out{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (saved,) = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert all("saved once" in str(outcome) for outcome in outcomes if outcome is not saved)
    assert len(list(tmp_path.glob("out*"))) == 1
    assert ks.verify(saved.removeprefix("file:"))


def test_a_session_that_was_stopped_is_named(spark, unsaved, tmp_path, monkeypatch):
    released = unsaved()
    with monkeypatch.context() as stopped:
        stopped.setattr(spark.sparkContext, "_jsc", None)
        with pytest.raises(ks.InputError, match="must be running, but it was stopped"):
            released.save(tmp_path / "out")
        with pytest.raises(ks.InputError, match="must be running, but it was stopped"):
            released.table.count()
    released.save(tmp_path / "out")


def test_columns_have_any_names(spark, frame, tmp_path):
    """Spark takes dots and backticks for a part of its language."""
    names = ["a.b", "c`d", "e f"]
    df = frame([("x", "y", 3)], "x string, y string, n long").toDF(*names)
    domain = {"a.b": ["x", "X"], "c`d": ["y", "z"]}
    released = kss.release(
        df,
        axes=names[:2],
        count="e f",
        keep=[["a.b"]],
        mechanism=ks.Laplace.per_unit(epsilon=1),
        domain=domain,
        staging=tmp_path / "staging",
    )
    assert released.table.columns == names
    released.save(tmp_path / "out")
    assert kss.verify(tmp_path / "out", spark)
    assert ks.verify(tmp_path / "out")


def test_counties_in_states(spark, frame, tmp_path):
    """3,143 counties in 51 states, one of which is its only county and so is pinned."""
    states = [f"state {k:02}" for k in range(51)]
    inside = {state: [f"county {k}" for k in range(3142) if k % 50 == place] for place, state in enumerate(states[:50])}
    inside[states[50]] = ["the district"]
    domain = {"state": states, "county": inside}
    rows = [(s, c, 7 * k % 1000) for k, (s, c) in enumerate((s, c) for s in states for c in inside[s])]
    released = kss.release(
        frame(rows, "state string, county string, n long"),
        axes=["state", "county"],
        count="n",
        keep=[["state"]],
        mechanism=ks.Laplace.per_unit(epsilon=0.25),
        domain=domain,
        within=WITHIN,
        accept_pinned="all",
        staging=tmp_path / "staging",
    )
    found = [tuple(row) for row in released.table.collect()]
    sums = [Counter(), Counter()]
    for total, table in zip(sums, (rows, found), strict=True):
        for state, _, n in table:
            total[state] += n
    assert len(found) == 3143
    assert sums[0] == sums[1]
    assert released.certificate.exposure.pinned == [["state 50", "the district"]]
    released.save(tmp_path / "out")
    assert kss.verify(tmp_path / "out", spark)
    assert ks.verify(tmp_path / "out")


def test_the_page_on_spark_does_what_it_shows(spark, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(example, "spark.md", "exec"), names)  # noqa: S102
    assert totals_by_county(names["released"].table.collect()) == totals_by_county(names["rows"])
    assert ks.verify("counties")


def totals_by_county(rows):
    sums = Counter()
    for state, county, _, n in rows:
        sums[state, county] += n
    return {key: total for key, total in sums.items() if total}
