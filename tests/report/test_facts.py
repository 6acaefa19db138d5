"""Every number of a report, against the certificate, the released table and the law of the noise."""

import csv
import hashlib
import io
import math

import numpy as np
import pytest

import keepsum as ks
from keepsum.releasing.certificate import certificate_topics
from keepsum.releasing.wording import warnings_of
from keepsum.report.cells import MOST_POINTS, uncertainty_of
from keepsum.report.facts import facts_of
from report.samples import SAMPLES
from support import mostly_audit

NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/certificate.json"))
FAST = [name for name in NAMES if name != "chains"]


def topics(release):
    sections = {}
    for title, lines in certificate_topics(release.certificate, details=True):
        sections.setdefault(title, []).extend(lines)
    return sections


@mostly_audit("name", NAMES)
def test_what_was_published_and_is_exact(name, sample, facts):
    release, stated = sample(name), facts(name)
    certificate, published = release.certificate, stated.published
    assert published.cells == certificate.table.cells == len(stated.cells)
    assert [(axis.name, axis.categories) for axis in published.axes] == [
        (axis, len(release.table.domain.axis(axis))) for axis in release.table.domain.axes
    ]
    assert {axis.name: axis.parent for axis in published.axes if axis.parent} == release.table.domain.within
    assert published.released == certificate.released
    assert published.structural_zeros == release.table.domain.structural_zeros
    kept = stated.kept
    assert kept.totals == release.plan.invariants.height
    assert kept.independent == release.plan.structure.rank
    assert ", ".join(part.words for part in kept.parts) == topics(release)["Kept exactly"][0] or not kept.parts
    assert kept.pinned == len(certificate.exposure.pinned) == int(stated.cells.is_exact.sum())
    assert (kept.bounded, kept.not_checked) == (certificate.exposure.bounded, certificate.exposure.not_checked)
    assert len(kept.bounded_cells) == min(12, kept.bounded)
    assert stated.software == certificate.software


@pytest.mark.parametrize("name", ["margins", "signed", "nonnegative", "hierarchy"])
def test_the_hash_is_that_of_the_published_file(name, facts, sample):
    table = sample(name).table
    domain, count = table.domain, table.count
    lines = [",".join([*domain.axes, count])]
    for cell, value in enumerate(table.counts.tolist()):
        lines.append(",".join([*map(str, domain.cell(cell).values()), str(value)]))
    assert facts(name).published.sha256 == hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_privacy_is_stated_as_the_certificate_states_it(name, sample, facts):
    release, privacy = sample(name), facts(name).privacy
    shown = topics(release)
    assert list(privacy.plain) == shown["In plain words"]
    assert [privacy.mechanism, privacy.target] == shown["Noise"]
    assert list(privacy.guarantee) == shown["Guarantee"]
    assert privacy.law == release.plan.mechanism.law()
    one = [privacy.person, *(f"  {fact.axis}: {fact.words}" for fact in privacy.attributes)]
    one += [f"  {what}: {words}" for what, words in privacy.within]
    lines = shown[f"One {privacy.subject}"]
    assert lines[: len(one)] == one
    assert all(line in privacy.guarantee or line.startswith("For the requested") for line in lines[len(one) :])
    assert list(facts(name).warnings) == warnings_of(release.certificate)
    assert [facts(name).ledger] == shown["Ledger"]
    assert list(facts(name).blocks) == shown["Blocks"]


@pytest.mark.parametrize("name", FAST)
def test_margins_are_those_of_the_release(name, sample, facts):
    release, stated = sample(name), facts(name)
    accuracy = release.accuracy()
    rows = release.table.rows
    order = np.arange(len(accuracy.margins)) if rows is None else rows
    assert stated.cells.margins.tolist() == accuracy.margins[order].tolist()
    assert stated.cells.count.values.tolist() == release.table.counts[order].tolist()
    assert stated.cells.drawn.tolist() == release.unbiased.counts[order].tolist()
    margins = stated.margins
    assert (margins.typical, margins.draws, margins.level) == (accuracy.typical, accuracy.draws, accuracy.level)
    assert (margins.smallest, margins.largest) == (accuracy.margins.min(), accuracy.margins.max())
    assert margins.simulated_cells == (0 if accuracy.draws == 0 else len(order))  # none of these has both kinds


def test_margins_at_another_level(sample):
    release = sample("hierarchy")
    half = facts_of(release._record, release.plan._record, level=0.5)
    assert half.cells.margins.tolist() == release.accuracy(0.5).margins.tolist()
    assert [column.name for column in half.cells.numbers] == ["people", "margin_50", "low_50", "high_50"]
    assert half.kept.bounded == release.certificate.exposure.bounded  # by the margins that the certificate is about


def test_cells_that_the_totals_fix_and_bound(facts):
    """DC has one county, and the two counties of WI have two people between them."""
    kept = facts("hierarchy").kept
    assert kept.pinned_cells == ("state=DC, county=DC",)
    assert kept.bounded_cells == (("state=WI, county=Dane", 0, 2), ("state=WI, county=Lake", 0, 2))


@pytest.mark.parametrize("name", [*NAMES, "hostile", "long"])
def test_kept_totals_are_listed_with_the_values_that_the_released_table_has(name, sample, facts):
    release, parts = sample(name), facts(name).kept.parts
    sums = iter(release.plan.invariants.totals(release.table.counts).tolist())
    for part, record in zip(parts, release.certificate.kept.parts, strict=True):
        values = [next(sums) for _ in record.totals]
        assert [value for _, value in part.totals] == (values if len(values) <= 12 else [])
    assert next(sums, None) is None


def test_kept_totals_have_their_labels_and_names(facts):
    assert [name for name, _ in facts("hierarchy").kept.parts[0].totals] == ["IL", "WI", "DC"]
    named = [[name for name, _ in part.totals] for part in facts("invariants").kept.parts]
    assert named == [["f", "m", "x"], ["young", "middle"], ["weighted"]]


def test_many_kept_totals_are_not_listed():
    table = ks.Table.from_array([[30, 40]] * 13, axes={"place": list(range(13)), "sex": ["f", "m"]})
    release = ks.release(table, keep=["place", "sex"], mechanism=ks.Laplace.per_unit(epsilon=1), rng=ks.rng(seed=19))
    places, sexes = facts_of(release._record, release.plan._record).kept.parts
    assert (places.totals, sexes.totals) == ((), (("f", 390), ("m", 520)))


def test_a_margin_of_zero_is_not_taken_for_a_cell_without_noise(facts):
    """At a large epsilon the noise is mostly 0; only cells that the totals fix are said to be kept exactly."""
    from keepsum.report.page import margin_words

    stated = facts("rounded")
    assert set(stated.cells.margins.tolist()) == {0}
    assert not stated.cells.is_exact.any()
    assert margin_words(stated).endswith("Where it is ±0, the noise is 0 with a probability of at least 95%.")
    assert "kept exactly" not in margin_words(stated)
    assert margin_words(facts("hierarchy")).endswith("because the count is kept exactly, there is no noise.")


@pytest.mark.filterwarnings("ignore::keepsum.LargeLossWarning")
def test_a_page_of_a_table_without_people():
    """Noise so small that it is 0, counts of 0: no margin can be compared with its count."""
    table = ks.Table.from_array([0] * 3, axes={"place": list("abc")})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=30), rng=ks.rng(seed=19))
    stated = facts_of(release._record, release.plan._record)
    assert release.table.counts.tolist() == [0, 0, 0]
    assert (stated.uncertainty.positive, stated.uncertainty.not_positive, stated.uncertainty.largest) == (0, 3, ())
    html = release.to_html()
    assert "100.0%" not in html
    assert "Of 0 counts" not in html
    assert "3 counts with noise are 0 or less, and cannot be compared." in html


# -- the law of the noise ---------------------------------------------------------------------------


def test_curves_of_a_hierarchy_are_in_closed_form(facts, sample):
    """Two cells with a kept sum have noise k and -k, with probability proportional to exp(-2 epsilon |k|)."""
    smallest, typical = facts("hierarchy").curves
    a = math.exp(-2 * float(sample("hierarchy").plan.mechanism.epsilon))
    of_zero = (1 - a) / (1 + a)
    assert smallest.margin == 6
    np.testing.assert_allclose(smallest.probabilities, of_zero * a ** np.abs(smallest.values), rtol=1e-9)
    within = of_zero * (1 + 2 * sum(a**k for k in range(1, smallest.margin + 1)))
    assert smallest.within == pytest.approx(within, rel=1e-9)
    assert typical.margin == 8
    assert smallest.draws == typical.draws == 0
    noise = sample("hierarchy").noise
    assert [typical.probabilities[k] for k in (0, 5, 20)] == [
        noise.pmf(typical.cell, int(typical.values[k])) for k in (0, 5, 20)
    ]


@pytest.mark.parametrize("name", [name for name in FAST if name != "rounded"])
def test_a_curve_is_a_law_around_zero_that_keeps_its_margin(name, facts, sample):
    release, curves = sample(name), facts(name).curves
    margins = release.accuracy().margins
    noisy = np.delete(margins, release.plan.pinned)
    shown = [curve.margin for curve in curves]
    assert shown == sorted({int(noisy.min()), int(np.sort(noisy)[len(noisy) // 2]), int(noisy.max())})
    for curve in curves:
        assert curve.margin == margins[curve.cell]
        assert curve.cell not in release.plan.pinned
        step = int(curve.values[1] - curve.values[0])
        assert 0.95 < step * curve.probabilities.sum() <= 1 + 1e-9
        assert curve.within >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / max(curve.draws, 10**9 * (not curve.draws)))
        variance = release.noise.variance(curve.cell)
        drawn = float((step * curve.probabilities * curve.values.astype(float) ** 2).sum())
        assert drawn == pytest.approx(variance, rel=0.25)  # cut off at 2.5 margins, and estimated where simulated


# -- margins beside counts --------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAST)
def test_uncertainty_by_counting(name, facts):
    cells, stated = facts(name).cells, facts(name).uncertainty
    rows = [
        (margin / count, row)
        for row, (count, margin, exact) in enumerate(
            zip(cells.drawn.tolist(), cells.margins.tolist(), cells.is_exact.tolist(), strict=True)
        )
        if count > 0 and not exact
    ]
    assert stated.positive == len(rows)
    assert stated.exact + stated.positive + stated.not_positive == len(cells)
    assert stated.at_least_all == sum(relative >= 1 for relative, _ in rows)
    assert stated.within_tenth == sum(10 * int(cells.margins[row]) <= int(cells.drawn[row]) for _, row in rows)
    largest = sorted(rows, key=lambda pair: (-pair[0], pair[1]))[:10]
    assert [(cell.name, cell.relative) for cell in stated.largest] == [(cells.name(row), part) for part, row in largest]
    assert int(stated.points.cells.sum()) == sum(relative > 0 for relative, _ in rows)


def test_many_cells_are_drawn_as_bins_that_hold_them_all():
    counts = np.random.default_rng(19).integers(1, 10**6, size=2 * MOST_POINTS)
    table = ks.Table.from_array(counts, axes={"place": list(range(len(counts)))})
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=0.1), rng=ks.rng(seed=19))
    cells = facts_of(release._record, release.plan._record).cells
    points = uncertainty_of(cells).points
    assert int(points.cells.sum()) == int((cells.drawn > 0).sum())
    assert len(points.cells) < MOST_POINTS
    positive = cells.drawn[cells.drawn > 0]
    assert positive.min() <= points.counts.min() * 1.2
    assert points.counts.max() <= positive.max()


# -- tables, chains, files --------------------------------------------------------------------------


def test_a_cross_table_has_the_kept_totals_at_its_edges(facts, sample):
    cross, table = facts("margins").cross, sample("margins").table
    assert (cross.row_axis, cross.column_axis) == ("place", "age")  # the shorter axis has the columns
    counts = table.counts[cross.cells]
    assert cross.row_totals == counts.sum(axis=1).tolist()
    assert cross.column_totals == counts.sum(axis=0).tolist()
    assert cross.total == counts.sum()


def test_a_cross_table_has_gaps_for_structural_zeros_and_no_total_that_is_not_kept(facts, sample):
    cross, table = facts("invariants").cross, sample("invariants").table
    assert int((cross.cells < 0).sum()) == table.domain.structural_zeros == 1
    assert cross.row_totals is None
    sums = [int(table.counts[column[column >= 0]].sum()) for column in cross.cells.T]
    assert cross.column_totals == sums


@pytest.mark.parametrize("name", ["hierarchy", "gaussian"])
def test_no_cross_table_of_other_than_two_plain_axes(name, facts):
    assert facts(name).cross is None


def test_chain_curves_follow_from_the_meeting_times(facts, sample):
    (curve,) = facts("chains").chains
    (block,) = (b for b in sample("chains").certificate.guarantee.blocks if b.convergence is not None)
    stated = block.convergence
    assert (curve.steps, curve.pairs, curve.unmet) == (stated.steps, stated.pairs, stated.unmet)
    assert sum(pairs for _, pairs in stated.meetings) == stated.pairs
    for at, bound, limit in list(zip(curve.at.tolist(), curve.bound, curve.limit, strict=True))[::37]:
        late = sum(pairs * max(0, math.ceil((steps - at) / stated.lag)) for steps, pairs in stated.meetings)
        assert bound == pytest.approx(min(1, late / stated.pairs))
        assert bound <= limit <= 1
    at_the_end = float(curve.limit[curve.at >= stated.steps][0])
    assert at_the_end <= stated.upper * (1 + 1e-9)
    assert float(curve.upper) >= stated.upper


def test_post_processing_says_what_was_done(facts, sample):
    (sentence,) = facts("nonnegative").postprocessing
    (record,) = sample("nonnegative").certificate.postprocessing
    assert f"{record.cells_changed} of 42 cells changed, by at most {record.largest_change}" in sentence
    assert "biased" in sentence
    cells = facts("nonnegative").cells
    assert int((cells.count.values != cells.unbiased.values).sum()) == record.cells_changed
    assert facts("margins").postprocessing == ()


@pytest.mark.usefixtures("undrawn")
def test_the_ledger_is_named_with_the_entry(tmp_path):
    table = ks.Table.from_array([30, 40, 50], axes={"place": list("abc")})
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(2), dataset="people")
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1), ledger=ledger)
    charged = release.certificate.ledger
    words = facts_of(release._record, release.plan._record).ledger
    assert words.startswith(f"Charged to dataset 'people', entry {charged.entry} of its ledger")
    assert charged.head[:12] in words
    assert words.replace("'", "&#39;") in release.to_html()


@pytest.mark.parametrize("name", [*FAST, "hostile"])
def test_the_file_of_margins_holds_every_cell_and_label(name, facts, sample):
    stated, release = facts(name), sample(name)
    rows = list(csv.reader(io.StringIO(stated.cells.to_csv().decode(), newline="")))
    header, body = rows[0], rows[1:]
    labels = [column.name for column in stated.cells.labels]
    assert header[: len(labels)] == labels
    assert header[-3:] == ["margin_95", "low_95", "high_95"]
    assert len(body) == release.plan.size
    for k, row in enumerate(body):
        assert row[: len(labels)] == [column.label(k) for column in stated.cells.labels]
        margin, low, high = map(int, row[-3:])
        drawn = int(stated.cells.drawn[k])
        assert (low, high) == (drawn - margin, drawn + margin)
        assert int(row[len(labels)]) == stated.cells.count.values[k]
    if release.table.rows is None:
        assert [row[: len(release.table.domain.axes)] for row in body] == [
            list(map(str, release.table.domain.cell(k).values())) for k in range(release.plan.size)
        ]


def test_names_of_columns_stay_apart():
    table = ks.Table.from_array([30, 40], axes={"margin_95": ["f", "m"]}, count="low_95")
    release = ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=1))
    header = facts_of(release._record, release.plan._record).cells.to_csv().decode().splitlines()[0]
    assert header == "margin_95,low_95,margin_95_,low_95_,high_95"
