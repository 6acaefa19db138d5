"""``ks.read_release`` as an analyst has it: the published files, in a process that never saw the data."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import keepsum as ks
from keepsum.cli import app
from support import HANG, mostly_audit

SAMPLES = Path(__file__).parents[1] / "certificates"
PUBLISHED = sorted(folder.name for folder in SAMPLES.iterdir() if list(folder.glob("*certificate.json")))

# What an analyst asks of a release; it prints what can be compared.
QUESTIONS = """
import json, sys
import keepsum as ks

def asked(path):
    release = ks.read_release(path, allow_seeded=True)
    axes = list(release.table.domain.axes)
    first, last = 0, release.plan.size - 1
    frames = {}
    for backend in ("pandas", "polars", "pyarrow"):
        plain, wider = release.to_frame(backend), release.to_frame(backend, level=0.9)
        margin = release.marginal(axes[:1])
        sums = margin.to_frame(backend, level=0.9)
        columns = [list(f.columns if backend != "pyarrow" else f.column_names) for f in (plain, wider, sums)]
        rows = [json.loads(f.to_json(orient="records")) if backend == "pandas" else f.to_pylist()
                if backend == "pyarrow" else f.to_dicts() for f in (wider, sums)]
        frames[backend] = [columns, rows]
    assert frames["pandas"] == frames["polars"] == frames["pyarrow"]
    columns, rows = frames["pandas"]
    whole = {axes[0]: release.table.domain.axis(axes[0]).labels[0]}
    return {
        "counts": release.unbiased.counts.tolist(),
        "columns": columns,
        "rows": rows,
        "interval": release.interval(first, 0.9),
        "difference": release.difference(first, last, 0.9),
        "ratio": [str(end) for end in release.ratio(whole, {}, 0.9)],
        "share": [str(end) for end in release.share(whole, {}, 0.9)],
        "margins": release.accuracy(0.9).margins.tolist(),
        "all at once": release.accuracy(0.9, simultaneous=True).margins.tolist(),
        "sums": release.marginal(axes[:1]).intervals(0.9).tolist(),
        "note": release.marginal(axes[:1]).note,
        "variance": release.noise.variance(first),
        "weight": release.noise.log_pmf([0] * release.plan.size, constant=False),
        "mechanism": release.certificate.mechanism.name,
    }
"""


def answers(paths: list[Path], folder: Path) -> list[dict[str, Any]]:
    """What a new process answers, in an empty folder, in which nothing but the published files is named."""
    code = QUESTIONS + "\nprint(json.dumps([asked(path) for path in sys.argv[1:]]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths)], cwd=folder, capture_output=True, text=True, timeout=HANG
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_memory(release: ks.Release) -> dict[str, Any]:
    """Some of the same answers, of a release that was never written."""
    return {
        "counts": release.unbiased.counts.tolist(),
        "interval": list(release.interval(0, 0.9)),
        "difference": list(release.difference(0, release.plan.size - 1, 0.9)),
        "margins": release.accuracy(0.9).margins.tolist(),
        "sums": release.marginal(release.table.domain.axes[:1]).intervals(0.9).tolist(),
    }


def check(answer: dict[str, Any]) -> None:
    """Frames have an interval around every count and every total; labels are single; no noise has the weight 1."""
    plain, wider, _ = answer["columns"]
    low, high = [name for name in wider if name.endswith(("_low", "_high"))]
    rows, totals = answer["rows"]
    assert low not in plain
    assert sorted(row[high] - row[low] for row in rows) == sorted(2 * margin for margin in answer["margins"])
    assert sorted([row[low], row[high]] for row in totals) == sorted(answer["sums"])
    assert all(isinstance(value, (str, int)) for row in rows for value in row.values())
    assert all(both >= each for both, each in zip(answer["all at once"], answer["margins"], strict=True))
    assert answer["weight"] == 0


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """Every sample of what was ever published, read by a process of its own."""
    folder = tmp_path_factory.mktemp("analyst")
    for name in PUBLISHED:
        shutil.copytree(SAMPLES / name, folder / name)
    return dict(zip(PUBLISHED, answers([folder / name for name in PUBLISHED], folder), strict=True))


@mostly_audit("name", PUBLISHED)
def test_every_published_release_is_all_that_an_analyst_needs(published, name):
    check(published[name])


def saved_in_every_form(folder: Path) -> dict[str, tuple[Path, ks.Release]]:
    """Releases of confidential files, each in its own form."""
    long = pl.DataFrame(
        {
            "state": ["a", "a", "b", "b", "b"] * 2,
            "county": ["x", "y", "x", "y", "z"] * 2,
            "fips": [f"0{k}" for k in range(5)] * 2,
            "sex": ["f"] * 5 + ["m"] * 5,
            "n": range(40, 50),
        }
    )
    long.write_csv(folder / "long.csv", separator=";")
    long.write_parquet(folder / "long.parquet")
    long.write_ipc(folder / "long.arrow", compat_level=pl.CompatLevel.oldest())
    pl.DataFrame({"county": ["x", "y", "z"], "f": [40, 41, 42], "m": [50, 51, 52]}).write_csv(folder / "wide.csv")
    domain = {"state": ["a", "b"], "county": {"a": ["x", "y"], "b": ["x", "y", "z"]}, "sex": ["f", "m"]}
    nested = {"within": {"county": "state"}, "carry": {"fips": "county"}, "domain": domain}
    visits = pd.DataFrame({"who": [1, 1, 2, 3, 3, 3], "clinic": ["N", "S", "S", "N", "N", "S"]})
    tables = {
        "long.csv": ks.read_table(folder / "long.csv", count="n", **nested),
        "long.parquet": ks.read_table(folder / "long.parquet", count="n", **nested),
        "long.arrow": ks.read_table(folder / "long.arrow", count="n", **nested),
        "wide.csv": ks.read_table(
            folder / "wide.csv", wide={"sex": ["f", "m"]}, domain={"county": ["x", "y", "z"], "sex": ["f", "m"]}
        ),
        "visits.csv": ks.tabulate(
            visits, by=["clinic"], domain={"clinic": ["N", "S", "W"]}, unit="who", max_rows_per_unit=2
        ),
    }
    (folder / "public").mkdir()
    made = {}
    for name, table in tables.items():
        keep = [[]] if name == "visits.csv" else ["county"]
        release = ks.release(table, keep=keep, mechanism=ks.Laplace.per_unit(epsilon="0.5"), rng=ks.rng(seed=7))
        place = folder / "public" / name.replace(".", "-") / name
        place.parent.mkdir()
        made[name] = release.save(place), release
    return made


@pytest.mark.audit
def test_files_of_every_form_answer_as_the_release_did(tmp_path):
    """Its confidential files are gone, and what was published lies elsewhere."""
    secret, elsewhere = tmp_path / "secret", tmp_path / "elsewhere"
    secret.mkdir()
    made = saved_in_every_form(secret)
    shutil.copytree(secret / "public", elsewhere)
    shutil.rmtree(secret)
    paths = [elsewhere / path.relative_to(secret / "public") for path, _ in made.values()]
    found = answers(paths, elsewhere)
    for answer, (_, release) in zip(found, made.values(), strict=True):
        check(answer)
        expected = in_memory(release)
        assert {key: answer[key] for key in expected} == expected
    columns = {name: answer["columns"] for name, answer in zip(made, found, strict=True)}
    nested = ["state", "county", "fips", "sex", "n"]
    for name in ("long.csv", "long.parquet", "long.arrow"):
        assert columns[name] == [nested, [*nested, "n_low", "n_high"], ["state", "n", "n_low", "n_high"]]
    assert columns["wide.csv"][0] == ["county", "f", "m"]  # with intervals it is long
    assert columns["wide.csv"][1] == ["county", "sex", "count", "count_low", "count_high"]
    assert found[0]["rows"][0][0]["county"] == "x"  # a nested axis has its own label, not those of its parents


def test_a_frame_with_intervals_has_the_rows_of_the_plain_one(tmp_path):
    """Carried columns, columns of one value and the public order of the rows are those of the release."""
    (tmp_path / "counts.csv").write_text("n,place,code\n7,Z,3\n9,B,1\n8,M,2\n")
    table = ks.read_table(
        tmp_path / "counts.csv", count="n", carry=["code"], keep_order=True, domain={"place": ["B", "M", "Z"]}
    )
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
    plain, wider = release.to_frame("polars"), release.to_frame("polars", level=0.9)
    assert wider.columns == ["n", "n_low", "n_high", "place", "code"]
    assert wider.select(plain.columns).equals(plain)
    assert plain["place"].to_list() == ["Z", "B", "M"]
    for place, low, high in wider.select("place", "n_low", "n_high").rows():
        assert (low, high) == release.interval({"place": place}, 0.9)


def test_a_column_of_the_name_of_an_end_is_left_alone():
    table = ks.Table.from_array([3, 4], axes={"n_low": ["x", "y"]}, count="n")
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=1))
    assert release.to_frame("polars", level=0.9).columns == ["n_low", "n", "n_low_", "n_high"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_margin_is_saved_with_its_intervals(tmp_path, kind):
    release = ks.read_release(SAMPLES / "hierarchy")
    margin = release.marginal(["county"])
    file = margin.save(tmp_path / f"county.{kind}", level=0.9, simultaneous=True)
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}[kind](file)
    assert read.equals(margin.to_frame("polars", level=0.9, simultaneous=True))
    assert read.select("people_low", "people_high").to_numpy().tolist() == (
        margin.intervals(0.9, simultaneous=True).tolist()
    )
    margin.save(file, force=True)
    assert "people_low" not in file.read_bytes().decode(errors="replace")


@mostly_audit("name", ["hierarchy", "invariants", "nonnegative"])
def test_the_table_in_a_folder_stands_for_its_release(tmp_path, name):
    """It is what ``save`` returns, and what the command line says was written."""
    again = ks.read_release(SAMPLES / name).save(f"{tmp_path}/out/")
    assert again == tmp_path / "out" / "table.csv"
    release = ks.read_release(again)
    assert release.certificate == ks.read_release(tmp_path / "out").certificate
    assert ks.verify(again)
    assert app.run(["show", str(again)]) == 0
    other = ks.read_release(SAMPLES / "margins").save(tmp_path / "out" / "other.csv")
    assert ks.read_release(other).certificate != release.certificate
    with pytest.raises(ks.InputError, match="there is none"):
        ks.read_release(tmp_path / "out" / "another.csv")


def test_simultaneous_intervals_of_queries():
    """Those of cells are those of a frame, all others follow from them, and kept totals are exact."""
    table = ks.Table.from_array([[50, 60, 70], [80, 90, 99]], axes={"place": ["a", "b"], "age": list("xyz")})
    release = ks.release(table, keep=["place"], mechanism=ks.Laplace.per_unit(1), rng=ks.rng(seed=19))
    frame = release.to_frame("pandas", level=0.9, simultaneous=True)
    cells = [release.interval(cell, 0.9, simultaneous=True) for cell in range(6)]
    assert cells == list(zip(frame["count_low"], frame["count_high"], strict=True))
    assert all(high - low > np.subtract(*release.interval(0, 0.9)[::-1]) for low, high in cells)
    low, high = release.interval({"age": "x"}, 0.9, simultaneous=True)
    assert (low, high) == (cells[0][0] + cells[3][0], cells[0][1] + cells[3][1])
    assert release.interval([2, 0, 0, -1, 0, 0], 0.9, simultaneous=True) == (
        2 * cells[0][0] - cells[3][1],
        2 * cells[0][1] - cells[3][0],
    )
    assert release.interval({"place": "a"}, 0.9, simultaneous=True) == (180, 180)
