"""Answers to what reviewers ask rest on facts of the certificate, and change with them."""

import copy
import json
import math
import re
from collections import Counter
from fractions import Fraction

import msgspec
import pytest

import keepsum as ks
from keepsum.cli.commands.report import HELP
from keepsum.releasing.certificate import certificate_topics
from keepsum.report import registry
from keepsum.report.review import STATUS, as_json, as_markdown, review_answers
from report.changed_certificates import CHANGES, FOLDERS, certificate, sample
from report.evil_names import EVIL, evil, html

STANDARD = r"\b[A-Z]{2,} \d{3,}|\bsections? \d|doi\.org"  # as names of standards and their parts are written


def about(found, words):
    (answer,) = [answer for answer in review_answers(found) if words in answer.question]
    return answer


def resolve(document, path):
    for name in path.split("."):
        document = document[name]
    return document


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_published_certificate_gives_answers(folder):
    found = sample(folder)
    answers = review_answers(found)
    assert answers == review_answers(found)
    assert len({answer.question for answer in answers}) == len(answers) == 24
    document = msgspec.to_builtins(found._record) | {
        "records": msgspec.to_builtins(found.records),
        "carried": found.carried,
    }
    document["table"].setdefault("attributes", {})
    for answer in answers:
        assert answer.answer.endswith(".")
        assert answer.status in STATUS
        for fact in answer.facts:
            resolve(document, fact)
        if answer.status != "not answered":
            assert answer.facts
    assert {answer.topic for answer in answers} >= {
        "Privacy parameters", "Unit of privacy", "Algorithms and correctness", "Utility", "Bias", "Trust model",
        "Side channels", "Security and access control", "Data collection exposure",
    }  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_number_is_that_of_the_certificate(folder):
    found = sample(folder)
    person = found.guarantee.person
    stated = about(found, "all privacy parameters").answer
    if person.rho is not None:
        assert f"rho {person.rho} (zCDP)" in stated
    else:
        (epsilon, *_) = re.findall(r"per-\w+ epsilon ([\d./]+)", stated)
        exact = Fraction(person.epsilon)  # the certificate rounds 2/3 up to twelve digits, sentences others to four
        assert exact - Fraction(1, 10**12) <= Fraction(epsilon) <= exact * Fraction(1001, 1000)
    assert f"±{found.accuracy.typical_margin:,} per count" in about(found, "accuracy stated").answer
    assert f"keepsum {found.software['keepsum']}" in about(found, "library").answer
    assert f"{found.table.cells:,} counts" in about(found, "queries fixed").answer


def test_a_release_with_nothing_against_it():
    """One attribute, no totals, exact noise: only what a certificate cannot know is open, and the missing ledger."""
    count = Counter(answer.status for answer in review_answers(certificate("ledger")))
    assert count["not met"] == 0
    assert {a.question for a in review_answers(certificate()) if a.status == "not met"} == {
        "Is the loss of all releases of the same data added up?"
    }


@pytest.mark.parametrize(
    ("change", "question", "before", "after", "words"),
    [
        ("estimated", "all privacy parameters", "met", "not met", "estimated, not proved"),
        ("estimated", "epsilon small enough", "met", "not answered", "must say why"),
        ("estimated", "rest on a proof", "met", "not met", "95% confidence"),
        ("estimated", "floating-point", "met", "not met", "estimated as a whole"),
        ("estimated", "delta so small", "met", "not answered", "Delta is 2.65e-7."),
        ("estimated", "expected value", "met", "not answered", "is estimated"),
        ("rounded", "delta so small", "met", "not answered", "Delta is 2.65e-8."),
        ("rounded", "rest on a proof", "met", "met", "Sampling is rounded"),
        ("no guarantee", "delta so small", "met", "not met", "delta is 1: nothing is guaranteed"),
        ("seed", "all privacy parameters", "met", "not met", "whoever knows the seed can remove it"),
        ("seed", "epsilon small enough", "met", "not met", "no parameters are stated"),
        ("seed", "delta so small", "met", "not met", "no parameters are stated"),
        ("seed", "every value of every attribute", "met", "not met", "nothing is guaranteed"),
        ("seed", "randomness", "met", "not met", "from a seed: not for publication"),
        ("records without a unit", "unit of privacy a person", "not answered", "not met", "per record"),
        ("records without a unit", "epsilon small enough", "met", "not answered", "one record"),
        ("one record each, declared", "unit of privacy a person", "not answered", "not answered", "nobody checked"),
        ("several records", "unit of privacy a person", "not answered", "met", "At most 3 records of each person"),
        ("several records", "expected value", "met", "not met", "Records above the bound"),
        ("several records", "epsilon small enough", "met", "not answered", "epsilon 1.5"),
        ("pinned", "everything that is released", "met", "not met", "without noise: 2."),
        ("bounded", "everything that is released", "met", "not met", "margin of error: 7."),
        ("not checked", "everything that is released", "met", "not met", "not checked: 9."),
        ("file order", "everything that is released", "met", "not met", "order of the rows"),
        ("carried", "everything that is released", "met", "not met", "Column code"),
        ("categories", "categories that are counted", "met", "not met", "'place' were taken from the data"),
        ("kept", "everything that is released", "met", "not met", "the grand total, published exactly"),
        ("kept", "size of the data", "met", "not met", "Neighbours have the same kept totals (the grand total)"),
        ("upper bound", "size of the data", "met", "met", "Some distances are upper bounds"),
        ("a value not protected", "every value of every attribute", "met", "not met", "not protected for 1 value"),
        ("nothing protected", "unit of privacy a person", "not answered", "not met", "neither a person nor a record"),
        (
            "not known",
            "all privacy parameters",
            "met",
            "met",
            "no per-person loss is stated: how far a change of place",
        ),
        ("not known", "epsilon small enough", "met", "not answered", "neither a person nor a record: epsilon 0.25."),
        ("not known", "unit of privacy a person", "not answered", "not met", "neither a person nor a record"),
        ("not known", "every value of every attribute", "met", "not met", "place: not known for these totals"),
        ("weak reading", "all privacy parameters", "met", "met", "not against somebody who knows the attributes"),
        ("weak reading", "epsilon small enough", "met", "not answered", "not against somebody who knows their attrib"),
        ("weak reading", "unit of privacy a person", "not answered", "not met", "not against somebody who knows"),
        ("weak reading", "every value of every attribute", "met", "not met", "not against somebody who knows"),
        ("nonnegative", "expected value", "met", "not met", "biased upwards"),
        ("nonnegative", "readers take the counts", "not answered", "met", "without negative ones"),
        ("ledger", "added up", "not met", "met", "dataset 'people', entry 12"),
        ("large epsilon", "epsilon small enough", "met", "not met", "epsilon 12, above 10"),
        ("middling epsilon", "epsilon small enough", "met", "not answered", "must say why"),
    ],
)
def test_each_weak_part_changes_its_answer(change, question, before, after, words):
    plain, changed = about(certificate(), question), about(certificate(change), question)
    assert (plain.status, changed.status) == (before, after)
    assert words not in plain.answer
    assert words in changed.answer


def test_a_delta_above_the_convention_is_not_met():
    chains = sample(next(folder for folder in FOLDERS if folder.name == "chains"))
    answer = about(chains, "delta so small")
    assert (answer.status, answer.answer.split(";")[0]) == ("not met", "Delta is 0.0529")


def test_rho_is_converted_and_named():
    answer = about(sample(next(folder for folder in FOLDERS if folder.name == "zcdp")), "epsilon small enough")
    (epsilon,) = re.findall(r"epsilon (\S+), delta 1e-6, from rho 0\.08 \(zCDP\)", answer.answer)
    assert 0.08 < float(epsilon) <= 0.08 + 2 * math.sqrt(0.08 * math.log(10**6))
    assert answer.status == "not answered"


def test_a_table_of_several_attributes_does_not_protect_a_whole_person():
    answer = about(sample(next(folder for folder in FOLDERS if folder.name == "margins")), "unit of privacy a person")
    assert answer.status == "not met"
    assert "one attribute of one person" in answer.answer


def test_answers_need_a_certificate():
    for call in (review_answers, as_markdown, as_json):
        with pytest.raises(ks.InputError, match="must be made from a certificate, got a value of type 'dict'"):
            call({})


# -- as files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_page_has_every_answer(folder):
    found = sample(folder)
    page = html(as_markdown(found))
    answers = review_answers(found)
    assert page.count("<strong>") == page.count("<em>") == page.count("<p>Answer: ") == len(answers)
    assert found.table.sha256 in page
    for status, words in STATUS.items():
        number = sum(answer.status == status for answer in answers)
        assert page.count(f"<em>{words}</em>") == number
        assert f"{number} {words}" in page


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_questions_are_said_to_be_of_no_standard(folder):
    """None was read: no number of a document or of a section, no address."""
    for text in (as_markdown(sample(folder)), as_json(sample(folder)).decode(), HELP):
        assert not re.search(STANDARD, text)
    for wrong in ("Answers to ISO 99999", "the questions of RFC 9999", "(section 2.4)", "https://doi.org/10.1000/1"):
        assert re.search(STANDARD, wrong)


def test_the_file_for_machines_has_every_answer():
    document = json.loads(as_json(certificate()))
    assert [answer["question"] for answer in document["answers"]] == [a.question for a in review_answers(certificate())]
    assert set(document["answers"][0]) == {"topic", "question", "answer", "status", "facts"}


@pytest.mark.parametrize("label", EVIL)
def test_labels_do_nothing_in_the_page(label):
    plain, page = html(as_markdown(evil("place"))), html(as_markdown(evil(label)))
    assert Counter(re.findall(r"<(\w+)", page)) == Counter(re.findall(r"<(\w+)", plain))
    raw = as_markdown(evil(label))  # some programs make links of bare addresses
    assert "https://example" not in raw
    assert "www.example" not in raw


def test_the_check_of_labels_can_fail():
    raw = as_markdown(evil("place")).replace("place", "**x** <b>")
    assert Counter(re.findall(r"<(\w+)", html(raw))) != Counter(re.findall(r"<(\w+)", html(as_markdown(evil("place")))))


def test_high_levels_are_not_rounded_to_certainty():
    """In the answers, in the entry of the registry, in the certificate in words, and in what sampling adds."""
    estimated = copy.deepcopy(CHANGES["estimated"])
    estimated["guarantee.sampling"]["confidence"] = 0.999999
    high = certificate({"accuracy.level": 0.99999}, estimated)
    shown = "\n".join(line for _, lines in certificate_topics(high) for line in lines)
    for text in (shown, as_markdown(high), registry.as_json(registry.registry_entry(high)).decode()):
        assert "99.999% margin of error" in text
        assert "100%" not in text
    assert "with 99.9999% confidence" in shown
    assert "(99.9999% confidence limit; " in shown
