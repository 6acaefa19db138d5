"""A release in plain words: for each kind of guarantee, never more than it says."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
import pytest

import keepsum as ks
from keepsum.releasing.certificate import CertificateRecord, certificate_topics
from keepsum.releasing.wording import TITLE, PersonStatements
from keepsum.report.registry import registry_entry
from keepsum.report.review import guarantee_answers
from support import mostly_audit

SAMPLES = Path(__file__).parents[1] / "certificates"


def section(text: str) -> str:
    """The section of a plan, in one line."""
    lines = text.split(f"\n{TITLE}")[1].split("\nPinned cells")[0]
    return " ".join(lines.split())


def sample(name: str) -> CertificateRecord:
    return CertificateRecord.from_json((SAMPLES / name / "certificate.json").read_bytes())


def shown(certificate: CertificateRecord) -> str:
    return " ".join(dict(certificate_topics(certificate))[TITLE])


@pytest.fixture
def margins():
    domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "sex": ["f", "m", "x"]})
    return ks.Invariants.margins(domain, [["county"], ["sex"]])


def test_a_pure_loss(margins):
    assert section(ks.plan(keep=margins, mechanism=ks.Laplace.per_unit(epsilon=0.25)).explain(details=True)) == (
        "The 6 kept totals are published exactly. So they are not protected, nor is whatever anybody can work out from "
        "them and from what they know already. Whatever anybody concludes about one person from the released counts, "
        "they are at most 2.72 times as likely to conclude it as if that person's value of county or sex were "
        "different, with every kept total the same (for which others may have to differ too). It holds even against "
        "somebody who knows everything about everybody but their values of the changed attribute."
    )


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (ks.Laplace(epsilon=1, norm="l2"), "at most 2.72 times as likely to conclude it as if"),
        (ks.Laplace.per_unit(epsilon="1e-12", norm="l2"), "at most 1.01 times as likely to conclude it as if"),
        (ks.Laplace(epsilon=10), "at most 22,100 times as likely to conclude it as if"),
        (ks.Laplace(epsilon=50), "at most e^50 times (over 400,000 times: hardly a limit) as likely"),
        (
            ks.Gaussian(epsilon=1, delta="1e-6"),
            "at most 2.72 times as likely to conclude it, plus a probability of 0.000001, as if",
        ),
        (
            ks.Gaussian(rho="1/2"),
            "at most 154 times as likely to conclude it, plus a probability of 0.000001",
        ),
    ],
    ids=["l2", "tiny", "large", "huge", "epsilon and delta", "rho"],
)
def test_the_limit_is_that_of_the_loss(margins, mechanism, words):
    assert words in section(ks.plan(keep=margins, mechanism=mechanism).explain(details=True))


@mostly_audit("epsilon", ["0.01", "0.1", "0.3", "1", "2", "3.3", "7", "12.9"])
def test_the_factor_is_rounded_up(epsilon):
    domain = ks.Domain({"county": ["Alpha", "Beta", "Gamma"], "sex": ["f", "m", "x"]})
    text = section(ks.plan(domain, keep=["county"], mechanism=ks.Laplace(epsilon)).explain(details=True))
    factor = float(re.search(r"at most ([\d.,]+) times", text)[1].replace(",", ""))
    exact = math.exp(float(epsilon))
    assert exact < factor < 1.0101 * exact


def test_without_kept_totals_nothing_is_exact_and_nobody_else_changes():
    domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    text = section(ks.plan(domain, keep=[], mechanism=ks.Laplace.per_unit(epsilon=0.5)).explain(details=True))
    assert text.startswith("No total is published exactly; every count has noise. Whatever")
    assert "value of county or sex were different. That holds" in text


def test_one_total_lets_one_person_change_alone():
    domain = ks.Domain({"county": ["Alpha", "Beta"], "sex": ["f", "m"]})
    text = section(ks.plan(domain, keep=[[]], mechanism=ks.Laplace.per_unit(epsilon=0.5)).explain(details=True))
    assert text.startswith("The kept total is published exactly. So it is not protected, nor is whatever")
    assert "different, with every kept total the same. That" in text


def test_no_limit_where_no_person_has_one():
    unnamed = section(
        ks.plan(keep=ks.Invariants.subsets(3, [[0, 1, 2]]), mechanism=ks.Laplace.per_unit(epsilon=1)).explain(
            details=True
        )
    )
    assert unnamed.endswith("No limit is guaranteed to what the released counts say about one person.")
    assert "times as likely" not in unnamed


def test_unprotected_attributes_and_pinned_cells_are_excepted():
    text = shown(sample("hierarchy"))
    assert "exactly; 1 count that follows from them has no noise. So" in text
    assert "There is no such limit where state or county is not protected, as listed under 'One person'." in text


def without(certificate: CertificateRecord, count: int) -> CertificateRecord:
    """A certificate whose first attributes cannot change."""
    person = certificate.guarantee.person
    attributes = [
        msgspec.structs.replace(record, any_value=None, other_value=None) if k < count else record
        for k, record in enumerate(person.attributes)
    ]
    person = msgspec.structs.replace(person, attributes=attributes)
    guarantee = msgspec.structs.replace(certificate.guarantee, person=person)
    return msgspec.structs.replace(certificate, guarantee=guarantee)


def test_an_attribute_without_protection_is_not_among_those_that_may_differ():
    text = shown(without(sample("margins"), 1))
    assert "if that person's value of place were different" in text
    assert "There is no such limit where age is not protected, as listed under 'One person'." in text


def test_without_any_protected_attribute_there_is_no_limit():
    text = shown(without(sample("margins"), 2))
    assert text.endswith("No limit is guaranteed to what the released counts say about one person.")


def test_chains_are_estimated():
    text = shown(sample("chains"))
    assert ", plus a probability of 0.0529, as if" in text
    assert text.endswith("It is estimated, not proved, because some noise is drawn by Markov chains.")


@pytest.mark.audit
def test_chains_that_are_not_measured_yet(monkeypatch):
    monkeypatch.setattr("keepsum.planning.selection.splitting.choose_families", lambda *_: None)
    domain = ks.Domain({axis: [f"{axis} {i}" for i in range(5)] for axis in ("age", "sex", "place")})
    plan = ks.plan(domain, keep=[["age"], ["sex"], ["place"]], mechanism=ks.Laplace.per_unit(epsilon=1))
    assert (plan.guarantee.error, plan.guarantee.sampling) == (None, "estimated")
    assert section(plan.explain(details=True)).endswith("Markov chains, and what that adds is not yet measured.")


@pytest.mark.parametrize(
    ("kept", "sentence"),
    [
        ([[]], "That holds whatever else they know."),
        ([["a"], ["b"]], "It holds even against somebody who knows everything about everybody but their values of the"),
        (
            [["a", "b"], ["b", "c"]],
            "but their values of the changed attribute; for a change of b only if others may differ in any way, not "
            "against somebody who knows their attributes.",
        ),
        (
            [["a", "b"], ["b", "c"], ["a", "c"]],
            "It holds if others may differ in any way: not against somebody who knows their attributes.",
        ),
    ],
    ids=["one moves", "two exchange", "one attribute weakly", "all weakly"],
)
def test_against_whom_the_limit_holds(kept, sentence):
    domain = ks.Domain({"a": [1, 2, 3], "b": [1, 2], "c": [1, 2]})
    text = ks.plan(domain, keep=kept, mechanism=ks.Laplace.per_unit(epsilon=1)).explain(details=True)
    assert sentence in section(text)
    assert ("not against somebody who knows the attributes of others" in " ".join(text.split())) == (len(kept[0]) > 1)


def test_an_earlier_definition_says_less():
    """A certificate of the lattice's distances does not say whom its limit holds against."""
    assert "knows" not in shown(sample("margins")).replace(
        "whatever anybody can work out from them and from what they know", ""
    )


CAVEAT = "the shortest change that keeps the totals, though it may lead to negative counts, so that tables without them"


EARLIER = sorted(
    path.parent.name for path in SAMPLES.glob("*/certificate.json") if b"keepsum.certificate/2" in path.read_bytes()
)


@pytest.mark.parametrize("name", EARLIER)
def test_an_earlier_definition_is_named_wherever_a_limit_is_stated(name):
    """In ``show``, in a report's page, registry entry and answers, and in the statement of ``verify``."""
    certificate = sample(name)
    assert certificate.schema == "keepsum.certificate/2"
    statements = PersonStatements.of(certificate)
    topics = {topic: " ".join(lines) for topic, lines in certificate_topics(certificate)}
    assert CAVEAT in statements.headline()
    assert f"It is by an earlier definition of the distance of one person: {CAVEAT}" in topics[TITLE]
    assert CAVEAT in topics[statements.title]
    for answer in guarantee_answers(certificate):
        if "epsilon" in answer.question or "unit of privacy" in answer.question or "every value" in answer.question:
            assert CAVEAT in answer.answer
            assert answer.status != "met"
    loss = registry_entry(certificate)["entry"]["deployment"]["privacy_loss"]
    assert CAVEAT in loss["privacy_unit_details"]
    assert CAVEAT in loss["privacy_parameters_details"]
    if name == "chains":
        assert CAVEAT in {check.name: check.words for check in ks.verify(SAMPLES / name).checks}["statement"]


def test_a_limit_between_real_tables_names_no_earlier_definition(margins):
    assert "earlier definition" not in ks.plan(keep=margins, mechanism=ks.Laplace(epsilon=1)).explain()


def test_rounded_sampling_adds_its_delta():
    assert ", plus a probability of 0.0000275, as if" in shown(sample("rounded"))


def test_a_delta_of_1_is_no_limit():
    certificate = sample("chains")
    sampling = msgspec.structs.replace(certificate.guarantee.sampling, total_variation=1.0)
    guarantee = msgspec.structs.replace(certificate.guarantee, sampling=sampling)
    text = shown(msgspec.structs.replace(certificate, guarantee=guarantee))
    assert text.endswith("No limit is guaranteed to what the released counts say about one person.")


def test_records_of_one_person():
    text = shown(sample("records"))
    assert text.startswith("The 2 kept totals (of the counted records) are published exactly.")
    assert "were different in each of at most 2 counted records, and no others were counted instead, with every" in text


def test_records_alone():
    text = shown(sample("records_alone"))
    assert "about one record from" in text
    assert "that record's value of" in text
    assert text.endswith("For a person with several records these limits multiply.")


def test_a_seed_is_named():
    seeded = msgspec.structs.replace(sample("margins"), randomness="seed")
    assert shown(seeded).endswith("It does not hold against anybody who knows the seed of the noise.")
