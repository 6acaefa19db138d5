"""docs/guide.md: every number in its sentences is right, and the pictures can be drawn again.

That its commands and examples run is tested in ``test_pages.py``.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from docs.guide import pictures
from keepsum.accounting.total import Cost, Total
from keepsum.cli.app import run
from keepsum.privacy.distance import Distance
from keepsum.privacy.numbers import LARGE_EPSILON
from keepsum.privacy.profile import smallest_epsilon
from keepsum.report.review import SMALL_EPSILON
from report.undrawn import without_figures

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "guide.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.replace("\n> ", "\n").split())
NUMBER = r"-?\d+"
COUNTIES = "state,county,n\nNorth,Adams,120\nNorth,Burke,45\nSouth,Dale,80\nSouth,Essex,31\nCapital,Capital,64\n"
SCHOOLS = "school,grade,n\nOak,A,2\nOak,B,1\nOak,C,0\nElm,A,30\nElm,B,25\nElm,C,40\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the page speaks of; the categories are those that it shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEEPSUM_LEDGER", raising=False)
    shutil.copy(pictures.CHILDREN, "children.csv")
    (categories,) = blocks("toml")
    Path("children.toml").write_text(categories, encoding="utf-8")


@pytest.mark.usefixtures("files")
def test_the_lines_of_a_certificate_are_named_as_they_are_shown(capfd, monkeypatch):
    without_figures(monkeypatch)
    commands = [shlex.split(line)[1:] for line in blocks("sh")[0].splitlines()]
    assert [command[0] for command in commands] == ["plan", "ledger", "keygen", "release", "verify", "show"]
    for command in commands[1:4]:
        assert run([*command, *["--yes"] * (command[0] == "release")]) == 0, capfd.readouterr().err
    capfd.readouterr()
    assert run(commands[-1]) == 0
    first = capfd.readouterr().out
    assert run([*commands[-1], "--details"]) == 0
    shown = capfd.readouterr().out
    lines = PAGE.split("| line | what it tells you |")[1].split("\n\n")[0]
    for line in lines.splitlines()[2:]:
        named = re.findall(r"`(\w[\w -]*)`", line)
        for name in named:
            assert name == "Warning" or re.search(rf"^{name} ", shown, flags=re.MULTILINE), name
            assert name == "Warning" or bool(re.search(rf"^{name} ", first, flags=re.M)) == ("--details" not in line)
    assert len(re.findall(r"`\w[\w -]*`", lines)) == 12
    assert "from the operating system" in shown
    assert "Sampling is exact" in shown
    for name in ("table.csv", "certificate.json", "report.html", "registry.json", "reviewer-questions.md"):
        assert (Path("out") / name).exists(), name


# -- numbers in the text ----------------------------------------------------------------------------


def test_the_first_table_is_a_release():
    rows = re.findall(r"^\| (\w+)((?: \| \d+ → -?\d+)+) \| \*\*(\d+)\*\* \|$", PAGE, flags=re.MULTILINE)
    pairs = [[tuple(map(int, pair)) for pair in re.findall(rf"({NUMBER}) → ({NUMBER})", row)] for _, row, _ in rows]
    before, after = np.moveaxis(np.array(pairs), 2, 0)
    lines = pictures.CHILDREN.read_text(encoding="utf-8").splitlines()[1:]
    assert before.ravel().tolist() == [int(line.split(",")[2]) for line in lines]
    assert after.ravel().tolist() == pictures.release().table.counts.tolist()
    assert [name for name, _, _ in rows] == pictures.CATEGORIES["county"]
    assert before.sum(axis=1).tolist() == after.sum(axis=1).tolist() == [int(total) for _, _, total in rows]
    (last,) = re.findall(r"^\| \*\*total, exact\*\* (.*)$", PAGE, flags=re.MULTILINE)
    totals = before.sum(axis=0).tolist()
    assert totals == after.sum(axis=0).tolist()
    assert [int(total) for total in re.findall(r"\*\*(\d+)\*\*", last)] == [*totals, before.sum()]
    assert (after < 0).sum() == 1
    assert after[0, 3] == -1
    assert np.maximum(after[0], 0).sum() == 21
    assert "Row Alpha would then add up to 21, not to its kept total of 20" in FLAT


def up_to_three_digits(value: float) -> str:
    return f"{Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(value)):,f}"


def test_factors_are_rounded_up():
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.,]+) times \| (.*) \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) == 7
    for epsilon, factor, of_one_percent in rows:
        times = math.exp(float(epsilon))
        assert factor == up_to_three_digits(times)
        assert of_one_percent == ("no limit" if times >= 100 else f"{factor}%")


def test_margins_of_the_example():
    accuracy = pictures.release().accuracy
    assert set(accuracy().margins) == {6}
    assert int(np.median(accuracy(0.99).margins)) == 9
    assert set(accuracy(simultaneous=True).margins) == {11}
    assert "`--level 0.99`: ±9 instead of ±6" in FLAT
    assert "`accuracy(simultaneous=True)` in Python: ±11 for all 16" in FLAT
    release = pictures.release()
    beta, alpha = {"county": "Beta", "education": "Low"}, {"county": "Alpha", "education": "Low"}
    low, high = release.interval({"county": ["Alpha", "Beta"], "education": "Low"})
    less, more = release.difference(beta, alpha)
    assert f"have ±6 each, their sum ±{(high - low) // 2} and not ±12, their difference ±{(more - less) // 2}" in FLAT


def test_margins_in_the_picture_of_the_noise():
    totals = pictures.children().keep("county", "education")
    names = ("l1 Laplace", "l2 Laplace", "Gaussian")
    margins = [int(ks.plan(keep=totals, mechanism=one).accuracy().margins[0]) for one in pictures.mechanisms().values()]
    assert ", ".join(f"{name} within ±{margin}" for name, margin in zip(names, margins, strict=True)) in FLAT


def test_gaussian_noise_is_the_smaller_one_from_5_or_6_tables_on():
    """Equal releases, epsilon 1 and delta 1e-6 together: epsilons of Laplace noise are added, or rho of Gaussian."""
    totals, delta = pictures.children().keep("county", "education"), Fraction(1, 10**6)

    def epsilon(rho: Fraction) -> Fraction:
        return Total.of(Cost("l2", rho=rho)).at(Distance("l2", 1), delta).epsilon

    in_ledger, in_spec = Fraction("0.0243"), Fraction("0.0278")
    assert epsilon(in_ledger) <= 1 < epsilon(in_ledger + Fraction("0.0002"))
    assert smallest_epsilon(in_spec, delta) <= 1 < smallest_epsilon(in_spec + Fraction("0.0002"), delta)
    smaller = {in_ledger: [], in_spec: []}
    for rho, releases in product(smaller, (4, 5, 6, 7)):
        gaussian, laplace = (
            ks.Gaussian(rho=rho / releases),
            ks.Laplace(epsilon=Fraction(1, releases)),
        )
        variances = [ks.plan(keep=totals, mechanism=one).noise.variance(0) for one in (gaussian, laplace)]
        smaller[rho].append(variances[0] < variances[1])
    assert smaller == {in_ledger: [False, False, True, True], in_spec: [False, True, True, True]}
    assert "it is the smaller noise from 5 tables on if one spec has them all, and from 6 tables on in a ledger" in FLAT
    said = " ".join(ks.plan(keep=totals, mechanism=ks.Laplace(epsilon=1)).explain(details=True).split())
    assert "noise if 5 tables or more like this share that epsilon (6 in a ledger)." in said


@pytest.mark.usefixtures("files")
def test_what_is_said_of_cells_that_totals_disclose(capfd):
    Path("counties.csv").write_text(COUNTIES)
    Path("schools.csv").write_text(SCHOOLS)
    noise = ["--count", "n", "--epsilon", "1", "--output", "new/", "--yes"]
    assert run(["release", "counties.csv", "--within", "county:state", "--keep", "state", *noise]) == 2
    refused = capfd.readouterr().err
    assert run(["release", "schools.csv", "--keep", "school", *noise]) == 0
    bounded = capfd.readouterr().out
    quotes = re.findall(r"^  > (.*)$", PAGE, flags=re.MULTILINE)
    assert len(quotes) == 2
    assert quotes[0] in refused
    assert quotes[1] in bounded


@pytest.mark.usefixtures("files")
def test_l2_laplace_may_be_smallest_where_few_cells_are_free(capfd):
    Path("counties.csv").write_text(COUNTIES)
    common = ["plan", "counties.csv", "--count", "n", "--within", "county:state", "--keep", "state"]
    assert run([*common, "--epsilon", "1", "--details"]) == 0
    assert "smallest with l2 Laplace" in " ".join(capfd.readouterr().out.split())


@pytest.mark.usefixtures("files")
def test_a_large_epsilon_is_warned_of(capfd):
    Path("schools.csv").write_text(SCHOOLS)
    common = ["release", "schools.csv", "--count", "n", "--keep", "school", "--output", "new/", "--yes"]
    for epsilon, warned in ((f"{LARGE_EPSILON}", False), (f"{LARGE_EPSILON + 0.5}", True)):
        assert run([*common, "--epsilon", epsilon, "--force"]) == 0
        words = f"above {LARGE_EPSILON}: this gives little protection"
        assert (words in " ".join(capfd.readouterr().out.split())) == warned
    limits = re.findall(r"up to (\d+) the limit is tight, above (\d+) it is hardly one, and Keepsum warns you", FLAT)
    assert limits == [(f"{SMALL_EPSILON}", f"{LARGE_EPSILON}")]
    assert re.findall(r"above (\d+) it is hardly", FLAT) == [f"{LARGE_EPSILON}"]


@pytest.mark.audit
def test_sums_without_negative_counts_are_biased():
    means = {name: f"{found.mean():.0f}" for name, found in pictures.sums().items()}
    assert pictures.true_sum() == 50
    assert f"The rarest cause has {pictures.true_sum()} deaths in all" in FLAT
    assert f"right on average ({means['as drawn']} over {pictures.RELEASES} releases)" in FLAT
    assert f"With negative counts cut off it is {means['cut off at 0']} on average" in FLAT
    assert f"cut off around {means['cut off at 0']}, with --nonnegative around {means['--nonnegative']}]" in FLAT


# -- pictures and links -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.audit] if name == "curve" else []) for name in pictures.FIGURES]
)
def test_figures_are_drawn(name, tmp_path):
    few = {"curve": {"values": ["0.3", "0.592"]}, "noise": {"draws": 1000}, "negative": {"releases": 5}}
    pictures.save(pictures.FIGURES[name](**few.get(name, {})), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.audit
def test_the_report_is_photographed(need, tmp_path):
    need("chromium")
    pictures.report(tmp_path / "report.png")
    written = (tmp_path / "report.png").read_bytes()
    width, height = (int.from_bytes(written[k : k + 4]) for k in (16, 20))
    assert 700 <= width <= 760
    assert 1000 <= height <= 1600  # the table and the cross table below it


def test_every_picture_is_used_and_small():
    used = re.findall(r"(?:\]\(|src=\")guide/(\w+)\.png", PAGE)
    assert (
        sorted(used) == sorted([*pictures.FIGURES, "report"]) == sorted(p.stem for p in (DOCS / "guide").glob("*.png"))
    )
    assert all((DOCS / "guide" / f"{name}.png").stat().st_size < 200_000 for name in used)


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_lead_to_headings_that_exist():
    links = re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", PAGE)
    assert len(links) >= 15
    for file, anchor in links:
        assert anchor in anchors((DOCS / file).read_text(encoding="utf-8") if file else PAGE), f"{file}#{anchor}"


def test_whom_a_limit_does_not_hold_against_is_told_by_the_line_of_one_person():
    """Not by how many people change: with structural zeros it may be two, and others may still have to differ."""
    domain = ks.Domain({name: [f"{name}0", f"{name}1"] for name in "abc"}).without(
        {"a": "a0", "b": "b0", "c": "c1"}, {"a": "a0", "b": "b1", "c": "c0"}, {"a": "a1", "b": "b1", "c": "c1"}
    )
    plan = ks.plan(domain, keep=["a"], mechanism=ks.Laplace(epsilon=1))
    said = " ".join(plan.explain().split())
    assert "two people swap cells" in said
    assert "not against somebody who knows the attributes of others" in said
    assert "three or more" not in FLAT
    assert "more than two people" not in FLAT
    assert FLAT.count("the line `One person` does not say otherwise") == 1


def test_the_sentences_beside_a_table_have_one_for_the_weak_reading():
    sentences = FLAT.split("## Sentences to put beside the table")[1]
    assert '"not against somebody who knows the attributes of others"' in sentences
    assert "this holds if others may differ in any way: not against somebody who knows their attributes." in sentences
