"""A focus through the public face: the guarantee by enumeration, releases that verify, and what is refused."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import keepsum as ks
from facade.real_changes import dearest_change
from keepsum.releasing.certificate import certificate_topics
from keepsum.releasing.wording import as_text
from keepsum.report import registry, review
from support import mostly_audit

PLACES = ks.Domain({"state": ["A", "B"], "county": {"A": ["a", "b"], "B": ["c"]}}, within={"county": "state"})
PAIRS = ks.Domain({"county": ["a", "b"], "sex": ["f", "m"]})
COUNTIES = ks.Domain(
    {
        "state": ["A", "B"],
        "county": {"A": ["a", "b", "c"], "B": ["d", "e"]},
        "sex": ["f", "m"],
        "age": ["0", "18", "65"],
    },
    within={"county": "state"},
)
THREE_LEVELS = ks.Laplace.per_unit("0.3", focus={"state": "0.1", "county": "0.1"})
CASES = [
    (PLACES, [], {"state": "1/3"}),
    (PLACES, [[]], {"state": "1/3"}),
    (PAIRS, [["sex"]], {("county", "sex"): "1/5"}),
    (PAIRS, [], {"county": "1/4", (): "1/5"}),
    (PAIRS, [], {"county": "1/4", "sex": "1/5"}),
    (PAIRS, [[]], {"county": "1/4", "sex": "1/5"}),
    (PAIRS, [["county"]], {"sex": "1/3"}),
]


@pytest.mark.parametrize(("domain", "keep", "focus"), CASES)
def test_no_output_is_likelier_than_the_loss_allows_and_one_is_as_likely(domain, keep, focus):
    plan = ks.plan(domain, keep=keep, mechanism=ks.Laplace.per_unit("1/2", focus=focus))
    box = np.indices((9,) * domain.size).reshape(domain.size, -1).T - 4
    logs = plan.noise.log_pmf(box, constant=False)
    box, logs = box[np.isfinite(logs)], logs[np.isfinite(logs)]

    def largest_ratio(change: np.ndarray) -> float:
        return float((logs - plan.noise.log_pmf(box - change, constant=False)).max())

    largest = {}
    for attribute in plan.attributes:
        largest[attribute.axis] = dearest_change(plan, attribute.axis, largest_ratio)
        stated = float(plan.mechanism.loss(attribute.any_value).epsilon)
        assert largest[attribute.axis] == pytest.approx(stated, abs=1e-9)
    for change in np.eye(domain.size, dtype=int) if not keep else []:  # one person more
        largest["more"] = largest_ratio(change)
        assert largest["more"] == pytest.approx(float(plan.guarantee.unit_epsilon), abs=1e-9)
    assert max(largest.values()) == pytest.approx(float(plan.guarantee.person_epsilon), abs=1e-9)


def test_the_loss_per_unit_is_never_less_than_the_truth():
    plan = ks.plan(COUNTIES, keep=[], mechanism=THREE_LEVELS)
    assert plan.guarantee.unit_epsilon == Fraction(1, 2)
    assert plan.guarantee.person_epsilon == 1
    assert plan.person_distance == 2
    assert plan.mechanism.loss(ks.plan(COUNTIES, keep=[], mechanism=ks.Laplace.per_unit(1)).person).epsilon == 1
    words = plan.guarantee.words
    assert words == (
        "epsilon 0.3 per unit of l1 distance in cells, plus 0.1 per unit in totals of state, 0.1 per unit in totals of "
        "county; together at most 0.5 per unit of l1 distance"
    )


def test_one_person_more_may_lose_more_than_a_change_of_an_attribute(tmp_path):
    """Noise in the grand total is small, and a move does not change it."""
    plan = ks.plan(COUNTIES, keep=[], mechanism=ks.Laplace.per_unit("0.1", focus={(): 1}))
    assert plan.guarantee.person_epsilon == Fraction(11, 10)
    assert {plan.mechanism.loss(attribute.any_value).epsilon for attribute in plan.attributes} == {Fraction(1, 5)}
    shown = " ".join(plan.explain(details=True).split())
    words = "per-person epsilon 1.1 (l1 distance 1, 1 in the grand total: one person more or fewer), which is more than"
    assert words in shown
    shared = ks.Laplace(1, focus={(): 10})
    assert ks.plan(COUNTIES, keep=[], mechanism=shared).guarantee.person_epsilon == 1
    release = ks.release(ks.Table(COUNTIES, np.arange(30)), keep=[], mechanism=shared)
    release.save(f"{tmp_path}/out/")
    assert ks.verify(f"{tmp_path}/out/")
    asked = ks.Laplace(1, focus={(): 10}, attributes=["sex"])
    assert ks.plan(COUNTIES, keep=[], mechanism=asked).mechanism.cell_epsilon == Fraction(1, 2)


def test_a_release_is_charged_at_least_what_it_costs(tmp_path):
    ledger = ks.Ledger.create(tmp_path / "ledger.db", budget=ks.Budget.per_unit(1))
    table = ks.Table(COUNTIES, np.arange(30))
    release = ks.release(table, keep=[[]], mechanism=THREE_LEVELS, ledger=ledger)
    assert ks.verify(release.save(tmp_path / "out.csv"))
    assert str(ledger.standing()).startswith("epsilon 0.5 of 1 per unit of l1 distance spent by 1 release")
    with pytest.raises(ks.KeepsumError, match=r"0\.8"):
        ks.release(table, keep=[[]], mechanism=ks.Laplace.per_unit("0.3", focus={"county": "0.5"}), ledger=ledger)


@pytest.mark.parametrize("keep", [[], [[]]])
def test_a_release_is_saved_verified_and_read_again(tmp_path, keep):
    table = ks.Table(COUNTIES, np.arange(30))
    request = ks.Laplace(1, focus={"state": 1, "county": 1}, cell_share=3)
    release = ks.release(table, keep=keep, mechanism=request)
    release.save(f"{tmp_path}/out/")
    verified = ks.verify(f"{tmp_path}/out/")
    assert verified, verified
    read = ks.read_release(f"{tmp_path}/out/")
    assert read.plan.mechanism == THREE_LEVELS.resolve()
    assert read.certificate.mechanism.focus[1].axes == ["county"]
    assert read.certificate.guarantee.person.epsilon == "1"
    assert read.plan.explain(details=True) == release.plan.explain(details=True)
    assert read.accuracy().levels[0].accuracy.typical == release.certificate.accuracy.focused_margins[0]
    shown = as_text(certificate_topics(release.certificate))
    for words in ("within one total of state: epsilon 0.8", "within one total of county: epsilon 0.6", "per total of"):
        assert words in " ".join(shown.split())


@mostly_audit(
    ("keep", "focus", "form"),
    [
        ([], {"county": "0.1", "sex": "0.2"}, "5 × 2 table with both margins focused or kept, each entry the sum of 3"),
        ([["county"]], {"age": "0.2"}, "5 × 3 table with both margins focused or kept, each entry the sum of 2"),
        ([["state"]], {"county": "0.1", ("state", "age"): "0.2"}, "3 × 3 table with both margins focused or kept"),
    ],
)
def test_a_release_whose_totals_cross_is_saved_verified_and_read_again(tmp_path, keep, focus, form):
    release = ks.release(
        ks.Table(COUNTIES, np.arange(30)), keep=keep, mechanism=ks.Laplace.per_unit("0.4", focus=focus)
    )
    release.save(f"{tmp_path}/out/")
    verified = ks.verify(f"{tmp_path}/out/")
    assert verified, verified
    read = ks.read_release(f"{tmp_path}/out/")
    assert read.plan.explain(details=True) == release.plan.explain(details=True)
    shown = " ".join(read.plan.explain(details=True).split())
    assert form in shown
    assert "Sampling is exact" in shown
    assert {block.form.kind for block in read.certificate.guarantee.blocks} == {"crossed"}
    assert {block.sampler.method for block in read.certificate.guarantee.blocks} == {"column_splitting"}
    assert read.certificate.accuracy.focused_margins


def test_a_certificate_without_a_focus_has_no_word_of_it():
    release = ks.release(ks.Table(PAIRS, np.arange(4)), keep=[[]], mechanism=ks.Laplace.per_unit(1))
    assert b"focus" not in release.certificate.to_json()
    assert b"within" not in release.certificate.to_json()


def test_a_forged_certificate_is_shown_or_refused_in_a_sentence():
    release = ks.release(ks.Table(COUNTIES, np.arange(30)), keep=[[]], mechanism=THREE_LEVELS)
    document = json.loads(release.certificate.to_json())
    document["guarantee"]["person"]["distance"]["focused"] = [1, 2, 3]
    forged = ks.Certificate.from_json(json.dumps(document))
    with pytest.raises(ks.InputError, match="in the totals of each focus"):
        certificate_topics(forged)
    document["guarantee"]["person"]["distance"]["focused"] = []
    document["guarantee"]["person"]["within"] = [None] * 5
    shown = " ".join(as_text(certificate_topics(ks.Certificate.from_json(json.dumps(document)))).split())
    assert "per-person epsilon 1 (l1 distance 2: one person changes cells)" in shown


def test_what_is_reported_of_a_release_with_a_focus():
    release = ks.release(ks.Table(COUNTIES, np.arange(30)), keep=[[]], mechanism=THREE_LEVELS)
    entry = registry.registry_entry(release.certificate, {"basic": {"name": "People"}})["entry"]
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert "focus" in json.dumps(entry)
    answers = " ".join(f"{answer.answer}" for answer in review.review_answers(release.certificate))
    assert "0.1 per unit in totals of state" in answers


def test_curves_and_targets_keep_the_proportions():
    keep = ks.Invariants.margins(COUNTIES, [[]])
    curve = ks.accuracy_curve(keep=keep, mechanism=THREE_LEVELS, values=[0.3, 0.6])
    assert curve.points[1].mechanism == ks.Laplace.per_unit("0.6", focus={"state": "0.2", "county": "0.2"}).resolve()
    assert curve.points[1].person.epsilon == 2
    shared = ks.Laplace(1, focus={"county": 1}, cell_share=2)
    chosen = ks.mechanism_for(keep=keep, mechanism=shared, margin=10)
    assert chosen.focus == shared.focus
    assert ks.plan(keep=keep, mechanism=chosen).accuracy().typical <= 10


def test_other_noise_is_compared_with_and_without_the_focus():
    lines = " ".join(ks.plan(COUNTIES, keep=[[]], mechanism=THREE_LEVELS).explain(details=True).split())
    assert "l1 Laplace with this focus" in lines
    assert "smallest with l1 Laplace without focus" in lines
    assert "A focus adds noise to cells, and takes it from the totals" in lines


@pytest.mark.parametrize(
    ("focus", "words"),
    [
        ({"county": 0}, "The weight of 'totals of county' in focus= must be a positive number, got 0."),
        ({"county": -1}, "must be a positive number, got -1."),
        ({"county": math.nan}, "must be a positive number"),
        ({"county": None}, "must be a positive number"),
        ({"county": 1e-13}, "must be from 1e-12 to 1e12"),
        ({3: 1}, "Keys of focus= must be axes, tuples of axes, or Invariants.subsets, got"),
        ({("county", 3): 1}, "Keys of focus= must be axes, tuples of axes, or Invariants.subsets, got"),
        ({("county", "sex"): 1, ("sex", "county"): 1}, "must be different totals, got 'totals of sex × county' twice"),
        (["county"], "Argument focus= must be a mapping"),
        ("county", "Argument focus= must be a mapping"),
        ({f"axis {k}": 1 for k in range(9)}, "must have at most 8 totals, got 9"),
    ],
)
def test_a_wrong_focus_is_refused_in_a_sentence(focus, words):
    with pytest.raises(ks.InputError) as caught:
        ks.Laplace.per_unit(1, focus=focus)
    assert words in str(caught.value)


def test_a_focus_is_for_l1_noise_and_shares_for_a_person():
    with pytest.raises(ks.InputError, match="must be in the l1 norm"):
        ks.Laplace.per_unit(1, "l2", focus={"county": 1})
    with pytest.raises(ks.InputError, match="must be in the l1 norm"):
        ks.Laplace(1, "l2", focus={"county": 1})
    with pytest.raises(ks.InputError, match="requires focus="):
        ks.Laplace(1, cell_share=2)
    with pytest.raises(ks.InputError, match="cell_share= must be a positive number"):
        ks.Laplace(1, focus={"county": 1}, cell_share=0)
