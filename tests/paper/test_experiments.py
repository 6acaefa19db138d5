"""The parts that verdicts rest on: tests that see a bias, the printed tables, the systems of totals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import keepsum as ks
from experiments import accuracy, drawing, small
from experiments.beyond import MAPPED_SYSTEMS, SHADES, hierarchy, level, system
from experiments.bias import bias_test, falls
from experiments.children import PRINTED
from experiments.run import setting_from
from experiments.setting import Section
from experiments.small import RATE, same_law, unbiased
from experiments.steps import CHILDREN, invariants, person_mechanism
from experiments.theory import delta_used
from support import mostly_audit

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def draws():
    return ks.plan(keep=invariants("circles"), mechanism=ks.Laplace.per_unit(epsilon=0.25)).sample(
        2_000, rng=ks.rng(seed=5)
    )


def test_a_bias_is_seen(draws):
    assert unbiased(draws) >= RATE
    assert unbiased(draws, chain=True) >= RATE
    shifted = draws.copy()
    shifted[:, 3] += 1
    assert unbiased(shifted) < RATE


def test_another_law_is_seen(draws):
    other = ks.plan(keep=invariants("circles"), mechanism=ks.Laplace.per_unit(epsilon=0.25)).sample(
        2_000, rng=ks.rng(seed=6)
    )
    wider = ks.plan(keep=invariants("circles"), mechanism=ks.Laplace.per_unit(epsilon=0.15)).sample(
        2_000, rng=ks.rng(seed=6)
    )
    assert same_law(draws, other) >= RATE
    assert same_law(draws, wider) < RATE


def test_a_trend_is_seen():
    population = np.geomspace(1e3, 1e6, 50)
    noise = ks.plan(keep=ks.Invariants.subsets(50, [range(50)]), mechanism=ks.Laplace.per_unit(epsilon=0.2)).sample(
        rng=ks.rng(seed=1)
    )
    assert bias_test(noise, population)[1] > RATE
    trend = noise - 10 * np.log10(population)
    assert bias_test(trend, population)[0] == pytest.approx(bias_test(noise, population)[0] - 10)
    assert falls(trend, population) < RATE
    assert falls(-trend, population) > 1 - RATE


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_papers_noise_tables_keep_their_margins(norm):
    table = np.array(PRINTED[norm])
    assert not table.sum(axis=0).any()
    assert not table.sum(axis=1).any()


def test_the_childrens_totals_with_the_correction():
    assert CHILDREN.sum(axis=1).tolist() == [20, 55, 25, 35]
    assert CHILDREN.sum(axis=0).tolist() == [50, 35, 30, 20]


def test_all_circles_intersect():
    matrix = invariants("circles").coefficients.toarray()
    assert matrix.shape == (3, 14)
    assert (matrix @ matrix.T).tolist() == [[8, 4, 4], [4, 8, 4], [4, 4, 8]]
    assert matrix.prod(axis=0).sum() == 2


def test_hierarchy():
    matrix = hierarchy(2, 3, 4).toarray()
    assert matrix.shape == (1 + 2 + 6, 24)
    assert matrix.sum(axis=1).tolist() == [24, 12, 12, *[4] * 6]
    assert (matrix[3:].sum(axis=0) == 1).all()
    assert system("table 4 4").coefficients.shape == (8, 16)


def test_regions_of_the_map():
    """20 counties by sex, by age: 40 x 4 entries, each the sum of three cells."""
    matrix = system("regions 20 2 4 3").coefficients.toarray()
    assert matrix.shape == (40 + 4, 480)
    entries, sizes = np.unique(matrix, axis=1, return_counts=True)
    assert entries.shape[1] == 160
    assert set(sizes) == {3}


def test_the_map_shows_what_is_not_exact():
    """As plans say it now: the cheapest of what is rounded and of what is estimated, and some that is exact."""
    with (REPO / "experiments" / "out" / "exactness.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["totals"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(MAPPED_SYSTEMS)
    l1 = [row["l1 Laplace"] for row in rows.values()]
    assert set(l1) == set(SHADES)  # exact, rounded, estimated, and none
    for side in ("5 × 5 × 5", "6 × 6 × 6", "20 × 4 × 4"):
        assert rows[f"{side}, two-way margins"]["l1 Laplace"] == "estimated"
    for name in ("4 × 4, both margins", "6 × 4 × 2, three one-way margins", "5 × 5 × 5, two-way margins"):
        assert rows[name]["l1 Laplace"] == level(MAPPED_SYSTEMS[name], "l1")["level"], name


KINDS_OF_MARGINS = {"one-way": 5, "chain": 5, "star": 5, "counties": 5, "zeros": 5}
DECOMPOSABLE = [name for name, totals in MAPPED_SYSTEMS.items() if totals.startswith(("margins", "nested", "zeros"))]


def test_the_map_has_decomposable_margins_of_every_kind():
    """Five at least that are one-way, chains, stars, nested with others crossed, and with zeros."""
    found = {kind: [name for name in DECOMPOSABLE if kind in name] for kind in KINDS_OF_MARGINS}
    assert {kind: len(names) >= KINDS_OF_MARGINS[kind] for kind, names in found.items()} == dict.fromkeys(found, True)
    for totals in {MAPPED_SYSTEMS[name] for names in found.values() for name in names}:
        blocks = ks.plan(keep=system(totals), mechanism=ks.Laplace.per_unit(epsilon=1)).structure.blocks
        assert all(block.system.collapses is not None for block in blocks), totals


@mostly_audit("name", DECOMPOSABLE)
def test_the_map_of_decomposable_margins_is_as_plans_say_it_now(name):
    with (REPO / "experiments" / "out" / "exactness.csv").open(encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["totals"] == name]
    assert row["l1 Laplace"] == level(MAPPED_SYSTEMS[name], "l1")["level"]


def test_too_narrow_a_gaussian_is_seen():
    """The enumeration of composition: enough at our sigma, not at a quarter of it."""
    sigmas = [float(ks.Gaussian.per_unit(epsilon=0.25, delta=1e-4).sigma)] * 2
    assert delta_used(sigmas, 0.5, 2e-4) <= 1
    assert delta_used([sigma / 4 for sigma in sigmas], 0.5, 2e-4) > 1


def test_setting_from_the_environment(tmp_path):
    setting = setting_from({"OUT": str(tmp_path), "QUICK": "1", "COUNTIES": "a.csv"})
    assert (setting.quick, setting.scaled(9, 1), setting.out) == (True, 1, tmp_path)
    assert setting.counties is not None
    assert setting.das is None
    assert not setting_from({"QUICK": "0"}).quick


def test_section_tables():
    section = Section("x")
    section.table("t", ["a", "b"], [["1", "2"]])
    assert section.text == ["| a | b |\n| --- | --- |\n| 1 | 2 |"]
    assert section.tables == {"t": [["a", "b"], ["1", "2"]]}


@pytest.mark.parametrize("kind", accuracy.EXACT_KINDS)
@pytest.mark.parametrize(("system", "l1", "l2"), [("children", 4, 2), ("circles", 2, 2**0.5), ("sum 102", 2, 2**0.5)])
def test_mechanisms_are_compared_at_one_loss_for_one_person(system, l1, l2, kind):
    """Epsilon per unit times that person's distance in the mechanism's own norm; delta likewise."""
    plan = ks.plan(
        keep=invariants(system), mechanism=person_mechanism(system, kind, accuracy.PERSON_EPSILON, accuracy.DELTA)
    )
    unit, distance = float(plan.mechanism.epsilon), l1 if kind == "l1" else l2
    assert plan.smallest_change.value == pytest.approx(distance)
    assert unit * distance == pytest.approx(float(accuracy.PERSON_EPSILON), rel=1e-9)
    if kind.startswith("gaussian"):
        delta = float(plan.mechanism.delta) * np.expm1(unit * distance) / np.expm1(unit)
        assert 0.999 * float(accuracy.DELTA) < delta <= float(accuracy.DELTA)


def test_the_title_of_the_comparison_is_what_the_numbers_say():
    """One mechanism that errs least everywhere, ties included, or each system's own."""
    first = {"l1": 3.0, "l2": 9.0, "gaussian": 15.0, "projected": 4.0}
    second = {"l1": 4.0, "l2": 8.0, "gaussian": 10.0, "projected": 3.9}
    assert accuracy.finding({"a": first, "b": second}) == (
        "At equal loss for one person l1 Laplace errs least, or within 5% of it, everywhere;\n"
        "l2 Laplace 2.0 to 3.0 times as much, Gaussian with our σ 2.5 to 5.0 times as much"
    )
    other = second | {"gaussian": 2.0}
    assert accuracy.finding({"a": first, "b": other}) == (
        "At equal loss for one person no mechanism errs least everywhere:\nl1 Laplace for a, Gaussian with our σ for b"
    )
    assert "Gaussian with our σ errs least" in accuracy.finding({"a": other, "b": other})


def test_boxes_say_which_is_which(draws, monkeypatch, tmp_path):
    figures = []
    monkeypatch.setattr(small, "save", lambda figure, *_: figures.append(figure))
    setting = setting_from({"OUT": str(tmp_path)})
    target = small.Target("l1", -1.0, 10, "", ())
    study = small.Study(target, [], {"draws": draws}, {"draws": draws, "level": np.asarray("exact")})
    small.draw_boxes(setting, [study], [str(k) for k in range(14)], "boxes", "Circles")
    legend = [text.get_text() for text in figures[0].axes[0].texts]
    assert legend == ["■ left box of each pair: Algorithm 1", "■ right box of each pair: plan.sample (exact)"]


def test_a_figure_whose_title_is_cut_is_not_saved(tmp_path):
    figure, panels = drawing.new(6, 3)
    panels[0, 0].set_title("a title that fits")
    drawing.save(figure, tmp_path, "good")
    panels[0, 0].set_title("a title that is a good deal longer than a figure of six inches is wide")
    with pytest.raises(AssertionError, match="bad does not fit"):
        drawing.save(figure, tmp_path, "bad")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["good.png", "good.svg"]
