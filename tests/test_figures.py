"""Measured figures stand in one file, and README, docs, results and plots show those and no others."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import keepsum as ks
from benchmarks import pages, results
from benchmarks.cases.stated import STATED, WITHIN
from experiments.setting import Section
from experiments.table_speed import SHAPES, Speeds, name_of
from experiments.three_way import add as add_three_way
from keepsum.planning.selection.choice import seconds_per_draw

REPO = Path(__file__).parents[1]
OUT = REPO / "experiments" / "out"
# What has a figure: a time, a rate, a share of proposals. Times of more than a second are told in words.
SPEED = re.compile(
    r"\d (?:ns|µs|ms|s|seconds|microseconds|milliseconds)\b"
    r"|\bdraws/s\b|\d[^.;|]{0,40} per second"
    r"|\d% (?:are |is |of proposals )?accepted|accepts? (?:about |only )?\d"
)


@pytest.fixture(scope="module")
def measured():
    return results.load()


def unmarked(text: str) -> list[str]:
    """Lines with a speed that says nowhere in the results file it stands; code, tables of results and URLs aside."""
    for table in pages.TABLES:
        text = re.sub(rf"<!-- {table} -->.*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^    .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "", pages.FIGURE.sub("", text))
    text = re.sub(r"\d[\d,]*(?: [×x] \d[\d,]*)+", "", text)  # a table by its sides is no figure
    return [line for line in text.splitlines() if SPEED.search(line)]


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_a_page_shows_the_figures_of_the_results_file(page, measured):
    text = page.read_text(encoding="utf-8")
    assert pages.filled(text, measured) == text, "run python -m benchmarks.pages"


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_no_speed_is_without_its_name(page):
    assert unmarked(page.read_text(encoding="utf-8")) == []


def test_another_figure_is_seen(measured):
    name = "two-way/32x32/0.25/draws_per_second"
    right = f"draws {results.shown(measured['figures'][name])}<!-- figure: {name} --> tables per second"
    assert pages.filled(right, measured) == right
    assert pages.filled(f"draws 3,800<!-- figure: {name} --> tables per second", measured) == right
    where = f"2026-11-18, Neoverse-N1, 2 cores, Linux aarch64<!-- measured: {name} -->"
    for other in (where, f"2020-01-01, a machine<!-- measured: {name} -->"):
        date, machine = (measured["figures"][name][what] for what in ("date", "machine"))
        assert pages.filled(f"({other})", measured) == f"({date}, {machine}<!-- measured: {name} -->)"
    with pytest.raises(KeyError, match="No figure is called two-way/3x3"):
        pages.filled("7<!-- figure: two-way/3x3 -->", measured)


@pytest.mark.parametrize(
    "line",
    [
        "One core draws 7,800 tables of 16 × 16 per second.",
        "a draw takes 0.2 ms",
        "one draw takes about 18 µs",
        "plans took 0.2 to 2.2 s.",
        "2.7% are accepted",
        "it accepts 14% at ε = 0.25",
    ],
)
def test_a_speed_without_a_name_is_seen(line):
    assert len(unmarked(line)) == 1
    assert unmarked(f"```\n{line}\n```") == []


def test_every_figure_says_what_it_is_and_where_from(measured):
    assert len(measured["figures"]) > 50
    for name, figure in measured["figures"].items():
        assert set(figure) == {"value", "unit", "date", "machine", "command"}, name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", figure["date"]), name
        assert figure["command"] in ("make bench", "make bench-spark"), name
    for part in ("convergence", "spark"):
        assert {"date", "machine", "command"} <= set(measured[part])
    assert all(figure["date"] for figure in measured["bench"]["figures"])


def test_a_table_has_one_speed(measured):
    """Two cases never record one figure, and results.md reads it too."""
    figures, page = measured["figures"], (OUT / "results.md").read_text(encoding="utf-8")
    with (OUT / "table_speed.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert rows == [[name_of(shape), *Speeds.of(shape, figures).row] for shape in SHAPES]
    assert all(f"| {' | '.join(row)} |" in page for row in rows)
    section = Section("")
    add_three_way(section)
    assert section.text[-1] in page


def test_experiments_time_nothing():
    """Speeds come from the results file; a run says how long it took."""
    timed = [path.name for path in (REPO / "experiments").glob("*.py") if "import time\n" in path.read_text("utf-8")]
    assert sorted(timed) == ["cache.py", "run.py"]


CHEAP = [
    "no total, 10^6 cells", "no total, 10^6 cells, Gaussian", "one total over 102 cells", "circles",
    "circles, l2 Laplace", "4 × 4", "4 × 4, Gaussian", "20 × 20", "102 × 5", "1000 × 4", "3,143 × 8",
    "40 × 4 regions of three cells", "five weighted totals of 40 cells",
]  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_plans_say_what_draws_take(name, measured):
    """Within the factor that `make bench` allows, of what it measured; no clock is read here."""
    totals, noise, _ = STATED[name]
    stated = seconds_per_draw(ks.plan(keep=totals(), mechanism=noise).samplers)
    taken = measured["figures"][f"stated/{name}/seconds_per_draw"]["value"]
    assert stated is not None
    assert max(stated / taken, taken / stated) <= WITHIN
